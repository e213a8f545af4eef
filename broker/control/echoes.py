"""The last words of publishers that have closed, said again.

A subscriber whose queue was full when a publisher closed has lost its closing beacon with the events
before it, and the publisher is not there to repeat it. The broker does, a few times, within the
time for which subscribers remember a closed publisher. Decides when; bounded in frames and bytes.
"""

from __future__ import annotations

from collections import deque
from typing import Final

ECHO_SECONDS: Final = (2.0, 8.0, 30.0)
"""When a closing beacon is said again, counted from when it came. Subscribers forget a closed publisher
after two minutes or more; what came later would look like a publisher that they never heard."""

ECHO_FRAMES: Final = 4_096
ECHO_BYTES: Final = 8_388_608


class Echoes:
    """Frames to be injected again. ``dropped`` counts repetitions that found no room."""

    def __init__(self, frames: int = ECHO_FRAMES, capacity: int = ECHO_BYTES) -> None:
        self.held = 0
        self.dropped = 0
        self._frames = frames
        self._capacity = capacity
        self._rounds: tuple[deque[tuple[float, bytes]], ...] = tuple(deque() for _ in ECHO_SECONDS)

    def __len__(self) -> int:
        return sum(map(len, self._rounds))

    def add(self, frame: bytes, now: float) -> None:
        """Repeat ``frame`` from ``now`` on; the time is seconds of one monotonic clock."""
        for pause, waiting in zip(ECHO_SECONDS, self._rounds, strict=True):
            if len(self) >= self._frames or self.held + len(frame) > self._capacity:
                self.dropped += 1
            else:
                waiting.append((now + pause, frame))
                self.held += len(frame)

    def due(self, now: float) -> list[bytes]:
        """The frames that are to be said again at ``now``, each once for every round that is over."""
        found = []
        for waiting in self._rounds:
            while waiting and waiting[0][0] <= now:
                frame = waiting.popleft()[1]
                self.held -= len(frame)
                found.append(frame)
        return found
