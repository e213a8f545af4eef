"""Which file of a workspace holds its hooks, and a guarded look at it.

A look never blocks and never reads more than it was told: a pipe, a device or a folder of that name is not
opened for reading, and a file that grows while it is read is cut off and refused. Links are followed, because
people keep their configuration elsewhere and link to it. It refuses to know what the bytes mean.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Final

from ..dialects.base import Dialect
from .hook_source import Absent, Content, Reading, Unreadable

# Non-blocking, so that opening a pipe nobody writes to returns; it changes nothing for a regular file.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Signature = tuple[int, ...] | None
"""What a file looks like from outside; None when there is none. Equal ones mean: probably the same bytes."""


def hook_file(workspace: str, dialect: Dialect) -> str:
    """The absolute path of the file that this dialect reads in a workspace."""
    return os.path.join(os.path.abspath(workspace), dialect.FILE_NAME)


def read(path: str, max_bytes: int) -> Reading:
    """Look at a file now. Raises nothing: what cannot be read is a reading too."""
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        return Absent()
    except OSError as error:
        return _failed(error)
    try:
        return _read_regular(descriptor, max_bytes)
    except OSError as error:
        return _failed(error)
    finally:
        os.close(descriptor)


def signature(path: str) -> Signature:
    """The file's identity, size and times, links followed; cheap enough to ask twice a second."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return (error.errno or 0,)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read_regular(descriptor: int, max_bytes: int) -> Reading:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
        return Unreadable("not_a_file", f"this is {what}, not a file", "put a regular file there")
    with open(descriptor, "rb", closefd=False) as file:
        text = file.read(max_bytes + 1)
    if len(text) > max_bytes:
        message = f"the file has more than {max_bytes} bytes"
        return Unreadable("file_too_large", message, "put what is long into scripts")
    return Content(text, hashlib.sha256(text).hexdigest())


def _failed(error: OSError) -> Unreadable:
    hint = "let this user read it" if isinstance(error, PermissionError) else None
    return Unreadable("unreadable", f"the file cannot be read: {error.strerror}", hint)
