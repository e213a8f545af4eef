"""One hook file over time: which set of hooks is in force after what was just read.

A pure state machine. A file that can be read and is not refused replaces the set in one step; a file that
cannot be used changes nothing but what is said; a file that is gone leaves no hooks. It refuses to know how a
file is read or watched, and what is in it: the dialect's ``parse`` is an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ..dialects.base import ParsedFile
from ..hooks.diagnostics import Diagnostic, Severity
from ..hooks.spec import HookSpec

Parse: TypeAlias = Callable[[bytes, str], ParsedFile]
"""A dialect's parser: bytes and the path that diagnostics name."""


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no file."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """There is something, but its bytes cannot be had: why, and what to do."""

    code: str
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of the file, and their digest by which equal content is known."""

    text: bytes
    digest: str


Reading: TypeAlias = Absent | Unreadable | Content
"""What one look at a file found."""

Status: TypeAlias = Literal["unread", "good", "kept", "refused", "absent"]
"""``good``: the file's own hooks are in force. ``kept``: the file cannot be used, the last good set is in
force. ``refused``: it cannot be used and there was none before. ``absent``: no file, no hooks."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is in force for one file, and what there is to say about it.

    ``generation`` counts the sets of hooks; it changes exactly when ``specs`` were replaced. ``seen`` is the
    last reading, so that the same one is not reported twice; of content only the digest is kept.
    """

    path: str
    status: Status = "unread"
    specs: tuple[HookSpec, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    generation: int = 0
    seen: Absent | Unreadable | str | None = None


def advance(state: SourceState, reading: Reading, parse: Parse) -> SourceState:
    """The state after a reading; the same object when the reading brings nothing new."""
    seen = reading.digest if isinstance(reading, Content) else reading
    if seen == state.seen:
        return state
    state = replace(state, seen=seen)
    if isinstance(reading, Absent):
        return _gone(state)
    if isinstance(reading, Unreadable):
        return _unusable(state, (_remark(state, "error", reading.code, reading.message, reading.hint),))
    parsed = parse(reading.text, state.path)
    if parsed.refused:
        return _unusable(state, parsed.diagnostics)
    return _replaced(state, "good", parsed.specs, parsed.diagnostics)


def _gone(state: SourceState) -> SourceState:
    if state.status in ("good", "kept"):
        lost = _hooks(len(state.specs))
        said = _remark(state, "warning", "file_deleted", f"the file is gone: {lost} no longer in force")
    else:
        said = _remark(state, "info", "no_file", "there is no such file: no hooks are in force")
    return _replaced(state, "absent", (), (said,))


def _unusable(state: SourceState, why: tuple[Diagnostic, ...]) -> SourceState:
    hint = "correct the file; it is read again as soon as it changes"
    if state.status in ("good", "kept"):
        kept = f"{_hooks(len(state.specs))} of the last good file stay in force"
        said = _remark(state, "error", "kept_last_good", kept, hint)
        return replace(state, status="kept", diagnostics=(said, *why))
    said = _remark(state, "error", "no_hooks_run", "no hooks run from this file", hint)
    return replace(state, status="refused", diagnostics=(said, *why))


def _replaced(
    state: SourceState, status: Status, specs: tuple[HookSpec, ...], diagnostics: tuple[Diagnostic, ...]
) -> SourceState:
    return replace(
        state, status=status, specs=specs, diagnostics=diagnostics, generation=state.generation + 1
    )


def _hooks(count: int) -> str:
    return "1 hook" if count == 1 else f"{count} hooks"


def _remark(
    state: SourceState, severity: Severity, code: str, message: str, hint: str | None = None
) -> Diagnostic:
    return Diagnostic(severity, code, state.path, None, None, None, message, hint)
