"""A handler of the Codex family reads its own dialect's payload, whoever published the event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from subscribers.dialects.codex_canonical import from_agent
from subscribers.dialects.codex_payload import event_for, payload_for
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, Profile

COMPLETE = {
    "session_id": "s",
    "turn_id": "t",
    "transcript_path": None,
    "cwd": "/w",
    "hook_event_name": "PreToolUse",
    "model": "m",
    "permission_mode": "default",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "u",
}


def built(event: str, profile: Profile, payload: dict[str, Any], **known: Any) -> dict[str, Any]:
    """The payload of a handler, decoded."""
    found: dict[str, Any] = json.loads(payload_for(event, profile, payload, **known))
    return found


def test_what_is_not_known_is_empty_and_not_null() -> None:
    """The schemas allow null only where there may be nothing."""
    found = built("Stop", CODEX, {})
    assert found == {
        "session_id": "",
        "turn_id": "",
        "transcript_path": None,
        "cwd": "",
        "hook_event_name": "Stop",
        "model": "",
        "permission_mode": "default",
        "stop_hook_active": False,
        "last_assistant_message": None,
    }


def test_what_the_caller_knows_stands_in() -> None:
    """Session, folder and model come from outside where the payload says nothing, and not else."""
    found = built("Stop", CODEX, {"cwd": "/own"}, session_id="s", cwd="/w", known={"model": "m"})
    assert (found["session_id"], found["cwd"], found["model"]) == ("s", "/own", "m")


def test_a_value_that_the_schema_lacks_becomes_one_that_it_has() -> None:
    """Claude Code's newer values are unknown to a script that was written for Codex."""
    payload = {"source": "fork", "permission_mode": "auto"}
    found = built("SessionStart", CODEX, payload)
    assert (found["source"], found["permission_mode"]) == ("startup", "default")
    assert built("SessionStart", CLAUDE, payload)["source"] == "fork"


def test_a_complete_payload_stays_complete() -> None:
    """Further fields stay for a dialect whose versions add some, and go where the schemas forbid them."""
    assert built("PreToolUse", CODEX, {**COMPLETE, "new": 1}) == COMPLETE
    claude = {**COMPLETE, "new": 1}
    for name in ("turn_id", "model"):
        del claude[name]
    assert built("PreToolUse", CLAUDE, claude) == claude


def test_an_agents_own_payload_is_passed_on_byte_for_byte() -> None:
    """To handlers of the same dialect; those of another see their own view of it."""
    raw = b'{"tool_name": "Bash",  "hook_event_name":"PreToolUse","tool_input":{"n":1.0}, "x":[]}\n'
    event = from_agent("claude", raw)
    assert payload_for("PreToolUse", CLAUDE, event.payload) == raw
    found = built("PreToolUse", BITFUN, event.payload)
    assert (found["tool_name"], found["tool_input"]) == ("Bash", {"n": 1.0})
    assert "agent_payload" not in found


def test_an_event_that_only_claude_code_has_keeps_its_own_fields() -> None:
    """After those that all events have; the session stands under one name."""
    payload = {"message": "m", "session": "s", "cwd": "/w"}
    text = payload_for("Notification", CLAUDE, payload)
    assert text == (
        b'{"session_id":"s","transcript_path":null,"cwd":"/w","hook_event_name":"Notification","message":"m"}'
    )
    found = built("Notification", CLAUDE, {}, session_id="e", cwd="/e")
    assert (found["session_id"], found["cwd"]) == ("e", "/e")


def test_a_value_that_is_no_json_is_an_error_with_the_events_name() -> None:
    """It is the publisher's mistake, and is said so."""
    with pytest.raises(ValueError, match="the payload of PostToolUse cannot be written as JSON"):
        payload_for("PostToolUse", CODEX, {"output": object()})


@pytest.mark.parametrize(
    "profile, payload, event",
    [
        (CODEX, {}, "PostToolUse"),
        (CODEX, {"success": True}, "PostToolUse"),
        (CODEX, {"success": False}, None),
        (BITFUN, {"success": False}, "PostToolUse"),
        (CLAUDE, {"success": False}, "PostToolUseFailure"),
    ],
)
def test_a_failed_tool_call_is_what_the_profile_makes_of_it(
    profile: Profile, payload: dict[str, Any], event: str | None
) -> None:
    """Nothing to Codex, an ordinary end to BitFun, and an event of its own to Claude Code."""
    assert event_for(profile, "tool_call", payload) == event


def test_a_profile_has_the_events_of_its_own_documents() -> None:
    """Others are nothing to it."""
    assert event_for(CODEX, "interrupt", {}) == "Interrupt"
    assert event_for(CLAUDE, "interrupt", {}) is None
    assert event_for(CLAUDE, "notification", {}) == "Notification"
    assert event_for(CODEX, "notification", {}) is None
    assert event_for(CODEX, "llm_request", {}) is None
