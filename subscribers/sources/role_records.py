"""What somebody has accepted of a role: its hash, kept in the user's state directory.

Decides what a record holds. Refuses to know how a hash is made, what follows from one that differs, and when
a file of a record counts (:mod:`.record_files`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .record_files import RecordFiles, RecordUnusable

KIND: Final = "roles"
VERSION: Final = 1
RECORD_BYTES: Final = 8_388_608


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
        self._files = RecordFiles(KIND, folder, "roles are recorded: remove some of their files")
        self.folder = self._files.folder

    def path_of(self, directory: str) -> str:
        """The file of a role's record, whether it exists or not; links to a directory share it."""
        return self._files.path_of(directory)

    def read(self, directory: str) -> RoleRecord | None:
        """What was accepted there; None: nothing. Raises :class:`RecordUnusable`."""
        path = self.path_of(directory)
        text = self._files.read(path, RECORD_BYTES)
        if text is None:
            return None
        record = _decoded(text)
        if record is None or record.directory != _text(os.path.realpath(directory)):
            raise RecordUnusable(f"{path} is no record of this role; remove it, and accept the role again")
        return record

    def write(self, directory: str, accepted_at: str, hash: str, files: Mapping[str, str]) -> None:
        """Keep a record instead of what there was. Raises :class:`RecordUnusable`."""
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
        self._files.write(self.path_of(directory), text)


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
