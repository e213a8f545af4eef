"""The ``shell`` subscriber: a process that runs a workspace's shell hooks for the events of the bus.

    python -P -m subscribers.runner.shell_service --workspace DIR [--runtime-dir DIR]

It prints one JSON line when it is ready. SIGTERM or SIGINT: no event is taken any more, runs under
way get their time, reports are flushed, exit 0. SIGHUP: the hook file is looked at again. Where a sandbox is
configured that cannot be used, no hook runs; the ready line, the log and each report say why.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any, Final

import orjson

from broker.client import Publisher, Subscriber
from broker.lifeline import hold
from broker.logs import configure, get_logger
from broker.protocol.errors import BusError, BusUnreachable, RuntimeDirError, shown
from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE

from ..dialects import prx
from ..hooks.diagnostics import Diagnostic
from ..runtimes.budget import PER_HOOK, QUEUE, TOTAL
from ..runtimes.orphans import become_subreaper
from ..runtimes.payload_files import PayloadFiles, payload_directories
from ..runtimes.pool import RunPool
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from ..runtimes.spawn import seal
from ..sources.hook_source import SourceState
from ..sources.workspace_hooks import WorkspaceHooks
from .dispatch import Dispatcher
from .enclosure import NONE, open_sandbox
from .reports import DEAD_LETTER_TOPIC

NAME: Final = "shell"
BUS_SECONDS: Final = 30.0
"""How long the process waits for a bus at its start."""

DRAIN_SECONDS: Final = 5.0
"""How long runs under way may go on after SIGTERM."""

LOGGED_CHARACTERS: Final = 300
"""Characters of an error, or the last ones of a failed run's stderr, in the log; the report has more."""

TURN_SECONDS: Final = 0.25
"""Longest wait for events before signals are looked at."""

log = get_logger("subscribers.shell")


