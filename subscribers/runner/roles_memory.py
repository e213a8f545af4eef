"""What roles remember of sessions, in memory and in the file behind it.

Decides that every change is stored when it is said to be, and that threads do not get in each other's way.
What is remembered, and for how long, is the pure stores' own affair.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from ..hooks.role_pending import Pending
from ..hooks.role_sessions import SessionRecord, Sessions
from .roles_store import RolesStore


class Memory:
    """Texts that wait and sessions that are known. ``store`` None: for this process only. Thread-safe."""

    def __init__(self, store: RolesStore | None) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._pending = Pending(() if store is None else store.pending())
        self._sessions = Sessions(() if store is None else store.sessions())

    def session(self, session: str | None) -> SessionRecord:
        """What is known of a session."""
        with self._lock:
            return self._sessions.get(session)

    def remember(self, session: str, record: SessionRecord) -> None:
        """Know this of a session."""
        with self._lock:
            self._sessions.put(session, record)

    def add(self, session: str, text: str) -> bool:
        """Have a text wait; whether there is room."""
        with self._lock:
            return self._pending.add(session, text, time.time())

    def look(self, session: str) -> str | None:
        """What waits for a session's next prompt."""
        with self._lock:
            return self._pending.look(session, time.time())

    def delivered(self, session: str, text: str) -> None:
        """It is in a prompt."""
        with self._lock:
            self._pending.delivered(session, text)

    def forget(self, session: str, *, for_good: bool) -> None:
        """The session begins anew, or is over; its role and agent stay unless it is over."""
        with self._lock:
            self._pending.forget(session)
            if for_good:
                self._sessions.forget(session)
            else:
                record = self._sessions.get(session)
                self._sessions.put(session, SessionRecord(record.role, record.agent))

    def store(self) -> None:
        """Have everything stored that has changed, before this returns."""
        with self._lock:
            if not self._pending.has_changed and not self._sessions.has_changed:
                return
            pending, sessions = self._pending.changes(), self._sessions.changes()
            if self._store is not None:
                self._store.write(pending, sessions)

    def counters(self) -> dict[str, Any]:
        """Of texts and sessions."""
        with self._lock:
            return {
                "pending": len(self._pending),
                "pending_dropped": self._pending.dropped,
                "pending_expired": self._pending.expired,
                "sessions": len(self._sessions),
            }

    def close(self) -> None:
        """Store the rest, and let go of the file."""
        self.store()
        if self._store is not None:
            self._store.close()
