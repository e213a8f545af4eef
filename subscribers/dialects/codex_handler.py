"""One handler of a hook file of the Codex family: its type, its fields, and whether it may run.

It decides section 1.5 of the contract and, for Claude Code, 6.3. A handler that cannot be used is None, and a
finding says why. It refuses to know its siblings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from ..hooks.diagnostics import quote
from .codex_condition import Condition, condition
from .codex_events import TOOL_EVENTS, EventRule
from .codex_findings import CodexFindings
from .codex_handler_fields import read_fields, read_kind
from .codex_matcher import Matcher
from .codex_profiles import Profile, TimeLimit
from .codex_spec import CodexHandler, FailurePolicy, Kind
from .codex_trust import command_identity, tool_identity, trust_hash, trust_key
from .json_depth import is_too_deep
from .json_positions import Path

LONGEST_S: Final = 31_536_000.0
"""A year: a handler may say more, and no clock is set beyond it."""

_SCHEMES: Final = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a handler stands: event, places there, number over all files, and its group's matcher.

    ``path`` names the file, as trust keys do; ``windows``: commands are chosen for Windows.
    """

    path: str
    where: Path
    rule: EventRule
    group: int
    index: int
    order: int
    matcher_text: str | None
    matcher: Matcher
    windows: bool = False


def read_handler(value: Any, slot: Slot, findings: CodexFindings) -> CodexHandler | None:
    """The handler that a value is; None where it cannot run. Everything that is wrong is remarked upon."""
    kind = read_kind(value, slot.where, findings)
    if kind is None:
        return None
    profile = findings.profile
    if kind in ("prompt", "agent"):
        text = f"skipping {kind} hook in {slot.path}: {kind} hooks are not supported yet"
        findings.warn("not_run", slot.where, _not_run(kind, profile), text)
        return None
    known = read_fields(value, kind, slot.where, findings)
    if known is None:
        return None
    if kind == "mcp_tool":
        return _tool(known, slot, findings)
    return _command(known, slot, findings) if kind == "command" else _http(known, slot, findings)


def _not_run(kind: str, profile: Profile) -> str:
    if kind in profile.upstream_runs:
        return f"{profile.agent} runs {kind} handlers, prxbus does not"
    return f"{kind} handlers are read and skipped"


def _timeout(value: Mapping[str, Any], kind: str, slot: Slot, findings: CodexFindings) -> float:
    """The seconds that apply, after default and clamp."""
    profile, event = findings.profile, slot.rule.name
    limit = profile.timeouts.get(event) or TimeLimit(
        profile.type_timeouts.get(kind, profile.timeout.default_s)
    )
    own = value.get("timeout")
    where = (*slot.where, "timeout")
    if own is None:
        own = limit.default_s
    elif own == 0:
        own = 1
        findings.say("small_timeout", where, "a timeout of 0 counts as 1 s")
    if limit.most_s is not None and own > limit.most_s:
        own = limit.most_s
        text = f"clamping {event} hook timeout to {own:g}s in {slot.path}"
        findings.warn("clamped_timeout", where, f"{event} handlers have at most {own:g} s", text)
    return int(own) if own == int(own) else own


def _is_async(value: Mapping[str, Any], slot: Slot, findings: CodexFindings) -> bool:
    wanted = bool(value.get("async") or value.get("asyncRewake"))
    if wanted and slot.rule.name in findings.profile.sync_events:
        text = f"running async {slot.rule.name} hook synchronously in {slot.path}"
        message = f"{slot.rule.name} handlers are waited for: async is not honoured"
        findings.warn("sync_event", (*slot.where, "async"), message, text)
        return False
    return wanted


def _context_limit(value: Mapping[str, Any], slot: Slot, findings: CodexFindings) -> int | None:
    limit = cast(int | None, value.get("additionalContextLimit"))
    event = slot.rule.name
    if limit is not None and event not in findings.profile.context_events:
        text = (
            f"ignoring additionalContextLimit for {event} hook in {slot.path}: "
            "this event cannot emit additionalContext"
        )
        message = f"{event} has no additionalContext: the limit is ignored"
        findings.warn("ignored_limit", (*slot.where, "additionalContextLimit"), message, text)
        return None
    return limit


def _condition(
    value: Mapping[str, Any], slot: Slot, findings: CodexFindings
) -> tuple[Condition | None, bool]:
    """The condition of a handler, and whether it can ever be met."""
    text = value.get("if")
    if text is None:
        return None, True
    rule = condition(text)
    message = rule.error
    if message is None and slot.rule.name not in TOOL_EVENTS:
        message = f"{slot.rule.name} is no tool event: a handler with an if never runs there"
    if message is not None:
        hint = "write one permission rule, as Bash(git *)"
        findings.say("dead_condition", (*slot.where, "if"), f"it never runs: {message}", hint)
        return None, False
    return rule, True


def _base(kind: Kind, value: Mapping[str, Any], slot: Slot, findings: CodexFindings) -> dict[str, Any]:
    """What handlers of every type have; the digest is missing."""
    timeout = _timeout(value, kind, slot, findings)
    return {
        "event": slot.rule.name,
        "group": slot.group,
        "index": slot.index,
        "order": slot.order,
        "kind": kind,
        "timeout_s": min(float(timeout), LONGEST_S),
        "timeout_is_own": value.get("timeout") is not None,
        "matches": slot.matcher,
        "matcher": slot.matcher_text,
        "path": slot.path,
        "key": trust_key(slot.path, slot.rule.key, slot.group, slot.index),
        "profile": findings.profile.name,
        "status_message": value.get("statusMessage"),
        "once": value.get("once", False),
    }


