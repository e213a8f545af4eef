"""Servers of the benchmarks: find the program, start it on a free loopback port, end it by its own pid.

Decides where programs are looked for and how they end; refuses to know which servers there are.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


def program(name: str) -> str | None:
    """The full path of a server program, also where Debian installs it outside of a user's search path."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def absent(name: str) -> str | None:
    """Why the server `name` cannot be used, or None if it is installed."""
    return None if program(name) else f"{name} is not installed: apt-get install {name}"


@contextmanager
def running(
    argv: Sequence[str], *, log: str, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child process with its output in the file `log`; at exit it is stopped (see `stop`)."""
    with open(log, "ab") as output:
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env)
    try:
        yield child
    finally:
        stop(child)


def stop(child: subprocess.Popen[bytes]) -> None:
    """SIGTERM, then SIGKILL after 3 s; the child is reaped."""
    child.terminate()
    try:
        child.wait(3.0)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait(5.0)


def free_port() -> int:
    """A loopback port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def listens(port: int) -> bool:
    """Whether somebody accepts connections on the loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
