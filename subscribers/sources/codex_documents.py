"""The hook files of the Codex family as they are now: read, put together, and taken in at the next event.

    look (a few stat calls) -> nothing moved: the same snapshot
                            -> something did: read, parse, put together, swap, tell

A run keeps the snapshot that it began with. A file that cannot be used any more keeps its last good content
in force, and that is said; one that is gone takes its handlers along. Decides when files are read again and
what of all layers is in force. Refuses to know who runs handlers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from ..dialects.codex_events import EVENTS
from ..dialects.codex_file import read_document
from ..dialects.codex_matcher import MatchIndex
from ..dialects.codex_profiles import PROFILES
from ..dialects.codex_spec import CodexDocument, CodexHandler
from ..hooks.diagnostics import Diagnostic, Severity
from . import discover
from .codex_guards import Guarded, guarded, guards, stand_ins
from .codex_layers import WARNING, Imports, Layer, Switches, layers, no_imports, run_once
from .codex_switches import BitFunSwitches, app_file, read_switches
from .hook_source import Absent, Content, Reading
from .import_rules import is_own

if TYPE_CHECKING:
    from ..config.hook_files import HookFile

RACY_NS: Final = 50_000_000
"""A file that changed so short a time before it was read may change again and look the same (50 ms)."""

Status: TypeAlias = Literal["off", "absent", "good", "kept", "refused"]
"""``off``: switched off. ``kept``: it cannot be used, its last good content is in force. ``refused``: it
cannot be used, and there is no such content."""


class LayerState(NamedTuple):
    """A layer, what became of it, how many of its handlers run, and what there is to say about it."""

    layer: Layer
    status: Status
    handlers: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is in force: never changed, only replaced.

    ``handlers`` are those that can run, in order; ``indexes`` find those of an event, by profile. ``layers``
    are there by the path of their file. ``generation`` counts snapshots. ``topics`` are the bare names of the
    events that may start something, ``closed`` of those that a handler fails closed on, ``guarded`` the
    same by file, in the files' terms. ``strict``: answers are read as strictly as the agents read them.
    """

    generation: int
    handlers: tuple[CodexHandler, ...]
    indexes: Mapping[str, MatchIndex]
    states: tuple[LayerState, ...]
    layers: Mapping[str, Layer]
    diagnostics: tuple[Diagnostic, ...] = ()
    topics: frozenset[str] = frozenset()
    strict: bool = False
    closed: frozenset[str] = frozenset()
    guarded: Guarded = field(default_factory=dict)


class Configured(NamedTuple):
    """What the configuration says of hook files at this moment."""

    switches: Switches
    files: Sequence[HookFile] = ()


class Places(NamedTuple):
    """Where files are. ``config`` is our configuration folder, ``watched`` the files that configure us.

    ``imports`` gives the enabled imports, ``imported`` what changes when they do.
    """

    config: str
    workspace: str | None = None
    watched: tuple[str, ...] = ()
    imports: Imports = no_imports
    imported: Callable[[], Hashable] = lambda: None


class _Kept(NamedTuple):
    """The last good content of a file."""

    content: bytes
    profile: str