def _command(known: Mapping[str, Any], slot: Slot, findings: CodexFindings) -> CodexHandler | None:
    windows = known.get("commandWindows")
    command = windows if slot.windows and windows is not None else known["command"]
    if not command.strip():
        text = f"skipping empty hook command in {slot.path}"
        findings.warn("empty_command", (*slot.where, "command"), "the command is empty", text)
        return None
    args = tuple(known["args"]) if "args" in known else None
    if "\0" in command or any("\0" in arg for arg in args or ()):
        findings.say("nul", (*slot.where, "command"), "a command can hold no NUL", "remove it")
        return None
    rule, may_run = _condition(known, slot, findings)
    base = _base("command", known, slot, findings)
    is_async = _is_async(known, slot, findings)
    limit = _context_limit(known, slot, findings)
    identity = command_identity(
        command,
        _hashed(known, base),
        is_async=bool(known.get("async")),
        status_message=base["status_message"],
        context_limit=limit,
    )
    handler = CodexHandler(
        **base,
        command=command,
        command_windows=windows,
        args=args,
        shell=known.get("shell"),
        is_async=is_async,
        rewakes=bool(known.get("asyncRewake")),
        context_limit=limit,
        condition=rule,
        on_failure=_on_failure(known, slot, findings, is_async=is_async),
        digest=trust_hash(slot.rule.key, slot.matcher_text, identity),
    )
    return handler if may_run else None


def _hashed(value: Mapping[str, Any], base: Mapping[str, Any]) -> float:
    """The timeout that a hash is of: beyond the longest that is run with, as it was written."""
    own = value.get("timeout")
    if own is not None and own > LONGEST_S and base["timeout_s"] == LONGEST_S:
        return cast(float, own)
    return int(base["timeout_s"]) if base["timeout_s"] == int(base["timeout_s"]) else base["timeout_s"]


def _on_failure(
    value: Mapping[str, Any], slot: Slot, findings: CodexFindings, *, is_async: bool = False
) -> FailurePolicy:
    policy = cast(FailurePolicy, value.get("onFailure", "continue"))
    if policy == "block" and (is_async or slot.rule.name in findings.profile.on_failure_ignored):
        why = "nobody waits for it" if is_async else f"{slot.rule.name} is never blocked by a failure"
        findings.say("ignored_field", (*slot.where, "onFailure"), f"onFailure does nothing: {why}")
        return "continue"
    return policy


def _http(value: Mapping[str, Any], slot: Slot, findings: CodexFindings) -> CodexHandler | None:
    event, url = slot.rule.name, value["url"].strip()
    if event in findings.profile.no_http_events:
        message = f"{event} calls no http handler: only commands run"
        findings.say("unsupported_here", slot.where, message, "use a command handler")
        return None
    if not url.lower().startswith(_SCHEMES):
        message = f"{quote(url)} is no address of the web"
        findings.say("unsupported_here", (*slot.where, "url"), message, "begin it with http:// or https://")
        return None
    rule, may_run = _condition(value, slot, findings)
    base = _base("http", value, slot, findings)
    headers = dict(value.get("headers", {}))
    allowed = tuple(value.get("allowedEnvVars", ()))
    identity = {"type": "http", "url": url, "headers": headers, "allowedEnvVars": list(allowed)}
    handler = CodexHandler(
        **base,
        url=url,
        headers=headers,
        allowed_env=allowed,
        condition=rule,
        on_failure=_on_failure(value, slot, findings),
        digest=trust_hash(slot.rule.key, slot.matcher_text, identity),
    )
    return handler if may_run else None


def _tool(value: Mapping[str, Any], slot: Slot, findings: CodexFindings) -> CodexHandler | None:
    event, prefix = slot.rule.name, f"skipping MCP tool hook in {slot.path}: "
    if not value["server"].strip() or not value["tool"].strip():
        text = f"{prefix}server and tool must not be empty"
        findings.warn("empty_target", slot.where, "server and tool must not be empty", text)
        return None
    if event in findings.profile.no_mcp_events:
        text = f"{prefix}{event} MCP hooks are not supported"
        findings.warn("unsupported_here", slot.where, f"{event} calls no tools", text)
        return None
    tool_input = value.get("input", {})
    if is_too_deep(tool_input):
        findings.say("unsupported_here", (*slot.where, "input"), "input is nested too deep")
        return None
    rule, may_run = _condition(value, slot, findings)
    base = _base("mcp_tool", value, slot, findings)
    reason = _not_run("mcp_tool", findings.profile)
    findings.say("not_run", slot.where, reason)
    handler = CodexHandler(
        **base,
        server=value["server"],
        tool=value["tool"],
        tool_input=tool_input,
        condition=rule,
        unsupported=reason,
        digest=trust_hash(
            slot.rule.key,
            slot.matcher_text,
            tool_identity(
                value["server"],
                value["tool"],
                tool_input,
                _hashed(value, base),
                base["status_message"],
            ),
        ),
    )
    return handler if may_run else None
