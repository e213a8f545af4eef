"""What a run of one handler comes to: (event, outcome) -> status, entries, effects. Pure.

    outcome of one handler  --judge-->  Judged  --codex_merge-->  what the event comes to

Decides by sections 4.1 to 4.5 and 4.7 of the Codex contract, with its fixed texts; where a profile differs
its field in :mod:`.codex_profiles` says so. Every failure fails open, unless the handler's own policy is to
block. It refuses to know how the handler was run and what the other handlers say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from ..hooks.outcome import Captured, Outcome
from .codex_output import Broken, Document, Plain, Shape, read, stated
from .codex_output_rules import PASSED_ON
from .codex_profiles import Profile
from .codex_result_document import Bench, rest, ruling
from .codex_result_values import COMPLETED, Context, Effects, Entry, Judged

FailurePolicy: TypeAlias = Literal["continue", "block"]

BLANK_STDERR: Final = "No stderr output"
"""The reason of an exit 2 that gave none, where it blocks nevertheless."""

MIB: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for one handler beside its event and profile.

    ``is_async``: nobody waits for it, so that it cannot control anything. ``context_limit`` is carried with
    its contexts. ``timeout_s`` stands in the text of a timeout. ``on_failure`` is its own policy. ``strict``:
    nothing is said but what upstream says.
    """

    is_async: bool = False
    context_limit: int | None = None
    timeout_s: float | None = None
    on_failure: FailurePolicy = "continue"
    strict: bool = False


_DEFAULT: Final = Terms()


def judge(event: str, profile: Profile, outcome: Outcome, terms: Terms = _DEFAULT) -> Judged:
    """What the run of a command handler comes to. Raises KeyError for an event that the profile lacks."""
    bench = Bench(event, profile, profile.outputs[event])
    judged = _judged(bench, outcome, terms)
    if judged.status == "failed" and terms.on_failure == "block" and not terms.is_async:
        return fail_closed(bench, judged, timed_out=outcome.status == "timeout")
    return judged


def _judged(bench: Bench, outcome: Outcome, terms: Terms) -> Judged:
    if outcome.status == "ok":
        return _answered(bench, outcome, terms)
    if outcome.status != "failed":
        return failed(_ended_badly(bench, outcome, terms))
    judged = _exited(bench, outcome, terms)
    if not bench.profile.json_on_any_exit or bench.rule.silent:
        return judged
    found = read(outcome.stdout.text(), bench.rule, "closed")
    if isinstance(found, Broken) and outcome.stdout.truncated:
        return _with_cut(judged, outcome.stdout)
    if not isinstance(found, Document):
        return judged
    said = document(bench, found, terms)
    if judged.status != "blocked" or said.status in ("blocked", "failed"):
        return judged if said.status == "failed" else said
    return replace(
        judged,
        entries=(*said.entries, *judged.entries),
        effects=replace(judged.effects, contexts=said.effects.contexts, warnings=said.effects.warnings),
    )


# ---- exit code 0 ----------------------------------------------------------------------------------------


def _answered(bench: Bench, outcome: Outcome, terms: Terms) -> Judged:
    if bench.rule.silent:
        return COMPLETED
    shape: Shape = "closed" if bench.profile.json_on_any_exit else "open"
    found = read(outcome.stdout.text(), bench.rule, shape)
    if found is None:
        return COMPLETED
    if isinstance(found, Document):
        return document(bench, found, terms)
    if isinstance(found, Plain):
        return _plain(bench, found.text, terms)
    return _broken(bench, outcome, found, terms)


def _invalid(bench: Bench) -> str:
    return f"hook returned invalid {bench.rule.label} JSON output"


def _broken(bench: Bench, outcome: Outcome, found: Broken, terms: Terms) -> Judged:
    """A failed run; beside upstream's text we say what is wrong with the answer.

    A cut is ours, so that it is named also where nothing is said but what upstream says.
    """
    judged = failed(_invalid(bench))
    if outcome.stdout.truncated:
        return _with_cut(judged, outcome.stdout)
    if terms.strict:
        return judged
    return replace(
        judged, entries=(*judged.entries, Entry("warning", f"the answer was ignored: {found.why}"))
    )


def _with_cut(judged: Judged, stdout: Captured) -> Judged:
    """That an answer was not read because it was not kept as a whole."""
    kept = len(stdout.head) + len(stdout.tail)
    limit = "1 MiB" if kept == MIB else f"{kept:,} bytes"
    why = (
        f"the answer was ignored: more than {limit} of output is cut, and it has {stdout.total:,} bytes; "
        "it may have been valid"
    )
    return replace(judged, entries=(*judged.entries, Entry("warning", why)))


def _plain(bench: Bench, text: str, terms: Terms) -> Judged:
    if bench.event in bench.profile.plain_context:
        return _with_contexts(COMPLETED, (Context(text, terms.context_limit),))
    if bench.event in bench.profile.plain_fails and not terms.is_async:
        return failed(bench.rule.plain_error or _invalid(bench))
    return COMPLETED


