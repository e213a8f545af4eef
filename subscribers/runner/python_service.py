"""The ``python`` subscriber: keeps one worker process for each file of Python handlers.

    python -P -m subscribers.runner.python_service [--workspace DIR] [--handlers PATH ...] [--runtime-dir DIR]

It prints one JSON line when every file has been loaded or refused. SIGTERM or SIGINT: workers take nothing
more, calls under way get their time, exit 0. SIGHUP: the places are looked at again, and it is said
what there is. It executes no handler itself, and no event passes through it.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from broker.client import Publisher
from broker.logs import get_logger
from broker.protocol.errors import shown

from ..hooks.diagnostics import Diagnostic
from ..runtimes.python_traceback import sayable
from ..sources.handlers import Found, HandlerUnit, first_file
from ..sources.handlers_watch import HandlersWatch
from . import service
from .python_dispatch import Limits
from .python_process import WorkerProcess, ended_how
from .python_reports import DIALECT
from .python_unit import Unit
from .reports import DEAD_LETTER_TOPIC, RUN_TOPIC, dead_letter
from .service import BUS_SECONDS

NAME: Final = "python"
FIRST_SECONDS: Final = 20.0
"""How long the first loads may take before the process says that it is ready without them."""

LOOK_SECONDS: Final = 0.1
"""Longest time between two looks at calls that may have frozen their process."""

GRACE_SECONDS: Final = 3.0
"""What workers have beyond their time to end, before they are killed."""

log = get_logger("subscribers.python")


class PythonService:
    """Every file's workers."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._units: dict[str, Unit] = {}
        self._said: tuple[Diagnostic, ...] = ()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._stopping = False
        self._changed = False
        self._is_asked = False  # whether a person wants to know what there is
        self._worker_options = _worker_options(options)
        self._publisher = Publisher(
            NAME, runtime_dir=options.runtime_dir, on_absent="block", block_seconds=BUS_SECONDS
        )
        self._gate = service.gate_of(options)
        self._watch = HandlersWatch(
            options.workspace, options.handlers, self._on_change, installed=options.installed
        )

    def run(self) -> None:
        """Serve until told to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_hangup)
        self._look_again()
        deadline = time.monotonic() + FIRST_SECONDS
        while not all(unit.settled for unit in self._units.values()) and time.monotonic() < deadline:
            self._turn()
            if self._stopping:
                break
        self._watch.start()
        self._say_ready()
        while not self._stopping:
            self._turn()
        self._drain()

    # -- turns --------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Wait for something to happen, at most for a while, and deal with it."""
        for key, _ in self._selector.select(LOOK_SECONDS):
            if key.data is None:
                with suppress(BlockingIOError):
                    os.read(self._wake_read, 512)
                continue
            unit, process = key.data
            if process not in unit.processes:
                continue  # its end came first in this very turn
            if key.fd == process.pidfd:
                self._ended(unit, process)
            else:
                self._read(unit, process)
        now = time.monotonic()
        for unit in list(self._units.values()):
            unit.look(now)
        if self._changed and not self._stopping:
            self._changed = False
            self._look_again()

    def _read(self, unit: Unit, process: WorkerProcess) -> bool:
        """Hear what a worker has said; whether there was anything."""
        messages = process.channel.receive(None)
        if messages is None:
            with suppress(KeyError):
                self._selector.unregister(process.channel.descriptor)
            return False
        for message in messages:
            try:
                if "files" in message:
                    self._follow(unit, message["files"])
                unit.heard(process, message, time.monotonic())
            except Exception as error:  # a worker runs somebody's code, which may say anything here
                log.error("a worker said what makes no sense", file=unit.unit.path, error=shown(error, 300))
        return bool(messages)

    def _ended(self, unit: Unit, process: WorkerProcess) -> None:
        while self._read(unit, process):
            pass
        with suppress(KeyError):
            self._selector.unregister(process.channel.descriptor)
        self._selector.unregister(process.pidfd)
        code = process.reap()
        how = ended_how(code, process)
        is_expected = unit.ended(process, how, time.monotonic())
        if not is_expected or process.why_killed is not None:
            self._report_lost(unit, process, code, how)
        process.close_board()
        if unit.is_gone and not unit.processes and self._units.get(unit.unit.path) is unit:
            del self._units[unit.unit.path]

    def _report_lost(self, unit: Unit, process: WorkerProcess, code: int, how: str) -> None:
        """Calls that ended with their process are reported by nobody else."""
        now_ns = time.monotonic_ns()
        for call in process.under_way():
            is_late = call.deadline_ns < now_ns
            topic = call.event_id.split(":")[1] if call.event_id.count(":") == 2 else ""
            report = {
                "hook": call.handler,
                "dialect": DIALECT,
                "path": sayable(unit.unit.path),
                "command": call.handler.rpartition(":")[2],
                "event": topic.removeprefix("prx.lifecycle."),
                "event_id": call.event_id,
                "status": "timeout" if is_late else "signalled" if code < 0 else "failed",
                "exit_code": None if is_late or code < 0 else code,
                "signal": None if is_late or code >= 0 else -code,
                "duration_ms": None,
                "waited_ms": None,
                "stderr": "",
                "reason": f"its worker has ended: {how}",
            }
            log.warning("a call ended with its worker", handler=call.handler, event_id=call.event_id, how=how)
            try:
                self._publisher.publish(RUN_TOPIC, report, caused_by=call.event_id)
                letter = dead_letter(report, topic, None)
                self._publisher.publish(DEAD_LETTER_TOPIC, letter, caused_by=call.event_id)
            except Exception as error:
                log.error("a report could not be published", error=shown(error, 300))

    # -- files --------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """Take in what is new at the places where handlers are found."""
        why = None if self._gate is None else self._gate.of_loaded()
        if why is not None:
            log.warning("no handlers are loaded anew", reason=sayable(why))
            return
        found = self._watch.find()
        is_asked, self._is_asked = self._is_asked, False
        if is_asked:
            self._say_what_there_is(found)
        if is_asked or found.diagnostics != self._said:
            self._said = found.diagnostics
            for diagnostic in found.diagnostics:
                log.error(diagnostic.render())
        now = time.monotonic()
        wanted = {unit.path: unit for unit in found.units}
        for path in [path for path in self._units if path not in wanted]:
            log.info("a file of handlers is gone", file=path)
            unit = self._units[path]
            unit.remove(now)
            self._watch.forget(path)
            if not unit.processes:
                del self._units[path]
        for path, each in wanted.items():
            digest = self._watch.digest_of(path, first_file(each))
            unit_of = self._units.get(path)
            if unit_of is None or unit_of.is_gone:
                self._units[path] = unit_of = Unit(each, digest, self._start)
                unit_of.load(now)
            elif unit_of.digest != digest:
                log.info("a file of handlers has changed", file=path)
                unit_of.digest = digest
                unit_of.load(now)

    def _say_what_there_is(self, found: Found) -> None:
        """Somebody has asked to look: also at what was said before, and has not changed."""
        units = [unit for each in found.units if (unit := self._units.get(each.path)) is not None]
        refused = [unit for unit in units if unit.refusal is not None]
        log.info(
            "looked at the places of handlers",
            files=[sayable(unit.path) for unit in found.units],
            in_force=sum(unit.current is not None for unit in units),
            refused=len(refused),
        )
        for unit in refused:
            log.error("a file is still refused", reason=unit.refusal, kept=unit.kept)

    def _follow(self, unit: Unit, files: Sequence[str]) -> None:
        """A worker says what it has read: that is looked at from now on."""
        path, first = unit.unit.path, first_file(unit.unit)
        is_same = self._watch.digest_of(path, first) == unit.digest
        self._watch.follow(path, files)
        if is_same:  # else it was edited meanwhile, and is loaded once more
            unit.digest = self._watch.digest_of(path, first)
        else:
            self._changed = True

    def _start(self, unit: HandlerUnit, share: str | None, restarts: int) -> WorkerProcess:
        process = WorkerProcess(unit, self._worker_options, share, restarts, self._options.workspace)
        owner = self._units[unit.path]
        self._selector.register(process.channel.descriptor, selectors.EVENT_READ, (owner, process))
        self._selector.register(process.pidfd, selectors.EVENT_READ, (owner, process))
        return process

    # -- life ---------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Have every worker end; kill what does not."""
        self._watch.stop()
        for unit in self._units.values():
            unit.end()
        deadline = time.monotonic() + self._options.drain_seconds + GRACE_SECONDS
        while any(unit.processes for unit in self._units.values()):
            if time.monotonic() > deadline:
                for unit in self._units.values():
                    for process in unit.processes:
                        process.kill("it did not end in time")
            self._turn()
        self._publisher.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _say_ready(self) -> None:
        counts = [unit.counts for unit in self._units.values() if unit.current is not None]
        handlers = sum(each.get("on", 0) + each.get("decide", 0) for each in counts)
        refused = sum(unit.current is None and not unit.counts for unit in self._units.values())
        service.say_ready(NAME, handlers=handlers, files=len(self._units), refused=refused)

    def _on_change(self) -> None:
        self._changed = True
        self._wake()

    def _on_hangup(self, _number: int, _frame: FrameType | None) -> None:
        self._is_asked = True
        self._on_change()

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # full: it wakes up anyway; closed: it is over
            os.write(self._wake_write, b"\0")


