"""What all handlers of one event come to: section 4.6 of the Codex contract. Pure.

    runs, in configured order  --merge_judged-->  Merged      as upstream says it
                               --answers------->  [Answer]    as the bus merges it with other deciders'

Handlers start together, so that their order is the configured one and only a rewrite looks at who was last.
The answers are chosen so that the bus's own laws (first denial's reason, rewrites by key, first output) give
what upstream would do. It refuses to know how a run was judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from broker.protocol.decisions import NOTHING, VERDICTS, Answer, Said, Verdict

from .codex_profiles import Profile
from .codex_result_values import Context, Judged

_BETWEEN: Final = "\n\n"


class Finished(NamedTuple):
    """One run: the handler's name, what came of it, and when it ended, on any clock."""

    by: str
    judged: Judged
    finished_at: float = 0.0


class Note(NamedTuple):
    """A context and who gave it."""

    by: str
    context: Context


@dataclass(frozen=True, slots=True)
class Merged:
    """What an event comes to.

    ``reason`` is that of the first handler with this verdict. ``updated_input`` and ``output`` are
    :data:`~broker.protocol.decisions.NOTHING` where nobody set them. ``feedback`` is what the model reads of
    a tool's result. ``fragments`` are the prompts that a turn goes on with, ``continuation`` all of them.
    """

    verdict: Verdict = "none"
    reason: str | None = None
    by: str | None = None
    updated_input: Any = NOTHING
    rewritten_by: str | None = None
    output: Any = NOTHING
    feedback: str | None = None
    contexts: tuple[Note, ...] = ()
    stop: bool = False
    stop_reason: str | None = None
    fragments: tuple[Said, ...] = ()
    warnings: tuple[Said, ...] = ()

    @property
    def continuation(self) -> str | None:
        """The prompts together, with a blank line between them; None: the turn ends."""
        return _BETWEEN.join(each.text for each in self.fragments) or None


def merge_judged(event: str, profile: Profile, runs: Sequence[Finished]) -> Merged:
    """What the runs of an event's handlers, in configured order, come to."""
    stopping = [run for run in runs if run.judged.effects.stop]
    if stopping and _goes_on(event, profile):  # the end of a turn beats its going on
        runs = [_unblocked(run) for run in runs]
    verdict, said_by = _strictest(runs)
    feedbacks = [run.judged.effects.feedback for run in runs if run.judged.effects.feedback is not None]
    winner = None if verdict == "deny" else _last_rewrite(runs)
    return Merged(
        verdict=verdict,
        reason=None if said_by is None else said_by.judged.effects.reason,
        by=None if said_by is None else said_by.by,
        updated_input=NOTHING if winner is None else winner.judged.effects.updated_input,
        rewritten_by=None if winner is None else winner.by,
        output=_output(runs, feedbacks),
        feedback=_BETWEEN.join(feedbacks) if feedbacks else None,
        contexts=tuple(Note(run.by, each) for run in runs for each in run.judged.effects.contexts),
        stop=bool(stopping),
        stop_reason=next(
            (reason for run in stopping if (reason := run.judged.effects.stop_reason) is not None), None
        ),
        fragments=_fragments(event, profile, runs),
        warnings=tuple(Said(run.by, text) for run in runs for text in run.judged.effects.warnings),
    )


def answers(
    event: str, profile: Profile, runs: Sequence[Finished], *, tool_name: str | None = None
) -> list[Answer]:
    """What the handlers answer on the bus: one answer for each that has something to say, in order.

    ``tool_name`` is the tool whose input may be rewritten. Texts that upstream joins stand in the answer of
    the first handler that gave one.
    """
    merged = merge_judged(event, profile, runs)
    prevents = profile.outputs[event].prevents
    found: list[Answer] = []
    joined = first_stop = False
    for run in runs:
        effects = run.judged.effects
        answer = Answer(
            run.by,
            contexts=tuple(context.text for context in effects.contexts),
            system_message="\n".join(effects.warnings) or None,
        )
        if effects.stop:
            reason = effects.stop_reason if first_stop else merged.stop_reason
            first_stop = True
            answer = answer._replace(stop=True, stop_reason=reason)
        if effects.verdict != "none" and not (merged.stop and _goes_on(event, profile)):
            answer = answer._replace(verdict=effects.verdict, reason=effects.reason)
        if effects.stop and prevents and answer.verdict != "deny":
            answer = answer._replace(verdict="deny", reason=answer.stop_reason)
        if not joined and _speaks(run, merged):
            joined = True
            text = merged.continuation or merged.feedback
            output = merged.output
            answer = answer._replace(
                output=output, reason=text if answer.verdict == "deny" and text else answer.reason
            )
        if run.by == merged.rewritten_by and effects.updated_input is merged.updated_input:
            answer = _rewriting(answer, profile, merged.updated_input, tool_name)
        if answer != Answer(run.by):
            found.append(answer)
    return found


def rewrite_fault(profile: Profile, tool_name: str | None, updated: Any) -> str | None:
    """Why a tool cannot run with this input, in upstream's words; None: it can."""
    if tool_name in profile.command_tools:
        if isinstance(updated, Mapping) and isinstance(updated.get("command"), str):
            return None
        return "hook returned updatedInput without string field `command`"
    return None if isinstance(updated, Mapping) else "hook returned updatedInput that is no object"


def _goes_on(event: str, profile: Profile) -> bool:
    """Whether a denial of this event means that the turn goes on."""
    return profile.exit_two.get(event) == "continue"


def _unblocked(run: Finished) -> Finished:
    effects = replace(run.judged.effects, verdict="none", reason=None)
    return run._replace(judged=replace(run.judged, effects=effects))


def _strictest(runs: Sequence[Finished]) -> tuple[Verdict, Finished | None]:
    """The strictest verdict and the first handler that gave it."""
    by = max(runs, key=lambda run: VERDICTS.index(run.judged.effects.verdict), default=None)
    if by is None or by.judged.effects.verdict == "none":
        return "none", None
    return by.judged.effects.verdict, by


def _last_rewrite(runs: Sequence[Finished]) -> Finished | None:
    """The rewrite of the handler that ended last; of two at once the later configured one."""
    rewriting = [run for run in runs if run.judged.effects.updated_input is not NOTHING]
    return max(reversed(rewriting), key=lambda run: run.finished_at, default=None)


def _output(runs: Sequence[Finished], feedbacks: Sequence[str]) -> Any:
    """What replaces a tool's output: all feedback where feedback does, else what the first one set."""
    found = next((run for run in runs if run.judged.effects.output is not NOTHING), None)
    if found is None:
        return NOTHING
    effects = found.judged.effects
    return _BETWEEN.join(feedbacks) if effects.output is effects.feedback else effects.output


def _fragments(event: str, profile: Profile, runs: Sequence[Finished]) -> tuple[Said, ...]:
    if not _goes_on(event, profile):
        return ()
    return tuple(
        Said(run.by, run.judged.effects.reason or "") for run in runs if run.judged.effects.verdict == "deny"
    )


def _speaks(run: Finished, merged: Merged) -> bool:
    """Whether the texts that are joined belong to this handler's answer."""
    effects = run.judged.effects
    if merged.fragments:
        return run.by == merged.fragments[0].by and effects.verdict == "deny"
    return effects.feedback is not None or effects.output is not NOTHING


def _rewriting(answer: Answer, profile: Profile, updated: Any, tool_name: str | None) -> Answer:
    fault = rewrite_fault(profile, tool_name, updated)
    if fault is not None:
        return answer._replace(verdict="deny", reason=fault)
    return answer._replace(updated_input=updated)
