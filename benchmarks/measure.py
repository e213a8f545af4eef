"""Rounds, medians and ratios: how a question becomes figures.

Decides the order of runs (A B C, A B C, ...), what a figure is (the median over rounds) and what a
comparison is (the median of the ratios inside each round, so that a machine that slows down slows both
sides down). Refuses to know contenders and sockets.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

Figures = Mapping[str, float]  # metric -> value, one run


@dataclass(frozen=True)
class Plan:
    """How much to measure. `tiny` runs prove that a benchmark still starts; their figures mean nothing."""

    rounds: int = 5
    seconds: float = 1.0
    quick: bool = False
    tiny: bool = False
    contenders: tuple[str, ...] = ()

    def some(self, full: Sequence[Any], quick: int) -> Sequence[Any]:
        """All of `full`, or only its first `quick` items in a quick or tiny run."""
        return full[: 1 if self.tiny else quick] if self.quick or self.tiny else full


@dataclass(frozen=True)
class Goal:
    """A figure to reach: `of` against `against`, both contenders of the cell.

    With a `yardstick` the comparison is with that number, and `against` is only what to call it. `best` says
    which side of `must` is good, "high" or "low".
    """

    metric: str
    of: str
    against: str
    must: float
    aim: float | None = None
    best: str = "high"
    yardstick: float | None = None

    def met(self, ratio: float) -> bool:
        """Whether `ratio` is on the good side of what must be reached."""
        return ratio >= self.must if self.best == "high" else ratio <= self.must


@dataclass
class Cell:
    """One comparison: the same conditions for every contender, all of their rounds, and why some are
    missing.
    """

    question: str
    title: str
    conditions: dict[str, Any]
    units: dict[str, str]  # metric -> unit
    goals: list[Goal] = field(default_factory=list)
    runs: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def median(self, contender: str, metric: str) -> float | None:
        """The median of a metric over the rounds of one contender, None if it has none."""
        values = [run[metric] for run in self.runs.get(contender, []) if metric in run]
        return statistics.median(values) if values else None

    def ratios(self, goal: Goal) -> list[float]:
        """The goal's ratio, round by round; rounds that one of the two missed are left out."""
        ours = self.runs.get(goal.of, [])
        if goal.yardstick is not None:
            return [run[goal.metric] / goal.yardstick for run in ours]
        pairs = zip(ours, self.runs.get(goal.against, []), strict=False)
        return [one[goal.metric] / other[goal.metric] for one, other in pairs if other[goal.metric]]

    def to_json(self) -> dict[str, Any]:
        """Everything measured, with medians and the goals' ratios worked out."""
        record = asdict(self)
        record["median"] = {
            name: {metric: self.median(name, metric) for metric in runs[0]}
            for name, runs in self.runs.items()
            if runs
        }
        for goal, entry in zip(self.goals, record["goals"], strict=True):
            ratios = self.ratios(goal)
            entry["ratios"] = ratios
            entry["ratio"] = statistics.median(ratios) if ratios else None
            entry["met"] = goal.met(entry["ratio"]) if ratios else None
        return record


def interleave(cell: Cell, rounds: int, runners: Mapping[str, Callable[[], Figures]]) -> Cell:
    """Run every contender once per round, in the same order in every round. A contender that fails is noted
    and left out.
    """
    failed: set[str] = set()
    for number in range(rounds):
        for name, run in runners.items():
            if name in failed:
                continue
            began = time.monotonic()
            try:
                figures = dict(run())
            except Exception as error:
                failed.add(name)
                cell.skipped[name] = f"failed in round {number + 1}: {error}"
                say(f"{cell.question} | {cell.title} | {name}: {error}")
                continue
            note(cell, name, number, rounds, figures, f" ({time.monotonic() - began:.1f} s)")
    return cell


def note(cell: Cell, name: str, number: int, rounds: int, figures: Figures, more: str = "") -> None:
    """Keep the figures of a contender's round, and say them."""
    cell.runs.setdefault(name, []).append(dict(figures))
    shown = "  ".join(f"{key}={value:,.6g}" for key, value in figures.items())
    say(f"{cell.question} | {cell.title} | {number + 1}/{rounds} {name}: {shown}{more}")


def take_turns(
    cell: Cell,
    number: int,
    plan: Plan,
    ways: Mapping[str, Callable[[int], list[float]]],
    turns: int,
    each: int,
) -> None:
    """So many round trips in each of the ways, `each` at a time; a way gives their times in us."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way(max(10, turns // 5))
    for _ in range(0, turns, each):
        for name, way in ways.items():
            times[name] += way(min(each, turns))
    for name, found in times.items():
        note(cell, name, number, plan.rounds, percentiles(found))


def percentiles(times: Sequence[float]) -> dict[str, float]:
    """Of round trips in microseconds: the 50th and the 99th."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"p50_us": cuts[49], "p99_us": cuts[98]}


def say(line: str) -> None:
    """Progress, on the standard error stream."""
    print(line, file=sys.stderr, flush=True)
