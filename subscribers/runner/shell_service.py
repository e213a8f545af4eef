"""The ``shell`` subscriber: a process that runs shell hooks for the events of the bus.

    python -P -m subscribers.runner.shell_service [--workspace DIR] [--librefang-home DIR] [--runtime-dir DIR]

It prints one JSON line when it is ready. SIGTERM or SIGINT: no event is taken any more, runs under
way get their time, reports are flushed, exit 0. SIGHUP: the hook files are looked at again. Where a sandbox
is configured that cannot be used, no hook runs; the ready line, the log and each report say why.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any, Final

from broker.client import Publisher, Subscriber
from broker.logs import get_logger
from broker.protocol.events import Event
from broker.protocol.projections import native_event
from broker.protocol.topics import LIFECYCLE

from ..dialects import librefang, prx
from ..dialects.base import Dialect
from ..runtimes.budget import PER_HOOK, QUEUE, TOTAL
from ..runtimes.orphans import become_subreaper
from ..runtimes.payload_files import PayloadFiles, payload_directories
from ..runtimes.pool import RunPool
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Limits
from ..runtimes.spawn import seal
from ..sources.librefang_hooks import HomeHooks
from ..sources.workspace_hooks import WorkspaceHooks
from . import service
from .dispatch import Dispatcher
from .enclosure import NONE
from .report_queue import ReportQueue
from .reporting import publish_report
from .reports import DEAD_LETTER_TOPIC
from .service import BUS_SECONDS, TURN_SECONDS
from .shell_source import HookSet, ShellSource, enclosing, tell_scan, tell_state

NAME: Final = "shell"
LOGGED_CHARACTERS: Final = 300
"""Characters of an error, or the last ones of a failed run's stderr, in the log; the report has more."""

log = get_logger("subscribers.shell")


