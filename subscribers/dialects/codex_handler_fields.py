"""The fields of one handler of the Codex family: its type, what is missing or wrong, and what means nothing.

It decides which fields count in which profile. It refuses to know what a handler of them comes to: that is
:mod:`.codex_handler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..hooks.diagnostics import quote
from . import codex_values as values
from .codex_findings import CodexFindings
from .codex_profiles import PROFILES
from .codex_rules import MEANT
from .json_positions import Path
from .nearest import nearest

_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "command": ("command",),
    "http": ("url",),
    "mcp_tool": ("server", "tool"),
}
_I64: Final = 2**63 - 1


def read_kind(value: Any, place: Path, findings: CodexFindings) -> str | None:
    """The type of a handler; None where it has none that the profile knows."""
    known = findings.profile.types
    if not isinstance(value, dict):
        reason = values.invalid_type(value, "internally tagged enum HookHandlerConfig")
        findings.void("wrong_handler", place, "a handler is an object", reason)
        return None
    kind = value.get("type")
    if kind is None and "type" not in value:
        hint = 'write "type": "command"'
        findings.void("missing_field", place, "the handler has no type", "missing field `type`", hint)
        return None
    if not isinstance(kind, str):
        findings.void(
            "wrong_type", (*place, "type"), "type is a string", values.invalid_type(kind, "variant")
        )
        return None
    if kind not in known:
        names = ", ".join(f"`{name}`" for name in ("command", "mcp_tool", "prompt", "agent"))
        message = f"there is no handler of type {quote(kind)}"
        owner = next((other for other in PROFILES.values() if kind in other.types), None)
        hint = f"the types are {', '.join(sorted(known))}"
        hint = hint if owner is None else f"{owner.agent} has it; {hint}"
        reason = f"unknown variant `{kind}`, expected one of {names}"
        findings.void("unknown_type", (*place, "type"), message, reason, hint)
        return None
    return kind


def read_fields(
    value: dict[str, Any], kind: str, place: Path, findings: CodexFindings
) -> dict[str, Any] | None:
    """The fields that mean something and are not null; None where one is missing or of a wrong type."""
    rules, known, is_sound = findings.fields[kind], {}, True
    for name in _REQUIRED[kind]:
        if name not in value:
            reason, is_sound = f"missing field `{name}`", False
            findings.void("missing_field", place, f"the handler has no {name}", reason)
    for name, found in value.items():
        if name not in rules:
            _say_ignored(name, kind, place, findings)
            continue
        rule = rules[name]
        if found is None and rule is not None and rule.nullable:
            continue
        known[name] = found
        if rule is not None and not rule.fits(found):
            is_sound = False
            reason = values.reason_of(found, rule)
            findings.void("wrong_type", (*place, name), f"{name} is {rule.what}", reason)
    if "command_windows" in known:
        if "commandWindows" in value:
            is_sound = False
            message = "commandWindows and command_windows are one field"
            reason = "duplicate field `commandWindows`"
            findings.void("wrong_type", (*place, "command_windows"), message, reason, at="key")
        known.setdefault("commandWindows", known["command_windows"])
    if "input" in known and not _fits_toml(known["input"]):
        is_sound = False
        reason = "MCP hook input must be representable as TOML"
        message = "input may hold no null, and no number beyond 64 bits"
        findings.void("wrong_type", (*place, "input"), message, reason)
    return known if is_sound else None


def _say_ignored(name: str, kind: str, place: Path, findings: CodexFindings) -> None:
    """Remark upon a field that means nothing here, and what that leads to."""
    if findings.full:
        return
    agent, where = findings.profile.agent, (*place, name)
    owner = next((p for p in PROFILES.values() if name in p.handler_keys.get(kind, ())), None)
    if name in MEANT:
        hint = f"{MEANT[name]} is the field" + ("; it is in seconds" if MEANT[name] == "timeout" else "")
        findings.say("ignored_field", where, f"{agent} ignores {name}", hint, at="key")
    elif owner is not None:
        message = f"{agent} ignores {name}, which is a field of {owner.agent}"
        findings.say("foreign_field", where, message, "remove it if it is not meant for both", at="key")
    else:
        known = findings.fields[kind]
        near = nearest(name, known)
        hint = f"did you mean {near}?" if near else f"the fields are {', '.join(sorted(known))}"
        findings.say("ignored_field", where, f"{agent} ignores {quote(name)}", hint, at="key")


def _fits_toml(value: Any) -> bool:
    """Whether TOML can hold a value: it has no null, and whole numbers of 64 bits with a sign."""
    level = [value]
    while level:
        if any(item is None or (isinstance(item, int) and item > _I64) for item in level):
            return False
        level = [inner for item in level for inner in _inner(item)]
    return True


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
