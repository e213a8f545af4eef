"""A project with hooks, for the tests of drafts and plans: its rules, its places, its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from subscribers.hooks.import_draft import Checked, Draft, Rules, draft
from subscribers.hooks.import_paths import HooksFolder, Surroundings
from subscribers.hooks.import_plan import FileFact, FileFault, Found, Origin, Plan, Previous, plan, wanted

AROUND: Final = Surroundings(
    home="/h",
    base="/p",
    folders=(HooksFolder("/p/.claude/hooks", "files", "/p"),),
    variables={"HOME": "/h", "CLAUDE_PROJECT_DIR": "/p"},
    cwd="/p",
)
USER_AROUND: Final = Surroundings(
    home="/h",
    base="/h",
    folders=(HooksFolder("/h/.claude/hooks", "files", "/h/.claude"),),
    variables={"HOME": "/h"},
)
KEYS: Final = frozenset({"type", "command", "args", "timeout", "async", "commandWindows", "shell"})
ORIGIN: Final = Origin("claude:project", "claude-code", "project", "/p/.claude/settings.json", "claude")


def check(_event: str, group: Mapping[str, Any], handler: Mapping[str, Any]) -> Checked:
    """A profile that knows times and one bad matcher."""
    if group.get("matcher") == "[":
        return Checked(0.0, "the matcher is no pattern")
    return Checked(float(handler.get("timeout", 600)))


def rules(**changes: Any) -> Rules:
    """The rules of that profile."""
    known: dict[str, Any] = {
        "events": frozenset({"PreToolUse", "Stop"}),
        "types": frozenset({"command", "http"}),
        "keys": KEYS,
        "check": check,
        "is_own": lambda handler: handler.get("command") == "shim",
    }
    return Rules(**{**known, **changes})


def drafted(hooks: Any, around: Surroundings = AROUND, **changes: Any) -> Draft:
    """The draft of a ``hooks`` value."""
    return draft(hooks, rules(**changes), around)


def one(handler: Any, **changes: Any) -> Draft:
    """The draft of one handler of PreToolUse."""
    return drafted({"PreToolUse": [{"hooks": [handler]}]}, **changes)


def command(text: Any, **fields: Any) -> dict[str, Any]:
    """A command handler."""
    return {"type": "command", "command": text, **fields}


def fact(text: str, *, executable: bool = True, mentions: tuple[str, ...] = ()) -> FileFact:
    """A file of ``text``, whose digest stands for it."""
    return FileFact(len(text), f"{text:0>64}", executable, mentions)


def planned(
    made: Draft,
    files: Mapping[str, Found] | None = None,
    names: Mapping[str, str] | None = None,
    previous: Previous | None = None,
) -> Plan:
    """The plan for a draft whose files are all there, unless ``files`` says otherwise."""
    copied, external = wanted(made)
    there: dict[str, Found] = {path: fact("a") for path in copied}
    there |= {path: FileFault("missing", "there is no such file") for path in external}
    return plan(made, {**there, **(files or {})}, names or {}, ORIGIN, "claude-project-1", "/s/i", previous)
