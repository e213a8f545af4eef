"""An agent that tells the bus what it does: run it while `prxbus tap 'prx.lifecycle.*'` watches.

python examples/agent.py [session id]
"""

import sys
import time

from broker.client import Publisher


def main(session: str) -> None:
    """One turn of a make-believe agent."""
    with Publisher("example-agent/1.0") as bus:
        bus.publish("prx.lifecycle.agent_start", {"agent": "example", "session": session}, session_id=session)
        for command in ("ls", "make test"):
            started = time.monotonic()
            bus.publish(
                "prx.lifecycle.tool_call_start",
                {"tool": "Bash", "arguments": {"command": command}},
                session_id=session,
            )
            output = f"pretending to run {command}"
            took = round((time.monotonic() - started) * 1000, 3)
            bus.publish(
                "prx.lifecycle.tool_call",
                {"tool": "Bash", "success": True, "output": output, "duration_ms": took},
                session_id=session,
            )
        bus.publish("prx.lifecycle.turn_complete", {}, session_id=session)
        bus.publish("prx.lifecycle.agent_end", {"success": True, "messages_count": 5}, session_id=session)
        # Without a bus the agent works on, and knows what nobody heard.
        print(bus.stats)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example-session")
