"""One snapshot of imported hooks on the disk: whether it is, byte for byte, what was confirmed.

A snapshot is written once and never changed. :meth:`Snapshot.verify` compares all of it with the digests in
the index; files that look from outside as they did when their digest was right are not read again, so asking
before each run costs one look a file. It refuses to know what the files mean.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Hashable, Iterator, Mapping
from typing import Final

from ..hooks.import_plan import FILE_BYTES, HOOKS_NAME, TOTAL_BYTES
from .import_files import NotRead, read_below
from .import_index import SnapshotFile

CACHE_NAME: Final = "__pycache__"
"""Left by an interpreter that ran a copied script. What is in it would be run in place of what was confirmed,
so it is deleted."""

MAX_ENTRIES: Final = 4_096
"""Entries that are looked at in one snapshot."""

TICK_NS: Final = 2_000_000_000
"""The coarsest step in which a file system tells when a file was changed."""

_Look = tuple[tuple[int, ...], ...]


class Snapshot:
    """The snapshot in ``folder`` that has to hold ``files``, by their names relative to it."""

    def __init__(self, folder: str, files: Mapping[str, SnapshotFile]) -> None:
        self.folder = folder
        self.files = files
        self._right: _Look | None = None

    @property
    def hooks_path(self) -> str:
        """The generated hook file."""
        return os.path.join(self.folder, HOOKS_NAME)

    def verify(self) -> str | None:
        """What is wrong with it now, as a sentence; None: it is what was confirmed. Raises nothing.

        It costs a look at each file, and reading all of them where one of those looks moved. What an
        interpreter left there of its own (:data:`CACHE_NAME`) is deleted.
        """
        try:
            look = self._look()
            if look == self._right:
                return None
            self._check()
        except OSError as error:
            return f"it cannot be looked at: {error.strerror} ({error.filename})"
        except _Wrong as wrong:
            return str(wrong)
        # A clock tick is coarser than two changes can be: what was changed just now is read again next time.
        is_settled = time.time_ns() - max(each[-1] for each in look) > TICK_NS
        self._right = look if is_settled else None
        return None

    def signature(self) -> Hashable:
        """What it looks like from outside; another one: verify it again. Raises nothing."""
        try:
            return self._look()
        except OSError as error:
            return error.errno, error.filename

    def _look(self) -> _Look:
        """Every file and folder from outside."""
        found = []
        inside = (os.path.join(self.folder, name) for name in self.files)
        for path in (self.folder, *self._folders(), *inside):
            of = os.lstat(path)
            found.append((of.st_dev, of.st_ino, of.st_mode, of.st_size, of.st_mtime_ns, of.st_ctime_ns))
        return tuple(found)

    def _folders(self) -> list[str]:
        names = {name.rpartition("/")[0] for name in self.files} - {""}
        for name in list(names):
            while (name := name.rpartition("/")[0]) != "":
                names.add(name)
        return [os.path.join(self.folder, name) for name in sorted(names)]

    def _check(self) -> None:
        if not stat.S_ISDIR(os.lstat(self.folder).st_mode):
            raise _Wrong("it is no folder")
        for name in _names(self.folder, ""):
            if name not in self.files:
                raise _Wrong(f"{name!r} does not belong to it")
        for name, file in self.files.items():
            try:
                found = read_below(self.folder, name, TOTAL_BYTES if name == HOOKS_NAME else FILE_BYTES)
            except NotRead as error:
                raise _Wrong(f"{name!r}: {error}") from None
            if found.sha256 != file.sha256 or len(found.content) != file.size:
                raise _Wrong(f"{name!r} is not what was confirmed")
            if found.executable != file.executable:
                raise _Wrong(f"the exec bit of {name!r} is not what was confirmed")


class _Wrong(Exception):
    """A snapshot is not what was confirmed."""


def _names(folder: str, prefix: str, seen: list[str] | None = None) -> Iterator[str]:
    """The files below ``folder``; a link counts as a file."""
    seen = [] if seen is None else seen
    with os.scandir(folder) as entries:
        for entry in entries:
            seen.append(entry.name)
            if len(seen) > MAX_ENTRIES:
                raise _Wrong(f"more than {MAX_ENTRIES:,} entries lie in it")
            if not entry.is_dir(follow_symlinks=False):
                yield f"{prefix}{entry.name}"
            elif entry.name != CACHE_NAME:
                yield from _names(entry.path, f"{prefix}{entry.name}/", seen)
            else:
                shutil.rmtree(entry.path, ignore_errors=True)
                if os.path.lexists(entry.path):
                    raise _Wrong(f"{prefix}{entry.name!r} cannot be deleted")
