"""Runs commands for one event without a bus, exactly as the runner would: many at once, each to its end.

It decides nothing of its own: command, folder, payload file, environment and sandbox are the dispatcher's.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Final

from broker.protocol.errors import BusError
from broker.protocol.events import Event

from ..config.schema import Hooks
from ..dialects import librefang, prx
from ..dialects.base import Dialect
from ..hooks.outcome import Outcome
from ..hooks.plan import EMPTY, Plan
from ..hooks.spec import HookSpec
from ..runtimes.orphans import become_subreaper
from ..runtimes.payload_files import PayloadFiles, payload_directories
from ..runtimes.pool import RunPool
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from ..sources import librefang_resolve, resolve
from .dispatch import Dispatcher
from .enclosure import open_sandbox
from .views import lifecycle_event, view

END_SECONDS: Final = 6.0
"""How long runs may take to end when somebody interrupts: the longest grace of a dialect, and a little."""

AT_ONCE: Final = 8
"""Commands that run at the same time."""

DIALECTS: Final[dict[str, Dialect]] = {prx.NAME: prx, librefang.NAME: librefang}
"""The dialects whose handlers are commands."""


class _Place:
    """The hooks of one folder, for a dispatcher that is only asked to run them."""

    plan: Plan = EMPTY

    def __init__(self, dialect: str, workspace: str, prxbus_folder: str) -> None:
        self.workspace = workspace
        self._dialect = dialect
        self._prxbus_folder = prxbus_folder

    def resolve(self, spec: HookSpec) -> resolve.Resolved | resolve.Unresolved:
        """Where the spec's program and folder are now."""
        if self._dialect == librefang.NAME:
            return librefang_resolve.resolve(spec)
        return resolve.resolve(spec, self.workspace, self._prxbus_folder)


class ShellRuns:
    """Runs commands; a context, at whose end nothing of them is left."""

    def __init__(self, runtime_dir: str, prxbus_folder: str) -> None:
        self._runtime_dir = runtime_dir
        self._prxbus_folder = prxbus_folder
        self._reaper = Reaper(adopts=become_subreaper())
        self._files = PayloadFiles.in_first_usable(payload_directories(os.environ))
        self._pool = RunPool(total=1, per_hook=1, queue=0)  # a dispatcher has one; nothing is submitted
        self._dispatchers: dict[tuple[str, str], Dispatcher] = {}
        self._sandboxes: list[Bubblewrap] = []

    def __enter__(self) -> ShellRuns:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._reaper.close(time.monotonic() + END_SECONDS)
        self._pool.drain(END_SECONDS)
        for sandbox in self._sandboxes:
            sandbox.close()
        self._files.close()

    def run(self, specs: list[tuple[HookSpec, str, Hooks]], event: Event) -> list[Outcome]:
        """The outcome of each spec, in order; a spec comes with its workspace and the settings there."""
        for spec, workspace, settings in specs:
            self._dispatcher(spec.dialect, workspace, settings)
        with ThreadPoolExecutor(AT_ONCE, "run") as threads:
            try:
                return list(threads.map(lambda each: self._run(each[0], each[1], event), specs))
            except BaseException:
                self._reaper.close(time.monotonic() + END_SECONDS)
                raise

    def _run(self, spec: HookSpec, workspace: str, event: Event) -> Outcome:
        dialect = DIALECTS[spec.dialect]
        name = lifecycle_event(event.topic)
        assert name is not None  # only lifecycle events have hooks
        try:
            seen = view(dialect.NAME, name, event)
            body = dialect.envelope(seen)
        except BusError as error:
            return Outcome.not_started(f"its payload cannot be had: {error}")
        return self._dispatchers[spec.dialect, workspace].run_once(spec, seen, body)

    def _dispatcher(self, dialect: str, workspace: str, settings: Hooks) -> None:
        if (dialect, workspace) in self._dispatchers:
            return
        dispatcher = Dispatcher(
            _Place(dialect, workspace, self._prxbus_folder),
            DIALECTS[dialect],
            pool=self._pool,
            reaper=self._reaper,
            files=self._files,
            publish=lambda *_: None,
            runtime_dir=self._runtime_dir,
            prxbus_folder=self._prxbus_folder,
        )
        limits = Limits(
            settings.sandbox_memory_bytes, settings.sandbox_processes, settings.sandbox_file_bytes
        )
        try:
            sandbox = open_sandbox(settings.sandbox, workspace, limits, self._prxbus_folder)
        except SandboxUnavailable as error:
            dispatcher.refusal = f"hooks.sandbox is {settings.sandbox}, which cannot be used here: {error}"
        else:
            if sandbox is not None:
                self._sandboxes.append(sandbox)
                dispatcher.enclose = sandbox.enclose
        self._dispatchers[dialect, workspace] = dispatcher
