"""Whether a role is what rolebox installed: its files against the hash in ``rolebox.lock``.

Decides which entry of the lock file is that of a directory: the one that rolebox itself would have put there.
A hash that is equal is proof; one that differs is none while the order of the files is in doubt. Refuses to
change either.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from ..dialects import rolebox_lock
from ..dialects.rolebox_lock import Locked, NotALock
from ..hooks.diagnostics import printable
from . import discover
from .hook_source import Absent, Content
from .role_integrity import NoIntegrity, Room, chunks_of

_DEPTH: Final = 40
"""Folders within each other; a link may lead back."""

Sort = Callable[[Sequence[str]], Sequence[str] | None]
"""Sorts paths as JavaScript compares them; None: that cannot be done."""


class LockCheck(NamedTuple):
    """What came of it. ``passed`` None: it cannot be verified, for ``reason``. ``locked`` None: no entry."""

    path: str
    locked: Locked | None
    passed: bool | None
    actual: str | None = None
    reason: str | None = None


def lock_path(environ: Mapping[str, str]) -> str:
    """Where rolebox keeps its lock file."""
    folder = environ.get("ROLEBOX_CONFIG_DIR") or _xdg(environ, "XDG_CONFIG_HOME", ".config")
    return os.path.join(folder, rolebox_lock.FILE_NAME)


def check_lock(directory: str, environ: Mapping[str, str], sort: Sort) -> LockCheck | None:
    """The role of a directory against the lock file; None where no lock file has it. Raises nothing."""
    path = lock_path(environ)
    reading = discover.read(path, rolebox_lock.MAX_BYTES)
    if isinstance(reading, Absent):
        return None
    if not isinstance(reading, Content):
        return LockCheck(path, None, None, reason=reading.message)
    try:
        roles = rolebox_lock.read_lock(reading.text)
    except NotALock as error:
        return LockCheck(path, None, None, reason=str(error))
    real = os.path.realpath(directory)
    locked = next((role for role in roles if os.path.realpath(_installed(role, environ)) == real), None)
    return None if locked is None else _compared(path, real, locked, sort)


def _compared(path: str, root: str, locked: Locked, sort: Sort) -> LockCheck:
    reason = rolebox_lock.why_not_comparable(locked.integrity)
    if reason is not None:
        return LockCheck(path, locked, None, reason=reason)
    try:
        files = [file.encode().decode() for file in _files(root, "", 0, Room())]
        by_script = sort(files)
        candidates = [*([] if by_script is None else [list(by_script)]), *rolebox_lock.orders(files)]
        return _tried(path, root, locked, candidates, is_sure=by_script is not None)
    except UnicodeError:  # JavaScript has no name for such a file
        reason = "a file's name is not UTF-8"
    except NoIntegrity as error:
        reason = printable(str(error))
    except OSError as error:
        reason = f"{printable(str(error.filename))}: {error.strerror}"
    return LockCheck(path, locked, None, reason=reason)


def _tried(path: str, root: str, locked: Locked, candidates: list[list[str]], *, is_sure: bool) -> LockCheck:
    first = None
    tried: list[list[str]] = []
    for order in candidates:
        if order in tried:
            continue
        tried.append(order)
        actual = rolebox_lock.digest(order, partial(_chunks, root, Room()))
        if actual == locked.integrity:
            return LockCheck(path, locked, passed=True, actual=actual)
        first = actual if first is None else first
    if is_sure or rolebox_lock.is_beyond_doubt(candidates[0]):
        return LockCheck(path, locked, passed=False, actual=first)
    reason = "the order of the files is JavaScript's, which only Node 20 or newer can tell"
    return LockCheck(path, locked, None, first, reason)


def _files(root: str, folder: str, depth: int, room: Room) -> Iterator[str]:
    """Every file below, links followed; what cannot be looked at is passed over, as rolebox does.

    Folders take room too: links among empty ones lead back without an end. Raises :class:`NoIntegrity`.
    """
    try:
        names = os.listdir(os.path.join(root, folder))
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        full = os.path.join(root, path)
        room.take_file()
        if os.path.isdir(full):
            if depth < _DEPTH:
                yield from _files(root, path, depth + 1, room)
        elif os.path.isfile(full) and os.access(full, os.R_OK):
            yield path


def _chunks(root: str, room: Room, file: str) -> Iterator[bytes]:
    return chunks_of(os.path.join(root, file), room, follows=True)


def _installed(role: Locked, environ: Mapping[str, str]) -> str:
    """Where rolebox has put a role."""
    data = environ.get("ROLEBOX_DATA_DIR") or _xdg(environ, "XDG_DATA_HOME", os.path.join(".local", "share"))
    return os.path.join(data, "roles", role.registry, f"{role.role}@{role.version}")


def _xdg(environ: Mapping[str, str], name: str, default: str) -> str:
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(environ.get(name) or os.path.join(home, default), "rolebox")
