"""The event as a handler is given it.

Decides what of an event a handler sees: its payload decoded once, as a dict of the handler's own. Refuses to
know how it came here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE


class HandlerEvent:
    """One event. Each handler is given one of its own, so that what it does to ``payload`` touches nobody.

    ``topic`` is the full one; ``name`` is without ``prx.lifecycle.`` where it has that. ``depth`` is 0 for an
    event that an agent published by itself, ``time`` is in UTC.
    """

    __slots__ = ("_event", "_payload")

    def __init__(self, event: Event) -> None:
        self._event = event
        self._payload: dict[str, Any] | None = None

    @property
    def topic(self) -> str:
        """Such as ``prx.lifecycle.tool_call``."""
        return self._event.topic

    @property
    def name(self) -> str:
        """Such as ``tool_call``; the whole topic where it is not a lifecycle event's."""
        return self._event.topic.removeprefix(LIFECYCLE)

    @property
    def payload(self) -> dict[str, Any]:
        """What the publisher said; the same dict at each access.

        Raises what :attr:`broker.protocol.events.Event.payload` raises, at the first one.
        """
        if self._payload is None:
            self._payload = self._event.payload
        return self._payload

    @property
    def session_id(self) -> str | None:
        """The agent's session, where it has said it."""
        return self._event.session_id

    @property
    def id(self) -> str:
        """Unique, such as ``<publisher>:prx.lifecycle.tool_call:17``."""
        return self._event.id

    @property
    def depth(self) -> int:
        """How many handlers stand between this event and an agent."""
        return self._event.depth

    @property
    def time(self) -> datetime:
        """When it was published."""
        return self._event.time

    @property
    def source(self) -> str:
        """Who published it, such as ``my-agent/1.2``."""
        return self._event.source

    @property
    def caused_by(self) -> str | None:
        """The id of the event whose handling published this one."""
        return self._event.caused_by

    def __repr__(self) -> str:
        return f"<HandlerEvent {self._event.id} depth={self._event.depth}>"
