"""Where a bus lives on this machine: its runtime directory, its four sockets, its spool.

Broker and clients find each other by these rules alone, and both refuse a directory that somebody
else could write to: whoever can replace a socket can read and forge events.

Imports only ``os`` and ``stat``, because every client passes here. It opens no socket and takes no lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Final, NamedTuple

from .protocol.errors import RuntimeDirError

ENVIRONMENT_VARIABLE: Final = "PRXBUS_RUNTIME_DIR"
"""Names the runtime directory for every command and client that is not given one."""

SOCKET_PATH_BYTES: Final = 107
"""Longest path of a Unix socket: ``sun_path`` is 108 bytes, the last of them NUL (unix(7))."""

_ANOTHER: Final = f"name another with {ENVIRONMENT_VARIABLE} or --runtime-dir"

LOCK_NAME: Final = "lock"
SPOOL_NAME: Final = "spool"


class Endpoints(NamedTuple):
    """The addresses of one bus: publishers go to ``ingress``, subscribers to ``egress``; asks to ``lanes``.

    The first three are ZeroMQ's, the last is a plain stream socket, written in the same way.
    """

    ingress: str
    egress: str
    control: str
    lanes: str


def runtime_directory(
    given: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None
) -> str:
    """The absolute path of the runtime directory, whether it exists or not.

    In this order: ``given``, ``$PRXBUS_RUNTIME_DIR``, ``$XDG_RUNTIME_DIR/prxbus``, and
    ``prxbus-<uid>`` in ``$TMPDIR`` or ``/tmp``. An empty variable counts as unset, and so does a
    relative ``$XDG_RUNTIME_DIR`` (XDG base directory specification). ``environ`` replaces
    ``os.environ``. Raises :class:`RuntimeDirError` for a path that no system call can take.
    """
    environ = os.environ if environ is None else environ
    path = os.fspath(given) if given is not None else environ.get(ENVIRONMENT_VARIABLE, "")
    if given is not None and not path:
        raise RuntimeDirError("the runtime directory given is an empty path; leave it out for the default")
    if not path:
        session = environ.get("XDG_RUNTIME_DIR", "")
        temporary = environ.get("TMPDIR") or "/tmp"
        path = f"{session}/prxbus" if session.startswith("/") else f"{temporary}/prxbus-{os.geteuid()}"
    if "\0" in path:
        raise RuntimeDirError(f"runtime directory {path!r} has a NUL in its path")
    return os.path.abspath(path)


def endpoints(directory: str) -> Endpoints:
    """The addresses of the bus in ``directory``, an absolute path.

    Raises :class:`RuntimeDirError` when a socket's path would be longer than 107 bytes or is not UTF-8.
    """
    paths = [f"{directory.rstrip('/')}/{name}.sock" for name in Endpoints._fields]
    try:
        longest = max(len(path.encode()) for path in paths)
    except UnicodeEncodeError:
        raise RuntimeDirError(f"runtime directory {directory!r} is not UTF-8; choose another") from None
    if longest > SOCKET_PATH_BYTES:
        raise RuntimeDirError(
            f"runtime directory {directory!r} is too long: its sockets would have paths of {longest} bytes, "
            f"{SOCKET_PATH_BYTES} are possible; {_ANOTHER}"
        )
    return Endpoints(*(f"ipc://{path}" for path in paths))


def spool_directory(directory: str) -> str:
    """Where the payloads that travel by claim check lie: a private directory, or a link to one on tmpfs."""
    return f"{directory.rstrip('/')}/{SPOOL_NAME}"


def check_directory(directory: str, create: bool = False) -> bool:
    """Whether ``directory`` exists, and then is a real directory, ours, and closed to everybody else.

    With ``create`` it is made (mode 0700) when it is missing. Raises :class:`RuntimeDirError`
    for a directory that cannot be trusted or made, with the command that mends it.
    """
    directory = directory.rstrip("/") or "/"
    try:
        if create:
            _make(directory)
        status = os.lstat(directory)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RuntimeDirError(f"runtime directory {directory!r} cannot be used: {error.strerror}") from None
    kind = status.st_mode
    if stat.S_ISLNK(kind):
        raise RuntimeDirError(f"runtime directory {directory!r} is a link; name the directory itself")
    if not stat.S_ISDIR(kind):
        raise RuntimeDirError(
            f"runtime directory {directory!r} is not a directory; remove it or name another"
        )
    if status.st_uid != os.geteuid():
        raise RuntimeDirError(
            f"runtime directory {directory!r} belongs to user {status.st_uid}, not to us "
            f"({os.geteuid()}); {_ANOTHER}"
        )
    if kind & 0o077:
        raise RuntimeDirError(
            f"runtime directory {directory!r} is open to other users (mode {stat.S_IMODE(kind):04o}); "
            f"chmod 700 {directory!r}, or {_ANOTHER}"
        )
    return True


def _make(directory: str) -> None:
    try:
        os.makedirs(directory, 0o700)
    except FileExistsError:
        return
    os.chmod(directory, 0o700)  # whatever the umask took away
