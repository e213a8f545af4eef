"""What an answer that fits its event asks of the agent, or why it counts as a failed run.

Decides by sections 4.2 and 4.5 of the Codex contract: which keys an event does not support, what a denial
needs, and what each decision leads to. It refuses to know how the answer was read and how the run ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from broker.protocol.decisions import NOTHING, Verdict

from .codex_output import Document, stated
from .codex_output_rules import OutputRule
from .codex_profiles import Opinion, Profile
from .codex_result_values import NO_EFFECTS, Effects

_VERDICTS: Final[Mapping[Opinion, Verdict]] = {
    "allow": "allow",
    "ask": "ask",
    "defer": "ask",  # to wait for somebody is the strictest that is no denial
}

_STOPPED: Final = "hook stopped execution"

Ruling: TypeAlias = Effects | str
"""What an answer asks for, or the text of the error that it is."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The event that an answer is about, and whose rules hold."""

    event: str
    profile: Profile
    rule: OutputRule

    def returned(self, what: str) -> str:
        """The text that names a mistake."""
        return f"{self.event} hook returned {what}"

    def blocked(self, reason: str) -> Effects:
        """The effects of a denial with this reason."""
        if self.event != "PostToolUse":
            return Effects("deny", reason)
        return Effects("deny", reason, feedback=reason, output=self.in_place(reason))

    def in_place(self, feedback: str) -> Any:
        """What takes the place of a tool's result where feedback does that."""
        return feedback if self.profile.post_block_replaces else NOTHING


def ruling(bench: Bench, document: Document) -> Ruling:
    """What a document asks for beside contexts and warnings; a text: the run failed, with this error."""
    if document.top.get("continue") is False:
        on_false = bench.profile.continue_false.get(bench.event, "stop")
        if on_false == "stop":
            return _stopped(bench, document)
        if on_false == "block":
            return bench.blocked(_stop_reason(document) or f"{bench.event} {_STOPPED}")
    return rest(bench, document)


def rest(bench: Bench, document: Document) -> Ruling:
    """What a document asks for but for a stop."""
    universal = bench.profile.continue_false.get(bench.event, "stop") == "unsupported"
    found = _unsupported(bench, document, universal=universal)
    if found is not None:
        return found
    return _RULINGS.get(bench.rule.refusal, _block)(bench, document)


def _stop_reason(document: Document) -> str | None:
    return document.text("stopReason") or document.text("reason")


def _stopped(bench: Bench, document: Document) -> Effects:
    reason = document.top.get("stopReason")
    if reason is None:
        reason = bench.rule.stop_text
    if bench.event != "PostToolUse":
        return Effects(stop=True, stop_reason=reason)
    feedback = document.text("reason") or stated(reason) or f"{bench.event} {_STOPPED}"
    return Effects(stop=True, stop_reason=reason, feedback=feedback, output=bench.in_place(feedback))


def _unsupported(bench: Bench, document: Document, *, universal: bool) -> str | None:
    """The first key, in the order in which they are looked at, that the event does not support."""
    top = document.top
    if universal and top.get("continue") is False:
        return bench.returned("unsupported continue:false")
    if universal and top.get("stopReason") is not None:
        return bench.returned("unsupported stopReason")
    if top.get("suppressOutput") is True and bench.event in bench.profile.suppress_output_fails:
        return bench.returned("unsupported suppressOutput")
    return None


# ---- before a tool runs ----------------------------------------------------------------------------------


def _permission(bench: Bench, document: Document) -> Ruling:
    specific, profile = document.specific, bench.profile
    decision = specific.get("permissionDecision")
    why = stated(specific.get("permissionDecisionReason"))
    rewrites = specific.get("updatedInput") is not None
    if decision is None and not rewrites and specific.get("permissionDecisionReason") is None:
        return _block(bench, document)
    if rewrites and decision != "allow" and profile.rewrite_needs_allow:
        return bench.returned("updatedInput without permissionDecision:allow")
    if decision == "deny":
        reason = why or bench.rule.default_reason
        if reason is None:
            return bench.returned("permissionDecision:deny without a non-empty permissionDecisionReason")
        return bench.blocked(reason)
    if decision is None and not rewrites:
        lone = bench.returned("permissionDecisionReason without permissionDecision")
        return lone if bench.rule.lone_reason else NO_EFFECTS
    verdict = _opinion(profile, decision, rewrites=rewrites)
    if verdict is None:
        return bench.returned(f"unsupported permissionDecision:{decision}")
    return Effects(verdict, why if verdict != "none" else None, **_rewrite(specific))