class ShellService:
    """One workspace's shell hooks as a client of the bus."""

    def __init__(self, options: argparse.Namespace, *, adopts: bool) -> None:
        self._stop = threading.Event()
        self._rescan = threading.Event()
        self._drain_seconds: float = options.drain_seconds
        self._folder = folder = sysconfig.get_path("scripts")
        self._options = options
        self._sandbox: Bubblewrap | None = None
        self._hooks = WorkspaceHooks(_absolute(options.workspace), prx, folder, self._tell, self._failed)
        self._pool = RunPool(total=options.runs, per_hook=options.runs_per_hook, queue=options.queue)
        self._reaper = Reaper(adopts=adopts, sealed=True)
        self._files = PayloadFiles.in_first_usable(payload_directories(os.environ))
        self._publisher = Publisher(
            NAME, runtime_dir=options.runtime_dir, on_absent="block", block_seconds=BUS_SECONDS
        )
        self._dispatcher = Dispatcher(
            self._hooks,
            prx,
            pool=self._pool,
            reaper=self._reaper,
            files=self._files,
            publish=self._publish,
            runtime_dir=self._publisher.runtime_dir,
            prxbus_folder=folder,
        )
        self._events = Subscriber(
            [f"{LIFECYCLE}*"],
            name=NAME,
            wait=BUS_SECONDS,
            report=self._counters,
            runtime_dir=options.runtime_dir,
        )

    def run(self) -> None:
        """Serve until told to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, lambda *_: self._rescan.set())
        self._enclose()
        self._hooks.load()
        self._hooks.start()
        with suppress(OSError):  # where most hooks start, which makes starting them cheaper
            os.chdir(self._hooks.workspace)
        self._say_ready()
        while not self._stop.is_set():
            for event in self._events.batch(timeout=TURN_SECONDS):
                self._dispatcher.dispatch(event)
            if self._rescan.is_set():
                self._rescan.clear()
                if self._dispatcher.refusal is not None:
                    self._enclose()
                self._hooks.load()
        self._drain()

    def _enclose(self) -> None:
        """Have every run enclosed as configured, or none run where that cannot be done."""
        options, dispatcher = self._options, self._dispatcher
        limits = Limits(options.sandbox_memory_bytes, options.sandbox_processes, options.sandbox_file_bytes)
        try:
            self._sandbox = open_sandbox(options.sandbox, self._hooks.workspace, limits, self._folder)
        except SandboxUnavailable as error:
            dispatcher.refusal = f"hooks.sandbox is {options.sandbox}, which cannot be used here: {error}"
            log.error("no hooks run", reason=dispatcher.refusal)
        else:
            dispatcher.refusal = None
            dispatcher.enclose = None if self._sandbox is None else self._sandbox.enclose

    def _drain(self) -> None:
        """Take nothing more, let runs end within their budget, then end them; flush what was reported."""
        self._events.close()
        self._hooks.stop()
        left = self._pool.drain(self._drain_seconds)
        if left:
            log.warning("runs were ended early", runs=left, budget_s=self._drain_seconds)
        self._reaper.close(time.monotonic() + (self._drain_seconds if left else 0.0))
        self._pool.drain(self._drain_seconds)
        if self._sandbox is not None:
            self._sandbox.close()
        self._files.close()
        self._publisher.close()

    def _publish(self, topic: str, payload: dict[str, Any], event: Event) -> None:
        """A report is about an event, not caused by handling it: it keeps the event's depth.

        One that cannot be published is logged, whatever the reason: hooks matter more than their reports.
        """
        if topic == DEAD_LETTER_TOPIC:
            facts = {name: payload[name] for name in ("hook", "command", "status", "exit_code", "reason")}
            log.warning("a hook failed", **facts, stderr=payload["stderr"][-LOGGED_CHARACTERS:])
        try:
            self._publisher.publish(
                topic, payload, session_id=event.session_id, depth=event.depth, caused_by=event.id
            )
        except BusError as error:
            log.error("a report could not be published", topic=topic, error=str(error))
        except Exception as error:
            log.error("a report could not be published", topic=topic, error=shown(error, LOGGED_CHARACTERS))

    def _counters(self) -> dict[str, Any]:
        pool, reaper = self._pool.stats, self._reaper.stats
        return {
            "hooks": len(self._hooks.plan),
            "runs": dict(self._dispatcher.outcomes),
            "runs_now": pool.running,
            "runs_waiting": pool.waiting,
            "runs_dropped": pool.dropped,
            "ending": reaper.ending,
        }

    def _tell(self, state: SourceState) -> None:
        log.info("hooks are in force", path=state.path, hooks=len(state.specs), status=state.status)
        for diagnostic in state.diagnostics:
            _log(diagnostic)

    def _failed(self, error: Exception) -> None:
        log.error("looking at the hook file failed", path=self._hooks.path, error=repr(error))

    def _say_ready(self) -> None:
        refusal = self._dispatcher.refusal
        hooks = len(self._hooks.plan) if refusal is None else 0
        line = {"ready": True, "name": NAME, "pid": os.getpid(), "hooks": hooks}
        if self._options.sandbox != NONE:
            line |= {"sandbox": self._options.sandbox, "refusal": refusal}
        print(orjson.dumps(line).decode(), flush=True)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()


def _absolute(workspace: str) -> str:
    """The workspace's absolute path; raises FileNotFoundError when it hangs on a folder that was deleted."""
    try:
        return os.path.abspath(workspace)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"workspace {workspace!r} cannot be found: the current directory was deleted; "
            "name the workspace by its absolute path"
        ) from None


def _log(diagnostic: Diagnostic) -> None:
    say = {"error": log.error, "warning": log.warning, "info": log.info}[diagnostic.severity]
    say(diagnostic.render())


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed)."""
    parser = argparse.ArgumentParser(prog="python -P -m subscribers.runner.shell_service")
    parser.add_argument("--workspace", required=True)
    parser.add_argument("--runtime-dir")
    parser.add_argument("--runs", type=int, default=TOTAL, help="runs at once")
    parser.add_argument("--runs-per-hook", type=int, default=PER_HOOK, help="runs at once of one hook")
    parser.add_argument("--queue", type=int, default=QUEUE, help="runs that may wait")
    parser.add_argument("--drain-seconds", type=float, default=DRAIN_SECONDS)
    parser.add_argument("--sandbox", choices=(NONE, "bubblewrap"), default=NONE)
    parser.add_argument("--sandbox-memory-bytes", type=int, default=2**32)
    parser.add_argument("--sandbox-processes", type=int, default=256)
    parser.add_argument("--sandbox-file-bytes", type=int, default=2**30)
    parser.add_argument("--log-level", default="info")
    parser.add_argument("--lifeline", action="store_true", help="end when standard input is closed")
    options = parser.parse_args(argv)
    configure(options.log_level)
    seal()
    if options.lifeline:
        hold()
    try:
        ShellService(options, adopts=become_subreaper()).run()
    except BusUnreachable as error:
        log.error(str(error))
        return 3
    except (RuntimeDirError, OSError) as error:
        log.error(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
