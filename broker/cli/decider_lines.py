"""Asks and deciders of the broker's status report as lines for people.

Decides what stands out: who did not answer does, and most of all who died and fails closed, because all that
it decides is denied meanwhile. Names in the report are foreign text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from .quantities import count
from .runner_lines import RUNNER, runner_line, runs_hooks
from .tables import Cell, table
from .terminal import cut, paint, printable, width

Row = Mapping[str, Any]

NAMES_SHOWN: Final = 5
"""Deciders that are named in the line of those that are dead and fail closed."""

NAME_COLUMNS: Final = 32

OF_ASKS: Final = ("asked", "answered", "cancelled")
"""Counters of whole asks; the others are of single deciders."""

WORDS: Final = {
    "timeout": "too late",
    "died": "died",
    "left": "left",
    "unreachable": "unreachable",
    "failed": "failed",
    "late": "late words",
}
"""What the counters of single deciders are called; others are told by their name."""

TOLD: Final = frozenset(
    {
        *("asked", "answered", "failed", "too_late", "name", "pid", "priority", "failure", "patterns"),
        "reported_s",
    }
)
"""Counters of a decider that stand in its row."""


def ask_lines(asks: Row, label: int, *, colour: bool) -> Iterator[str]:
    """How many asks there were and are, if any, and whose silence is a denial; ``label`` columns of label."""
    numbers = {name: value for name, value in asks.items() if isinstance(value, int) and value}
    under_way = numbers.pop("under_way", 0)
    if under_way or numbers:
        whole = [f"{numbers.get(name, 0):,} {name}" for name in OF_ASKS]
        yield f"{'asks':<{label}}{under_way:,} under way; {', '.join(whole)}"
    single = [
        f"{value:,} {WORDS.get(name) or printable(str(name))}"
        for name, value in numbers.items()
        if name not in OF_ASKS
    ]
    if single:
        yield f"{'deciders':<{label}}{', '.join(single)}"
    dead = [cut(printable(str(name)), NAME_COLUMNS) for name in asks.get("closed_and_dead", ())]
    if dead:
        more = f" and {len(dead) - NAMES_SHOWN:,} more" if len(dead) > NAMES_SHOWN else ""
        line = (
            f"{'denied':<{label}}what these decide, until they are back: "
            f"{', '.join(dead[:NAMES_SHOWN])}{more} (ended, and fail closed)"
        )
        yield paint(line, "red") if colour else line


def decider_lines(
    rows: Sequence[Row], patterns: Sequence[str], columns: int | None = None, *, colour: bool
) -> list[str]:
    """The table of deciders in their declared order; ``patterns`` has the text for each row.

    Where the table is wider than the ``columns`` of the terminal, patterns stand below their row.
    """
    if not rows:
        return []
    order = sorted(range(len(rows)), key=lambda at: _place(rows[at]))
    cells = [_cells(rows[at], patterns[at]) for at in order]
    titles: tuple[str, ...] = (
        *("DECIDER", "PID", "PRIORITY", "FAILS", "ASKED", "ANSWERED", "FAILED", "TOO LATE"),
        "PATTERNS",
    )
    right = (1, 2, 4, 5, 6, 7)
    is_wide = columns is not None and max(map(width, table(titles, cells, right=right))) > columns
    if is_wide:
        titles, cells = titles[:-1], [row[:-1] for row in cells]
    lines = table(titles, cells, right=right, colour=colour, flexible=(0,), columns=columns)
    found = lines[:1]
    for at, line in zip(order, lines[1:], strict=True):
        found.append(line)
        if is_wide and patterns[at]:
            found.append("    " + cut(f"for {patterns[at]}", max(0, (columns or 0) - 4)))
        if runs_hooks(rows[at]):
            line, tint = runner_line(rows[at])
            found.append("    " + (paint(line, tint) if colour else line))
        further = _further(rows[at])
        if further:
            found.append("    " + (paint(further, "dim") if colour else further))
    return found


def _place(row: Row) -> tuple[int, str]:
    priority = row.get("priority", 0)
    return priority if isinstance(priority, int) else 0, str(row.get("name", ""))


def _cells(row: Row, patterns: str) -> tuple[str | Cell, ...]:
    closed = row.get("failure") == "closed"
    return (
        cut(printable(str(row.get("name", "?"))), NAME_COLUMNS),
        str(row.get("pid", "?")),
        str(row.get("priority", 0)),
        Cell("closed", "yellow") if closed else printable(str(row.get("failure", "?"))),
        count(_number(row, "asked")),
        count(_number(row, "answered")),
        _bad(_number(row, "failed")),
        _bad(_number(row, "too_late")),
        patterns,
    )


def _number(row: Row, name: str) -> float:
    """A counter that a decider has reported: it may report anything, or nothing yet."""
    value = row.get(name, 0)
    return value if isinstance(value, int | float) else 0


def _bad(number: float) -> str | Cell:
    return Cell(count(number), "red") if number else "0"


def _further(row: Row) -> str:
    told = TOLD | RUNNER if runs_hooks(row) else TOLD
    return ", ".join(
        f"{printable(str(name))} {count(value)}"
        for name, value in row.items()
        if name not in told and isinstance(value, int | float) and value
    )
