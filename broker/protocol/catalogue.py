"""Whether a payload is what its event promises.

Decides what a publisher is told about a field of the wrong type, and does so on the hot path of
``publish()``: one dictionary probe and one type test per field. It refuses to know JSON text (payloads
given as bytes are checked by whoever decodes them) and the views that dialects take of an event
(``projections``).

All fields are optional, null is allowed everywhere, unknown fields pass, and a topic that is not
catalogued passes with any JSON object; what remains is the one mistake worth refusing: a documented field
of the wrong type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .catalogue_events import CONTEXT_FIELDS, EVENTS
from .catalogue_fields import ANY, EXACT_TYPES, EventSpec, Field, fits, json_type
from .errors import SchemaError
from .topics import LIFECYCLE

__all__ = [
    "ANY",
    "CONTEXT_FIELDS",
    "EVENTS",
    "EventSpec",
    "Field",
    "check",
    "check_field",
    "json_type",
    "types_for",
]

TypesOf = Callable[[str], "frozenset[type] | None"]
"""The Python types that a field of this name has, if it is as documented; None when any value will do."""

_SHOWN: Final = (
    40  # characters of an offending value that an error repeats: enough to find it, not to leak it
)
_types: dict[str, TypesOf] = {}  # by topic; bounded by the catalogue


def check(event_topic: str, payload: Any) -> None:
    """Raise ``SchemaError`` unless ``payload`` is an object whose catalogued fields have their types.

    ``event_topic`` is the full topic, such as ``prx.lifecycle.tool_call``. The error's ``path`` names the
    field, such as ``payload.success``; ``payload`` alone when it is not an object at all.
    """
    if not isinstance(payload, dict):
        raise SchemaError(f"{event_topic}: payload must be a JSON object (a dict), got {_describe(payload)}")
    types_of = types_for(event_topic)
    if types_of is not None:
        for name, value in payload.items():
            types = types_of(name)
            if types is not None and type(value) not in types:
                check_field(event_topic, name, value)


def types_for(topic: str) -> TypesOf | None:
    """What fields of one topic are asked for, to be kept by the caller; None when it is not catalogued.

    A caller in a hurry looks for itself, as :func:`check` does, and asks :func:`check_field` about a value
    that has none of these types.
    """
    known = _types.get(topic)
    if known is None and topic.startswith(LIFECYCLE):
        spec = EVENTS.get(topic[len(LIFECYCLE) :])
        if spec is not None:
            known = _types[topic] = _types_of(spec)
    return known


def check_field(topic: str, name: str, value: Any) -> None:
    """Decide about a value not of the exact type: a subclass, ``3.0`` for an integer, or a mistake.

    ``name`` is a field for which :func:`types_for` has types. Raises ``SchemaError``.
    """
    fields = EVENTS[topic[len(LIFECYCLE) :]].fields
    types = next(field.types for field in fields if field.name == name)
    if fits(types, value):
        return
    path = f"payload.{name}"
    expected = " or ".join((*types, "null"))
    raise SchemaError(f"{topic}: {path} must be {expected}, got {_describe(value)}", path=path)


def _types_of(spec: EventSpec) -> TypesOf:
    # A field that takes anything is left out: an unknown name and a name without a rule cost the same.
    exact = {
        field.name: frozenset({type(None)}).union(*(EXACT_TYPES[kind] for kind in field.types))
        for field in spec.fields
        if field.types != ANY
    }
    return exact.get


def _describe(value: Any) -> str:
    kind = json_type(value)
    if kind in ("object", "array") or kind.startswith("Python"):
        return kind
    text = repr(value)
    return f"{kind} {text if len(text) <= _SHOWN else text[: _SHOWN - 3] + '...'}"
