"""What an agent of the Codex family sends, as an event of the bus; and its own bytes back again.

    stdin of the agent's hook  --from_agent-->  topic, canonical payload
    canonical payload          --original---->  those bytes

Decides the topic and the canonical names of the fields. The payload also says which dialect it came from, so
that handlers of that dialect are given what the agent wrote, byte for byte: its text stands in the payload
only where it cannot be made again from the fields. It refuses to know how the payload came here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import orjson

from broker.protocol.catalogue import check
from broker.protocol.catalogue_events import EVENTS
from broker.protocol.catalogue_fields import fits
from broker.protocol.errors import SchemaError
from broker.protocol.projections import canonical_event
from broker.protocol.topics import LIFECYCLE

from .json_depth import MAX_DEPTH, is_too_deep

AGENT_PAYLOAD: Final = "agent_payload"
"""The field that says which agent's own payload this was: ``dialect``, and ``text`` where it is needed."""

AGENT_FIELDS: Final = frozenset({AGENT_PAYLOAD, "agent_context"})
"""Fields of a canonical payload that are about the agent's hook, not about the event: no view has them."""

LONG_CHARACTERS: Final = 2_097_152
"""A longer text is not carried twice for the sake of its blanks: it would halve what an ask may take."""

_RENAMED: Final = ("session_id", "tool_name", "tool_input", "tool_response")
_SHOWN: Final = 60
_INTEGERS: Final = range(-(2**63), 2**64)


class AgentPayloadError(ValueError):
    """What an agent sent is no payload of its dialect; the text says why."""


class AgentEvent(NamedTuple):
    """An agent's event: its name in the agent's own terms, its topic and payload in ours."""

    event: str
    topic: str
    payload: dict[str, Any]
    session_id: str | None


def from_agent(dialect: str, raw: bytes) -> AgentEvent:
    """The event that an agent's hook was given. Raises :class:`AgentPayloadError`.

    ``dialect`` is ``claude``, ``codex`` or ``bitfun``. A field whose value the catalogue does not allow keeps
    the agent's name for it, or is left to the text.
    """
    text = raw.decode("utf-8", "replace")
    found = _parsed(text)
    if type(found) is not dict:
        raise AgentPayloadError(f"a payload is a JSON object, not {_shown(text)}")
    if is_too_deep(found):
        raise AgentPayloadError(f"the payload is nested more than {MAX_DEPTH} levels deep")
    event = found.get("hook_event_name")
    name = canonical_event(dialect, event) if isinstance(event, str) else None
    if name is None:
        raise AgentPayloadError(f"hook_event_name is {_shown(event)}, which is no event of {dialect}")
    payload = _canonical(name, found)
    if not _says_all(_written(_original_fields(name, payload)), text, found):
        payload[AGENT_PAYLOAD] = {"dialect": dialect, "event": name, "text": text}
    else:
        payload[AGENT_PAYLOAD] = {"dialect": dialect, "event": name}
    session = found.get("session_id")
    return AgentEvent(
        str(event), LIFECYCLE + name, payload, session if isinstance(session, str) and session else None
    )


def _says_all(again: bytes, text: str, found: dict[str, Any]) -> bool:
    """Whether the text need not travel: ``again`` is the same, of a long one the same but for blanks."""
    if again == text.encode():
        return True
    return len(text) > LONG_CHARACTERS and bool(orjson.loads(again) == found)


def original(payload: Mapping[str, Any], dialect: str) -> bytes | None:
    """What an agent of this dialect itself sent; None where the payload did not come from one."""
    origin = payload.get(AGENT_PAYLOAD)
    if not isinstance(origin, Mapping) or origin.get("dialect") != dialect:
        return None
    text = origin.get("text")
    if isinstance(text, str):
        return text.encode("utf-8", "replace")
    name = origin.get("event")
    if not isinstance(name, str):
        return None
    return _written(_original_fields(name, payload))


def _canonical(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """The fields in the agent's order under our names; a value of the wrong type is left out."""
    names = _names(name)
    payload = {names.get(key, key): value for key, value in found.items() if key not in AGENT_FIELDS}
    if len(payload) == len(found) and _fits(name, payload):
        return payload
    return _one_by_one(name, found)


def _fits(name: str, payload: dict[str, Any]) -> bool:
    try:
        check(LIFECYCLE + name, payload)
    except SchemaError:
        return False
    return True


def _one_by_one(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """The fields whose names and values are allowed, under our name or else under the agent's."""
    types, names = _types(name), _names(name)
    payload: dict[str, Any] = {}
    for key, value in found.items():
        ours = names.get(key, key)
        if ours in found or not _allowed(types, ours, value):
            ours = key
        if ours not in AGENT_FIELDS and _allowed(types, ours, value):
            payload[ours] = value
    return payload


def _original_fields(name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    theirs = {ours: key for key, ours in _names(name).items()}
    return {theirs.get(key, key): value for key, value in payload.items() if key not in AGENT_FIELDS}


@cache
def _names(name: str) -> Mapping[str, str]:
    """What we call the fields of an event, by what the family calls them."""
    spec = EVENTS.get(name)
    fields = () if spec is None else spec.fields
    return {each.name: each.alias_of for each in fields if each.name in _RENAMED and each.alias_of}


@cache
def _types(name: str) -> Mapping[str, tuple[str, ...]]:
    spec = EVENTS.get(name)
    return {} if spec is None else {each.name: each.types for each in spec.fields}


def _allowed(types: Mapping[str, tuple[str, ...]], name: str, value: Any) -> bool:
    allowed = types.get(name)
    return allowed is None or fits(allowed, value)


def _written(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


# ---- what a stricter parser refuses and agents nevertheless send ------------------------------------------


def _parsed(text: str) -> Any:
    """The value of a JSON text; half of a character that was cut becomes U+FFFD."""
    try:
        return orjson.loads(text)
    except ValueError as strict:
        try:
            value = json.loads(text, parse_constant=_refuse, parse_int=_integer)
            whole = json.dumps(value, ensure_ascii=False)
            return orjson.loads(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        except (ValueError, RecursionError):
            raise AgentPayloadError(f"the payload is not JSON: {strict}; it begins {_shown(text)}") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _integer(text: str) -> int | float:
    value = int(text)
    return value if value in _INTEGERS else float(text)
