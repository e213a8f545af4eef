"""When a process that ended is started again.

At once the first time, then after pauses that double up to five seconds; a process that has worked
for half a minute starts with a clean slate. Pure: times are seconds of one monotonic clock.
"""

from __future__ import annotations

from typing import Final

FIRST_PAUSE: Final = 0.1
LAST_PAUSE: Final = 5.0
HEALTHY_SECONDS: Final = 30.0


class Restarts:
    """The pauses of one process. ``count`` is how often it was started again."""

    def __init__(self) -> None:
        self.count = 0
        self._pause = 0.0
        self._started = 0.0

    def started(self, now: float) -> None:
        """The process was started."""
        self._started = now

    def ended(self, now: float) -> float:
        """The process has ended by itself; returns when it is to be started again."""
        self.count += 1
        if now - self._started >= HEALTHY_SECONDS:
            self._pause = 0.0
        due = now + self._pause
        self._pause = min(max(self._pause * 2, FIRST_PAUSE), LAST_PAUSE)
        return due
