"""One source of shell hooks, ready to run: what is in force, who runs it, and what encloses its runs.

Decides that a source whose sandbox cannot be used runs nothing, and says why. The shell subscriber has one
for a workspace and one for a LibreFang home; they share processes, room and reports, and nothing else. It
refuses to know where events come from.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol

from broker.logs import get_logger
from broker.protocol.events import Event
from broker.protocol.projections import native_event

from ..hooks.invocation import Invocation
from ..hooks.plan import Plan
from ..hooks.spec import HookSpec
from ..runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from ..runtimes.spawn import StartFailed
from ..sources.hook_source import SourceState
from ..sources.librefang_hooks import Scan
from ..sources.resolve import Resolved, Unresolved
from .dispatch import Dispatcher
from .enclosure import NONE, open_sandbox
from .reporting import log_diagnostics

log = get_logger("subscribers.shell")


class HookSet(Protocol):
    """Hooks that may change between two events, and that can be looked at again."""

    @property
    def workspace(self) -> str:
        """Absolute path of the folder that they belong to."""

    @property
    def path(self) -> str:
        """What is read: a file, or a folder of files."""

    @property
    def plan(self) -> Plan:
        """The hooks in force now."""

    def resolve(self, spec: HookSpec) -> Resolved | Unresolved:
        """Where the spec's program and folder are now."""

    def load(self) -> object:
        """Look now, and put what is found in force."""

    def start(self) -> None:
        """Follow changes from now on."""

    def stop(self) -> None:
        """Stop following."""


class ShellSource:
    """The hooks of one source. ``root`` is what runs may write to in the sandbox.

    ``comes_later``: it may be missing as long as there are no hooks, and is looked for again with them.
    """

    def __init__(
        self,
        hooks: HookSet,
        dispatcher: Dispatcher,
        root: str,
        enclosing: Callable[[str], Bubblewrap | None],
        kind: str,
        *,
        comes_later: bool = False,
    ) -> None:
        self.hooks: Final = hooks
        self.dispatcher: Final = dispatcher
        self._root = root
        self._enclosing = enclosing
        self._kind = kind
        self._comes_later = comes_later and kind != NONE
        self._sandbox: Bubblewrap | None = None

    @property
    def refusal(self) -> str | None:
        """Why no hook of this source runs; None when they do."""
        return self.dispatcher.refusal

    def open(self) -> None:
        """Have every run enclosed as configured, then read the hooks and follow them."""
        self.enclose()
        self.hooks.load()
        self.hooks.start()

    def look_again(self) -> None:
        """Look for changes now, also at whether the sandbox can be used meanwhile."""
        if self.refusal is not None or self.dispatcher.enclose is _not_yet:
            self.enclose()
        self.hooks.load()

    def enclose(self) -> None:
        """Enclose every run, or let none run where that cannot be done."""
        if self._comes_later and not os.path.isdir(self._root):
            self.dispatcher.enclose = _not_yet
            return
        try:
            self._sandbox = self._enclosing(self._root)
        except SandboxUnavailable as error:
            self.dispatcher.refusal = f"hooks.sandbox is {self._kind}, which cannot be used here: {error}"
            log.error("no hooks run", of=self.hooks.path, reason=self.dispatcher.refusal)
        else:
            self.dispatcher.refusal = None
            self.dispatcher.enclose = None if self._sandbox is None else self._sandbox.enclose

    def dispatch(self, event: Event) -> None:
        """Start what this event starts; waits for nothing."""
        self.dispatcher.dispatch(event)

    def close(self) -> None:
        """Give back what the sandbox holds; when no run is left."""
        if self._sandbox is not None:
            self._sandbox.close()


def _not_yet(_invocation: Invocation, _readable: tuple[str, ...]) -> NoReturn:
    raise StartFailed("the sandbox was opened before its folder was there; rescan with SIGHUP")


def enclosing(kind: str, limits: Limits, prxbus_folder: str) -> Callable[[str], Bubblewrap | None]:
    """Opens the sandbox of this kind for a folder, as often as it is asked."""
    return lambda root: open_sandbox(kind, root, limits, prxbus_folder)


def tell_state(state: SourceState) -> None:
    """Log what is in force for one file, and every remark about it."""
    log.info("hooks are in force", path=state.path, hooks=len(state.specs), status=state.status)
    log_diagnostics(log, state.diagnostics)


def tell_scan(scan: Scan) -> None:
    """Log what a scan has changed, hook by hook, and what is new to say."""
    for state in scan.added:
        log.info("a hook was added", path=state.path, **_described(state))
    for state in scan.changed:
        log.info("a hook was changed", path=state.path, **_described(state))
    for path in scan.removed:
        log.info("a hook was removed", path=path)
    log_diagnostics(log, scan.diagnostics)
    if not scan.failed:
        counts = {"added": len(scan.added), "changed": len(scan.changed), "removed": len(scan.removed)}
        log.info("hooks were scanned", path=scan.root, hooks=scan.hooks, **counts)


def _described(state: SourceState) -> dict[str, Any]:
    first = state.specs[0]
    events = ", ".join(native_event(first.dialect, spec.event) for spec in state.specs)
    return {"hook": first.name, "events": events, "command": " ".join((first.command, *first.args))}
