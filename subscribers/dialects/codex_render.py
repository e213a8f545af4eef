"""A decision of the bus as an agent of the Codex family wants to read it.

    Decision  --render------>  stdout, stderr and exit code of the agent's hook command
              --render_http->  the body of the answer to Claude Code's HTTP hook; empty: no opinion

A decision may hold more than an agent understands. What it cannot express is said in the nearest stricter
way, never in a milder one: where nobody can be asked, ``ask`` is a denial; where an allow would spare the
user's question, a rewrite comes without it. It refuses to know how the decision came about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from broker.protocol.decisions import Decision

from .codex_output import stated
from .codex_output_rules import OutputRule
from .codex_profiles import Profile

_BETWEEN: Final = "\n\n"
_EMPTIED: Final = "[output removed]"


class Rendered(NamedTuple):
    """What a hook command writes, and how it ends."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0


NO_OPINION: Final = Rendered()


def render(event: str, profile: Profile, decision: Decision) -> Rendered:
    """What the agent's hook command for ``event`` writes. Raises KeyError for an event it does not have."""
    case = _case(event, profile, decision)
    if case.refused and case.rule.refusal == "exit":
        return Rendered(b"", _reason(case).encode("utf-8", "replace"), 2)
    return Rendered(_document(case))


def render_http(event: str, profile: Profile, decision: Decision) -> bytes:
    """The body of the answer to an HTTP hook; empty where there is nothing to say."""
    return _document(_case(event, profile, decision))


@dataclass(frozen=True, slots=True)
class _Case:
    """One decision on its way to one agent; ``top`` and ``specific`` are the answer so far."""

    event: str
    profile: Profile
    rule: OutputRule
    decision: Decision
    refused: bool
    stops: bool
    top: dict[str, Any] = field(default_factory=dict)
    specific: dict[str, Any] = field(default_factory=dict)
    contexts: list[str] = field(default_factory=list)


def _case(event: str, profile: Profile, decision: Decision) -> _Case:
    rule = profile.outputs[event]
    stops = decision.stop and _on_false(event, profile) in ("stop", "block")
    goes_on = profile.exit_two.get(event) == "continue"
    refused = decision.denied and not (goes_on and decision.stop)
    refused = refused or (decision.stop and not stops and (rule.prevents or event == "PostToolUse"))
    unasked = decision.verdict == "ask" and rule.refusal == "permission" and profile.ask == "unsupported"
    return _Case(event, profile, rule, decision, refused or unasked, stops)


def _on_false(event: str, profile: Profile) -> str:
    return profile.continue_false.get(event, "stop")


def _document(case: _Case) -> bytes:
    if case.rule.silent:
        return b""
    case.contexts.extend(said.text for said in case.decision.contexts)
    _stop(case)
    if case.refused:
        _REFUSALS[case.rule.refusal](case)
    elif case.rule.refusal in _OPINIONS:
        _OPINIONS[case.rule.refusal](case)
    if case.event == "PostToolUse":
        _replace_output(case)
    _add_contexts(case)
    if case.specific:
        case.top["hookSpecificOutput"] = {"hookEventName": case.event, **case.specific}
    messages = [said.text for said in case.decision.system_messages]
    if messages:
        case.top["systemMessage"] = "\n".join(messages)
    return orjson.dumps(case.top, default=str) if case.top else b""


def _reason(case: _Case) -> str:
    """Why there is a no; never blank, because a no without a reason counts nowhere."""
    decision = case.decision
    reason = stated(decision.reason) if decision.verdict in ("deny", "ask") else None
    reason = reason or (stated(decision.stop_reason) if decision.stop else None)
    if decision.verdict == "ask":
        wants = f"{decision.by or 'a handler'} wants the user to be asked, which cannot be done here"
        return f"{reason} ({wants})" if reason else wants
    return reason or f"denied by {decision.by or decision.stop_by or 'a handler'}"


def _stop(case: _Case) -> None:
    if not case.stops:
        return
    case.top["continue"] = False
    if case.decision.stop_reason is not None:
        case.top["stopReason"] = case.decision.stop_reason


# ---- how a no is said ------------------------------------------------------------------------------------


def _deny(case: _Case) -> None:
    case.specific["permissionDecision"] = "deny"
    case.specific["permissionDecisionReason"] = _reason(case)


def _deny_request(case: _Case) -> None:
    request: dict[str, Any] = {"behavior": "deny", "message": _reason(case)}
    if case.decision.stop and "interrupt" not in case.profile.permission_reserved:
        request["interrupt"] = True
    case.specific["decision"] = request


def _block(case: _Case) -> None:
    case.top["decision"] = "block"
    case.top["reason"] = _reason(case)


def _say_stop(case: _Case) -> None:
    if _on_false(case.event, case.profile) == "stop":
        case.top.setdefault("continue", False)
        case.top.setdefault("stopReason", _reason(case))


def _say_as_context(case: _Case) -> None:
    case.contexts.append(_reason(case))


def _decline(case: _Case) -> None:
    case.specific["action"] = "decline"


def _say_nothing(_case: _Case) -> None:
    """There is nothing here that could be refused."""


_REFUSALS: Final[Mapping[str, Callable[[_Case], None]]] = {
    "permission": _deny,
    "request": _deny_request,
    "decision": _block,
    "continue": _say_stop,
    "context": _say_as_context,
    "action": _decline,
    "exit": _say_stop,  # over HTTP there is no exit code
    "nothing": _say_nothing,
}


# ---- how anything else is said ---------------------------------------------------------------------------


def _permission(case: _Case) -> None:
    decision, profile = case.decision, case.profile
    rewrites = decision.updated_input is not None
    harmless = rewrites and profile.rewrite_needs_allow and profile.allow_alone == "unsupported"
    if harmless:
        case.specific["permissionDecision"] = "allow"
    elif decision.verdict == "ask" or (decision.verdict == "allow" and profile.allow_alone != "unsupported"):
        case.specific["permissionDecision"] = decision.verdict
        if stated(decision.reason) is not None:
            case.specific["permissionDecisionReason"] = decision.reason
    if rewrites:
        case.specific["updatedInput"] = decision.updated_input


def _request(case: _Case) -> None:
    decision = case.decision
    if decision.verdict != "allow":
        return
    request: dict[str, Any] = {"behavior": "allow"}
    if decision.updated_input is not None:
        if "updatedInput" in case.profile.permission_reserved:
            return  # what was allowed is not what would run
        request["updatedInput"] = decision.updated_input
    case.specific["decision"] = request


_OPINIONS: Final[Mapping[str, Callable[[_Case], None]]] = {"permission": _permission, "request": _request}


def _replace_output(case: _Case) -> None:
    """What the model reads instead of a tool's output."""
    decision = case.decision
    if not decision.replaced:
        return
    if "updatedToolOutput" in case.profile.tool_output_fields:
        if not case.refused or decision.output != decision.reason:  # feedback is said as such
            case.specific["updatedToolOutput"] = decision.output
    elif not case.refused:
        if not case.stops:
            case.top["decision"] = "block"
        case.top["reason"] = _text(decision.output)


def _text(output: Any) -> str:
    text = output if isinstance(output, str) else orjson.dumps(output, default=str).decode()
    return text if stated(text) else _EMPTIED


def _add_contexts(case: _Case) -> None:
    if case.contexts and case.event in case.profile.context_events:
        case.specific["additionalContext"] = _BETWEEN.join(case.contexts)
