"""What a hook file means, handler by handler: the shape in which every dialect explains its files.

It decides which four things can be true of a handler, what of a file makes a check fail, and the JSON of all
that. It refuses to know any format, and whether a program exists: dialects and sources write explanations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args, overload

from broker.protocol.decisions import Failure

from .diagnostics import Diagnostic
from .spec import HookSpec

Status: TypeAlias = Literal["ok", "dead", "skipped", "refused"]
"""``ok``: it fires. ``dead``: it is written, and nothing will ever start it: an event that does not exist, a
program that is not there. ``skipped``: it does not run, and that is meant. ``refused``: a rule forbids it."""

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
BROKEN: Final[tuple[Status, ...]] = ("dead", "refused")
"""What makes a check fail."""

Runtime: TypeAlias = Literal["shell", "wasm", "python", "transform", "http", "node"]
RUNTIMES: Final[tuple[Runtime, ...]] = get_args(Runtime)

TimeoutFrom: TypeAlias = Literal["default", "file", "own", "settings"]
"""Who said how long a handler may run: the dialect, the file for all its handlers, the handler, or the user's
settings."""

TIMEOUT_ORIGINS: Final[tuple[TimeoutFrom, ...]] = get_args(TimeoutFrom)

HANDLERS: Final = 1_000
"""Handlers of one file that are explained; more than any dialect lets run."""


@dataclass(frozen=True, slots=True)
class Handler:
    """One thing that a file wants to have run.

    ``event`` is the event's name, or a pattern of names, in the file's own words where those mean something
    and as written otherwise. ``index`` numbers the handlers of one event. ``name`` is what reports call it.
    ``topics`` are the topics on the bus that start it, a pattern for all of them, none where nothing does.
    ``matcher`` is a filter beside the event, or the pattern that the event is. ``timeout_s`` None: not known.
    ``executable`` and ``cwd`` are what the command and its folder are on this machine, None where unknown.
    ``trusted``: somebody named the place that it comes from. ``spec`` is what would run, for shell hooks.
    ``failure`` is what a failure means for a decision; ``priority`` orders those that decide.
    """

    event: str
    index: int
    name: str
    runtime: Runtime
    status: Status
    topics: tuple[str, ...] = ()
    command: str | None = None
    args: tuple[str, ...] = ()
    matcher: str | None = None
    timeout_s: float | None = None
    timeout_from: TimeoutFrom | None = None
    line: int | None = None
    executable: str | None = None
    cwd: str | None = None
    trusted: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()
    spec: HookSpec | None = None
    failure: Failure = "open"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Explained:
    """What the text of a file means: its handlers, and what there is to say about none of them alone.

    ``refused``: nothing in the file can be used.
    """

    handlers: tuple[Handler, ...]
    diagnostics: tuple[Diagnostic, ...]
    refused: bool


@dataclass(frozen=True, slots=True)
class ExplainedFile:
    """A file and what it means here.

    ``dialect`` None: nobody knows it. ``because`` says how the dialect was found. ``workspace`` is the folder
    that commands are relative to. ``trusted``: the user named that folder, or it is the user's own.
    """

    path: str
    dialect: str | None
    because: str
    workspace: str
    trusted: bool
    explained: Explained

    @property
    def is_broken(self) -> bool:
        """Whether something that is written in it will not run, and that was not meant."""
        return (
            self.explained.refused
            or any(handler.status in BROKEN for handler in self.explained.handlers)
            or any(diagnostic.severity == "error" for diagnostic in self.explained.diagnostics)
        )


def faulted(handler: Handler, status: Status, diagnostic: Diagnostic) -> Handler:
    """The handler with one more thing wrong; the first reason why it does not run stays its status."""
    said = (*handler.diagnostics, diagnostic)
    return replace(handler, status=status if handler.status == "ok" else handler.status, diagnostics=said)


def counts(files: Iterable[ExplainedFile]) -> dict[Status, int]:
    """How many handlers there are of each status, in the order of :data:`STATUSES`."""
    found = dict.fromkeys(STATUSES, 0)
    for file in files:
        for handler in file.explained.handlers:
            found[handler.status] += 1
    return found


def document(files: Sequence[ExplainedFile]) -> dict[str, Any]:
    """The explanation as JSON; :mod:`.explanation_schema` describes it."""
    return {"files": [file_document(file) for file in files]}


def file_document(file: ExplainedFile) -> dict[str, Any]:
    """One file of the document."""
    return {
        "path": text(file.path),
        "dialect": file.dialect,
        "because": text(file.because),
        "status": "refused" if file.explained.refused else "ok",
        "trusted": file.trusted,
        "handlers": [handler_document(handler) for handler in file.explained.handlers],
        "diagnostics": [diagnostic_document(diagnostic) for diagnostic in file.explained.diagnostics],
    }


def handler_document(handler: Handler) -> dict[str, Any]:
    """One handler of the document."""
    return {
        "event": text(handler.event),
        "index": handler.index,
        "name": text(handler.name),
        "runtime": handler.runtime,
        "command": text(handler.command),
        "args": [text(arg) for arg in handler.args],
        "matcher": text(handler.matcher),
        "topics": list(handler.topics),
        "timeout_s": handler.timeout_s,
        "timeout_from": handler.timeout_from,
        "status": handler.status,
        "trusted": handler.trusted,
        "executable": text(handler.executable),
        "cwd": text(handler.cwd),
        "line": handler.line,
        "diagnostics": [diagnostic_document(diagnostic) for diagnostic in handler.diagnostics],
    }


def diagnostic_document(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic of the document."""
    return {
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "position": text(position(diagnostic)),
        "field": text(diagnostic.field),
        "message": text(diagnostic.message),
        "hint": text(diagnostic.hint),
    }


def position(diagnostic: Diagnostic) -> str:
    """``path:line:column``, as far as it is known."""
    numbers = (diagnostic.line, diagnostic.column)
    return ":".join([diagnostic.path, *(str(number) for number in numbers if number is not None)])


@overload
def text(written: str) -> str: ...
@overload
def text(written: None) -> None: ...
def text(written: str | None) -> str | None:
    """Somebody's text as JSON can hold it: half characters, which names of files may have, as escapes."""
    return None if written is None else written.encode("utf-8", "backslashreplace").decode()
