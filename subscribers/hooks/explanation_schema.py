"""The JSON of an explanation as JSON Schema, for those who read it with a program.

It states the shape and nothing else: what a field means is said in :mod:`.explanation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .explanation import RUNTIMES, STATUSES, TIMEOUT_ORIGINS

_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_BOOLEAN: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "array", "items": _TEXT}


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    """An object that has these fields, all of them; later releases may add more."""
    return {"type": "object", "required": list(fields), "properties": dict(fields)}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


DIAGNOSTIC: Final = _object(
    {
        "severity": {"enum": ["error", "warning", "info"]},
        "code": {"type": "string", "pattern": "^[a-z0-9_]+$"},
        "position": {**_TEXT, "description": "path:line:column, as far as it is known"},
        "field": {**_TEXT_OR_NULL, "description": "the place in the document"},
        "message": _TEXT,
        "hint": {**_TEXT_OR_NULL, "description": "what to write instead"},
    }
)

HANDLER: Final = _object(
    {
        "event": {**_TEXT, "description": "the event or the pattern of events"},
        "index": {"type": "integer", "minimum": 0},
        "name": {**_TEXT, "description": "what reports of its runs call it"},
        "runtime": {"enum": list(RUNTIMES)},
        "command": _TEXT_OR_NULL,
        "args": _TEXTS,
        "matcher": {**_TEXT_OR_NULL, "description": "which of the events, where not every one"},
        "topics": {**_TEXTS, "description": "topics or patterns of the bus that start it"},
        "timeout_s": {"type": ["number", "null"], "description": "seconds that a run may take"},
        "timeout_from": {"enum": [*TIMEOUT_ORIGINS, None], "description": "who said so"},
        "status": {"enum": list(STATUSES)},
        "trusted": _BOOLEAN,
        "executable": {**_TEXT_OR_NULL, "description": "the program on this machine"},
        "cwd": {**_TEXT_OR_NULL, "description": "the folder it starts in"},
        "line": {"type": ["integer", "null"], "minimum": 1},
        "diagnostics": _array({"$ref": "#/$defs/diagnostic"}),
    }
)

FILE: Final = _object(
    {
        "path": _TEXT,
        "dialect": {**_TEXT_OR_NULL, "description": "null: nobody knows this kind of file"},
        "because": {**_TEXT, "description": "how the dialect was found"},
        "status": {"enum": ["ok", "refused"]},
        "trusted": {**_BOOLEAN, "description": "its folder was named, or it is the user's own"},
        "handlers": _array({"$ref": "#/$defs/handler"}),
        "diagnostics": _array({"$ref": "#/$defs/diagnostic"}),
    }
)

SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "prxbus check --json",
    **_object({"files": _array({"$ref": "#/$defs/file"})}),
    "$defs": {"diagnostic": DIAGNOSTIC, "handler": HANDLER, "file": FILE},
}
"""The document that ``prxbus check --json`` prints."""