def _opinion(profile: Profile, decision: str | None, *, rewrites: bool) -> Verdict | None:
    """What a permission decision comes to; None: it is not supported."""
    if decision is None:
        return "none"
    opinion = {"allow": profile.allow_alone, "ask": profile.ask, "defer": profile.defer}[decision]
    if opinion == "unsupported":
        return "none" if rewrites else None  # an allow that only carries the rewrite
    return _VERDICTS[opinion]


def _rewrite(values: Mapping[str, Any]) -> dict[str, Any]:
    updated = values.get("updatedInput")
    return {} if updated is None else {"updated_input": updated}


_RESERVED: Final[Mapping[str, str]] = {
    "updatedInput": "updatedInput",
    "updatedPermissions": "updatedPermissions",
    "interrupt": "interrupt:true",
}


def _request(bench: Bench, document: Document) -> Ruling:
    request = document.specific.get("decision")
    if request is None:
        return NO_EFFECTS
    for name, shown in _RESERVED.items():
        value = request.get(name)
        absent = value is None or (name == "interrupt" and value is False)
        if name in bench.profile.permission_reserved and not absent:
            return bench.returned(f"unsupported {shown}")
    message = stated(request.get("message"))
    if request["behavior"] == "allow":
        return Effects("allow", message, **_rewrite(request))
    reason = message or bench.rule.default_reason
    stop = request.get("interrupt") is True
    return Effects("deny", reason, stop=stop, stop_reason=reason if stop else None)


# ---- everything else -------------------------------------------------------------------------------------


def _block(bench: Bench, document: Document) -> Ruling:
    """The old pair of ``decision`` and ``reason``."""
    decision, reason = document.top.get("decision"), _reason(bench, document)
    output = _output(bench, document)
    if isinstance(output, str):
        return output
    if decision == "block" and bench.event in bench.profile.block_events:
        if reason is None and bench.rule.default_reason is None:
            return bench.returned("decision:block without a non-empty reason")
        blocked = bench.blocked(reason or bench.rule.default_reason or "")
        return blocked if output is NO_EFFECTS else replace(blocked, output=output.output)
    if decision == "approve" and bench.rule.refusal == "permission":
        if bench.profile.approve == "unsupported":
            return bench.returned("unsupported decision:approve")
        return Effects(_VERDICTS[bench.profile.approve], reason)
    stops = document.top.get("continue") is False
    if decision is None and bench.rule.lone_reason and document.top.get("reason") is not None and not stops:
        return bench.returned("reason without decision")
    return output


def _reason(bench: Bench, document: Document) -> str | None:
    """The reason of a decision; None where it is blank."""
    trimmed = document.text("reason")
    return trimmed if trimmed is None or not bench.rule.raw_reason else str(document.top["reason"])


def _output(bench: Bench, document: Document) -> Ruling:
    """What replaces a tool's output, where a profile has a field for it."""
    for name in ("updatedMCPToolOutput", "updatedToolOutput"):
        value = document.specific.get(name)
        if value is not None:
            if name not in bench.profile.tool_output_fields:
                return bench.returned(f"unsupported {name}")
            return Effects(output=value)
    return NO_EFFECTS


def _action(_bench: Bench, document: Document) -> Ruling:
    """An answer to somebody else's question; only a refusal is ours to pass on."""
    action = document.specific.get("action")
    if action in ("decline", "cancel"):
        return Effects("deny", f"hook answered {action}")
    return NO_EFFECTS


_RULINGS: Final[Mapping[str, Callable[[Bench, Document], Ruling]]] = {
    "permission": _permission,
    "request": _request,
    "action": _action,
}
