"""Tables in plain text."""

from __future__ import annotations

from broker.cli.tables import Cell, table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """Text stands to the left, numbers to the right, and no line ends in spaces."""
    lines = table(("NAME", "N"), [("a", "1"), ("longer", "1,234")], right=(1,))
    assert lines == ["NAME        N", "a           1", "longer  1,234"]


def test_wide_characters_take_two_columns() -> None:
    """Alignment is by columns of the terminal."""
    assert table(("N", "X"), [("日本", "1"), ("a", "2")]) == ["N     X", "日本  1", "a     2"]


def test_colours_do_not_change_the_alignment() -> None:
    """With the control sequences taken out, the coloured table is the plain one."""
    rows: list[tuple[str | Cell, str]] = [(Cell("7", "red"), "x"), ("1,000", "y")]
    coloured = table(("MISSED", "NAME"), rows, right=(0,), colour=True)
    assert coloured[1] == "     \x1b[31m7\x1b[0m  x"
    plain = [line.replace("\x1b[31m", "").replace("\x1b[1m", "").replace("\x1b[0m", "") for line in coloured]
    assert plain == table(("MISSED", "NAME"), rows, right=(0,))


def test_no_rows_leave_the_heading() -> None:
    """An empty table is its titles."""
    assert table(("A", "B"), []) == ["A  B"]


def test_flexible_columns_are_cut_to_the_terminal_in_their_order() -> None:
    """The first of them gives what it can, down to its title; then the next; the others are never cut."""
    titles, rows = ("NAME", "N", "WHAT"), [("abcdefgh", "1234567", "ijklmnop")]
    assert table(titles, rows, flexible=(2, 0), columns=30)[1] == "abcdefgh  1234567  ijklmnop"
    assert table(titles, rows, flexible=(2, 0), columns=25)[1] == "abcdefgh  1234567  ijklm…"
    assert table(titles, rows, flexible=(2, 0), columns=21)[1] == "abcde…  1234567  ijk…"
    assert table(titles, rows, flexible=(2, 0), columns=5)[1] == "abc…  1234567  ijk…"
