"""Reports to the bus and remarks to the log, as every process that runs somebody's code gives them.

Decides that neither stops what is reported of. Refuses to know what they say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from broker.client import Publisher
from broker.logs import Logger
from broker.protocol.errors import shown
from broker.protocol.events import Event

from ..hooks.diagnostics import Diagnostic

ERROR_CHARACTERS: Final = 300


def publish_report(
    publisher: Publisher, log: Logger, topic: str, payload: dict[str, Any], event: Event
) -> None:
    """Publish a report about an event: it is not caused by handling it, and keeps the event's depth.

    One that cannot be published is logged, whatever the reason: what runs matters more than its reports.
    """
    try:
        publisher.publish(topic, payload, session_id=event.session_id, depth=event.depth, caused_by=event.id)
    except Exception as error:
        log.error("a report could not be published", topic=topic, error=shown(error, ERROR_CHARACTERS))


def log_diagnostics(log: Logger, diagnostics: Iterable[Diagnostic]) -> None:
    """Log what there is to say of files, each with its own weight."""
    for diagnostic in diagnostics:
        say = {"error": log.error, "warning": log.warning, "info": log.info}[diagnostic.severity]
        say(diagnostic.render())
