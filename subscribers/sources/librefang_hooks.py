"""The hooks of one LibreFang home, scanned at the start and whenever somebody asks: files, states and plan.

Each file has a state of its own. A file that breaks keeps its last good hook, one that never was good has
none, and neither touches the others; a folder that is gone takes its hook with it; a scan that fails changes
nothing. The new set is put in force in one step. It refuses to know who runs the hooks and who asks for a
scan.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..dialects import librefang
from ..hooks.diagnostics import Diagnostic
from ..hooks.plan import EMPTY, Plan
from ..hooks.spec import HookSpec
from . import librefang_resolve
from .discover import read
from .hook_source import SourceState, advance
from .librefang_home import hooks_folder, list_hooks, tree_signature
from .looking_watch import LookingWatcher
from .resolve import Resolved, Unresolved

_AGAIN = "correct it; it is read again at the next scan (SIGHUP)"


@dataclass(frozen=True, slots=True)
class Scan:
    """What one scan found: states of files that came or changed, paths that went, and what is new to say.

    ``hooks`` counts the files whose hook is in force. ``failed``: nothing could be listed, nothing changed.
    """

    root: str
    hooks: int
    added: tuple[SourceState, ...] = ()
    changed: tuple[SourceState, ...] = ()
    removed: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    failed: bool = False


class HomeHooks:
    """Scans ``<home>/hooks/*/HOOK.yaml``.

    ``on_scan`` is called with what each scan found, in the thread that asked for it; with ``follows`` also a
    thread of its own asks, after each change. ``on_error`` gets what fails there. A reader takes ``plan``
    once per event and keeps it: a later scan never changes a plan that is in use.
    """

    def __init__(
        self,
        home: str,
        on_scan: Callable[[Scan], None],
        on_error: Callable[[Exception], None],
        *,
        follows: bool = False,
    ) -> None:
        self.workspace = os.path.abspath(home)
        self.path = hooks_folder(self.workspace)
        self.plan: Plan = EMPTY
        self.states: Mapping[str, SourceState] = {}
        self._said: frozenset[Diagnostic] = frozenset()
        self._on_scan = on_scan
        self._lock = threading.RLock()
        self._watcher: LookingWatcher | None = None
        if follows:
            self._watcher = LookingWatcher(lambda: tree_signature(self.path), self._follow, on_error)

    @property
    def count(self) -> int:
        """Files whose hook is in force."""
        return sum(bool(state.specs) for state in self.states.values())

    def load(self) -> Scan:
        """Scan now and put the new set in force."""
        with self._lock:
            try:
                listing = list_hooks(self.path)
            except OSError as error:
                return self._failed(error)
            before, after = self.states, self._read(listing.files)
            self.plan = Plan.of(spec for state in after.values() for spec in state.specs)
            self.states = after
            # The one for its command is made anew at each scan: programs come and go without the file.
            said = [*listing.remarks, *(d for state in after.values() for d in state.diagnostics)]
            said += librefang_resolve.check(self.plan.specs)
            fresh = tuple(diagnostic for diagnostic in said if diagnostic not in self._said)
            self._said = frozenset(said)
            good = {path: state for path, state in after.items() if state.specs}
            scan = Scan(
                root=self.path,
                hooks=len(good),
                added=tuple(state for path, state in good.items() if not _specs(before, path)),
                changed=tuple(
                    state for path, state in good.items() if _specs(before, path) not in ((), state.specs)
                ),
                removed=tuple(path for path in before if _specs(before, path) and not _specs(after, path)),
                diagnostics=fresh,
            )
            self._on_scan(scan)
            return scan

    def resolve(self, spec: HookSpec) -> Resolved | Unresolved:
        """Where a spec's program and folder are at this moment; asked once for each run."""
        return librefang_resolve.resolve(spec)

    def start(self) -> None:
        """Follow changes from now on, where that was asked for."""
        if self._watcher is not None:
            self._watcher.start()

    def stop(self) -> None:
        """Stop following. The plan stays as it is."""
        if self._watcher is not None:
            self._watcher.stop()

    def _follow(self) -> None:
        self.load()

    def _read(self, files: tuple[str, ...]) -> dict[str, SourceState]:
        found: dict[str, SourceState] = {}
        for path in files:
            before = self.states.get(path) or SourceState(path)
            after = advance(before, read(path, librefang.MAX_FILE_BYTES), librefang.parse)
            if after is not before:
                after = replace(after, diagnostics=tuple(map(_hinted, after.diagnostics)))
            if after.status != "absent":  # it went while we looked
                found[path] = after
        return found

    def _failed(self, error: OSError) -> Scan:
        message = f"the hooks cannot be listed: {error.strerror}; the last set stays in force"
        hint = "let this user read the folder, and rescan (SIGHUP)"
        said = Diagnostic("error", "scan_failed", self.path, None, None, None, message, hint)
        scan = Scan(self.path, self.count, diagnostics=(said,), failed=True)
        self._on_scan(scan)
        return scan


def _specs(states: Mapping[str, SourceState], path: str) -> tuple[HookSpec, ...]:
    state = states.get(path)
    return () if state is None else state.specs


def _hinted(diagnostic: Diagnostic) -> Diagnostic:
    """Here a file is read when somebody asks, and not as soon as it changes."""
    if diagnostic.code in ("kept_last_good", "no_hooks_run"):
        return replace(diagnostic, hint=_AGAIN)
    return diagnostic
