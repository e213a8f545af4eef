"""What the bus is told of a transform: who replaced what, and who failed.

The record (``prx.hooks.transform``) and the report of a failure (``prx.hooks.run``, as of any hook) hold
names, sizes, digests and times. Neither holds a word of the tool's text, nor of anything that may have
repeated it: a command's output, an error's message. There is no dead letter: it would carry the text. Pure.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, NamedTuple

from ..dialects import transform_command
from ..hooks.transform_chain import Fault, ToolResult
from .reports import COMMAND_CHARACTERS, REASON_CHARACTERS, RUN_TOPIC

TRANSFORM_TOPIC: Final = "prx.hooks.transform"

__all__ = ["RUN_TOPIC", "TRANSFORM_TOPIC", "Who", "failure_report", "record"]


class Who(NamedTuple):
    """A handler as it stands in records. ``command`` is empty for a function, ``line`` None for a command."""

    handler: str
    kind: str
    path: str
    line: int | None
    command: str


def record(
    who: Who,
    result: ToolResult,
    event_id: str,
    text: str,
    *,
    delivered: bool,
    duration_s: float,
    passed: int,
    skipped: list[str],
) -> dict[str, Any]:
    """The payload of ``prx.hooks.transform``: ``who`` put ``text`` in place of ``result``'s own.

    ``delivered``: the asker still waited. ``duration_s`` is that of the whole chain; ``passed`` handlers
    before it had nothing to say, ``skipped`` names those that failed.
    """
    return {
        "handler": who.handler,
        "kind": who.kind,
        "path": who.path,
        "line": who.line,
        "event": transform_command.EVENT,
        "event_id": event_id,
        "tool": result.tool_name,
        "agent_id": result.agent_id,
        "session_id": result.session_id,
        "before": _measured(result.tool_output),
        "after": _measured(text),
        "changed": text != result.tool_output,
        "delivered": delivered,
        "duration_ms": round(duration_s * 1e3, 3),
        "passed": passed,
        "skipped": skipped,
    }


def failure_report(
    who: Who, fault: Fault, event_id: str, duration_s: float, waited_s: float
) -> dict[str, Any]:
    """The payload of ``prx.hooks.run`` for a handler that failed, with the fields that every hook's has.

    ``waited_s`` is the time between the ask's arrival and this handler's turn.
    """
    return {
        "hook": who.handler,
        "dialect": transform_command.NAME,
        "path": who.path,
        "command": who.command[:COMMAND_CHARACTERS],
        "event": transform_command.EVENT,
        "event_id": event_id,
        "status": fault.kind,
        "exit_code": fault.exit_code,
        "signal": fault.signal,
        "duration_ms": round(duration_s * 1e3, 3),
        "waited_ms": round(waited_s * 1e3, 3),
        "stderr": "",
        "reason": fault.reason[:REASON_CHARACTERS],
    }


def _measured(text: str) -> dict[str, Any]:
    """Size and digest of a text in UTF-8."""
    data = text.encode("utf-8", "surrogatepass")
    return {"bytes": len(data), "sha256": sha256(data).hexdigest()}
