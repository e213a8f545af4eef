"""The events that agents had while no bus was there: delivered when one is, late but in order.

Hook commands (:mod:`subscribers.shim.hook_command`) leave one file for each in a directory beside the socket.
Decides in which order they are taken, and which are too old to mean anything. Refuses to know what they say.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from .hook_socket_frames import PAYLOAD_BYTES, BadRequest, Request, decode_request

DIRECTORY: Final = "hook-spool"
DROPPED: Final = "dropped"
"""The file in it that has as many bytes as there were events without room."""

AGE_SECONDS: Final = 86_400.0
"""An event that has waited longer is dropped."""

HALF_SECONDS: Final = 60.0
"""A file that is still being written after so long was left behind."""

_NAME: Final = re.compile(r"(\.?)(\d{1,20})-\d{1,20}")
_MOST_BYTES: Final = PAYLOAD_BYTES + 65_536


class Delivered(NamedTuple):
    """What became of the events that waited: published, without room, too old, and not to be read."""

    published: int = 0
    without_room: int = 0
    too_old: int = 0
    unreadable: int = 0


def deliver(runtime_dir: str, now_ns: int, publish: Callable[[Request, int], bool]) -> Delivered:
    """Take every event that waits in ``runtime_dir``, the oldest first, and remove it.

    ``publish`` gets each with the milliseconds that it has waited, and says whether it could be read.
    """
    folder = os.path.join(runtime_dir, DIRECTORY)
    published = too_old = unreadable = 0
    for name, since_ns in _waiting(folder, now_ns):
        path = os.path.join(folder, name)
        age_ns = max(0, now_ns - since_ns)
        if age_ns > AGE_SECONDS * 1e9:
            too_old += 1
        else:
            try:
                is_read = publish(decode_request(_read(path)), age_ns // 1_000_000)
            except (OSError, BadRequest):
                is_read = False
            published += is_read
            unreadable += not is_read
        with suppress(OSError):
            os.unlink(path)
    return Delivered(published, _take_dropped(os.path.join(folder, DROPPED)), too_old, unreadable)


def _waiting(folder: str, now_ns: int) -> Iterator[tuple[str, int]]:
    """Names and times of what waits, in order; what a killed hook command left half written is removed."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    found = []
    for match in filter(None, map(_NAME.fullmatch, names)):
        if not match[1]:
            found.append((int(match[2]), match[0]))
        elif now_ns - int(match[2]) > HALF_SECONDS * 1e9:
            with suppress(OSError):
                os.unlink(os.path.join(folder, match[0]))
    yield from ((name, since_ns) for since_ns, name in sorted(found))


def _read(path: str) -> bytes:
    """The content of a file; raises OSError, and :class:`BadRequest` for what cannot be one of ours."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise BadRequest("it is no file of a hook command's")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES)
    finally:
        os.close(descriptor)


def _take_dropped(path: str) -> int:
    """How many events had no room, counted once."""
    try:
        number = os.lstat(path).st_size
        os.unlink(path)
    except OSError:
        return 0
    return number