def _worker_options(options: argparse.Namespace) -> tuple[str, ...]:
    found: Mapping[str, Any] = {
        "--runtime-dir": options.runtime_dir,
        "--calls": options.calls,
        "--calls-per-handler": options.calls_per_handler,
        "--queue": options.queue,
        "--drain-seconds": options.drain_seconds,
        "--log-level": options.log_level,
    }
    return tuple(text for name, value in found.items() if value is not None for text in (name, str(value)))


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed)."""
    limits = Limits()
    parser = service.parser("python_service")
    parser.add_argument("--workspace")
    service.add_trusted(parser)
    parser.add_argument("--handlers", action="append", default=[], metavar="PATH", help="a file or a folder")
    parser.add_argument("--installed", action="store_true", help="load those of installed packages, too")
    parser.add_argument("--calls", type=int, default=limits.total, help="calls at once in a file")
    parser.add_argument("--calls-per-handler", type=int, default=limits.per_handler)
    parser.add_argument("--queue", type=int, default=limits.queue, help="calls that may wait in a file")
    service.add_drain(parser)
    options = parser.parse_args(argv)
    if options.workspace is not None:
        options.workspace = os.path.abspath(options.workspace)
    return service.run(options, lambda: PythonService(options).run(), log)


if __name__ == "__main__":
    sys.exit(main())
