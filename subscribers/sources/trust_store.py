"""Where it is kept what was trusted: one record for each workspace, in the user's state directory.

Decides that a record lies outside of the workspace that it speaks for. Refuses to know what is in a
workspace, and when a file of a record counts (:mod:`.record_files`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from ..hooks.trust_record import RECORD_BYTES, NotARecord, Record, decode, encode
from .codex_layers import is_within
from .record_files import RecordFiles, RecordUnusable

KIND: Final = "trust"


class TrustStore:
    """The records of a user. ``folder`` None: the one in the user's state directory."""

    def __init__(self, folder: str | None = None) -> None:
        full = "workspaces are recorded: see 'prxbus trust --list', and remove some"
        self._files = RecordFiles(KIND, folder, full)
        self.folder = self._files.folder

    def path_of(self, workspace: str) -> str:
        """The file of a workspace's record, whether it exists or not; links to a workspace share it."""
        return self._files.path_of(workspace)

    def read(self, workspace: str) -> Record | None:
        """What was trusted there; None: nothing. Raises :class:`RecordUnusable`."""
        path = self.path_of(workspace)
        record = self._read(path)
        if record is None:
            return None
        if record.workspace != os.path.realpath(workspace):
            raise RecordUnusable(f"{path} is the record of another folder: {record.workspace}")
        self._refuse_inside(record.workspace)
        return record

    def write(self, record: Record) -> None:
        """Keep a record instead of what there was. Raises :class:`RecordUnusable`."""
        self._refuse_inside(record.workspace)
        try:
            text = encode(record)
        except NotARecord as error:
            raise RecordUnusable(f"nothing was recorded: {error}") from None
        self._files.write(self.path_of(record.workspace), text)

    def remove(self, workspace: str) -> bool:
        """Forget a workspace; whether there was something. Raises :class:`RecordUnusable`."""
        return self._files.remove(self.path_of(workspace))

    def records(self) -> Iterator[Record | RecordUnusable]:
        """Every record, and what is wrong with those that cannot be used."""
        for path in self._files.paths():
            try:
                record = self._read(path)
            except RecordUnusable as error:
                yield error
            else:
                if record is not None:
                    yield record

    def _read(self, path: str) -> Record | None:
        text = self._files.read(path, RECORD_BYTES)
        try:
            return None if text is None else decode(text)
        except NotARecord as error:
            raise RecordUnusable(f"{path} cannot be used: {error}; run 'prxbus trust' anew") from None

    def _refuse_inside(self, workspace: str) -> None:
        if is_within(self.folder, workspace):
            raise RecordUnusable(
                f"the records lie in {self.folder}, inside of {workspace}: what it holds could change them; "
                "name it with 'prxbus up --workspace' instead"
            )
