"""What somebody has accepted of a role: its hash, kept in the user's state directory.

Decides when a record counts: it is the user's own, and nobody else may write it. Refuses to know how a hash
is made, and what follows from one that differs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from .attach_files import state_directory
from .discover import read, signature
from .hook_source import Absent, Unreadable
from .hook_store_files import GuardedFile, StoreBusy
from .trust_store import is_ours_alone

FOLDER: Final = "roles"
VERSION: Final = 1
RECORD_BYTES: Final = 8_388_608
RECORDS: Final = 1_000
"""Records that are kept at most."""


class RecordUnusable(Exception):
    """A record cannot be read or written, or does not count; the text says which and why."""


@dataclass(frozen=True, slots=True)
class RoleRecord:
    """What was accepted. ``directory`` is real and absolute, ``accepted_at`` RFC 3339 in UTC."""

    directory: str
    accepted_at: str
    hash: str
    files: Mapping[str, str]


class RoleRecords:
    """The records of a user. ``folder`` None: the one in the user's state directory."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = os.path.abspath(folder or os.path.join(state_directory(), FOLDER))

    def path_of(self, directory: str) -> str:
        """The file of a role's record, whether it exists or not; links to a directory share it."""
        real = os.fsencode(os.path.realpath(directory))
        return os.path.join(self.folder, f"{hashlib.sha256(real).hexdigest()[:32]}.json")

    def read(self, directory: str) -> RoleRecord | None:
        """What was accepted there; None: nothing. Raises :class:`RecordUnusable`."""
        path = self.path_of(directory)
        reading = read(path, RECORD_BYTES)
        if isinstance(reading, Absent):
            return None
        if isinstance(reading, Unreadable):
            raise RecordUnusable(f"{path}: {reading.message}")
        try:
            is_usable = all(is_ours_alone(place) for place in (path, self.folder))
        except OSError as error:
            raise RecordUnusable(f"{path}: {error.strerror}") from None
        if not is_usable:
            raise RecordUnusable(f"{path} does not count: others can change it, or it is a link")
        record = _decoded(reading.text)
        if record is None or record.directory != _text(os.path.realpath(directory)):
            raise RecordUnusable(f"{path} is no record of this role; remove it, and accept the role again")
        return record

    def write(self, directory: str, accepted_at: str, hash: str, files: Mapping[str, str]) -> None:
        """Keep a record instead of what there was. Raises :class:`RecordUnusable`."""
        path = self.path_of(directory)
        document = {
            "version": VERSION,
            "directory": _text(os.path.realpath(directory)),
            "accepted_at": accepted_at,
            "hash": hash,
            "files": dict(files),
        }
        text = json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"
        if len(text) > RECORD_BYTES:
            raise RecordUnusable(f"the record would have {len(text):,} bytes; it may have {RECORD_BYTES:,}")
        with self._changing():
            if not os.path.lexists(path) and self._count() >= RECORDS:
                raise RecordUnusable(f"{RECORDS:,} roles are recorded in {self.folder}: remove some")
            if os.path.lexists(path) and not is_ours_alone(path):
                os.unlink(path)  # else the new one would get its mode, or lie where a link leads
            if not GuardedFile(path).replace(text, signature(path)):
                raise RecordUnusable(f"{path} was written by somebody else meanwhile; try again")

    def _count(self) -> int:
        return sum(name.endswith(".json") for name in os.listdir(self.folder))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            with GuardedFile(os.path.join(self.folder, FOLDER)).locked():
                yield
        except StoreBusy as error:
            raise RecordUnusable(str(error)) from None
        except OSError as error:
            raise RecordUnusable(f"{error.filename or self.folder}: {error.strerror}") from None


def _decoded(text: bytes) -> RoleRecord | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        return None
    return _record(document)


def _record(document: Mapping[str, Any]) -> RoleRecord | None:
    directory, at, found, files = (document.get(n) for n in ("directory", "accepted_at", "hash", "files"))
    if not (isinstance(directory, str) and isinstance(at, str) and isinstance(found, str)):
        return None
    if not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
        return None
    return RoleRecord(directory, at, found, files)


def _text(path: str) -> str:
    """A path as JSON can hold it."""
    return path.encode("utf-8", "backslashreplace").decode()
