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
    "checker_for",
    "json_type",
]

Checker = Callable[[dict[str, Any]], None]

_SHOWN: Final = (
    40  # characters of an offending value that an error repeats: enough to find it, not to leak it
)
_checkers: dict[str, Checker] = {}  # topic -> checker; bounded by the catalogue


def check(event_topic: str, payload: Any) -> None:
    """Raise ``SchemaError`` unless ``payload`` is an object whose catalogued fields have their types.

    ``event_topic`` is the full topic, such as ``prx.lifecycle.tool_call``. The error's ``path`` names the
    field, such as ``payload.success``; ``payload`` alone when it is not an object at all.
    """
    checker = checker_for(event_topic)
    if checker is not None:
        checker(payload)
    elif not isinstance(payload, dict):
        raise _not_an_object(event_topic, payload)


def checker_for(topic: str) -> Checker | None:
    """The check for one topic, to be kept by the caller; None when the topic is not catalogued.

    The checker takes a payload and returns None or raises ``SchemaError`` as ``check`` does.
    """
    checker = _checkers.get(topic)
    if checker is None and topic.startswith(LIFECYCLE):
        spec = EVENTS.get(topic[len(LIFECYCLE) :])
        if spec is not None:
            checker = _checkers[topic] = _compile(spec)
    return checker


def _compile(spec: EventSpec) -> Checker:
    # A field that takes anything is left out: an unknown name and a name without a rule cost the same.
    exact = {
        field.name: frozenset({type(None)}).union(*(EXACT_TYPES[kind] for kind in field.types))
        for field in spec.fields
        if field.types != ANY
    }
    allowed_for = exact.get

    def checker(payload: dict[str, Any]) -> None:
        try:
            items = payload.items()
        except AttributeError:
            raise _not_an_object(spec.topic, payload) from None
        for name, value in items:
            allowed = allowed_for(name)
            if allowed is not None and type(value) not in allowed:
                _check_slowly(spec, name, value)

    return checker


def _check_slowly(spec: EventSpec, name: str, value: Any) -> None:
    """Decide about a value not of the exact type: a subclass, ``3.0`` for an integer, or a mistake."""
    types = next(field.types for field in spec.fields if field.name == name)
    if fits(types, value):
        return
    path = f"payload.{name}"
    expected = " or ".join((*types, "null"))
    raise SchemaError(f"{spec.topic}: {path} must be {expected}, got {_describe(value)}", path=path)


def _not_an_object(topic: str, payload: Any) -> SchemaError:
    return SchemaError(f"{topic}: payload must be a JSON object (a dict), got {_describe(payload)}")


def _describe(value: Any) -> str:
    kind = json_type(value)
    if kind in ("object", "array") or kind.startswith("Python"):
        return kind
    text = repr(value)
    return f"{kind} {text if len(text) <= _SHOWN else text[: _SHOWN - 3] + '...'}"
