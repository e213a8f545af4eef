"""The installed command ``prxbus`` as a user runs it, for the tests of the command line."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from broker.testing import running_broker

COMMAND = str(Path(sys.executable).with_name("prxbus"))
DEADLINE_S = 100.0
"""Longest that a command may take on a machine that is busy with other tests."""

Ran = subprocess.CompletedProcess[str]


def prxbus(*arguments: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
    """Run ``prxbus`` to its end; ``env`` is added to ours."""
    done = subprocess.run(
        [COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        env=environment(env),
        timeout=DEADLINE_S,
        check=False,
    )
    output, said = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Ran(done.args, done.returncode, output, said)


@contextmanager
def started(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """``prxbus`` under way, its output in pipes; ended in every case."""
    with subprocess.Popen(
        [COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(env),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def drained(stream: IO[bytes] | None) -> Iterator[None]:
    """Somebody reads ``stream`` to its end meanwhile; leave the block after the writer has ended."""
    assert stream is not None
    reader = threading.Thread(target=stream.read)
    reader.start()
    try:
        yield
    finally:
        reader.join(DEADLINE_S)


@contextmanager
def terminal(columns: int, lines: int = 24) -> Iterator[tuple[int, int]]:
    """Both ends of a terminal of that size: ours, and the one for a process."""
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def environment(added: Mapping[str, str] | None) -> dict[str, str]:
    """Our environment without what would change what a command does, and with ``added``."""
    changing = ("PRXBUS_", "COLUMNS", "NO_COLOR")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(changing)}
    return {**ours, "LC_ALL": "C.UTF-8", "TZ": "UTC", **(added or {})}


@contextmanager
def temporary_bus() -> Iterator[str]:
    """The runtime directory of a real broker, which tests may share."""
    path = tempfile.mkdtemp(prefix="pxb", dir="/tmp")
    try:
        with running_broker(path, timeout=60.0) as directory:
            yield directory
    finally:
        shutil.rmtree(path, ignore_errors=True)
