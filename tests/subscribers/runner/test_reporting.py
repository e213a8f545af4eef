"""Reports and remarks: what is told, and that nothing stops whoever tells it."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from typing import Any, cast

import orjson
import pytest

from broker.client import Publisher
from broker.logs import configure, get_logger
from broker.protocol.errors import BusError
from broker.protocol.events import Event
from subscribers.hooks.diagnostics import Diagnostic
from subscribers.runner.reporting import log_diagnostics, publish_report

LOG = get_logger("test")


class FakePublisher:
    """Notes what is published, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.published: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def publish(self, topic: str, payload: dict[str, Any], **how: Any) -> None:
        """Publish, or do not."""
        if self.error is not None:
            raise self.error
        self.published.append((topic, payload, how))


@pytest.fixture
def logged() -> Iterator[StringIO]:
    """What is logged, as JSON lines."""
    stream = StringIO()
    configure("debug", json=True, stream=stream)
    yield stream
    configure()


def event() -> Event:
    """An event of a session, three deep."""
    return Event.of("a.b", 3, b"p" * 16, 1, 1, "s", "agent", None, b"{}")


def test_a_report_is_of_its_event(logged: StringIO) -> None:
    """Its session, its depth, and that it was caused by it."""
    publisher, about = FakePublisher(), event()
    publish_report(cast(Publisher, publisher), LOG, "t", {"n": 1}, about)
    assert publisher.published == [("t", {"n": 1}, {"session_id": "s", "depth": 3, "caused_by": about.id})]
    assert logged.getvalue() == ""


@pytest.mark.parametrize("error", [BusError("no bus"), ValueError("x" * 1_000)])
def test_a_report_that_cannot_be_published_is_logged(logged: StringIO, error: Exception) -> None:
    """Whatever the reason, and not at length."""
    publish_report(cast(Publisher, FakePublisher(error)), LOG, "t", {}, event())
    (line,) = map(orjson.loads, logged.getvalue().splitlines())
    assert (line["event"], line["level"], line["topic"]) == ("a report could not be published", "error", "t")
    assert 0 < len(line["error"]) < 400


def test_remarks_have_their_weight(logged: StringIO) -> None:
    """Each is a line that says where."""
    said = [
        Diagnostic(severity, "code", "/f", 1, 2, None, severity, None)
        for severity in ("error", "warning", "info")
    ]
    log_diagnostics(LOG, said)
    lines = [orjson.loads(line) for line in logged.getvalue().splitlines()]
    assert [line["level"] for line in lines] == ["error", "warning", "info"]
    assert lines[0]["event"].startswith("/f:1:2: error: error")
