"""The last value of each topic that was published with ``retain``.

Bounded by topics and by bytes; the least recently set goes first and is counted. Decides what
is kept and how it is read page by page; does not look into a frame.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol.limits import RETAINED_BYTES, RETAINED_TOPICS
from .bounds import VALUES_BYTES
from .matching import Interests


class RetainedValues:
    """Frames by topic. ``held`` is in bytes; ``evicted`` counts what went for want of room."""

    def __init__(self, topics: int = RETAINED_TOPICS, capacity: int = RETAINED_BYTES) -> None:
        self.held = 0
        self.evicted = 0
        self._topics = topics
        self._capacity = capacity
        self._number = 0
        self._values: dict[str, tuple[int, bytes]] = {}  # oldest set first

    def __len__(self) -> int:
        return len(self._values)

    def set(self, topic: str, frame: bytes) -> None:
        """``frame`` is the last value of ``topic`` from now on."""
        before = self._values.pop(topic, None)
        if before is not None:
            self.held -= len(before[1])
        self._number += 1
        self._values[topic] = self._number, frame
        self.held += len(frame)
        while self.held > self._capacity or len(self._values) > self._topics:
            oldest = next(iter(self._values))
            self.held -= len(self._values.pop(oldest)[1])
            self.evicted += 1

    def page(self, patterns: Iterable[str], after: int) -> tuple[list[bytes], int | None]:
        """Frames of topics that match ``patterns``, set later than number ``after``, oldest first.

        With them the number after which to ask again, or None when that was all. A value that is
        set while somebody pages comes (again) on a later page, so none is missed.
        """
        wanted = Interests()
        wanted.put(b"", patterns)
        frames: list[bytes] = []
        size = 0
        last = after
        for topic, (number, frame) in self._values.items():
            if number <= after or not wanted.of(topic):
                continue
            if size >= VALUES_BYTES:
                return frames, last
            frames.append(frame)
            size += len(frame)
            last = number
        return frames, None
