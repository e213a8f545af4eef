"""What is told of a run of the Codex family: its status, its result, and a dead letter of a failure."""

from __future__ import annotations

from typing import Any

import pytest

from broker.protocol.envelope import PUBLISHER_BYTES
from broker.protocol.events import Event
from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_profiles import CODEX
from subscribers.dialects.codex_result_values import Entry, Judged, RunStatus
from subscribers.hooks.outcome import NOTHING, Outcome
from subscribers.runner.codex_reports import run_reports

KEY = b"p" * PUBLISHER_BYTES
EVENT = Event.of("prx.lifecycle.tool_call_start", 0, KEY, 1, 0, "s", "agent", None, b'{"tool": "Bash"}')
FILE = b'{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "guard"}]}]}}'
KILLED = Outcome("signalled", None, 9, 0.1, NOTHING, NOTHING)
LATE = Outcome("timeout", None, None, 0.1, NOTHING, NOTHING)
ERROR = Entry("error", "no")


def exited(code: int) -> Outcome:
    """A run that ended by itself and wrote nothing."""
    return Outcome.exited(code, 0.1, NOTHING, NOTHING)


@pytest.mark.parametrize(
    "outcome, result, entries, status",
    [
        (exited(0), "completed", (), "ok"),
        (exited(0), "blocked", (), "ok"),
        (exited(2), "blocked", (Entry("feedback", "no"),), "ok"),
        (exited(0), "stopped", (), "ok"),
        (exited(1), "completed", (), "ok"),
        (exited(0), "failed", (ERROR,), "failed"),
        (exited(3), "failed", (ERROR,), "failed"),
        (exited(3), "blocked", (ERROR, Entry("feedback", "closed")), "failed"),
        (exited(0), "blocked", (ERROR, Entry("feedback", "closed")), "failed"),
        (KILLED, "failed", (ERROR,), "signalled"),
        (LATE, "blocked", (ERROR,), "timeout"),
        (Outcome.not_started("gone"), "failed", (ERROR,), "not_started"),
    ],
)
def test_a_block_is_no_failure(
    outcome: Outcome, result: RunStatus, entries: tuple[Entry, ...], status: str
) -> None:
    """Whatever did what it should is ok, and its result says what; a failure alone has a dead letter."""
    (handler,) = read_document(FILE, "/hooks.json", CODEX).handlers
    judged = Judged(result, entries)
    told: list[tuple[str, dict[str, Any]]] = list(
        run_reports(handler, EVENT, outcome, judged, 0.0, is_asked=True, tool_use_id=None)
    )
    assert [report["status"] for _, report in told] == [status] * (1 if status == "ok" else 2)
    assert (told[0][1]["result"], told[0][1]["exit_code"]) == (result, outcome.exit_code)
    assert [topic for topic, _ in told][1:] == ([] if status == "ok" else ["prx.hooks.dead_letter"])
