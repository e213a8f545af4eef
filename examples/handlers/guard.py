"""Refuses commands that destroy, asks the user about those that reach out, and takes tokens out of arguments.

prxbus up --handlers examples/handlers
prxbus ask prx.lifecycle.tool_call_start '{"tool": "Bash", "arguments": {"command": "rm -rf /"}}'
"""

import re
import shlex

from subscribers.handlers import Answer, Context, HandlerEvent, decide

TOKEN = re.compile(r"\b(?:ghp_|sk-)[A-Za-z0-9]{20,}")
ASKS_FIRST = {"curl", "wget", "ssh", "scp"}


def words(command: str) -> list[str]:
    """The words of a shell command; of one that is not closed properly, what is between its spaces."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


@decide("tool_call_start", tools=["Bash"], priority=10, timeout=1.0, failure="closed")
def command(event: HandlerEvent, ctx: Context) -> Answer | None:
    """What may run. It fails closed: where this cannot tell, nothing runs."""
    said = words(str(event.payload.get("arguments", {}).get("command", "")))
    flags = [word for word in said if word.startswith("-")]
    if "rm" in said and any("r" in flag and "f" in flag for flag in flags) and {"/", "~", "*"} & set(said):
        return ctx.deny(
            "this would delete more than you mean; name the files", message="a command was refused"
        )
    programs = ASKS_FIRST & set(said)
    if programs:
        return ctx.ask(f"{', '.join(sorted(programs))} reaches out of this machine")
    return None


@decide("tool_call_start", priority=20)
async def tokens(event: HandlerEvent, ctx: Context) -> Answer | None:
    """Arguments without tokens: the model gets a word about what was taken out."""
    arguments = event.payload.get("arguments")
    if not isinstance(arguments, dict):
        return None
    cleaned = {
        name: TOKEN.sub("$TOKEN", value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
    if cleaned == arguments:
        return None
    return ctx.rewrite(cleaned, context="A token was replaced by $TOKEN; read it from the environment.")
