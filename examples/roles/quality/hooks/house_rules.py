"""The same contract in Python: functions of the module, named as they are documented or in snake case."""

from typing import Any


def on_load(ctx: Any) -> None:
    """Called once, when the hook is registered."""
    ctx.log.info("knows the rules of the house", count=len(ctx.config["rules"]))


def on_tool_before(ctx: Any, tool: str, args: dict[str, Any]) -> None:
    """A file ends with a newline. ``args`` is edited in place; a returned ``{"args": ...}`` would do too."""
    content = args.get("content")
    if tool == "write" and isinstance(content, str) and content and not content.endswith("\n"):
        args["content"] = content + "\n"
        ctx.log.debug("adds a newline")


def on_system_transform(ctx: Any, system: list[str]) -> None:
    """The prompt names the rules."""
    system.append("\n".join(["Rules of the house:", *(f"- {rule}" for rule in ctx.config["rules"])]))
