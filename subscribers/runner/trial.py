"""Runs one hook to try it out, exactly as the runner would, and gives the outcome to who asked.

It decides nothing of its own: command, folder, payload file, environment and sandbox are the dispatcher's.
Nothing is reported on the bus, because no event was there.
"""

from __future__ import annotations

import os
import time
from typing import Final

from ..dialects import prx
from ..dialects.base import EventView
from ..hooks.outcome import Outcome
from ..hooks.plan import EMPTY, Plan
from ..hooks.spec import HookSpec
from ..runtimes.orphans import become_subreaper
from ..runtimes.payload_files import PayloadFiles, payload_directories
from ..runtimes.pool import RunPool
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Limits, SandboxUnavailable
from ..sources import resolve
from .dispatch import Dispatcher
from .enclosure import open_sandbox

END_SECONDS: Final = 3.0
"""How long runs may take to end when the process stops."""


class TrialRunner:
    """Runs hooks of ``workspace`` one by one, from any thread. ``sandbox`` is the kind that is configured."""

    plan: Plan = EMPTY

    def __init__(
        self, workspace: str, runtime_dir: str, prxbus_folder: str, sandbox: str, limits: Limits
    ) -> None:
        self.workspace = os.path.abspath(workspace)
        self._prxbus_folder = prxbus_folder
        self._reaper = Reaper(adopts=become_subreaper())
        self._files = PayloadFiles.in_first_usable(payload_directories(os.environ))
        self._pool = RunPool(total=1, per_hook=1, queue=0)
        self._dispatcher = Dispatcher(
            self,
            prx,
            pool=self._pool,
            reaper=self._reaper,
            files=self._files,
            publish=lambda *_: None,
            runtime_dir=runtime_dir,
            prxbus_folder=prxbus_folder,
        )
        self._sandbox = None
        try:
            self._sandbox = open_sandbox(sandbox, self.workspace, limits, prxbus_folder)
        except SandboxUnavailable as error:
            self._dispatcher.refusal = f"hooks.sandbox is {sandbox}, which cannot be used here: {error}"
        else:
            self._dispatcher.enclose = None if self._sandbox is None else self._sandbox.enclose

    def resolve(self, spec: HookSpec) -> resolve.Resolved | resolve.Unresolved:
        """Where the spec's program and folder are now."""
        return resolve.resolve(spec, self.workspace, self._prxbus_folder)

    def run(self, spec: HookSpec, view: EventView) -> Outcome:
        """Run a hook for an event, to its end; blocks for its timeout at most."""
        return self._dispatcher.run_once(spec, view, prx.envelope(view))

    def close(self) -> None:
        """End what is running, with its grace, and leave nothing behind."""
        self._reaper.close(time.monotonic() + END_SECONDS)
        self._pool.drain(END_SECONDS)
        if self._sandbox is not None:
            self._sandbox.close()
        self._files.close()
