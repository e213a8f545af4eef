"""How rounds become figures: medians, ratios inside a round, goals."""

from __future__ import annotations

from functools import partial

import pytest

from benchmarks.board import Board
from benchmarks.measure import Cell, Goal, interleave
from benchmarks.pace import END, ClosedWindow, read_stamp, stamp
from benchmarks.report import amount


def cell() -> Cell:
    """A cell with one goal and no figures."""
    return Cell("q", "title", {}, {"rate": "per s"}, [Goal("rate", "a", "b", must=2.0)])


def test_a_ratio_is_taken_inside_each_round() -> None:
    """A machine that becomes ten times slower between rounds does not move the ratio."""
    rates = {"a": iter([300.0, 30.0, 3.0]), "b": iter([100.0, 10.0, 1.0])}

    def run(name: str) -> dict[str, float]:
        return {"rate": next(rates[name])}

    answer = interleave(cell(), 3, {name: partial(run, name) for name in rates})
    goal = answer.to_json()["goals"][0]
    assert goal["ratios"] == pytest.approx([3.0, 3.0, 3.0])
    assert goal["met"] is True


def test_rounds_are_interleaved() -> None:
    """Every contender runs once per round, in the same order in each."""
    order: list[str] = []

    def run(name: str) -> dict[str, float]:
        order.append(name)
        return {"rate": 1.0}

    interleave(cell(), 2, {name: partial(run, name) for name in ("a", "b")})
    assert order == ["a", "b", "a", "b"]


def test_a_contender_that_fails_is_named_and_the_others_go_on() -> None:
    """A failure takes nobody else's rounds away, and no ratio is made up for it."""

    def fail() -> dict[str, float]:
        raise RuntimeError("no such server")

    answer = interleave(cell(), 2, {"a": lambda: {"rate": 1.0}, "b": fail})
    assert len(answer.runs["a"]) == 2
    assert answer.skipped == {"b": "failed in round 1: no such server"}
    assert answer.to_json()["goals"][0]["met"] is None


def test_a_goal_may_be_a_number() -> None:
    """With a yardstick the ratio is the figure over that number."""
    answer = Cell("q", "title", {}, {}, [Goal("ms", "a", "200 ms", 1.0, best="low", yardstick=200.0)])
    interleave(answer, 1, {"a": lambda: {"ms": 150.0}})
    assert answer.to_json()["goals"][0]["ratio"] == pytest.approx(0.75)
    assert answer.to_json()["goals"][0]["met"] is True


def test_the_window_never_lets_the_publisher_run_further_ahead() -> None:
    """Without a receipt no more than a window of events is granted; each receipt makes room for as many."""
    board = Board(2)
    tallies = [board.tally(0), board.tally(1)]
    pace = ClosedWindow(board, range(2), window=64, seconds=60.0)
    while pace.grant() == 0:
        continue
    for tally in tallies:
        tally.add(1)  # the warm-up has arrived everywhere
    granted = 0
    while (times := pace.grant()) or not granted:
        granted += times
    assert granted == 64
    tallies[0].add(10)
    assert pace.grant() == 0, "the slower of the two counts"
    tallies[1].add(1)
    assert pace.grant() == 1


def test_a_run_ends_when_everything_has_arrived_and_loses_nothing() -> None:
    """After its time the pace waits for the last event, wakes the subscribers once and ends."""
    board = Board(1)
    tally = board.tally(0)
    pace = ClosedWindow(board, range(1), window=32, seconds=0.02)
    grants = 0
    while (times := pace.grant()) != END:
        grants += times
        tally.add(times)
    assert board.done
    assert pace.lost == 0
    assert pace.elapsed >= 0.02
    assert pace.sent == grants - 2, "apart from the warm-up and the event that wakes up the subscribers"


def test_a_stamp_is_read_back_and_keeps_the_size() -> None:
    """The stamp replaces digits in place, so every payload of a run has the same size."""
    template = stamp(b'{"at":"0000000000000000000","tool":"Bash"}', 0)
    stamped = stamp(template, 123_456_789)
    assert read_stamp(stamped) == 123_456_789
    assert len(stamped) == len(template)


@pytest.mark.parametrize(
    "value,text",
    [(0, "0"), (0.2504, "0.25"), (12.34, "12.3"), (999.96, "1,000"), (8_512, "8,512"), (179_700, "180 k")],
)
def test_figures_have_three_digits(value: float, text: str) -> None:
    """What the tables print is as exact as the measurement."""
    assert amount(value) == text


def test_millions_are_marked() -> None:
    """A rate of more than a million is given in millions."""
    assert amount(1_300_000) == "1.30 M"
