"""An event to try a hook with: one sample for each event of the PRX page.

The fields are those that the page documents. Any other event has an empty payload, which every event may
have.
"""

from __future__ import annotations

from typing import Any, Final

SESSION_ID: Final = "sess_test"

PAYLOADS: Final[dict[str, dict[str, Any]]] = {
    "agent_start": {"agent": "prxbus-test", "session": SESSION_ID},
    "agent_end": {"success": True, "messages_count": 4},
    "llm_request": {"provider": "openai", "model": "gpt-4o", "messages_count": 3},
    "llm_response": {"provider": "openai", "model": "gpt-4o", "duration_ms": 1842, "success": True},
    "tool_call_start": {"tool": "Bash", "arguments": {"command": "ls"}},
    "tool_call": {"tool": "Bash", "success": True, "output": "README.md"},
    "turn_complete": {},
    "error": {"component": "prxbus-test", "message": "a test of this hook"},
}


def sample(event: str) -> dict[str, Any]:
    """The payload of a sample event."""
    return PAYLOADS.get(event, {})
