"""Reports are told soon, in order and together; what finds no room is counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from broker.protocol.events import Event
from subscribers.runner import report_queue
from subscribers.runner.report_queue import ReportQueue

EVENT = Event.of("prx.x", 0, bytes(16), 1, 0, None, "", None, b"{}")


class Told:
    """What was published, and in how many blocks."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.blocks = 0
        self.some = threading.Event()
        self.hold = threading.Event()
        self.hold.set()

    def publish(self, topic: str, payload: dict[str, Any], event: Event) -> None:
        """One report."""
        assert (topic, event) == ("prx.hooks.run", EVENT)
        self.numbers.append(payload["n"])
        self.some.set()
        assert self.hold.wait(30)

    @contextmanager
    def together(self) -> Iterator[None]:
        """One block."""
        self.blocks += 1
        yield


def test_reports_are_told_soon_and_in_order() -> None:
    """Without anybody's doing, and those of a moment in one block."""
    told = Told()
    queue = ReportQueue(told.publish, told.together)
    for number in range(5):
        queue.add("prx.hooks.run", {"n": number}, EVENT)
    assert told.some.wait(30)
    queue.close()
    assert told.numbers == list(range(5))
    assert told.blocks <= 5
    assert queue.dropped == 0


def test_what_waits_is_told_at_the_end() -> None:
    """A close loses nothing, also of what came while something was told."""
    told = Told()
    told.hold.clear()
    queue = ReportQueue(told.publish, told.together)
    queue.add("prx.hooks.run", {"n": 0}, EVENT)
    assert told.some.wait(30)
    queue.add("prx.hooks.run", {"n": 1}, EVENT)
    told.hold.set()
    queue.close()
    assert told.numbers == [0, 1]


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are bounded; the first ones are told."""
    monkeypatch.setattr(report_queue, "WAITING", 2)
    told = Told()
    told.hold.clear()
    queue = ReportQueue(told.publish, told.together)
    queue.add("prx.hooks.run", {"n": 0}, EVENT)
    assert told.some.wait(30)  # it is being told, and waits no longer
    for number in range(1, 5):
        queue.add("prx.hooks.run", {"n": number}, EVENT)
    told.hold.set()
    queue.close()
    assert told.numbers == [0, 1, 2]
    assert queue.dropped == 2
