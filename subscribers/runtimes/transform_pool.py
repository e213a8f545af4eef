"""Functions that transform tool results, run in processes that can be ended at any moment.

    this process ── control ──▶ stem: has loaded one file of handlers, runs none of them, forks when asked
        │                         └──▶ worker, worker ...: each runs one call at a time
        └──── one socket for each worker: a call there, its answer back

A function cannot be ended from within Python: one that loops, or waits inside a C function with the
interpreter's lock held, ends with its process. So each call has a process to itself, and one whose time is
over is killed with its group while its caller goes on at once. A fork takes milliseconds, and gives
the file as it was loaded: also while the one on disk is being edited. The stem has one thread, so nothing is
held in it when it forks.

Decides who runs a call and when its time is over. Refuses to know what a call is about, and the bus.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ..hooks.transform_chain import Fault, Passed, Said, Value
from .reaper import Reaper
from .transform_wire import WireClosed, pack, receive, send

WORKERS: Final = 8
"""Calls at once of one file; others wait, and their own time runs."""

IDLE: Final = 3
"""Workers that are kept for the next calls."""

LOAD_S: Final = 20.0
"""Seconds that a file may take to load."""

CONTROL_S: Final = 5.0
"""Seconds that a stem may take to fork; one that takes longer is ended."""

FORK: Final = b"F"
KILL: Final = b"K"
REQUEST_BYTES: Final = 5
"""A request to the stem: one letter and a pid; a fork brings the worker's end of its socket along."""


class LoadFailed(Exception):
    """A file could not even be tried: the text says why."""


class _Worker(NamedTuple):
    """``pid`` as its stem knows it: in a sandbox it is another one outside."""

    pid: int
    connection: socket.socket


class FunctionPool:
    """The handlers of one file, loaded once. Thread-safe.

    ``argv`` starts a stem, which gets its end of the control socket as standard input; ``env`` is its whole
    environment; ``release`` is called when it has ended. Call :meth:`loaded` before the first call. To be
    made in a thread that lives as long: a sandbox ends with the thread that started it. Raises
    :class:`LoadFailed`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        reaper: Reaper,
        *,
        workers: int = WORKERS,
        release: Callable[[], None] | None = None,
    ) -> None:
        self._reaper = reaper
        self._release = release
        self._slots = threading.BoundedSemaphore(workers)
        self._lock = threading.Lock()  # over the idle workers and what is below
        self._asking = threading.Lock()  # over the control socket
        self._idle: list[_Worker] = []
        self._calls = 0
        self._closed = False
        self.condemned = 0
        self._control, theirs = socket.socketpair()
        try:
            with theirs, reaper.starting():
                self._stem: subprocess.Popen[bytes] = subprocess.Popen(
                    list(argv),
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=dict(env),
                    cwd=cwd,
                    process_group=0,
                )
                reaper.own(self._stem.pid, self)
        except OSError as error:
            self._control.close()
            if release is not None:
                release()
            raise LoadFailed(f"its process cannot be started: {error.strerror or error}") from None

    def loaded(self, deadline: float) -> Any:
        """What the stem tells when it has loaded its file, until ``deadline`` (monotonic).

        Raises :class:`LoadFailed`, and then everything has been ended.
        """
        try:
            return receive(self._control, deadline)
        except TimeoutError:
            self.close()
            raise LoadFailed(f"loading it takes longer than {LOAD_S:g} s") from None
        except WireClosed:
            self.close()
            raise LoadFailed(f"its process ended while loading it, with {self._stem.returncode}") from None

    @property
    def alive(self) -> bool:
        """Whether its stem still runs: without one, workers cannot be replaced."""
        return not self._closed and self._stem.poll() is None

    def call(self, message: object, timeout_s: float) -> Said:
        """Run one call and return what came of it, at the latest after ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        try:
            packed = pack(message)
        except (TypeError, ValueError, OverflowError) as error:
            return Fault("not_started", f"its input cannot be handed over: {type(error).__name__}")
        if not self._slots.acquire(timeout=timeout_s):
            return Fault("timeout", f"all its processes were busy for {timeout_s:.3g} s")
        try:
            worker = self._take()
            if worker is None:
                return Fault("not_started", "its process is gone; it is loaded again soon")
            return self._run(worker, packed, deadline, timeout_s)
        finally:
            self._slots.release()

    def warm_up(self) -> None:
        """Have a worker ready for the first call."""
        worker = self._take()
        if worker is not None:
            self._give_back(worker)

    def close(self) -> None:
        """End everything, also calls under way. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.connection.close()
        self._end_stem()

    # -- workers ------------------------------------------------------------------------------

    def _run(self, worker: _Worker, packed: bytes, deadline: float, timeout_s: float) -> Said:
        try:
            send(worker.connection, packed, deadline)
            answer, reusable = receive(worker.connection, deadline)
            said = _said(answer)
        except TimeoutError:
            self._condemn(worker)
            return Fault("timeout", f"no answer within {timeout_s:.3g} s; its process was ended")
        except (WireClosed, TypeError, ValueError):
            self._condemn(worker)
            return Fault("failed", "its process ended in the middle of the call")
        if reusable:
            self._give_back(worker)
        else:
            self._condemn(worker)
        return said

    def _take(self) -> _Worker | None:
        """A worker that waits for a call: an idle one that lives, else a new one; None without a stem."""
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return self._fork()
            if not select.select([worker.connection], [], [], 0)[0]:
                return worker
            self._condemn(worker)  # it ended while it waited

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE:
                self._idle.append(worker)
                return
        self._end(worker)

    def _condemn(self, worker: _Worker) -> None:
        with self._lock:
            self.condemned += 1
        self._end(worker)

    def _end(self, worker: _Worker) -> None:
        worker.connection.close()
        with self._asking, suppress(OSError):
            self._control.settimeout(CONTROL_S)
            self._control.sendall(KILL + worker.pid.to_bytes(4, "big"))

    def _fork(self) -> _Worker | None:
        ours, theirs = socket.socketpair()
        pid = 0
        with theirs, self._asking:
            try:
                self._control.settimeout(CONTROL_S)
                socket.send_fds(self._control, [FORK + bytes(4)], [theirs.fileno()])
                reply = self._control.recv(4, socket.MSG_WAITALL)
                pid = int.from_bytes(reply, "big") if len(reply) == 4 else 0
            except OSError:
                self._kill_stem()
        if pid:
            return _Worker(pid, ours)
        ours.close()
        return None

    # -- the stem -----------------------------------------------------------------------------

    def _kill_stem(self) -> None:
        """Kill it with its group, unless it has been reaped: then the pid may be somebody else's."""
        if self._stem.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._stem.pid, signal.SIGKILL)

    def _end_stem(self) -> None:
        """Close the control socket, at which the stem ends its workers and itself; kill what stays."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._stem.wait(1.0)
        except subprocess.TimeoutExpired:
            self._kill_stem()
            self._stem.wait()
        self._reaper.disown(self._stem.pid, self)
        with self._asking:
            self._control.close()
        if self._release is not None:
            self._release()


def _said(answer: Any) -> Said:
    """What a worker's answer means. Raises TypeError or ValueError for what is none."""
    match answer:
        case ["value", str(text)]:
            return Value(text)
        case ["passed"]:
            return Passed()
        case ["fault", "timeout", str(reason)]:
            return Fault("timeout", reason)
        case ["fault", _, str(reason)]:
            return Fault("failed", reason)
    raise ValueError("not an answer")
