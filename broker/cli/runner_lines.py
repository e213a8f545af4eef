"""What a subscriber or decider that runs hooks says of their runs, as one line for people.

Decides which counters that takes and what stands out. A peer may report anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .quantities import count, plural
from .terminal import printable

Row = Mapping[str, Any]

RUNNER: Final = frozenset({"hooks", "runs", "runs_now", "runs_waiting", "runs_dropped"})
"""Counters of who runs hooks; they have a line of their own."""

RUN_WORDS: Final = {"ok": "ok", "failed": "failed", "timeout": "timed out", "not_started": "not started"}
"""How a run may have ended, in the order in which it is told; other ends are told by their name."""


def runs_hooks(row: Row) -> bool:
    """Whether a row is of one that runs hooks."""
    return isinstance(row.get("runs"), Mapping)


def runner_line(row: Row) -> tuple[str, str]:
    """The line and its colour; yellow when a run did not end well."""
    ends = {**dict.fromkeys(RUN_WORDS, 0), **_numbers(row["runs"])}
    numbers = _numbers(row)
    ends["dropped"] = numbers.get("runs_dropped", ends.get("dropped", 0))
    counted = ", ".join(f"{count(ends[end])} {RUN_WORDS.get(end) or printable(str(end))}" for end in ends)
    at_work = f"{count(numbers.get('runs_now', 0))} running, {count(numbers.get('runs_waiting', 0))} waiting"
    well = sum(ends.values()) == ends["ok"]
    return (
        f"{plural(int(numbers.get('hooks', 0)), 'hook')}; runs: {counted}; {at_work}",
        "dim" if well else "yellow",
    )


def _numbers(counters: Row) -> dict[str, float]:
    """Those of the counters that are numbers: a peer may report anything."""
    return {name: value for name, value in counters.items() if isinstance(value, int | float)}
