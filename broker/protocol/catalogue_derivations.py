"""How a view's field is computed where taking it by name is not enough.

Decides the small conversions between the documented systems: success and status, text from structured
output, previews. Each is a pure function of canonical fields, total on any value: None stands for
"unknown", as argument and as result. It refuses to know which view uses which (``catalogue_views``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

PREVIEW_CODE_POINTS: Final = 120  # LibreFang's page: "the first 120 characters"


class Derivation(NamedTuple):
    """A pure function of canonical fields; it gets None for what is unknown and returns None for "unknown".

    ``consumes`` are those of ``reads`` that the result stands for: a view does not repeat them. With
    ``whole`` the function gets the payload first.
    """

    reads: tuple[str, ...]
    consumes: tuple[str, ...]
    function: Callable[..., Any]
    text: str  # for the README: "from `success`: ..."
    whole: bool = False


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _text(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (
        ValueError,
        TypeError,
        RecursionError,
    ):  # a cycle, an odd key, or nested beyond what can be written
        return f"[{type(value).__name__} that cannot be written as JSON]"


def _preview(preview: Any, whole: Any) -> Any:
    text = _text(_first(preview, whole))
    if text is None or len(text) <= PREVIEW_CODE_POINTS:
        return text
    return text[:PREVIEW_CODE_POINTS]


def _as_object(value: Any) -> Any:
    return value if value is None or isinstance(value, dict) else {"value": value}


def _run_success(success: Any, status: Any) -> Any:
    return success if success is not None or status is None else status == "ok"


def _run_status(status: Any, success: Any) -> Any:
    return status if status is not None or success is None else "ok" if success else "error"


def _tokens_used(total: Any, prompts: Any, completions: Any) -> Any:
    if total is not None:
        return total
    parts = [part for part in (prompts, completions) if type(part) is int]
    return sum(parts) if parts else None


def _tool_success(success: Any, output: Any, hook_event_name: Any) -> Any:
    if success is not None:
        return success
    if isinstance(output, dict):
        for flag in ("is_error", "isError"):
            if isinstance(output.get(flag), bool):
                return not output[flag]
    return True if hook_event_name == "PostToolUse" else None


def _own_type(kind: Any) -> Any:
    return kind if isinstance(kind, str) else None


def _properties(payload: Mapping[str, Any], properties: Any) -> Any:
    return properties if isinstance(properties, dict) else dict(payload)


DERIVATIONS: Final[Mapping[str, Derivation]] = MappingProxyType(
    {
        "agent": Derivation(("agent", "agent_id"), ("agent",), _first, "`agent`, else `agent_id`"),
        "agent_id": Derivation(("agent_id", "agent"), ("agent_id",), _first, "`agent_id`, else `agent`"),
        "arguments_object": Derivation(
            ("arguments",), ("arguments",), _as_object, '`arguments` (what is no object as `{"value": …}`)'
        ),
        "arguments_or_empty": Derivation(
            ("arguments",),
            ("arguments",),
            lambda value: {} if value is None else value,
            "`arguments`, else `{}`",
        ),
        "output_text": Derivation(
            ("output",), ("output",), _text, "`output` (what is no string as compact JSON)"
        ),
        "message_preview": Derivation(
            ("message_preview", "prompt"),
            ("message_preview", "prompt"),
            _preview,
            f"`message_preview`, else `prompt` (first {PREVIEW_CODE_POINTS} code points)",
        ),
        "response_preview": Derivation(
            ("response_preview", "last_assistant_message"),
            ("response_preview", "last_assistant_message"),
            _preview,
            f"`response_preview`, else `last_assistant_message` (first {PREVIEW_CODE_POINTS} code points)",
        ),
        "run_success": Derivation(
            ("success", "status"), ("success",), _run_success, "`success`, else whether `status` is ok"
        ),
        "run_status": Derivation(
            ("status", "success"), ("status",), _run_status, "`status`, else `success` as ok/error"
        ),
        "tokens_used": Derivation(
            ("tokens_used", "input_tokens", "output_tokens"),
            ("tokens_used",),
            _tokens_used,
            "`tokens_used`, else `input_tokens` and `output_tokens` together",
        ),
        "tool_success": Derivation(
            ("success", "output", "hook_event_name"),
            ("success",),
            _tool_success,
            "`success`, else the error flag in `output`, else true for `PostToolUse` (sent after success)",
        ),
        "own_type": Derivation(("type",), (), _own_type, "`type`"),
        "properties": Derivation(
            ("properties",), (), _properties, "`properties`, else the whole payload", whole=True
        ),
    }
)
"""Every way in which a view's field is computed; pure, and total on any value."""
