"""Somebody's time, watched by one thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from subscribers.runtimes.deadlines import Deadlines


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    """A clock with a short patience."""
    watching = Deadlines(stuck_s=0.05)
    yield watching
    watching.close()


def test_what_is_due_is_done_on_time_and_then_it_is_stuck(deadlines: Deadlines) -> None:
    """on_due comes at the deadline, on_stuck behind it, each once."""
    said: list[tuple[str, float]] = []
    stuck = threading.Event()

    def on_stuck() -> None:
        said.append(("stuck", time.monotonic()))
        stuck.set()

    began = time.monotonic()
    deadline = deadlines.arm(0.1, lambda: said.append(("due", time.monotonic())), on_stuck)
    assert stuck.wait(10)
    assert [word for word, _ in said] == ["due", "stuck"]
    assert said[0][1] - began >= 0.1
    assert said[1][1] - said[0][1] >= 0.05
    assert deadline.passed


def test_what_fails_ends_nobody_elses_deadline(deadlines: Deadlines, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of on_due or on_stuck is logged, and the next deadline is kept."""
    stuck = threading.Event()
    said: list[object] = []

    class Log:
        def error(self, _words: str, **facts: object) -> None:
            said.append(facts["error"])

    monkeypatch.setattr("subscribers.runtimes.deadlines.log", Log())

    def fail() -> None:
        raise OSError("no more threads")

    def fail_stuck() -> None:
        stuck.set()
        raise RuntimeError("stuck as well")

    deadlines.arm(0.0, fail, fail_stuck)
    assert stuck.wait(10)
    later = threading.Event()
    deadlines.arm(0.05, later.set)
    assert later.wait(10)
    assert said == ["OSError('no more threads')", "RuntimeError('stuck as well')"]


def test_a_deadline_that_was_met_does_nothing(deadlines: Deadlines) -> None:
    """After disarm there is no call, and a later deadline is not disturbed by it."""
    said: list[str] = []
    met = deadlines.arm(0.05, lambda: said.append("met"))
    deadlines.disarm(met)
    later = threading.Event()
    deadlines.arm(0.2, later.set)
    assert later.wait(10)
    assert said == []
    assert not met.passed


def test_an_earlier_deadline_does_not_wait_for_one_armed_before(deadlines: Deadlines) -> None:
    """Whoever's time ends first is first, whenever it was armed."""
    deadlines.arm(3_600.0, lambda: None)
    first = threading.Event()
    deadlines.arm(0.05, first.set)
    assert first.wait(10)


def test_a_time_can_be_over_at_once(deadlines: Deadlines) -> None:
    """hurry brings the deadline forward, and does nothing to one that was met or has passed."""
    over = threading.Event()
    deadline = deadlines.arm(3_600.0, over.set)
    deadlines.hurry(deadline)
    assert over.wait(10)
    over.clear()
    deadlines.hurry(deadline)
    deadlines.disarm(deadline)
    deadlines.hurry(deadline)
    assert not over.wait(0.1)
