"""What may reach a terminal, and what fits on it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli import terminal
from broker.cli.terminal import columns, cut, cut_front, in_colour, is_terminal, paint, printable, width


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@given(st.text())
def test_what_is_printable_has_no_control_character(text: str) -> None:
    """Any text becomes printable, and printable text stays as it is."""
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


@pytest.mark.parametrize(
    "text,shown",
    [
        ("a\x1b[31m", "a\\x1b[31m"),
        ("\x9b", "\\x9b"),
        ("\u202e", "\\u202e"),
        ("日本 é", "日本 é"),
        ("\n", "\\n"),
    ],
)
def test_a_control_character_is_shown_as_its_escape(text: str, shown: str) -> None:
    """Escape sequences, C1 controls, marks of direction and line ends are spelled out."""
    assert printable(text) == shown


@given(
    st.text(
        alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn", "Cf", "Zl", "Zp"])
    ),
    st.integers(0, 40),
)
def test_a_cut_text_fits(text: str, room: int) -> None:
    """A text is cut to the columns there are, and only when it does not fit."""
    shown = cut(text, room)
    assert width(shown) <= room
    assert (shown == text) == (width(text) <= room)


@pytest.mark.parametrize(
    "text,room,shown",
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("abcdef", 0, ""),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("日本語", 1, "…"),
        ("日", 0, ""),
        ("e\u0301a", 2, "e\u0301a"),
    ],
)
def test_a_cut_counts_columns_not_characters(text: str, room: int, shown: str) -> None:
    """Wide characters take two columns, combining ones none; an ellipsis says that something is missing."""
    assert cut(text, room) == shown


def test_a_text_may_be_cut_at_its_beginning() -> None:
    """By columns too; the ellipsis stands in front."""
    assert cut_front("abcdef", 6) == "abcdef"
    assert cut_front("abcdef", 4) == "…def"
    assert cut_front("日本語", 5) == "…本語"


def test_columns_come_from_the_environment_first() -> None:
    """COLUMNS wins when it is a number; anything else is as if it were not set."""
    assert columns({"COLUMNS": "42"}) == 42
    nowhere = 10_000
    for text in ("", "0", "-3", "x", "1234567"):
        assert columns({"COLUMNS": text}, nowhere) == terminal.DEFAULT_COLUMNS


@pytest.mark.parametrize(
    "environ,colour",
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_are_for_terminals_that_want_them(environ: dict[str, str], colour: bool) -> None:
    """A terminal has colours unless NO_COLOR is set and not empty, or it is a dumb one; a file has none."""
    assert in_colour(Screen(), environ) is colour
    assert in_colour(io.StringIO(), environ) is False


def test_a_closed_or_missing_stream_is_no_terminal() -> None:
    """A command may run with its standard output closed."""
    closed = io.StringIO()
    closed.close()
    assert not is_terminal(closed)
    assert not is_terminal(None)


def test_paint_encloses_the_text_and_resets() -> None:
    """Styles begin before the text and end after it."""
    assert paint("x", "bold", "red") == "\x1b[1;31mx\x1b[0m"
