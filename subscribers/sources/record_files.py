"""Records that a user has made of directories: one file for each, in the user's state directory.

Decides when a record counts: the file is the user's own, and nobody else may write it or where it lies.
Refuses to know what a record says.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .attach_files import state_directory
from .discover import read, signature
from .hook_source import Absent, Unreadable
from .hook_store_files import GuardedFile, StoreBusy

RECORDS: Final = 1_000
"""Records of a kind that are kept at most."""

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class RecordUnusable(Exception):
    """A record cannot be read or written, or does not count; the text says which and why."""


class RecordFiles:
    """The records of one kind. ``folder`` None: the one in the user's state directory.

    ``are_full`` is said when there are too many. Every method raises :class:`RecordUnusable`.
    """

    def __init__(self, kind: str, folder: str | None, are_full: str) -> None:
        self.folder = os.path.abspath(folder or os.path.join(state_directory(), kind))
        self._lock = os.path.join(self.folder, kind)
        self._are_full = are_full

    def path_of(self, directory: str) -> str:
        """The file of a directory's record, whether it exists or not; links to a directory share it."""
        real = os.fsencode(os.path.realpath(directory))
        return os.path.join(self.folder, f"{hashlib.sha256(real).hexdigest()[:32]}.json")

    def paths(self) -> list[str]:
        """The files of all records, those that cannot be used too."""
        try:
            names = sorted(n for n in os.listdir(self.folder) if n.endswith(".json") and n[0] != ".")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RecordUnusable(f"{self.folder} cannot be listed: {error.strerror}") from None
        return [os.path.join(self.folder, name) for name in names[:RECORDS]]

    def read(self, path: str, most: int) -> bytes | None:
        """The bytes of a record, ``most`` of them; None: there is no such file."""
        reading = read(path, most)
        if isinstance(reading, Absent):
            return None
        if isinstance(reading, Unreadable):
            raise RecordUnusable(f"{path}: {reading.message}")
        for place in (path, self.folder):
            if not is_ours_alone(place):
                raise RecordUnusable(f"{place} does not count: others can change it, or it is a link")
        return reading.text

    def write(self, path: str, text: bytes) -> None:
        """Keep a record instead of what there was."""
        with self._changing():
            if not os.path.lexists(path) and len(self.paths()) >= RECORDS:
                raise RecordUnusable(f"{RECORDS:,} {self._are_full}")
            if os.path.lexists(path) and not is_ours_alone(path):
                os.unlink(path)  # else the new one would get its mode, or lie where a link leads
            if not GuardedFile(path).replace(text, signature(path)):
                raise RecordUnusable(f"{path} was written by somebody else meanwhile; try again")

    def remove(self, path: str) -> bool:
        """Forget a record; whether there was one."""
        if not os.path.lexists(path):
            return False
        with self._changing():
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
        return True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            with GuardedFile(self._lock).locked():
                yield
        except StoreBusy as error:
            raise RecordUnusable(str(error)) from None
        except OSError as error:
            raise RecordUnusable(f"{error.filename or self.folder}: {error.strerror}") from None


def is_ours_alone(path: str) -> bool:
    """Whether nobody but this user and root can have written what is there; not what has gone meanwhile."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    is_ours = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE
    return is_ours and not stat.S_ISLNK(found.st_mode)
