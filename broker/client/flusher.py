"""The thread that sends what is left when a burst ends.

It sleeps until a burst begins, then looks once a millisecond whether it is over. It decides nothing about
what is gathered, and it is never in the way of what comes after a pause.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import Final, Protocol

LOOK_SECONDS: Final = 0.001
"""Pause between two looks. Each costs the publisher's thread the interpreter for a moment."""

QUIET_LOOKS: Final = 10
"""So many looks that found nothing, and the thread sleeps until the next burst."""


class Gatherer(Protocol):
    """Whose bursts they are."""

    def look(self) -> float | None:
        """Send what is left if the burst is over; seconds to the next look, None when the owner is closed.

        It waits for nothing and nobody longer than a moment.
        """


class Flusher:
    """One such thread, from the first burst of ``owner`` to :meth:`close`.

    :meth:`rest` and :meth:`wake` are for whoever holds the lock that ``look`` takes.
    """

    def __init__(self, owner: Gatherer) -> None:
        self._owner = weakref.ref(owner)
        self._awake = threading.Event()
        self._awake.set()
        self._quiet = 0
        self._thread = threading.Thread(target=self._run, name="prxbus-flush", daemon=True)
        self._thread.start()

    def rest(self) -> None:
        """Nothing was found; after enough of that the thread sleeps."""
        self._quiet += 1
        if self._quiet > QUIET_LOOKS:
            self._awake.clear()

    def wake(self) -> None:
        """A burst has begun."""
        self._quiet = 0
        if not self._awake.is_set():
            self._awake.set()

    def close(self, timeout: float = 2.0) -> None:
        """End the thread: its owner's looks answer None from now on."""
        self._awake.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        pause: float | None = LOOK_SECONDS
        while pause is not None:
            self._awake.wait()
            time.sleep(pause)
            owner = self._owner()
            pause = None if owner is None else owner.look()
            del owner
