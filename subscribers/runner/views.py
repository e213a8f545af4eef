"""An event from the bus as a dialect's hooks are to see it.

Decides which events a dialect sees at all and when the publisher's bytes may pass unchanged. Pure.
"""

from __future__ import annotations

import orjson

from broker.protocol.events import Event
from broker.protocol.projections import seen_by
from broker.protocol.topics import LIFECYCLE

from ..dialects.base import EventView


def lifecycle_event(topic: str) -> str | None:
    """The bare name of a lifecycle topic, such as ``tool_call``; None for any other topic."""
    name = topic.removeprefix(LIFECYCLE)
    return name if name != topic and "." not in name else None


def view(dialect: str, name: str, event: Event) -> EventView:
    """``event`` as the hooks of ``dialect`` see it.

    A payload that has every documented field already passes byte for byte, unless it has line
    breaks: hooks may read one line, as the page's own sample does. Raises what
    :attr:`Event.payload <broker.protocol.events.Event.payload>` raises.
    """
    payload = event.payload
    known = {"session": event.session_id} if event.session_id is not None else {}
    seen = seen_by(dialect, name, payload, known=known)
    body = event.payload_bytes
    return EventView(
        event=name,
        payload_bytes=body if seen is payload and b"\n" not in body else orjson.dumps(seen),
        session_id=event.session_id,
        time_ns=event.time_ns,
        depth=event.depth,
        id=event.id,
    )
