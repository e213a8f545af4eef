"""The ``transform`` subscriber: the process that owns the chain of handlers that rewrite a tool's result.

    python -P -m subscribers.runner.transform_service [--workspace DIR] [--handlers PATH ...]

It answers what agents ask on ``prx.lifecycle.tool_result``. Commands run as its children, functions in
workers below it, so none of them can hold it up; it prints one JSON line when it is ready. SIGTERM or
SIGINT: it is asked no more, handlers under way get their time, reports are flushed, exit 0. SIGHUP: all files
are looked at again. Where a sandbox is configured that cannot be used, nothing runs, and every ask hears why.
"""

from __future__ import annotations

import argparse
import os
import sys
import sysconfig
import tempfile
import threading
import time
from functools import partial
from typing import Any, Final

from broker.client import Decider, Publisher
from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE
from broker.logs import get_logger
from broker.protocol.topics import LIFECYCLE

from ..config.transforms import Transform
from ..dialects import transform_command
from ..hooks.invocation import Invocation
from ..hooks.transform_chain import Handler
from ..hooks.withheld import without_secrets
from ..runtimes.budget import PER_HOOK, QUEUE, TOTAL
from ..runtimes.orphans import become_subreaper
from ..runtimes.pool import RunPool
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from ..runtimes.spawn import StartFailed, seal
from ..runtimes.transform_pool import FunctionPool, LoadFailed
from ..sources.handlers import HandlerUnit, entry_points, find
from . import service
from .enclosure import NONE, open_sandbox
from .reporting import publish_report
from .service import BUS_SECONDS, TURN_SECONDS
from .transform_asks import Asks
from .transform_registry import Registry
from .transform_steps import CommandStep, Step, command_handler

NAME: Final = "transform"
TOPIC: Final = f"{LIFECYCLE}{transform_command.EVENT}"

HOLD_SECONDS: Final = 1.0
"""How long the broker may take to cease asking."""

_WITHHELD: Final = frozenset({DEPTH_VARIABLE, CAUSE_VARIABLE})
"""What handlers of a file do not find in their environment, besides our secrets."""

log = get_logger("subscribers.transform")


