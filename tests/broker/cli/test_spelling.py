"""The name that was probably meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.spelling import CHARACTERS, distance, nearest

VERBS = ("bench", "completion", "config", "demo", "pub", "schema", "status", "tap", "top", "up")


@pytest.mark.parametrize(
    "typed,meant",
    [
        ("tpa", "tap"),
        ("tpo", "top"),
        ("stauts", "status"),
        ("PUB", "pub"),
        ("publ", "pub"),
        ("stat", "status"),
        ("comp", "completion"),
        ("shcema", "schema"),
        ("zzz", None),
        ("qqqqqq", None),
        ("", None),
        ("x" * (CHARACTERS + 1), None),
    ],
)
def test_the_fewest_slips_win(typed: str, meant: str | None) -> None:
    """Letters changed over are one slip, a beginning is one too, and what is far from all is none of them."""
    assert nearest(typed, VERBS) == meant


def test_of_no_names_none_is_near() -> None:
    """An empty choice is no error."""
    assert nearest("tap", ()) is None


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_the_distance_is_the_same_both_ways(one: str, other: str) -> None:
    """Zero for equals only, and never more than the longer one has letters."""
    found = distance(one, other)
    assert found == distance(other, one)
    assert (found == 0) == (one == other)
    assert found <= max(len(one), len(other))


@given(st.text("abcd", min_size=2, max_size=8), st.data())
def test_neighbours_changed_over_are_one_slip(word: str, data: st.DataObject) -> None:
    """Anywhere in a word."""
    at = data.draw(st.integers(0, len(word) - 2))
    other = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    assert distance(word, other) == (word != other)
