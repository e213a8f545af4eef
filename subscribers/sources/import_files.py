"""Files below a folder, read and written so that no link leads anywhere else.

Every component below the folder is opened in turn, and never through a link; what is opened is looked at, not
what a path meant a moment before. Nothing is read beyond its bound, and a pipe blocks nobody. It refuses to
know what the files are for.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Contents(NamedTuple):
    """The bytes of a file, and whether its owner may execute it."""

    content: bytes
    executable: bool

    @property
    def sha256(self) -> str:
        """The digest of the bytes, hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


class NotRead(Exception):
    """A file cannot be had: ``code`` is stable, the message is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_below(folder: str, relative: str, max_bytes: int) -> Contents:
    """The regular file ``relative`` in ``folder``, which itself may be a link.

    Raises :class:`NotRead`: ``missing``, ``link``, ``not_a_file``, ``too_large``, ``unreadable``.
    """
    *folders, name = relative.split("/")
    try:
        with _opened(folder, folders) as within:
            _check_no_link(name, within)
            descriptor = os.open(name, _FILE, dir_fd=within)
            try:
                mode = os.fstat(descriptor).st_mode
                if not stat.S_ISREG(mode):
                    raise NotRead("not_a_file", "it is a folder, a pipe or a device")
                with open(descriptor, "rb", closefd=False) as file:
                    content = file.read(max_bytes + 1)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise _told(error) from None
    if len(content) > max_bytes:
        raise NotRead("too_large", f"it has more than {max_bytes:,} bytes")
    return Contents(content, bool(mode & stat.S_IXUSR))


def write_below(folder: str, relative: str, contents: Contents) -> None:
    """A new file in ``folder``, with the folders that it lies in; read-only, its bytes on the disk.

    Raises OSError.
    """
    *folders, name = relative.split("/")
    path = folder
    for part in folders:
        path = os.path.join(path, part)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue
    descriptor = os.open(os.path.join(path, name), _NEW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(contents.content)
        file.flush()
        os.fchmod(descriptor, 0o500 if contents.executable else 0o400)
        os.fsync(descriptor)


def sync_folder(path: str) -> None:
    """Have the names in a folder on the disk. Raises OSError."""
    descriptor = os.open(path, _FOLDER)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _opened(folder: str, below: list[str]) -> Iterator[int]:
    descriptor = os.open(folder, _FOLDER)
    try:
        for name in below:
            _check_no_link(name, descriptor)
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _check_no_link(name: str, within: int) -> None:
    """A link is told as one here; opening it would only fail."""
    if stat.S_ISLNK(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
        raise NotRead("link", f"{name!r} is a link, and links are not followed")


def _told(error: OSError) -> NotRead:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotRead("missing", "there is no such file")
    if error.errno == errno.ELOOP:
        return NotRead("link", "it became a link, and links are not followed")
    return NotRead("unreadable", f"it cannot be read: {error.strerror}")
