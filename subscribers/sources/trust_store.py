"""Where it is kept what was trusted: one file for each workspace, in the user's state directory.

Decides when a record counts: the file is the user's own, nobody else may write it, and it lies outside of the
workspace that it speaks for. Refuses to know what is in a workspace.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..hooks.trust_record import RECORD_BYTES, NotARecord, Record, decode, encode
from .attach_files import state_directory
from .codex_layers import is_within
from .discover import read, signature
from .hook_source import Absent, Unreadable
from .hook_store_files import GuardedFile, StoreBusy

FOLDER: Final = "trust"
WORKSPACES: Final = 1_000
"""Records that are kept at most."""

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class TrustUnusable(Exception):
    """A record cannot be read or written, or does not count; the text says which and why."""


class TrustStore:
    """The records of a user. ``folder`` None: the one in the user's state directory."""

    def __init__(self, folder: str | None = None) -> None:
        self.folder = os.path.abspath(folder or os.path.join(state_directory(), FOLDER))

    def path_of(self, workspace: str) -> str:
        """The file of a workspace's record, whether it exists or not; links to a workspace share it."""
        real = os.fsencode(os.path.realpath(workspace))
        return os.path.join(self.folder, f"{hashlib.sha256(real).hexdigest()[:32]}.json")

    def read(self, workspace: str) -> Record | None:
        """What was trusted there; None: nothing. Raises :class:`TrustUnusable`."""
        path = self.path_of(workspace)
        record = self._read(path)
        if record is None:
            return None
        if record.workspace != os.path.realpath(workspace):
            raise TrustUnusable(f"{path} is the record of another folder: {record.workspace}")
        self._refuse_inside(record.workspace)
        return record

    def write(self, record: Record) -> None:
        """Keep a record instead of what there was. Raises :class:`TrustUnusable`."""
        self._refuse_inside(record.workspace)
        path = self.path_of(record.workspace)
        try:
            text = encode(record)
        except NotARecord as error:
            raise TrustUnusable(f"nothing was recorded: {error}") from None
        with self._changing():
            if not os.path.lexists(path) and len(self._names()) >= WORKSPACES:
                raise TrustUnusable(
                    f"{WORKSPACES:,} workspaces are recorded: see 'prxbus trust --list', and remove some"
                )
            if os.path.lexists(path) and not is_ours_alone(path):
                os.unlink(path)  # else the new one would get its mode, or lie where a link leads
            if not GuardedFile(path).replace(text, signature(path)):
                raise TrustUnusable(f"{path} was written by somebody else meanwhile; try again")

    def remove(self, workspace: str) -> bool:
        """Forget a workspace; whether there was something. Raises :class:`TrustUnusable`."""
        path = self.path_of(workspace)
        if not os.path.lexists(path):
            return False
        with self._changing():
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
        return True

    def records(self) -> Iterator[Record | TrustUnusable]:
        """Every record, and what is wrong with those that cannot be used."""
        for name in self._names()[:WORKSPACES]:
            try:
                record = self._read(os.path.join(self.folder, name))
            except TrustUnusable as error:
                yield error
            else:
                if record is not None:
                    yield record

    def _names(self) -> list[str]:
        try:
            return sorted(n for n in os.listdir(self.folder) if n.endswith(".json") and n[0] != ".")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TrustUnusable(f"{self.folder} cannot be listed: {error.strerror}") from None

    def _read(self, path: str) -> Record | None:
        reading = read(path, RECORD_BYTES)
        if isinstance(reading, Absent):
            return None
        if isinstance(reading, Unreadable):
            raise TrustUnusable(f"{path}: {reading.message}")
        for place in (path, self.folder):
            if not is_ours_alone(place):
                raise TrustUnusable(f"{place} does not count: others can change it, or it is a link")
        try:
            return decode(reading.text)
        except NotARecord as error:
            raise TrustUnusable(f"{path} cannot be used: {error}; run 'prxbus trust' anew") from None

    def _refuse_inside(self, workspace: str) -> None:
        if is_within(self.folder, workspace):
            raise TrustUnusable(
                f"the records lie in {self.folder}, inside of {workspace}: what it holds could change them; "
                "name it with 'prxbus up --workspace' instead"
            )

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            os.makedirs(self.folder, 0o700, exist_ok=True)
            with GuardedFile(os.path.join(self.folder, FOLDER)).locked():
                yield
        except StoreBusy as error:
            raise TrustUnusable(str(error)) from None
        except OSError as error:
            raise TrustUnusable(f"{error.filename or self.folder}: {error.strerror}") from None


def is_ours_alone(path: str) -> bool:
    """Whether nobody but this user and root can have written what is there. Raises OSError."""
    found = os.lstat(path)
    is_ours = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE
    return is_ours and not stat.S_ISLNK(found.st_mode)
