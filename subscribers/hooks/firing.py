"""One event put to the handlers of some files: which of them match, and what came of each.

It decides why a handler does not run for an event, and the JSON of all that. It refuses to know how handlers
are run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.protocol.decisions import NOTHING, Answer, Decision
from broker.protocol.topics import Pattern

from .explanation import BROKEN, ExplainedFile, Handler, file_document, handler_document, text
from .outcome import Outcome

TAIL_CHARACTERS: Final = 4_000
"""Last characters of an output stream that the document carries."""

ONCE: Final = "it runs once for an event, and has been chosen above"


@dataclass(frozen=True, slots=True)
class Published:
    """An event that a handler wanted published; without a bus nobody got it."""

    topic: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Fired:
    """A handler and what an event means to it.

    ``matched``: the event is its business. ``reason``: why it is not, or why it does not run although it is;
    None where it runs. ``outcome`` None: nothing was started. ``answer`` is what it decided.
    """

    handler: Handler
    matched: bool
    reason: str | None
    outcome: Outcome | None = None
    answer: Answer | None = None
    published: tuple[Published, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether it was to run and did not come to a good end."""
        return self.outcome is not None and self.outcome.status != "ok"

    @property
    def is_broken(self) -> bool:
        """Whether the event is its business and it cannot run."""
        return self.matched and self.handler.status in BROKEN


@dataclass(frozen=True, slots=True)
class FiredFile:
    """A file, and what the event means to each of its handlers.

    ``printed`` is what functions of the file wrote to their output and log, together.
    """

    file: ExplainedFile
    fired: tuple[Fired, ...]
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Firing:
    """An event and all that came of it. ``decision`` is that of the handlers that decide, put together."""

    topic: str
    session_id: str | None
    payload: Mapping[str, Any]
    is_sample: bool
    is_dry: bool
    files: tuple[FiredFile, ...]
    decision: Decision

    @property
    def unusable(self) -> tuple[tuple[str, str], ...]:
        """Where the files lie of which something cannot be used, each with the first reason.

        Whether a handler of theirs is for the event nobody can say.
        """
        found = []
        for file in self.files:
            errors = [d.message for d in file.file.explained.diagnostics if d.severity == "error"]
            if errors or file.file.explained.refused:
                found.append((text(file.file.path), text(errors[0]) if errors else "it is refused"))
        return tuple(found)

    @property
    def has_failed(self) -> bool:
        """Whether a handler failed, or could not run; of a dry run nobody can say."""
        if self.is_dry:
            return False
        return any(fired.has_failed or fired.is_broken for file in self.files for fired in file.fired)


def match(handlers: Sequence[Handler], topic: str) -> tuple[Fired, ...]:
    """What an event means to each handler of one file, before anything runs."""
    return tuple(_matched(handlers, topic))


def _matched(handlers: Sequence[Handler], topic: str) -> Iterator[Fired]:
    chosen: set[str] = set()
    for handler in handlers:
        if not any(Pattern(pattern).matches(topic) for pattern in handler.topics):
            yield Fired(handler, False, _not_matched(handler))
        elif handler.status != "ok":
            yield Fired(handler, True, _not_running(handler))
        elif handler.runtime in ("shell", "wasm") and handler.name in chosen:
            yield Fired(handler, True, ONCE)
        else:
            chosen.add(handler.name)
            yield Fired(handler, True, None)


def _not_matched(handler: Handler) -> str:
    if handler.topics:
        return f"it is for {', '.join(handler.topics)}"
    return _not_running(handler)


def _not_running(handler: Handler) -> str:
    """Why a handler never runs, in the words of the first remark that says so."""
    wanted = ("error" if handler.status in BROKEN else "info", "warning")
    said = next((d for each in wanted for d in handler.diagnostics if d.severity == each), None)
    return handler.status if said is None else f"{handler.status}: {said.message}"


def document(firing: Firing, decision: Mapping[str, Any]) -> dict[str, Any]:
    """The firing as JSON: the document of an explanation, with what came of each handler.

    ``decision`` is the decision as JSON, as whoever asks a bus is told it.
    """
    return {
        "topic": firing.topic,
        "session_id": firing.session_id,
        "payload": firing.payload,
        "sample": firing.is_sample,
        "dry_run": firing.is_dry,
        "files": [_file_document(file) for file in firing.files],
        "decision": decision,
    }


def _file_document(fired: FiredFile) -> dict[str, Any]:
    file = replace(fired.file, explained=replace(fired.file.explained, handlers=()))
    handlers = [_fired_document(each) for each in fired.fired]
    return {**file_document(file), "handlers": handlers, "printed": text(fired.printed[-TAIL_CHARACTERS:])}


def _fired_document(fired: Fired) -> dict[str, Any]:
    return {
        **handler_document(fired.handler),
        "matched": fired.matched,
        "reason": text(fired.reason),
        "run": None if fired.outcome is None else run_document(fired.outcome),
        "answer": None if fired.answer is None else answer_document(fired.answer),
        "published": [{"topic": text(each.topic), "payload": each.payload} for each in fired.published],
    }


def run_document(outcome: Outcome) -> dict[str, Any]:
    """How a run ended, under the names that reports have."""
    return {
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "duration_ms": round(outcome.duration_s * 1e3, 3),
        "stdout": outcome.stdout.text()[-TAIL_CHARACTERS:],
        "stderr": outcome.stderr.text()[-TAIL_CHARACTERS:],
        "reason": text(outcome.reason),
    }


def answer_document(answer: Answer) -> dict[str, Any]:
    """What one handler decided; ``output`` is there only where it replaces a tool's."""
    output = {} if answer.output is NOTHING else {"output": answer.output}
    return {
        "handler": text(answer.handler),
        "verdict": answer.verdict,
        "reason": text(answer.reason),
        "contexts": list(answer.contexts),
        "updated_input": answer.updated_input,
        "stop": answer.stop,
        "stop_reason": text(answer.stop_reason),
        "system_message": text(answer.system_message),
        "priority": answer.priority,
        **output,
    }
