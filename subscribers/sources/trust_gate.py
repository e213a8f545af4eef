"""Asked before code of a trusted workspace is loaded or run: whether it still is what was recorded.

A process that runs on recorded trust asks it of whatever it reads anew, so that nothing that was changed runs
in the moment before ``prxbus up`` notices and ends that process. Decides that only for files that are read
now. A PRX ``hooks.json`` is not asked about, and what it came to name is free as long as nobody recorded it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from ..hooks.trust_record import Record, compare
from .discover import Signature, signature
from .handlers import FOLDER
from .record_files import RecordUnusable
from .trust_files import CONFIG_FILE, look_at, look_at_loaded, named_files
from .trust_store import TrustStore

CHANGED: Final = "changed since prxbus trust"
WITHDRAWN: Final = "the workspace is no longer trusted"


class TrustGate:
    """The record of one workspace. Every question reads the files anew; thread-safe."""

    def __init__(self, workspace: str, store: TrustStore | None = None) -> None:
        self.workspace = os.path.realpath(workspace)
        self._store = TrustStore() if store is None else store
        self._path = self._store.path_of(workspace)
        self._known: tuple[Signature, Record] | None = None

    def of_loaded(self) -> str | None:
        """Why neither handlers in Python nor settings may be loaded; None where they may."""
        record = self._record()
        if isinstance(record, str):
            return record
        listing = look_at_loaded(self.workspace)
        places = (os.path.join(FOLDER, ""), CONFIG_FILE)
        recorded = {path: digest for path, digest in record.files.items() if path.startswith(places)}
        told = (*compare(recorded, listing.digests()).told(), *(path for path, _ in listing.faults))
        return f"{CHANGED}: {', '.join(told[:8])}" if told else None

    def of_content(self, path: str, digest: str) -> str | None:
        """Why the file at an absolute path may not be used whose SHA-256 this is; None where it may."""
        record = self._record()
        if isinstance(record, str):
            return record
        name = os.path.relpath(path, self.workspace)
        return None if record.files.get(name) == digest else f"{CHANGED}: {name}"

    def of_command(
        self, command: str | None, args: Sequence[str], cwd: str | None, file: str | None = None
    ) -> str | None:
        """Why a command may not run now; None where it may.

        Of the files of the workspace that it names those count that were recorded. ``file``, where it is
        given, is the hook file that it stands in, which must have been.
        """
        record = self._record()
        if isinstance(record, str):
            return record
        named = list(named_files(self.workspace, command, args, cwd))
        listing = look_at(self.workspace, [*named, *(() if file is None else (file,))])
        found = listing.digests()
        wrong = {name for name, digest in found.items() if record.files.get(name, digest) != digest}
        wrong |= {path for path, _ in listing.faults}
        if file is not None:
            name = os.path.relpath(file, self.workspace)
            if name not in record.files or name not in found:
                wrong.add(name)
        return f"{CHANGED}: {', '.join(sorted(wrong)[:8])}" if wrong else None

    def _record(self) -> Record | str:
        """The record of now, or why there is none that counts."""
        looked = signature(self._path)
        known = self._known
        if known is not None and known[0] == looked:
            return known[1]
        try:
            record = self._store.read(self.workspace)
        except RecordUnusable as error:
            return str(error)
        if record is None:
            return WITHDRAWN
        self._known = (looked, record)
        return record
