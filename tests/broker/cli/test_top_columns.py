"""Which columns fit a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.top_columns import GAP, NAME, Column, fitted

COLUMNS = (Column("HOOK", NAME), Column("EVENT", NAME, drop=2), Column("RUNS", drop=1), Column("BAD"))


def texts(hook: str = "tool_call#0", event: str = "tool_call", runs: str = "12,345") -> list[list[str]]:
    """One row below the headings."""
    return [["HOOK", hook], ["EVENT", event], ["RUNS", runs], ["BAD", "1"]]


def test_all_columns_fit_a_wide_terminal() -> None:
    """What is left of the room is spread, the row fills it."""
    widths = fitted(COLUMNS, texts(), 60)
    assert list(widths) == [0, 1, 2, 3]
    assert sum(widths.values()) + 3 * len(GAP) == 60


def test_names_are_shortened_before_a_column_goes() -> None:
    """The longest one first; numbers keep every digit."""
    widths = fitted(COLUMNS, texts("h" * 40, "e" * 20), 45)
    assert list(widths) == [0, 1, 2, 3]
    assert widths[0] < 40
    assert widths[2] >= len("12,345")


def test_whole_columns_go_next() -> None:
    """In the order that the table says; the first column stays."""
    assert list(fitted(COLUMNS, texts("h" * 40, "e" * 20), 30)) == [0, 2, 3]
    assert list(fitted(COLUMNS, texts("h" * 40, "e" * 20), 20)) == [0, 3]
    assert fitted(COLUMNS, texts("h" * 40), 5) == {0: 5}


@pytest.mark.parametrize("gaps,shown", [("", [0]), ("t 1", [0, 1])])
def test_a_column_with_nothing_in_it_is_left_out(gaps: str, shown: list[int]) -> None:
    """Where it may not be blank."""
    columns = (Column("NAME", NAME), Column("GAPS", NAME, blank=False))
    assert list(fitted(columns, [["NAME", "x"], ["GAPS", gaps]], 40)) == shown


@given(st.text("x", max_size=60), st.text("x", max_size=60), st.integers(0, 10**12), st.integers(1, 130))
def test_a_row_fits_and_no_number_is_cut(hook: str, event: str, runs: int, room: int) -> None:
    """Whatever the names, numbers and the terminal are."""
    given_texts = texts(hook, event, f"{runs:,}")
    widths = fitted(COLUMNS, given_texts, room)
    assert sum(widths.values()) + len(GAP) * (len(widths) - 1) <= room
    assert 0 in widths
    for at, wide in widths.items():
        if COLUMNS[at].kind != NAME:
            assert wide >= max(map(len, given_texts[at]))
