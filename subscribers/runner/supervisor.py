"""Keeps the broker and its subscriber processes running, in the foreground, until told to stop.

Decides the order of start and stop and who is started again; a process says itself when it is ready
(one line of JSON on its stdout). A process that the system has no room to start counts as one that
ended, and is tried again later. Knows no socket and no hook: what it runs are argument lists.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple

import orjson

from broker.logs import get_logger

from ..hooks.restarts import Restarts

READY_SECONDS: Final = 30.0
"""How long a process may take to say that it is ready, at the first start."""

STOP_SECONDS: Final = 15.0
"""How long the processes of one rank may take to end in order before they are killed."""

LINE_BYTES: Final = 65_536
"""Longest ready line."""

log = get_logger("prxbus.up")


class Program(NamedTuple):
    """A process to keep running. Ranks start in ascending order, each ready first, and stop in descending."""

    name: str
    argv: tuple[str, ...]
    rank: int


class StartFailed(Exception):
    """A process ended, or stayed silent, before everything was ready for the first time."""

    def __init__(self, name: str, exit_code: int, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.exit_code = exit_code


class Child:
    """One program and its current process. ``said`` is its ready line, None while there is none.

    ``leaves_by``: its process was told to end, because ``successor`` or nothing is to run instead, and is
    killed at that time; None: it is to go on.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.successor: Program | None = None
        self.leaves_by: float | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.said: Mapping[str, Any] | None = None
        self.restarts = Restarts()
        self.due: float | None = None
        self.line = b""
        self.pidfd = -1


