"""An event to try a hook with: one sample for each event of the catalogue.

The fields are those that the pages document, with values as an agent would send them. An event outside the
catalogue has an empty payload, which every event may have.
"""

from __future__ import annotations

from typing import Any, Final

SESSION_ID: Final = "sess_test"

AGENT_ID: Final = "7d444840-9dc0-41d1-b245-5ffdce74fad2"

_WHO: Final[dict[str, Any]] = {"agent_id": AGENT_ID, "session_id": SESSION_ID}
_TURN: Final[dict[str, Any]] = {"session_id": SESSION_ID, "cwd": "/tmp", "permission_mode": "default"}

PAYLOADS: Final[dict[str, dict[str, Any]]] = {
    "gateway_startup": {"version": "0.1.0", "started_at": "2026-03-21T08:15:30.123Z"},
    "session_start": {**_WHO, "source": "startup"},
    "session_end": {**_WHO, "reason": "logout"},
    "session_reset": {**_WHO, "reset_reason": "manual", "message_count_cleared": 12},
    "agent_start": {
        "agent": "prxbus-test",
        "session": SESSION_ID,
        "agent_id": AGENT_ID,
        "sender": "user",
        "message_preview": "List the files here.",
    },
    "agent_step": {**_WHO, "step_index": 0, "tool_call": "Bash"},
    "agent_end": {
        "success": True,
        "messages_count": 4,
        **_WHO,
        "status": "ok",
        "tokens_used": 1234,
        "steps": 2,
        "duration_ms": 1842,
        "response_preview": "There is one file, README.md.",
    },
    "user_prompt": {**_TURN, "prompt": "List the files here."},
    "system_transform": {"system": ["You are a careful assistant."]},
    "llm_request": {"provider": "openai", "model": "gpt-4o", "messages_count": 3},
    "llm_response": {"provider": "openai", "model": "gpt-4o", "duration_ms": 1842, "success": True},
    "tool_call_start": {"tool": "Bash", "arguments": {"command": "ls"}},
    "permission_request": {**_TURN, "tool": "Bash", "arguments": {"command": "rm -r build"}},
    "tool_call": {"tool": "Bash", "success": True, "output": "README.md"},
    "tool_result": {
        "agent_id": AGENT_ID,
        "tool": "Bash",
        "arguments": {"command": "cat .env"},
        "output": "API_KEY=abcdefghijklmnop",
    },
    "pre_compact": {**_TURN, "trigger": "manual"},
    "post_compact": {**_TURN, "trigger": "manual"},
    "subagent_start": {**_TURN, "agent_id": AGENT_ID, "agent_type": "reviewer"},
    "subagent_stop": {
        **_TURN,
        "agent_id": AGENT_ID,
        "agent_type": "reviewer",
        "last_assistant_message": "Nothing to complain about.",
    },
    "turn_complete": {},
    "error": {"component": "prxbus-test", "message": "a test of this hook"},
    "interrupt": {**_TURN, "turn_id": "turn_test"},
}


def sample(event: str) -> dict[str, Any]:
    """The payload of a sample event."""
    return PAYLOADS.get(event, {})