class ShellService:
    """The shell hooks of a workspace, of a LibreFang home, or of both, as a client of the bus."""

    def __init__(self, options: argparse.Namespace, *, adopts: bool) -> None:
        self._stop = threading.Event()
        self._rescan = threading.Event()
        self._drain_seconds: float = options.drain_seconds
        self._options = options
        self._workspace = self._home = None
        if options.workspace is not None:
            root, folder = _absolute(options.workspace), sysconfig.get_path("scripts")
            gate = service.gate_of(options)
            self._workspace = WorkspaceHooks(root, prx, folder, tell_state, partial(_failed, root), gate=gate)
        if options.librefang_home is not None:
            root, follows = _absolute(options.librefang_home), options.librefang_reload == "watch"
            self._home = HomeHooks(root, tell_scan, partial(_failed, root), follows=follows)
        self._pool = RunPool(total=options.runs, per_hook=options.runs_per_hook, queue=options.queue)
        self._reaper = Reaper(adopts=adopts, sealed=True)
        self._files = PayloadFiles.in_first_usable(payload_directories(os.environ))
        self._publisher = Publisher(
            NAME, runtime_dir=options.runtime_dir, on_absent="block", block_seconds=BUS_SECONDS
        )
        self._reports = ReportQueue(self._publish, self._publisher.together)
        self._sources: list[ShellSource] = []
        if self._workspace is not None:
            self._sources.append(self._source(self._workspace, prx, self._workspace.workspace))
        if self._home is not None:
            self._sources.append(self._source(self._home, librefang, self._home.path))
        self._events = Subscriber(
            [f"{LIFECYCLE}*"],
            name=NAME,
            wait=BUS_SECONDS,
            report=self._counters,
            runtime_dir=options.runtime_dir,
        )

    def _source(self, hooks: HookSet, dialect: Dialect, root: str) -> ShellSource:
        options, folder = self._options, sysconfig.get_path("scripts")
        dispatcher = Dispatcher(
            hooks,
            dialect,
            pool=self._pool,
            reaper=self._reaper,
            files=self._files,
            publish=self._reports.add,
            runtime_dir=self._publisher.runtime_dir,
            prxbus_folder=folder,
        )
        limits = Limits(options.sandbox_memory_bytes, options.sandbox_processes, options.sandbox_file_bytes)
        sandbox = enclosing(options.sandbox, limits, folder)
        later = hooks is self._home  # a home may have no hooks yet
        return ShellSource(hooks, dispatcher, root, sandbox, options.sandbox, comes_later=later)

    def run(self) -> None:
        """Serve until told to stop."""
        service.heed_signals(self._stop, self._rescan)
        for source in self._sources:
            source.open()
        if self._workspace is not None:
            with suppress(OSError):  # where most hooks start, which makes starting them cheaper
                os.chdir(self._workspace.workspace)
        self._say_ready()
        while not self._stop.is_set():
            for event in self._events.batch(timeout=TURN_SECONDS):
                for source in self._sources:
                    source.dispatch(event)
            if self._rescan.is_set():
                self._rescan.clear()
                for source in self._sources:
                    source.look_again()
        self._drain()

    def _drain(self) -> None:
        """Take nothing more, let runs end within their budget, then end them; flush what was reported."""
        self._events.close()
        for source in self._sources:
            source.hooks.stop()
        left = self._pool.drain(self._drain_seconds)
        if left:
            log.warning("runs were ended early", runs=left, budget_s=self._drain_seconds)
        self._reaper.close(time.monotonic() + (self._drain_seconds if left else 0.0))
        self._pool.drain(self._drain_seconds)
        for source in self._sources:
            source.close()
        self._files.close()
        self._reports.close()
        self._publisher.close()

    def _publish(self, topic: str, payload: dict[str, Any], event: Event) -> None:
        """Publish a report; a dead letter stands in the log too."""
        if topic == DEAD_LETTER_TOPIC:
            facts = {name: payload[name] for name in ("hook", "command", "status", "exit_code", "reason")}
            facts["on"] = native_event(payload["dialect"], payload["event"])  # `event` is the log's own word
            facts["path"] = payload["path"]
            log.warning("a hook failed", **facts, stderr=payload["stderr"][-LOGGED_CHARACTERS:])
        publish_report(self._publisher, log, topic, payload, event)

    def _counters(self) -> dict[str, Any]:
        pool, reaper = self._pool.stats, self._reaper.stats
        runs: Counter[str] = Counter()
        for source in self._sources:
            runs.update(source.dispatcher.outcomes)
        return {
            "hooks": len({spec.key for source in self._sources for spec in source.hooks.plan.specs}),
            "runs": dict(runs),
            "runs_now": pool.running,
            "runs_waiting": pool.waiting,
            "runs_dropped": pool.dropped,
            "ending": reaper.ending,
            "reports_dropped": self._reports.dropped,
        }

    def _say_ready(self) -> None:
        running = [source.hooks for source in self._sources if source.refusal is None]
        hooks = len(self._workspace.plan) if self._workspace is not None and self._workspace in running else 0
        facts: dict[str, Any] = {"hooks": hooks}
        if self._home is not None:
            count = self._home.count if self._home in running else 0
            facts["librefang"] = {"home": self._home.workspace, "hooks": count}
        if self._options.sandbox != NONE:
            refusal = next((source.refusal for source in self._sources if source.refusal is not None), None)
            facts |= {"sandbox": self._options.sandbox, "refusal": refusal}
        service.say_ready(NAME, **facts)


def _failed(path: str, error: Exception) -> None:
    log.error("looking at the hook file failed", path=path, error=repr(error))


def _absolute(workspace: str) -> str:
    """The folder's absolute path; raises FileNotFoundError when it hangs on a folder that was deleted."""
    try:
        return os.path.abspath(workspace)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"workspace {workspace!r} cannot be found: the current directory was deleted; "
            "name the workspace by its absolute path"
        ) from None


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed)."""
    parser = service.parser("shell_service")
    parser.add_argument("--workspace", help="run the hooks of this directory (hooks.json)")
    service.add_trusted(parser)
    parser.add_argument("--librefang-home", help="run the hooks below this home (hooks/*/HOOK.yaml)")
    parser.add_argument("--librefang-reload", choices=("sighup", "watch"), default="sighup")
    parser.add_argument("--runs", type=int, default=TOTAL, help="runs at once")
    parser.add_argument("--runs-per-hook", type=int, default=PER_HOOK, help="runs at once of one hook")
    parser.add_argument("--queue", type=int, default=QUEUE, help="runs that may wait")
    service.add_drain(parser)
    service.add_sandbox(parser)
    options = parser.parse_args(argv)
    if options.workspace is None and options.librefang_home is None:
        parser.error("name a source of hooks: --workspace, --librefang-home, or both")
    seal()
    return service.run(options, lambda: ShellService(options, adopts=become_subreaper()).run(), log)


if __name__ == "__main__":
    sys.exit(main())