class Supervisor:
    """Runs ``programs`` until SIGTERM, SIGINT or :meth:`stop`.

    SIGHUP is handed to all but the broker (rank 0), unless the controlling terminal is gone: then it
    stops. ``on_ready`` is called once, with each program's ready line by name. ``environ`` is the
    whole environment of the processes.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        on_ready: Callable[[Mapping[str, Mapping[str, Any]]], None],
        environ: Mapping[str, str],
    ) -> None:
        self._children = [Child(program) for program in programs]
        self._on_ready = on_ready
        self._environ = dict(environ)
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._waking = threading.Lock()  # nobody writes into a pipe that is being closed
        self._wanted: tuple[Program, ...] | None = None
        self._stopping = False
        self._had_terminal = _has_terminal()

    def run(self) -> None:
        """Start everything, keep it running, and stop it in order. Raises :class:`StartFailed`.

        For the main thread: it takes over SIGTERM, SIGINT and SIGHUP while it runs.
        """
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        old_wakeup = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)  # what counts is the byte in the pipe
        try:
            for rank in sorted({child.program.rank for child in self._children}):
                self._start_rank(rank)
            if not self._stopping:
                self._on_ready({child.program.name: child.said or {} for child in self._children})
            while not self._stopping:
                self._turn(self._next_due())
        finally:
            self._stop_all()
            signal.set_wakeup_fd(old_wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            with self._waking:
                os.close(self._wake_read)
                os.close(self._wake_write)

    def stop(self) -> None:
        """Have :meth:`run` stop; from any thread."""
        os.write(self._wake_write, bytes([signal.SIGTERM]))

    def change(self, programs: Sequence[Program]) -> None:
        """Have these run from now on instead, those of rank 0 excepted, which stay; from any thread.

        What is not among them is stopped; what has other arguments is stopped and started with those. None
        may have a new name. Only after ``on_ready`` was called.
        """
        self._wanted = tuple(programs)
        with self._waking:
            if not self._stopping:
                os.write(self._wake_write, b"\0")

    def _start_rank(self, rank: int) -> None:
        children = [child for child in self._children if child.program.rank == rank]
        for child in children:
            self._start(child, starting=True)
        deadline = time.monotonic() + READY_SECONDS
        while not self._stopping and not all(child.said for child in children):
            if time.monotonic() > deadline:
                name = next(child.program.name for child in children if not child.said)
                raise StartFailed(name, 5, f"{name} was not ready within {READY_SECONDS:g} s")
            self._turn(deadline, starting=True)

    def _start(self, child: Child, *, starting: bool = False) -> None:
        """Start the process, or plan another try when the system refuses; the first time that is final."""
        child.said, child.due, child.line = None, None, b""
        child.restarts.started(time.monotonic())  # a try counts: else failing ones would have no pause
        try:
            process = subprocess.Popen(
                child.program.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environ,
                process_group=0,
            )
            try:
                self._watch(child, process)
            except OSError:
                _discard(process)
                raise
        except OSError as error:
            name = child.program.name
            if starting:
                raise StartFailed(name, 1, f"{name} could not be started: {_explain(error)}") from None
            self._plan(child, "a process could not be started and is tried again", reason=_explain(error))

    def _watch(self, child: Child, process: subprocess.Popen[bytes]) -> None:
        """Hear of what ``process`` says and of its end. Raises OSError, and then nothing is watched."""
        assert process.stdout is not None
        with ExitStack() as undo:
            pidfd = os.pidfd_open(process.pid)
            undo.callback(os.close, pidfd)
            os.set_blocking(process.stdout.fileno(), False)
            self._selector.register(process.stdout, selectors.EVENT_READ, child)
            undo.callback(self._selector.unregister, process.stdout)
            self._selector.register(pidfd, selectors.EVENT_READ, child)
            undo.pop_all()
        child.process, child.pidfd = process, pidfd

    def _next_due(self) -> float:
        dues = [due for child in self._children for due in (child.due, child.leaves_by) if due is not None]
        return min(dues, default=time.monotonic() + 3_600.0)

    def _turn(self, until: float, *, starting: bool = False) -> None:
        """Wait for something to happen, at most until ``until``, and deal with it."""
        for key, _ in self._selector.select(max(0.0, until - time.monotonic())):
            child = key.data
            if child is None:
                self._signals(os.read(self._wake_read, 512))
            elif child.process is None:
                continue  # its end came first in this very turn, and took the rest along
            elif key.fd != child.pidfd:
                self._read(child)
            else:
                code = self._reap(child)
                if self._stopping:
                    continue
                if child.leaves_by is not None:
                    self._succeed(child)
                else:
                    self._ended(child, code, starting=starting)
        now = time.monotonic()
        for child in self._children:
            if child.leaves_by is not None and child.leaves_by <= now and child.process is not None:
                self._kill(child)
            if child.due is not None and child.due <= now and not self._stopping:
                self._start(child)

    def _exchange(self, programs: Sequence[Program]) -> None:
        """Tell those to leave that are not to go on; see :meth:`change`."""
        wanted = {program.name: program for program in programs}
        for child in [child for child in self._children if child.program.rank > 0]:
            successor = wanted.get(child.program.name)
            if successor == child.program:
                continue
            child.successor, child.due = successor, None
            if child.process is None:
                self._succeed(child)
            else:
                child.leaves_by = time.monotonic() + STOP_SECONDS
                self._send(child, signal.SIGTERM)

    def _succeed(self, child: Child) -> None:
        """A process is gone that was told to leave: what comes after it, if anything, is started next."""
        child.leaves_by = None
        if child.successor is None:
            self._children.remove(child)
        else:
            child.program, child.successor, child.due = child.successor, None, time.monotonic()

    def _ended(self, child: Child, code: int, *, starting: bool) -> None:
        name = child.program.name
        if starting:
            raise StartFailed(name, code if code > 0 else 1, f"{name} ended with {code} before it was ready")
        self._plan(child, "a process ended by itself and is started again", code=code)

    def _plan(self, child: Child, words: str, **facts: object) -> None:
        """Have the child started again after a pause, and say so."""
        child.due = child.restarts.ended(time.monotonic())
        pause = max(0.0, child.due - time.monotonic())
        log.error(
            words,
            process=child.program.name,
            **facts,
            again_in_s=round(pause, 2),
            restarts=child.restarts.count,
        )

    def _read(self, child: Child) -> None:
        assert child.process is not None
        assert child.process.stdout is not None
        try:
            data = os.read(child.process.stdout.fileno(), LINE_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(child.process.stdout)
            return
        if child.said is None and len(child.line) < LINE_BYTES:
            child.line += data
            line, end, _ = child.line.partition(b"\n")
            if end:
                child.said = _ready_line(line)
                log.debug("a process is ready", process=child.program.name, said=child.said)

    def _signals(self, numbers: bytes) -> None:
        for number in numbers:
            if not number:
                if self._wanted is not None and not self._stopping:
                    self._exchange(self._wanted)
                self._wanted = None
            elif number != signal.SIGHUP or (self._had_terminal and not _has_terminal()):
                self._stopping = True
            else:
                for child in self._children:
                    if child.program.rank > 0:
                        self._send(child, signal.SIGHUP)

    def _stop_all(self) -> None:
        self._stopping = True
        for rank in sorted({child.program.rank for child in self._children}, reverse=True):
            running = [c for c in self._children if c.program.rank == rank and c.process is not None]
            for child in running:
                self._send(child, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS
            while any(child.process is not None for child in running) and time.monotonic() < deadline:
                self._turn(deadline)
            for child in running:
                if child.process is not None:
                    self._kill(child)
                    child.process.wait()
                    self._reap(child)

    def _kill(self, child: Child) -> None:
        assert child.process is not None
        log.error("a process did not end in time and was killed", process=child.program.name)
        child.process.kill()
        child.leaves_by = None if child.leaves_by is None else time.monotonic() + STOP_SECONDS

    def _send(self, child: Child, number: signal.Signals) -> None:
        if child.process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(child.pidfd, number)

    def _reap(self, child: Child) -> int:
        """Take the exit code and close what belonged to the process."""
        process = child.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        code = process.wait()
        self._selector.unregister(child.pidfd)
        os.close(child.pidfd)
        with suppress(KeyError):
            self._selector.unregister(process.stdout)
        process.stdout.close()
        process.stdin.close()
        child.process, child.said = None, child.said or None
        return code


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def _discard(process: subprocess.Popen[bytes]) -> None:
    """End a process that nobody can watch over."""
    with process:  # closes its pipes and takes its exit code
        process.kill()


def _explain(error: OSError) -> str:
    return f"{error.strerror}: {error.filename!r}" if error.filename else str(error.strerror)


def _ready_line(line: bytes) -> Mapping[str, Any]:
    try:
        said = orjson.loads(line)
    except orjson.JSONDecodeError:
        said = None
    return said if isinstance(said, dict) else {"ready": True}


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal; when there is no room to look, it counts as there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError as error:
        return error.errno in _NO_ROOM
    return True
