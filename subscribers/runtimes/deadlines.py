"""One thread that does things when somebody's time is over.

Decides when: at the deadline, and once more when nothing has come of it. Arming and disarming are cheap, and
a deadline that was met costs nothing. Refuses to know what is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from broker.logs import get_logger
from broker.protocol.errors import shown

ERROR_CHARACTERS: Final = 300
"""Longest text of an unexpected error in the log."""

log = get_logger("subscribers.deadlines")

STUCK_S: Final = 2.0
"""Seconds after the deadline at which whoever still runs counts as stuck."""

_DUE, _STUCK = 0, 1


class Deadline:
    """Somebody's time. ``passed`` is true once it was over before it was disarmed."""

    __slots__ = ("at", "on_due", "on_stuck", "passed", "stage")

    def __init__(self, at: float, on_due: Callable[[], None], on_stuck: Callable[[], None] | None) -> None:
        self.at = at
        self.on_due = on_due
        self.on_stuck = on_stuck
        self.passed = False
        self.stage = _DUE


class Deadlines:
    """Watches any number of deadlines. Thread-safe.

    ``on_due`` is called under a lock: it has to be quick, may not come back here, and is never called after
    :meth:`disarm` has returned. ``on_stuck`` is called without it, :data:`STUCK_S` later.
    """

    def __init__(self, *, stuck_s: float = STUCK_S) -> None:
        self._stuck_s = stuck_s
        self._changed = threading.Condition()
        self._armed: set[Deadline] = set()
        self._wakes_at = 0.0  # when the thread looks again by itself; 0.0: it is looking now
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
        self._thread.start()

    def arm(
        self, seconds: float, on_due: Callable[[], None], on_stuck: Callable[[], None] | None = None
    ) -> Deadline:
        """Begin to watch somebody's ``seconds``."""
        deadline = Deadline(time.monotonic() + seconds, on_due, on_stuck)
        with self._changed:
            self._armed.add(deadline)
            if deadline.at < self._wakes_at:
                self._changed.notify()
        return deadline

    def disarm(self, deadline: Deadline) -> None:
        """Watch it no longer."""
        with self._changed:
            self._armed.discard(deadline)

    def hurry(self, deadline: Deadline) -> None:
        """Have its time be over now."""
        with self._changed:
            if deadline in self._armed and deadline.stage == _DUE:
                deadline.at = 0.0
                self._changed.notify()

    def close(self) -> None:
        """End the thread; what is armed is watched no longer."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._wakes_at = 0.0
                stuck = [found for found in tuple(self._armed) if self._look(found, time.monotonic())]
                if not stuck and not self._closed:
                    self._wakes_at = min((found.at for found in self._armed), default=float("inf"))
                    pause = self._wakes_at - time.monotonic()
                    self._changed.wait(None if pause == float("inf") else max(0.0, pause))
                closed = self._closed
            for deadline in stuck:
                if deadline.on_stuck is not None:
                    _try(deadline.on_stuck)
            if closed:
                return

    def _look(self, deadline: Deadline, now: float) -> bool:
        """Do what is due; whether it is stuck."""
        if deadline.at > now:
            return False
        if deadline.stage == _DUE:
            deadline.passed = True
            deadline.stage, deadline.at = _STUCK, now + self._stuck_s
            _try(deadline.on_due)
            return False
        self._armed.discard(deadline)
        return True


def _try(call: Callable[[], None]) -> None:
    """Do it; a failure is logged, for everybody else's deadlines are watched by the same thread."""
    try:
        call()
    except Exception as error:
        log.error("what follows a deadline failed", error=shown(error, ERROR_CHARACTERS))
