"""Keeping the beginning and the end of a stream of any length in memory of a fixed size.

Decides which bytes of an output survive a cap. Refuses to know where they come from.
"""

from __future__ import annotations

from ..hooks.outcome import NOTHING, Captured


class Capture:
    """Takes a stream chunk by chunk and keeps at most ``limit`` bytes of it.

    All of it while it fits; otherwise the first ``limit - limit // 2`` and the last ``limit // 2`` bytes.
    """

    __slots__ = ("_head", "_limit", "_tail", "_tail_limit", "_total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail: bytearray | None = None  # None while everything still fits into the head
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self._total += len(chunk)
        if self._tail is None:
            self._head += chunk
            if self._total <= self._limit:
                return
            keep = self._limit - self._tail_limit
            self._tail = self._head[keep:]
            del self._head[keep:]
        else:
            self._tail += chunk
        if len(self._tail) > 2 * self._tail_limit:  # not at every byte over: moving the tail costs a copy
            del self._tail[: len(self._tail) - self._tail_limit]

    def captured(self) -> Captured:
        """What has been kept so far."""
        if not self._total:
            return NOTHING
        tail = self._tail or b""
        return Captured(bytes(self._head), bytes(tail[max(0, len(tail) - self._tail_limit) :]), self._total)
