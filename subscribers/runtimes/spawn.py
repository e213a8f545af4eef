"""Starting one child: pipes, process group, environment, and a descriptor that tells when it has ended.

Decides how a process is made. Refuses to wait for it, to read from it and to end it. No ``preexec_fn``:
with one, ``subprocess`` copies our page tables (16 ms at 500 MB) instead of borrowing them.

``posix_spawn`` costs half of what ``subprocess`` does and lets other threads go on meanwhile (see
:mod:`.posix_start`), but it can neither change the directory nor close what is inheritable. After
:func:`seal` a process has nothing that is; what it starts in the directory that it works in itself is
started that way.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from functools import cache

from ..hooks.invocation import Invocation
from .posix_start import RESTORED, Starter
from .start_failure import explain

CHUNK = 65_536

_OWN = 3
"""Descriptors that every program has: its standard streams."""


class StartFailed(Exception):
    """Nothing was started; the text says why."""


class Process:
    """A child that ``posix_spawn`` started, with what is used here of ``subprocess.Popen``."""

    __slots__ = ("_lock", "pid", "returncode")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def wait(self) -> int:
        """Reap it; its exit code, or minus the number of the signal that ended it."""
        with self._lock:
            if self.returncode is None:
                try:
                    self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                except ChildProcessError:  # somebody else took the status: this much is no success
                    self.returncode = -signal.SIGKILL
            return self.returncode


class Child:
    """A running child and our ends of what connects us to it.

    ``stdin`` is None once there is nothing to feed; ``unfed`` is what standard input still has to get.
    ``marker`` is the environment entry that names this run, or None.
    """

    __slots__ = ("marker", "pidfd", "process", "stderr", "stdin", "stdout", "unfed")

    def __init__(
        self,
        process: subprocess.Popen[bytes] | Process,
        pidfd: int,
        stdin: int | None,
        unfed: memoryview,
        stdout: int,
        stderr: int,
        marker: bytes | None,
    ) -> None:
        self.process = process
        self.pidfd = pidfd
        self.stdin = stdin
        self.unfed = unfed
        self.stdout = stdout
        self.stderr = stderr
        self.marker = marker


def seal() -> None:
    """Let children inherit nothing but what they are given: for the entry point of a subscriber process.

    Standard streams that are closed are opened on ``/dev/null``; every other descriptor is closed at exec.
    Whoever opens a descriptor for children afterwards opens it for hooks too.
    """
    while (descriptor := os.open("/dev/null", os.O_RDWR)) < _OWN:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in os.listdir("/dev/fd"):
        if int(name) >= _OWN:
            with suppress(OSError):  # the listing's own
                os.set_inheritable(int(name), False)


def spawn(invocation: Invocation, *, sealed: bool = False) -> Child:
    """Start the program and return once it has been executed. Raises StartFailed.

    ``sealed``: this process has called :func:`seal`.
    """
    ours: list[int] = []
    theirs: list[int] = []
    try:
        argv = [argument.encode("utf-8", "surrogateescape") for argument in invocation.argv]
        env = {
            name.encode("utf-8", "surrogateescape"): value.encode("utf-8", "surrogateescape")
            for name, value in invocation.env.items()
        }
        stdin, unfed = _standard_input(invocation.stdin, ours, theirs)
        stdout = _pipe_from_child(ours, theirs)
        stderr = _pipe_from_child(ours, theirs)
        start = _quick if sealed and _works_in(invocation.cwd) else _any
        process = start(argv, env, invocation.cwd, theirs)
        pidfd = _watch(process)
    except (OSError, ValueError) as error:
        for descriptor in ours:
            os.close(descriptor)
        texts = [*invocation.argv, *(f"{name}={value}" for name, value in invocation.env.items())]
        strings = [text.encode("utf-8", "surrogatepass") for text in texts]
        raise StartFailed(explain(error, invocation.argv[0], invocation.cwd, strings)) from error
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    name = invocation.marker
    marker = None if name is None else _encode(f"{name}={invocation.env[name]}")
    return Child(process, pidfd, stdin, unfed, stdout, stderr, marker)


@cache
def _starter() -> Starter | None:
    """How programs are started here without holding up other threads; None where that cannot be done."""
    try:
        return Starter()
    except OSError:
        return None


@cache
def _no_input() -> int:
    """A descriptor of ``/dev/null``, one for all children."""
    return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)


def _quick(argv: list[bytes], env: dict[bytes, bytes], _cwd: str, theirs: list[int]) -> Process:
    streams = (theirs[0] if len(theirs) == _OWN else _no_input(), theirs[-2], theirs[-1])
    starter = _starter()
    if starter is not None:
        return Process(starter.start(argv, env, streams))
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)]
    return Process(os.posix_spawn(argv[0], argv, env, file_actions=actions, setpgroup=0, setsigdef=RESTORED))


def _any(argv: list[bytes], env: dict[bytes, bytes], cwd: str, theirs: list[int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL if len(theirs) < _OWN else theirs[0],
        stdout=theirs[-2],
        stderr=theirs[-1],
        cwd=_encode(cwd),
        env=env,
        close_fds=True,
        process_group=0,
    )


def _works_in(directory: str) -> bool:
    """Whether this is where we are: neither renamed nor replaced since."""
    try:
        return os.getcwd() == directory
    except OSError:
        return False


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _pipe_from_child(ours: list[int], theirs: list[int]) -> int:
    reading, writing = os.pipe()
    ours.append(reading)
    theirs.append(writing)
    return reading  # blocking: it is read when something is there, and by nobody else


def _standard_input(data: bytes | None, ours: list[int], theirs: list[int]) -> tuple[int | None, memoryview]:
    """Our end of the child's standard input, or None if nothing is left to feed, and what is left.

    The pipe is filled before the child exists: most payloads fit into it and cost one system call.
    """
    if data is None:
        return None, memoryview(b"")
    reading, writing = os.pipe()
    ours.append(writing)
    theirs.append(reading)
    os.set_blocking(writing, False)  # our end only: the child's is another open file
    unfed = memoryview(data)
    with suppress(BlockingIOError):
        while unfed:
            unfed = unfed[os.write(writing, unfed[:CHUNK]) :]
    if unfed:
        return writing, unfed
    ours.remove(writing)
    os.close(writing)
    return None, unfed


def _watch(process: subprocess.Popen[bytes] | Process) -> int:
    """A descriptor that becomes readable when the process has ended. Without one, it must not live."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
