"""An observer: what it hears, and what it does not hear."""

from __future__ import annotations

from typing import Any

import pytest

from broker.logs import get_logger
from broker.protocol.errors import BusError
from broker.protocol.events import Event
from subscribers.runner import observer
from subscribers.runner.observer import Observer
from tests.integration.waiting import until


class FakeSubscriber:
    """Gives an event, an error, and another event, each once."""

    def __init__(self, patterns: Any, **how: Any) -> None:
        self.how = (patterns, how["name"], how["runtime_dir"])
        self.left: list[Event | BusError] = [event("a.1"), BusError("gone"), event("a.2")]
        self.is_closed = False

    def batch(self, timeout: float) -> list[Event]:
        """What there is."""
        found = self.left.pop(0) if self.left else None
        if isinstance(found, BusError):
            raise found
        return [] if found is None else [found]

    def close(self) -> None:
        """Say that it is closed."""
        self.is_closed = True


def event(topic: str) -> Event:
    """An event."""
    return Event.of(topic, 0, b"p" * 16, 1, 1, "s", "agent", None, b"{}")


def test_what_cannot_be_received_leaves_the_next_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else is heard in order; a closed one hears no more."""
    made: list[FakeSubscriber] = []

    def subscriber(*patterns: Any, **how: Any) -> FakeSubscriber:
        made.append(FakeSubscriber(*patterns, **how))
        return made[-1]

    monkeypatch.setattr(observer, "Subscriber", subscriber)
    heard: list[str] = []
    watching = Observer(
        ["a.*"], lambda said: heard.append(said.topic), get_logger("test"), name="n", runtime_dir="/r"
    )
    until(lambda: heard == ["a.1", "a.2"], "both events")
    watching.close()
    assert (made[0].is_closed, made[0].how) == (True, (["a.*"], "n", "/r"))
