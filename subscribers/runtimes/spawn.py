"""Starting one child: pipes, process group, environment, and a descriptor that tells when it has ended.

Decides how a process is made. Refuses to wait for it, to read from it and to end it. No ``preexec_fn``:
with one, ``subprocess`` copies our page tables (16 ms at 500 MB) instead of borrowing them.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress

from ..hooks.invocation import Invocation
from .start_failure import explain

CHUNK = 65_536


class StartFailed(Exception):
    """Nothing was started; the text says why."""


class Child:
    """A running child and our ends of what connects us to it.

    ``stdin`` is None once there is nothing to feed; ``unfed`` is what standard input still has to get.
    ``marker`` is the environment entry that names this run, or None.
    """

    __slots__ = ("marker", "pidfd", "process", "stderr", "stdin", "stdout", "unfed")

    def __init__(
        self,
        process: subprocess.Popen[bytes],
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


def spawn(invocation: Invocation) -> Child:
    """Start the program and return once it has been executed. Raises StartFailed."""
    strings: list[bytes] = []
    ours: list[int] = []
    theirs: list[int] = []
    try:
        argv = [_encode(argument) for argument in invocation.argv]
        env = {_encode(name): _encode(value) for name, value in invocation.env.items()}
        strings = [*argv, *(name + b"=" + value for name, value in env.items())]
        stdin, unfed = _standard_input(invocation.stdin, ours, theirs)
        stdout = _pipe_from_child(ours, theirs)
        stderr = _pipe_from_child(ours, theirs)
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if invocation.stdin is None else theirs[0],
            stdout=theirs[-2],
            stderr=theirs[-1],
            cwd=_encode(invocation.cwd),
            env=env,
            close_fds=True,
            process_group=0,
        )
        pidfd = _watch(process)
    except (OSError, ValueError) as error:
        for descriptor in ours:
            os.close(descriptor)
        raise StartFailed(explain(error, invocation.argv[0], invocation.cwd, strings)) from error
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    name = invocation.marker
    marker = None if name is None else _encode(name) + b"=" + env[_encode(name)]
    return Child(process, pidfd, stdin, unfed, stdout, stderr, marker)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _pipe_from_child(ours: list[int], theirs: list[int]) -> int:
    reading, writing = os.pipe()
    ours.append(reading)
    theirs.append(writing)
    os.set_blocking(reading, False)  # our end only: the child's is another open file
    return reading


def _standard_input(data: bytes | None, ours: list[int], theirs: list[int]) -> tuple[int | None, memoryview]:
    """Our end of the child's standard input, or None if nothing is left to feed, and what is left.

    The pipe is filled before the child exists: most payloads fit into it and cost one system call.
    """
    if data is None:
        return None, memoryview(b"")
    reading, writing = os.pipe()
    ours.append(writing)
    theirs.append(reading)
    os.set_blocking(writing, False)
    unfed = memoryview(data)
    with suppress(BlockingIOError):
        while unfed:
            unfed = unfed[os.write(writing, unfed[:CHUNK]) :]
    if unfed:
        return writing, unfed
    ours.remove(writing)
    os.close(writing)
    return None, unfed


def _watch(process: subprocess.Popen[bytes]) -> int:
    """A descriptor that becomes readable when the process has ended. Without one, it must not live."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