def document(bench: Bench, found: Document, terms: Terms) -> Judged:
    """What an answer that fits comes to; for the answers that came another way than through stdout."""
    message = found.top.get("systemMessage")
    warnings = () if message is None else (message,)
    text = found.specific.get("additionalContext")
    counts = text is not None and bench.event in bench.profile.context_events
    contexts = (Context(str(text), terms.context_limit),) if counts else ()
    if terms.is_async:
        entries = (*_entries("context", contexts), *(Entry("warning", each) for each in warnings))
        return Judged("completed", entries, Effects(contexts=contexts, warnings=warnings))
    said = ruling(bench, found)
    if not isinstance(said, str) and said.stop and isinstance(rest(bench, found), str):
        contexts = ()  # what is wrong beside a stop costs the context and nothing else
    lost = () if isinstance(said, str) or terms.strict else _not_passed_on(found)
    warned = tuple(Entry("warning", each) for each in (*warnings, *lost))
    if isinstance(said, str):
        return Judged("failed", (*warned, Entry("error", said)), Effects(warnings=warnings))
    judged = _ruled(replace(said, warnings=warnings))
    return _with_contexts(replace(judged, entries=(*warned, *judged.entries)), contexts, after=len(warned))


def _ruled(effects: Effects) -> Judged:
    if effects.verdict == "deny":
        return Judged("blocked", (Entry("feedback", effects.reason or ""),), effects)
    if effects.stop:
        entries = () if effects.stop_reason is None else (Entry("stop", effects.stop_reason),)
        return Judged("stopped", entries, effects)
    return Judged("completed", (), effects)


def _with_contexts(judged: Judged, contexts: tuple[Context, ...], after: int = 0) -> Judged:
    entries = (*judged.entries[:after], *_entries("context", contexts), *judged.entries[after:])
    return Judged(judged.status, entries, replace(judged.effects, contexts=contexts))


def _entries(kind: Literal["context"], contexts: tuple[Context, ...]) -> tuple[Entry, ...]:
    return tuple(Entry(kind, context.text) for context in contexts)


def _not_passed_on(found: Document) -> tuple[str, ...]:
    """A note about the keys whose meaning a decision of the bus cannot carry."""
    request = found.specific.get("decision")
    parts: tuple[Mapping[str, Any], ...] = (found.top, found.specific)
    if isinstance(request, dict):
        parts = (*parts, request)
    names = [name for part in parts for name, value in part.items() if value not in (None, False)]
    lost = sorted({name for name in names if name not in PASSED_ON})
    return (f"prxbus does not pass on: {', '.join(lost)}",) if lost else ()


# ---- everything else ------------------------------------------------------------------------------------


def failed(text: str) -> Judged:
    """A run that failed, and that nothing else comes of."""
    return Judged("failed", (Entry("error", text),))


def _exited(bench: Bench, outcome: Outcome, terms: Terms) -> Judged:
    """A run that ended with another exit code than 0."""
    two = bench.profile.exit_two.get(bench.event, "error") != "error" and not terms.is_async
    if outcome.exit_code != 2 or not two:
        return failed(_ended_badly(bench, outcome, terms))
    reason = stated(outcome.stderr.text())
    if reason is None:
        if not bench.profile.blank_exit_two_blocks:
            return failed(
                f"{bench.event} hook exited with code 2 but did not write {bench.rule.missing} to stderr"
            )
        reason = BLANK_STDERR
    return _ruled(bench.blocked(reason))


def _ended_badly(bench: Bench, outcome: Outcome, terms: Terms) -> str:
    if outcome.status == "timeout":
        seconds = round(outcome.duration_s, 1) if terms.timeout_s is None else terms.timeout_s
        return f"hook timed out after {seconds:g}s"
    if outcome.status == "not_started" or (outcome.exit_code is None and outcome.reason is not None):
        return outcome.reason or "hook could not be started"
    if outcome.status == "signalled":
        if bench.rule.shows_stderr:
            return "hook process terminated without an exit code"
        return "hook exited without a status code"
    said = stated(outcome.stderr.text()) if bench.rule.shows_stderr else None
    return said or f"hook exited with code {outcome.exit_code}"


def fails_closed(event: str, profile: Profile) -> bool:
    """Whether a failure of a handler that is to block then is a denial, on an event of the profile.

    It is none on those where a block keeps a turn going: the agent could not end.
    """
    rule = profile.outputs[event]
    is_pointless = rule.refusal in ("nothing", "context") or event in profile.on_failure_ignored
    return not is_pointless and profile.exit_two.get(event) != "continue"


def refuse(event: str, profile: Profile, reason: str) -> Judged:
    """What it comes to that the handlers of a file that fails closed are not known."""
    bench = Bench(event, profile, profile.outputs[event])
    return Judged("blocked", (Entry("feedback", reason),), bench.blocked(reason))


def fail_closed(bench: Bench, judged: Judged, *, timed_out: bool) -> Judged:
    """A failed run of a handler that is to block then; as it is on events where that means nothing."""
    pointless = bench.rule.refusal in ("nothing", "context")
    if pointless or bench.event in bench.profile.on_failure_ignored:
        return judged
    how = "timed out" if timed_out else "failed"
    reason = f'{bench.event} hook {how}; blocking because onFailure is "block"'
    effects = replace(bench.blocked(reason), warnings=judged.effects.warnings)
    return Judged("blocked", (*judged.entries, Entry("feedback", reason)), effects)
