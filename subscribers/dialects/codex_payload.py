"""What a handler of the Codex family reads on stdin: section 3 of the Codex contract, field for field.

    canonical event  --payload_for-->  one compact JSON object, no newline

Decides which fields there are, in which order, and what stands where something is not known: a nullable
field is null, an optional one is absent, any other text is empty, because the family's schemas allow no null
there. The order and origin of fields is the catalogue's (:mod:`broker.protocol.projections`); their types
are stated here. A payload that a real agent sent is passed on byte for byte to the handlers of its own
dialect. It refuses to know how a payload reaches a handler.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import orjson

from broker.protocol.projections import seen_by, view_of

from .codex_canonical import AGENT_FIELDS, original
from .codex_events import BY_CANONICAL, EVENTS
from .codex_profiles import Profile

FieldType: TypeAlias = Literal["text", "text or null", "flag", "any"]

FIELD_TYPES: Final[Mapping[str, FieldType]] = MappingProxyType(
    {
        "session_id": "text",
        "turn_id": "text",
        "agent_id": "text",
        "agent_type": "text",
        "transcript_path": "text or null",
        "agent_transcript_path": "text or null",
        "cwd": "text",
        "hook_event_name": "text",
        "model": "text",
        "permission_mode": "text",
        "tool_name": "text",
        "tool_input": "any",
        "tool_response": "any",
        "tool_use_id": "text",
        "trigger": "text",
        "source": "text",
        "reason": "text",
        "prompt": "text",
        "stop_hook_active": "flag",
        "last_assistant_message": "text or null",
    }
)
"""The type of every field that the contract names; what Claude Code sends beside them is of any type."""

_COMMON: Final = ("session_id", "transcript_path", "cwd", "hook_event_name")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def event_for(profile: Profile, canonical: str, payload: Mapping[str, Any]) -> str | None:
    """What a profile calls an event of the bus, by its bare name; None: it has no such event.

    A tool call that failed is an event of its own in one profile, and none in another.
    """
    rule = BY_CANONICAL.get(canonical)
    if rule is None or profile.name not in rule.profiles:
        return None
    if rule.name == "PostToolUse" and payload.get("success") is False and not profile.post_on_error:
        return profile.failure_event
    return rule.name


def payload_for(
    event: str,
    profile: Profile,
    canonical: Mapping[str, Any],
    *,
    session_id: str | None = None,
    cwd: str | None = None,
    known: Mapping[str, Any] = _NOTHING,
) -> bytes:
    """The payload of ``event`` for a handler of this profile, from the canonical payload.

    ``session_id`` (the envelope's) and ``cwd`` stand in where the payload itself says nothing, and ``known``
    gives further values by canonical name, such as ``model``. Raises KeyError for an event that the family
    does not have, ValueError for a value that cannot be written as JSON.
    """
    own = original(canonical, profile.name)
    if own is not None:
        return own
    beside = {"session": session_id, "cwd": cwd, **known}
    try:
        return orjson.dumps(_object(event, profile, canonical, beside))
    except orjson.JSONEncodeError as error:
        raise ValueError(f"the payload of {event} cannot be written as JSON: {error}") from None


def _object(
    event: str, profile: Profile, canonical: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    name = EVENTS[event].canonical
    payload = {key: value for key, value in canonical.items() if key not in AGENT_FIELDS}
    view = view_of(profile.name, name)
    if view is None:
        return _unlisted(event, payload, known)
    seen = seen_by(profile.name, name, payload, known=known)
    if seen is payload and profile.payload_extras:
        return payload
    return {
        field.name: _filled(profile, field.name, seen.get(field.name))
        for field in view.fields
        if not field.optional or seen.get(field.name) is not None
    }


def _filled(profile: Profile, name: str, value: Any) -> Any:
    """The value as the family's schemas want it."""
    kind = FIELD_TYPES.get(name, "any")
    if kind == "text" and not isinstance(value, str):
        value = ""
    values = profile.payload_values.get(name)
    return values[0] if values is not None and value not in values else value


def _unlisted(event: str, payload: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """An event that only Claude Code has: the common fields, then what the payload itself holds."""
    own = {
        "session_id": payload.get("session_id") or payload.get("session") or known.get("session") or "",
        "transcript_path": payload.get("transcript_path"),
        "cwd": payload.get("cwd") or known.get("cwd") or "",
        "hook_event_name": event,
    }
    return own | {key: value for key, value in payload.items() if key not in {*_COMMON, "session"}}
