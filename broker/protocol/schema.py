"""The catalogue as JSON Schema (draft 2020-12), for other languages and for ``prxbus schema``.

Decides how a field's types are written there, so that a schema accepts exactly what ``catalogue.check``
accepts. It refuses to know anything of its own about events: every word comes from the catalogue.
"""

from __future__ import annotations

from typing import Any, Final

from .catalogue import ANY, EVENTS, EventSpec, Field
from .topics import LIFECYCLE

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def event_schema(name: str) -> dict[str, Any]:
    """The schema of one event's payload, as a new JSON-ready dict.

    ``name`` is the event's bare name or its topic. Raises ``LookupError`` with the nearest name for an event
    that is not catalogued.
    """
    bare = name.removeprefix(LIFECYCLE)
    spec = EVENTS.get(bare)
    if spec is None:
        raise LookupError(f"no event {name!r} in the catalogue{_nearest(bare)}")
    return _schema(spec)


def all_schemas() -> dict[str, dict[str, Any]]:
    """The schema of every catalogued event, by bare name."""
    return {name: _schema(spec) for name, spec in EVENTS.items()}


def _schema(spec: EventSpec) -> dict[str, Any]:
    return {
        "$schema": DRAFT,
        "$id": f"prxbus:event:{spec.name}",
        "title": spec.topic,
        "description": f"{spec.when} All fields are optional; null means unknown; other fields are allowed.",
        "type": "object",
        "properties": {field.name: _property(field) for field in spec.fields},
        "additionalProperties": True,
    }


def _property(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"description": field.description}
    if field.types != ANY:
        found["type"] = [*field.types, "null"]
    if field.documented_by:
        found["$comment"] = f"documented by {', '.join(field.documented_by)}"
    if field.values:
        found["examples"] = list(field.values)
    return found


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    wanted = name.strip().lower().replace("-", "_")
    close = get_close_matches(wanted, EVENTS, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(EVENTS)}"
