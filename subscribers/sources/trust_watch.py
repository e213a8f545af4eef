"""Says when a workspace that runs on recorded trust is no longer what was recorded.

All files are looked at from outside ten times a second, less often where there are many; what looks otherwise
is read again. A file that is away for a moment is waited for: editors put it back. Decides when the trust is
over; what follows is the caller's. There is no way back: who trusts the workspace anew starts anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from ..dialects.prx_rules import FILE_NAME
from ..hooks.trust_record import Changes, Record, compare, while_running
from .discover import signature
from .record_files import RecordUnusable
from .trust_files import Listing, look
from .trust_store import TrustStore
from .watch import GONE_S, WatchThread

LOOK_S: Final = 0.1
"""Seconds between looks."""

SHARE: Final = 20
"""A look that takes long is followed by a pause of so many times its length."""

WITHDRAWN: Final = "the record was removed"


class TrustWatch(WatchThread):
    """Watches the files of ``listing``, which were as ``record`` says, in a thread of its own.

    ``on_lost`` is called once, in that thread, with a line for each reason. A change between the listing and
    :meth:`start` is noticed too.
    """

    def __init__(
        self,
        record: Record,
        listing: Listing,
        environ: Mapping[str, str],
        store: TrustStore,
        on_lost: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._record = record
        self._environ = environ
        self._store = store
        self._on_lost = on_lost
        self._roles = listing.roles()
        self._path = store.path_of(record.workspace)
        self._looks = {**listing.looks, self._path: signature(self._path)}
        super().__init__("trust")

    def _watch(self) -> None:
        pause = LOOK_S
        while not self._stop.wait(pause):
            began = time.monotonic()
            if any(signature(path) != seen for path, seen in self._looks.items()):
                reasons = self._reasons()
                if reasons:
                    self._on_lost(reasons)
                    return
            pause = max(LOOK_S, SHARE * (time.monotonic() - began))

    def _reasons(self) -> tuple[str, ...]:
        """Why the trust is over; empty where it is not, and then this is what is watched from now on."""
        recorded = signature(self._path)
        try:
            if self._store.read(self._record.workspace) is None:
                return (WITHDRAWN,)
        except RecordUnusable as error:
            return (str(error),)
        changes, listing = self._changes()
        if changes.removed and not (changes.changed or changes.added or listing.faults):
            if self._stop.wait(GONE_S):
                return ()
            changes, listing = self._changes()
        self._looks = {**listing.looks, self._path: recorded}
        return (*changes.told(), *(f"{path}: {message}" for path, message in listing.faults))

    def _changes(self) -> tuple[Changes, Listing]:
        listing = look(self._record.workspace, self._environ)
        changes = compare(self._record.files, listing.digests())
        return while_running(changes, {**self._roles, **listing.roles()}, FILE_NAME), listing
