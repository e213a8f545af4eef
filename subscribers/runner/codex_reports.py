"""What the bus is told of a run of a Codex-family handler: every hook's fields, and upstream's summary.

A run that no ask has claimed is reported as observed. A block is no failure: a dead letter is written of a
run that failed alone. Pure; who publishes is another's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from broker.protocol.errors import BusError
from broker.protocol.events import Event
from broker.protocol.limits import NAME_BYTES

from ..dialects.codex_events import EVENTS, snake_case
from ..dialects.codex_result_values import Judged
from ..dialects.codex_spec import CodexHandler
from ..hooks.outcome import Outcome
from ..hooks.spec import HookSpec
from .reports import DEAD_LETTER_TOPIC, RUN_TOPIC, dead_letter, run_report

OBSERVED: Final = "observed, decision ignored"

ENTRIES: Final = 16
"""Entries of a run that a report carries."""

ENTRY_CHARACTERS: Final = 500
"""First characters of an entry that a report carries."""


def spec_of(handler: CodexHandler) -> HookSpec:
    """A handler in the shape that reports have for every hook."""
    return HookSpec(
        id=handler.id,
        dialect=handler.profile,
        path=handler.path,
        line=handler.line,
        event=EVENTS[handler.event].canonical,
        command=handler.url or handler.command,
        args=handler.args or (),
        env={},
        cwd=None,
        timeout_s=handler.timeout_s,
        grace_s=0.0,
        stdin=True,
    )


def run_id(handler: CodexHandler, tool_use_id: str | None = None) -> str:
    """Upstream's name of a run: event, place in the order and file, and the tool call where there is one."""
    kebab = snake_case(handler.event).replace("_", "-")
    name = f"{kebab}:{handler.order}:{handler.path}"
    return name if tool_use_id is None else f"{name}:{tool_use_id}"


def answer_name(handler: CodexHandler) -> str:
    """What an answer says of who gave it: the run's name, the beginning of a long path left out."""
    name = run_id(handler)
    most = 2 * NAME_BYTES
    head, _, path = name.partition(":/")
    return name if len(name) <= most else f"{head}:...{path[-(most - len(head) - 4) :]}"


def run_reports(
    handler: CodexHandler,
    event: Event,
    outcome: Outcome,
    judged: Judged,
    waited_s: float,
    *,
    is_asked: bool,
    tool_use_id: str | None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Topic and payload of all that the bus is told of a run.

    ``is_asked``: somebody waits, or has waited, for what it decides.
    """
    rule = EVENTS[handler.event]
    report = run_report(spec_of(handler), event.id, outcome, waited_s)
    report["status"] = run_status(outcome, judged)
    if not is_asked and report["reason"] is None and not handler.is_async:
        report["reason"] = OBSERVED
    report |= {
        "run_id": run_id(handler, tool_use_id),
        "native_event": handler.event,
        "handler_type": handler.kind,
        "execution_mode": "async" if handler.is_async else "sync",
        "scope": rule.scope,
        "display_order": handler.order,
        "result": judged.status,
        "status_message": handler.status_message,
        "entries": [
            {"kind": entry.kind, "text": entry.text[:ENTRY_CHARACTERS]} for entry in judged.entries[:ENTRIES]
        ],
    }
    yield RUN_TOPIC, report
    if is_failure(outcome, judged):
        payload: bytes | None
        try:
            payload = event.payload_bytes
        except BusError:
            payload = None
        yield DEAD_LETTER_TOPIC, dead_letter(report, event.topic, payload)


def run_status(outcome: Outcome, judged: Judged) -> str:
    """How a run ended, in the words of every hook's: ``ok`` also with an exit code that is a block."""
    if not is_failure(outcome, judged):
        return "ok"
    return "failed" if outcome.status == "ok" else outcome.status


def is_failure(outcome: Outcome, judged: Judged) -> bool:
    """Whether a run went wrong: a block is the handler's word, unless its failure is what blocks."""
    return (
        judged.status == "failed"
        or (judged.status == "blocked" and any(judged.errors))
        or (outcome.status in ("timeout", "signalled", "not_started"))
    )
