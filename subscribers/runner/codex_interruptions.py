"""Ends what runs in the background of a session when the session is over.

Each session with such runs has a descriptor that becomes readable then, which runs attend to. Decides when it
is made and closed. Refuses to know what runs.
"""

from __future__ import annotations

import os
import threading


class Interruption:
    """One session's descriptor, shared by its runs. ``is_over``: the session has ended."""

    __slots__ = ("descriptor", "is_over", "users")

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.is_over = False
        self.users = 0


class Interruptions:
    """The sessions that something runs for in the background. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, Interruption] = {}

    def hold(self, session: str) -> Interruption:
        """Begin to run something for a session; to be given back with :meth:`release`. Raises OSError."""
        with self._lock:
            found = self._sessions.get(session)
            if found is None:
                found = self._sessions[session] = Interruption()
            found.users += 1
            return found

    def release(self, session: str, held: Interruption) -> None:
        """What ran is over."""
        with self._lock:
            held.users -= 1
            if not held.users:
                if self._sessions.get(session) is held:
                    del self._sessions[session]
                os.close(held.descriptor)

    def end(self, session: str) -> None:
        """The session is over: what runs for it ends, and what has not begun does not begin."""
        with self._lock:
            found = self._sessions.pop(session, None)
            if found is not None:
                found.is_over = True
                os.eventfd_write(found.descriptor, 1)