class TransformService:
    """The chain as a client of the bus."""

    def __init__(self, options: argparse.Namespace, *, adopts: bool) -> None:
        self._stop = threading.Event()
        self._rescan = threading.Event()
        self._options = options
        self._drain_seconds: float = options.drain_seconds
        self._folder = sysconfig.get_path("scripts")
        self._workspace = None if options.workspace is None else os.path.abspath(options.workspace)
        self._nowhere = tempfile.TemporaryDirectory(prefix="prxbus-transform-")
        self._sandbox: Bubblewrap | None = None
        self._reaper = Reaper(adopts=adopts, sealed=True)
        self._pool = RunPool(total=options.runs, per_hook=options.runs_per_hook, queue=options.queue)
        self._publisher = Publisher(
            NAME, runtime_dir=options.runtime_dir, on_absent="block", block_seconds=BUS_SECONDS
        )
        self._installed = entry_points() if options.installed else []  # they do not change
        gate = service.gate_of(options)
        self._registry = Registry(
            *(os.environ, self._workspace, self._units, self._open_pool, self._make_handler),
            why_not=None if gate is None else gate.of_loaded,
        )
        self._asks = Asks(self._registry, self._pool, partial(publish_report, self._publisher, log))

    def run(self) -> None:
        """Serve until told to stop."""
        service.heed_signals(self._stop, self._rescan)
        self._enclose()
        self._registry.load()
        self._registry.start()
        decider = Decider(
            [TOPIC],
            name=NAME,
            wait=BUS_SECONDS,
            report=self._counters,
            runtime_dir=self._options.runtime_dir,
        )
        self._say_ready()
        while not self._stop.is_set():
            for ask in decider.batch(timeout=TURN_SECONDS):
                self._asks.take(ask)
            if self._rescan.is_set():
                self._rescan.clear()
                if self._asks.refusal is not None:
                    self._enclose()
                self._registry.load(again=True)
        self._drain(decider)

    def _drain(self, decider: Decider) -> None:
        """Be asked nothing more, answer what was asked, end what takes too long; flush what was reported."""
        decider.hold()
        until = time.monotonic() + HOLD_SECONDS
        while not decider.held and time.monotonic() < until:
            for ask in decider.batch(timeout=0.05):
                self._asks.take(ask)
        left = self._pool.drain(self._drain_seconds)
        if left:
            log.warning("asks were ended early", asks=left, budget_s=self._drain_seconds)
        self._registry.stop()
        self._reaper.close(time.monotonic())
        self._pool.drain(self._drain_seconds)
        decider.close()
        if self._sandbox is not None:
            self._sandbox.close()
        self._publisher.close()
        self._nowhere.cleanup()

    # -- what runs ----------------------------------------------------------------------------

    def _enclose(self) -> None:
        """Have everything enclosed as configured, or nothing run where that cannot be done."""
        options = self._options
        limits = Limits(options.sandbox_memory_bytes, options.sandbox_processes, options.sandbox_file_bytes)
        place = self._workspace or self._nowhere.name
        try:
            self._sandbox = open_sandbox(options.sandbox, place, limits, self._folder)
        except SandboxUnavailable as error:
            self._asks.refusal = f"hooks.sandbox is {options.sandbox}, which cannot be used here: {error}"
            log.error("no transforms run", reason=self._asks.refusal)
        else:
            self._asks.refusal = None

    def _make_handler(self, transform: Transform) -> Handler[Step]:
        enclose = None if self._sandbox is None else self._sandbox.enclose
        runtime_dir = self._publisher.runtime_dir
        return command_handler(
            transform, CommandStep(transform, self._reaper, runtime_dir, self._folder, enclose)
        )

    def _units(self) -> list[HandlerUnit]:
        """The files of handlers that there are now. What is wrong with one is said by the python process."""
        if self._options.tables_only:
            return []
        return [*find(self._workspace, self._options.handlers, installed=False).units, *self._installed]

    def _open_pool(self, unit: HandlerUnit) -> FunctionPool:
        """The processes of one file; in the sandbox, where there is one."""
        if self._asks.refusal is not None:
            raise LoadFailed(self._asks.refusal)
        source = ("--file", unit.path) if unit.entry_point is None else ("--entry-point", unit.entry_point)
        argv: tuple[str, ...] = (sys.executable, "-P", "-m", "subscribers.runner.transform_worker", *source)
        argv += ("--runtime-dir", self._publisher.runtime_dir, "--log-level", self._options.log_level)
        env = {k: v for k, v in without_secrets(os.environ).items() if k not in _WITHHELD}
        cwd = self._workspace or self._nowhere.name
        release = None
        if self._sandbox is not None:
            invocation = Invocation(argv, env, cwd, None, 1.0, 0.0)
            readable = (unit.path,) if unit.entry_point is None else ()
            try:
                invocation, release = self._sandbox.enclose(
                    invocation, (*readable, self._publisher.runtime_dir)
                )
            except (StartFailed, OSError) as error:
                raise LoadFailed(str(error)) from None
            argv = invocation.argv
        return FunctionPool(argv, env, cwd, self._reaper, release=release)

    # -- what is told -------------------------------------------------------------------------

    def _counters(self) -> dict[str, Any]:
        pool = self._pool.stats
        return {
            "transforms": len(self._registry.handlers),
            "asks": dict(self._asks.outcomes),
            "runs_now": pool.running,
            "runs_waiting": pool.waiting,
            "runs_dropped": pool.dropped,
        }

    def _say_ready(self) -> None:
        refusal = self._asks.refusal
        transforms = len(self._registry.handlers) if refusal is None else 0
        facts: dict[str, Any] = {"transforms": transforms}
        if self._options.sandbox != NONE:
            facts |= {"sandbox": self._options.sandbox, "refusal": refusal}
        service.say_ready(NAME, **facts)


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed)."""
    parser = service.parser("transform_service")
    parser.add_argument("--workspace")
    service.add_trusted(parser)
    parser.add_argument("--handlers", action="append", default=[], help="a file or folder of handlers")
    parser.add_argument("--installed", action="store_true", help="also the handlers of installed packages")
    parser.add_argument("--tables-only", action="store_true", help="no functions, whatever files there are")
    parser.add_argument("--runs", type=int, default=TOTAL, help="asks at once")
    parser.add_argument("--runs-per-hook", type=int, default=PER_HOOK, help="asks at once of one session")
    parser.add_argument("--queue", type=int, default=QUEUE, help="asks that may wait; beyond it they fail")
    service.add_drain(parser)
    service.add_sandbox(parser)
    options = parser.parse_args(argv)
    seal()
    return service.run(options, lambda: TransformService(options, adopts=become_subreaper()).run(), log)


if __name__ == "__main__":
    sys.exit(main())