class Documents:
    """Every hook file. Thread-safe.

    ``configured`` reads the configuration; None: it has faults, and what held before goes on to hold.
    ``on_change`` is called with each new snapshot and what is new to say, in the thread that found it.
    ``guarded`` is what each file is known to have failed closed on, for those that cannot be used now.
    ``snapshot`` is what was in force when somebody looked last.
    """

    def __init__(
        self,
        places: Places,
        configured: Callable[[], Configured | None],
        on_change: Callable[[Snapshot, tuple[Diagnostic, ...]], None],
        environ: Mapping[str, str] = os.environ,
        guarded: Guarded = MappingProxyType({}),
    ) -> None:
        self._guarded = guarded
        self._places = places
        self._configured = configured
        self._on_change = on_change
        self._environ = environ
        self._app = app_file(environ)
        self._lock = threading.RLock()
        self._starting = threading.Lock()
        self._under_way: Future[Snapshot] | None = None
        self._now = Configured(Switches())
        self._paths: tuple[str, ...] = ()
        self._seen: Hashable = None
        self._racy = True  # nothing was read yet
        self._digests: Hashable = None
        self._kept: dict[str, _Kept] = {}
        self._said: frozenset[Diagnostic] = frozenset()
        self.snapshot = Snapshot(0, (), {}, (), {})

    def current(self, within: float | None = None) -> Snapshot:
        """What is in force for an event that comes now.

        ``within``: seconds that reading what has changed may take; beyond them it goes on in a thread of its
        own, and what was in force before still is. A file may have thousands of patterns.
        """
        deadline = 0.0 if within is None else time.monotonic() + within
        while self._racy or not self.is_current():
            if within is None:
                return self.look_again()
            loading, is_new = self._loading()
            try:
                loading.result(max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                break
            if is_new:  # one that somebody else began may have looked before the last change
                break
        return self.snapshot

    def is_current(self) -> bool:
        """Whether all looks as it did when ``snapshot`` was read: :meth:`current` takes hardly any time."""
        return self._look() == self._seen

    def _loading(self) -> tuple[Future[Snapshot], bool]:
        """Reading in a thread of its own, one at a time; whether it begins now."""
        with self._starting:
            if self._under_way is not None and not self._under_way.done():
                return self._under_way, False
            found = self._under_way = Future()

            def load() -> None:
                try:
                    found.set_result(self.look_again())
                except BaseException as error:  # for whoever waits
                    found.set_exception(error)

            threading.Thread(target=load, name="read hooks", daemon=True).start()
            return found, True

    def look_again(self) -> Snapshot:
        """Read everything now, also what looks as it did before."""
        with self._lock:
            self._load()
            return self.snapshot

    def signature(self) -> tuple[int, ...]:
        """What the files look like from outside, as one number; for a watcher."""
        return (hash(self._look()),)

    def _look(self) -> Hashable:
        paths = (*self._places.watched, self._app, *self._paths)
        return (paths, tuple(map(discover.signature, paths)), self._places.imported())

    def _load(self) -> None:
        """Read what there is now and put it in force, if it is not what there was."""
        began = time.time_ns()
        configured = self._configured()
        if configured is not None:
            self._now = configured
        switches = self._now.switches
        app = read_switches(self._app) if switches.bitfun else BitFunSwitches()
        places = self._places
        every = layers(
            places.config,
            places.workspace,
            switches,
            app,
            self._now.files,
            places.imports,
            self._environ,
        )
        found = run_once(every)
        self._paths = tuple(layer.path for layer in found)
        seen = self._look()
        readings = [_read(layer) for layer in found]
        plain = tuple(layer._replace(verify=None) for layer in found)
        digests = (plain, switches, app, tuple(map(_digest, readings)))
        if digests != self._digests:
            self._digests = digests
            self._put(found, readings, switches, app.diagnostics)
        self._seen = seen
        self._racy = any(_is_fresh(path, began) for path in (*places.watched, self._app, *self._paths))

    def _put(
        self,
        found: Sequence[Layer],
        readings: Sequence[Reading],
        switches: Switches,
        remarks: Iterable[Diagnostic],
    ) -> None:
        states: list[LayerState] = []
        running: list[CodexHandler] = []
        inspected: dict[str, int] = {}
        order = 0
        for layer, reading in zip(found, readings, strict=True):
            before = inspected.get(layer.profile, 0)
            state, document = self._state(layer, reading, switches.strict, order, before)
            if document is None and state.status == "refused":
                why = layer.damage or state.diagnostics[0].message
                denying = stand_ins(layer, why, self._guarded, order)
                order += len(denying)
                running += denying
                if denying:
                    state = state._replace(diagnostics=(*state.diagnostics, denied(layer, denying)))
            if document is not None:
                order += len(document.handlers)
                inspected[layer.profile] = before + document.inspected
                runnable = [handler for handler in document.handlers if handler.unsupported is None]
                others = [handler for handler in runnable if not _asks_here(handler)]
                if len(others) < len(runnable):
                    state = state._replace(diagnostics=(*state.diagnostics, circle(layer)))
                others = _with_policy(others, layer)
                if layer.damage is not None:  # each would fail: only those matter whose failure is a denial
                    others = [handler for handler in others if guards(handler)]
                running += others
                state = state._replace(handlers=len(others))
            states.append(state)
        in_force = {layer.path: layer for layer in found if layer.off is None}
        self._kept = {path: kept for path, kept in self._kept.items() if path in in_force}
        said = [*remarks, *(d for state in states for d in state.diagnostics), *_warnings(states)]
        fresh = tuple(diagnostic for diagnostic in said if diagnostic not in self._said)
        self._said = frozenset(said)
        self.snapshot = Snapshot(
            self.snapshot.generation + 1,
            tuple(running),
            _indexed(running),
            tuple(states),
            {layer.path: layer for layer in found} | in_force,
            tuple(said),
            frozenset(name for handler in running for name in _topics(handler)),
            switches.strict,
            frozenset(name for handler in running if guards(handler) for name in _topics(handler)),
            guarded(running),
        )
        self._guarded = self.snapshot.guarded
        self._on_change(self.snapshot, fresh)

    def _state(
        self, layer: Layer, reading: Reading, strict: bool, order: int, inspected: int
    ) -> tuple[LayerState, CodexDocument | None]:
        """A layer after it was read, and what is in force of it."""

        def document_of(content: bytes) -> CodexDocument:
            return read_document(
                content,
                layer.path,
                PROFILES[layer.profile],
                strict=strict,
                first_order=order,
                inspected_before=inspected,
            )

        if layer.off is not None:
            if isinstance(reading, Absent):
                return LayerState(layer, "absent"), None
            return LayerState(layer, "off", 0, (_switched_off(layer),)), None
        if layer.damage is not None:
            message = "its copy was changed: nothing of it runs, and what it fails closed on is denied"
            damaged = (_said(layer, "error", "import_damaged", message),)
            kept = self._kept.get(layer.path)
            if kept is None:
                return LayerState(layer, "refused", 0, damaged), None
            return LayerState(layer, "kept", 0, damaged), document_of(kept.content)
        if isinstance(reading, Absent):
            kept = self._kept.pop(layer.path, None)
            gone = () if kept is None else (_said(layer, "warning", "file_deleted", "the file is gone"),)
            return LayerState(layer, "absent", 0, gone), None
        if isinstance(reading, Content):
            document = document_of(reading.text)
            if not document.refused:
                self._kept[layer.path] = _Kept(reading.text, layer.profile)
                return LayerState(layer, "good", 0, document.diagnostics), document
            why = document.diagnostics
        else:
            why = (_said(layer, "error", reading.code, reading.message, reading.hint),)
        kept = self._kept.get(layer.path)
        if kept is None or kept.profile != layer.profile:
            return LayerState(layer, "refused", 0, why), None
        message = "the file cannot be used: the handlers of its last good content stay in force"
        hint = "correct the file; it is read again at the next event"
        said = (_said(layer, "error", "kept_last_good", message, hint), *why)
        return LayerState(layer, "kept", 0, said), document_of(kept.content)


def denied(layer: Layer, denying: Iterable[CodexHandler]) -> Diagnostic:
    """What is said of a file that fails closed and cannot be used."""
    events = ", ".join(handler.event for handler in denying)
    message = f"it fails closed and cannot be used: every {events} is denied"
    return _said(layer, "error", "guard_unusable", message, "correct the file; it is read again at once")


def _topics(handler: CodexHandler) -> Iterator[str]:
    """The events that may start a handler; a tool call that failed is published as any other."""
    yield EVENTS[handler.event].canonical
    if handler.event == PROFILES[handler.profile].failure_event:
        yield EVENTS["PostToolUse"].canonical


def _indexed(handlers: Iterable[CodexHandler]) -> Mapping[str, MatchIndex]:
    """An index for each profile, in whose terms an event's values are."""
    by_profile: dict[str, list[CodexHandler]] = {}
    for handler in handlers:
        by_profile.setdefault(handler.profile, []).append(handler)
    return {profile: MatchIndex(found) for profile, found in by_profile.items()}


def _read(layer: Layer) -> Reading:
    return discover.read(layer.path, PROFILES[layer.profile].max_file_bytes)


def _digest(reading: Reading) -> Hashable:
    return reading.digest if isinstance(reading, Content) else reading


def _is_fresh(path: str, began_ns: int) -> bool:
    found = discover.signature(path)
    return found is not None and len(found) > 1 and max(found[-2:]) > began_ns - RACY_NS


def _asks_here(handler: CodexHandler) -> bool:
    """Whether a handler is an agent's entry that asks us: run by us, it would ask about its own asking."""
    written: dict[str, object] = {"type": handler.kind, "command": handler.command}
    if handler.args is not None:
        written["args"] = list(handler.args)
    if handler.kind == "http":
        written = {"type": "http", "url": handler.url, "headers": dict(handler.headers or {})}
    return is_own(written)


def circle(layer: Layer) -> Diagnostic:
    """What is said of an entry that asks us."""
    message = "an entry that has an agent ask prxbus is not run by prxbus: it would ask without end"
    return _said(layer, "error", "asks_here", message, "leave it to the agent's own settings")


def _with_policy(handlers: list[CodexHandler], layer: Layer) -> list[CodexHandler]:
    """The handlers with the failure policy that their file was configured with."""
    if layer.on_failure == "continue":
        return handlers
    return [replace(handler, on_failure=layer.on_failure) for handler in handlers]


def _switched_off(layer: Layer) -> Diagnostic:
    hint = WARNING if layer.scope == "project" else None
    return _said(layer, "info", "switched_off", f"its hooks do not run: {layer.off}", hint)


def _warnings(states: Iterable[LayerState]) -> list[Diagnostic]:
    """The page's warning, wherever hooks of a workspace are switched on."""
    return [
        _said(state.layer, "warning", "project_hooks", WARNING)
        for state in states
        if state.handlers and state.layer.scope == "project" and state.layer.verify is None
    ]


def _said(layer: Layer, severity: Severity, code: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(severity, code, layer.path, None, None, None, message, hint)
