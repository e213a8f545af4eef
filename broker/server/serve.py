"""One broker from start to end: directory, lock, spool, data plane, control loop, drain.

Decides the order in which things begin and end, and the exit code. Everything that is opened here is
closed here, the lock last.
"""

from __future__ import annotations

import gc
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

import zmq

from .. import logs
from ..control.plane import ControlPlane
from ..places import Endpoints, check_directory, endpoints
from ..protocol import limits
from ..version import __version__
from .closed import ClosedDeciders
from .dataplane import SETTLE_SECONDS, DataPlane
from .descriptors import FEW_DESCRIPTORS, clients_for, raise_descriptor_limit
from .inspection import Inspection
from .lock import DirectoryLock, remove_stale_sockets
from .loop import ControlLoop, DataPlaneFailed
from .processes import ProcessWatch
from .spool import Spool

CLOSE_SECONDS: Final = 3.0
"""How long the proxy's thread may take to hand on what is left and to close."""

END_SECONDS: Final = 6
"""A drain that takes longer is ended by an alarm: better the kernel's clean-up than a process that hangs."""

COLLECT_EVERY: Final = 10_000
"""New objects between two looks for unreachable ones. What was there at the start is not looked at again."""

STOPPING: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

log = logs.get_logger("broker")


class Settings(NamedTuple):
    """What can be configured; sizes in bytes, times in seconds."""

    runtime_dir: str
    spool_bytes: int = limits.SPOOL_BYTES
    claim_seconds: float = limits.CLAIM_SECONDS
    memory_bytes: int = 2**32
    ask_bytes: int = limits.ASK_BYTES


class Ready(NamedTuple):
    """What a broker says once everything works."""

    runtime_dir: str
    pid: int
    epoch: str


def serve(settings: Settings, announce: Callable[[Ready], None]) -> int:
    """Run a broker until it is told to stop; returns its exit code, 0 after a drain and 1 after a failure.

    ``announce`` is called once it works. For the main thread. Raises :class:`RuntimeDirError`
    and :class:`AlreadyRunning` before anything has changed.
    """
    addresses = endpoints(settings.runtime_dir)
    check_directory(settings.runtime_dir, create=True)
    with DirectoryLock(settings.runtime_dir) as lock:
        paths = [address.removeprefix("ipc://") for address in addresses]
        remove_stale_sockets(paths)
        spool = Spool(settings.runtime_dir, settings.spool_bytes, settings.claim_seconds)
        try:
            return _serve(settings, addresses, lock, spool, announce)
        finally:
            spool.stop()
            if lock.in_place:
                remove_stale_sockets(paths)


def _serve(
    settings: Settings,
    addresses: Endpoints,
    lock: DirectoryLock,
    spool: Spool,
    announce: Callable[[Ready], None],
) -> int:
    descriptors = raise_descriptor_limit()
    clients = clients_for(descriptors)
    epoch = secrets.token_bytes(16)
    plane = ControlPlane(
        epoch=epoch,
        release=__version__,
        pid=os.getpid(),
        now=time.monotonic(),
        limits=told_limits(settings),
        about={"runtime_dir": settings.runtime_dir, "max_clients": clients},
    )
    inspection = Inspection(lock, addresses, settings.memory_bytes, descriptors)

    def inspect() -> str | None:
        plane.spool = spool.usage()
        plane.process = inspection.usage()
        return inspection.fault()

    with ExitStack() as stack:
        wakeup = stack.enter_context(_signals())
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        stack.callback(context.term)
        data = DataPlane(context, addresses, epoch)
        stack.callback(_end, data)
        watch = stack.enter_context(ProcessWatch(descriptors))
        closed = ClosedDeciders(settings.runtime_dir)
        plane.asks.miss(closed.read())
        loop = ControlLoop(context, addresses, plane, data, watch, wakeup, STOPPING, inspect, closed, clients)
        stack.callback(loop.close)
        stack.callback(signal.alarm, END_SECONDS)
        data.start(SETTLE_SECONDS if lock.used_before else 0.0)
        try:
            logs.warm_up()
            if descriptors < FEW_DESCRIPTORS:
                log.warning(
                    "few descriptors: raise the hard limit (ulimit -Hn)",
                    descriptors=descriptors,
                    max_clients=clients,
                )
            if loop.start():
                inspection.note_sockets()
                inspect()
                spool.start()
                log.info("ready", runtime_dir=settings.runtime_dir, max_clients=clients)
                gc.freeze()
                gc.set_threshold(COLLECT_EVERY)
                announce(Ready(settings.runtime_dir, os.getpid(), epoch.hex()))
                loop.run()
                signal.alarm(END_SECONDS)
                loop.drain()
        except DataPlaneFailed as error:
            log.error("the broker ends", reason=str(error))
            return 1
    signal.alarm(0)
    log.info("ended")
    return 0


def _end(data: DataPlane) -> None:
    """End the data plane; if it cannot be ended, the alarm that is set by now ends the process."""
    if not data.close(CLOSE_SECONDS):
        log.error("the data plane does not end")


def told_limits(settings: Settings) -> dict[str, int | float]:
    """The limits that a client is told, under the names of the table in protocol.limits."""
    told = {row.name.replace(" ", "_"): row.value for row in limits.TABLE}
    told["spool_bytes"] = told["spool"] = settings.spool_bytes
    told["claim_seconds"] = told["claim_lifetime"] = settings.claim_seconds
    told["ask_bytes"] = told["payload_of_an_ask"] = settings.ask_bytes
    return told


@contextmanager
def _signals() -> Iterator[int]:
    """Signals as bytes in a pipe while it lasts; SIGHUP stays ignored where it was (nohup)."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    numbers = [*STOPPING, signal.SIGUSR1]
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        numbers.remove(signal.SIGHUP)
    before: dict[int, Any] = {number: signal.signal(number, _noted) for number in numbers}
    old = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _noted(_number: int, _frame: object) -> None:
    """The wake-up descriptor carries the number; the handler only keeps the default from happening."""
