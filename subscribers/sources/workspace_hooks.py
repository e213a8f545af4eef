"""The hooks of one workspace, kept up to date: file, watcher, state and plan put together.

It decides the order of things: look, advance, check against this machine, swap the plan, tell. It refuses to
know who runs the plan. Whether the workspace is trusted was decided before one of these exists.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ..dialects.base import Dialect
from ..hooks.plan import EMPTY, Plan
from ..hooks.spec import HookSpec
from . import discover, resolve
from .hook_source import SourceState, advance
from .watch import FileWatcher

if TYPE_CHECKING:
    from .trust_gate import TrustGate


class WorkspaceHooks:
    """Loads a workspace's hook file and follows it.

    ``on_update`` is called with the new state whenever there is something new to say, in the thread that
    found it: the caller's in :meth:`load`, the watcher's after :meth:`start`. ``on_error`` gets what
    ``on_update`` raises in the watcher's thread. A reader takes ``plan`` once per event and keeps it: a later
    set never changes a plan that is in use. ``gate`` is asked before each run where the workspace is trusted
    as it was recorded.
    """

    def __init__(
        self,
        workspace: str,
        dialect: Dialect,
        prxbus_folder: str,
        on_update: Callable[[SourceState], None],
        on_error: Callable[[Exception], None],
        *,
        notify: bool = True,
        gate: TrustGate | None = None,
    ) -> None:
        self._gate = gate
        self.workspace = os.path.abspath(workspace)
        self.path = discover.hook_file(workspace, dialect)
        self.plan: Plan = EMPTY
        self.state = SourceState(self.path)
        self._dialect = dialect
        self._prxbus_folder = prxbus_folder
        self._on_update = on_update
        self._lock = threading.RLock()  # on_update may ask for another load
        self._watcher = FileWatcher(self.path, self._follow, on_error, notify=notify)

    def load(self) -> SourceState:
        """Look at the file now and take what is new; the state that is in force afterwards."""
        with self._lock:
            before = self.state
            after = advance(
                before, discover.read(self.path, self._dialect.MAX_FILE_BYTES), self._dialect.parse
            )
            if after is not before:
                if after.generation != before.generation:
                    here = resolve.check(after.specs, self.workspace, self._prxbus_folder)
                    after = replace(after, diagnostics=(*after.diagnostics, *here))
                    self.plan = Plan.of(after.specs)
                self.state = after
                self._on_update(after)
            return after

    def resolve(self, spec: HookSpec) -> resolve.Resolved | resolve.Unresolved:
        """Where a spec's program and folder are at this moment; asked once for each run."""
        found = resolve.resolve(spec, self.workspace, self._prxbus_folder)
        if self._gate is None or isinstance(found, resolve.Unresolved):
            return found
        why = self._gate.of_command(spec.command, spec.args, found.cwd)
        return found if why is None else resolve.Unresolved("trust_changed", "command", why, None)

    def start(self) -> None:
        """Follow the file from now on; what changed since construction is noticed too."""
        self._watcher.start()

    def stop(self) -> None:
        """Stop following. The plan stays as it is."""
        self._watcher.stop()

    def _follow(self) -> None:
        self.load()
