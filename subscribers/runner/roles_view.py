"""An event from the bus as the hooks of a role are to see it: handler, input, filters, what may be edited.

Decides that by the rolebox view of the catalogue. Pure; whose hooks they are, and which of them are called,
is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from broker.protocol.decisions import input_of
from broker.protocol.events import Event
from broker.protocol.projections import native_event, seen_by

from ..hooks.module_hook import HANDLER_OF, Handler
from ..hooks.role_chain import NO_SUBJECT, OTHER_EVENT, TOOL_EVENTS, Happening, Phase, Subject
from ..hooks.role_phase import FIELD

TOOL_BEFORE: Final = "tool.execute.before"
SYSTEM: Final = "system.transform"
MESSAGE: Final = "chat.message"
GUARDED: Final = frozenset({TOOL_BEFORE, SYSTEM})
"""Events whose hooks may edit: of no use where nobody asks."""

ARGUMENTS: Final = ("args", "arguments", "tool_input")
"""Where a tool's arguments may stand, in the order in which the view looks."""

NAMES_A_ROLE: Final = frozenset({"session_start", "agent_start"})
"""Events that may say which role their session plays."""


class Seen(NamedTuple):
    """An event as a role sees it. ``view`` is the handler's input before anybody has edited it.

    ``role`` is the one that it names, ``agent`` the one that it is of, None where it does not say.
    """

    name: str
    happening: Happening
    handler: Handler
    view: Mapping[str, Any]
    subject: Subject
    phase: Phase | None
    session: str | None
    agent: str | None
    role: str | None

    def input(self, value: Any) -> bytes:
        """The handler's input, as JSON, with what there is to edit as it is by now."""
        if self.subject.shape is None:
            return orjson.dumps(self.view)
        name = "args" if self.happening.event == TOOL_BEFORE else "system"
        return orjson.dumps({**self.view, name: value})


@lru_cache(1_024)
def rolebox_event(name: str) -> str:
    """The rolebox event of a canonical one: what a hook listens to."""
    native = native_event("rolebox", name)
    return native if native in HANDLER_OF else OTHER_EVENT


def session_of(event: Event, payload: Mapping[str, Any]) -> str | None:
    """The session of an event: the envelope's, or else the payload's."""
    return event.session_id or _text(payload, "session") or _text(payload, "session_id")


def see(name: str, event: Event) -> Seen:
    """The event of that canonical name. Raises what :attr:`Event.payload` raises."""
    payload = event.payload
    listens = rolebox_event(name)
    view = seen_by("rolebox", name, payload)
    tool = view.get("tool") if listens in TOOL_EVENTS else None
    kind = view.get("type") if listens == OTHER_EVENT else None
    phase = payload.get(FIELD)
    return Seen(
        name,
        Happening(listens, tool if isinstance(tool, str) else None, kind if isinstance(kind, str) else None),
        HANDLER_OF[listens],
        view,
        _subject(listens, payload, view),
        phase if phase in ("before", "after") and listens != OTHER_EVENT else None,
        session_of(event, payload),
        _text(payload, "agent_id") or _text(payload, "agent") or _text(payload, "agent_name"),
        _text(payload, "role") if name in NAMES_A_ROLE else None,
    )


def _subject(listens: str, payload: Mapping[str, Any], view: Mapping[str, Any]) -> Subject:
    """What may be edited, as the asker will merge it."""
    if listens == TOOL_BEFORE:
        asked = input_of(payload)
        if asked is not payload:
            return Subject(asked, asked, shape=dict)
        key = next((name for name in ARGUMENTS if payload.get(name) is not None), "arguments")
        return Subject(view.get("args"), payload, key, dict)
    if listens == SYSTEM:
        system = view.get("system")
        return Subject(system if isinstance(system, list) else [], payload, "system", list)
    return NO_SUBJECT


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value else None
