"""The calls under way in a process, where another process can see them: also when the first is past speaking.

A call that holds the interpreter's lock, such as a regular expression without end, keeps every thread of its
process from telling that its time is over. What it wrote here before, in memory that both share, tells it.

Decides the layout. Refuses to know what is done about a call.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import deque
from typing import Final, NamedTuple

SLOTS: Final = 128
"""Calls that have a place; one beyond them is not seen from outside."""

TEXT_BYTES: Final = 502

_HEAD: Final = struct.Struct("<QH")
_SLOT: Final = _HEAD.size + TEXT_BYTES
SIZE: Final = SLOTS * _SLOT


class Underway(NamedTuple):
    """A call: ``deadline_ns`` as of ``time.monotonic_ns()``, which all processes share, and who and what."""

    deadline_ns: int
    handler: str
    event_id: str


def create() -> int:
    """A descriptor of fresh memory for a board, to be handed to a child."""
    descriptor = os.memfd_create("prxbus-calls", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, SIZE)
    return descriptor


class Board:
    """The calls of one process. Thread-safe for the process that writes; the other one reads."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, SIZE)
        self._free = deque(range(SLOTS))

    def put(self, deadline_ns: int, handler: bytes, event_id: bytes) -> int:
        """Note a call; its place, or -1 when there is none left."""
        try:
            slot = self._free.popleft()
        except IndexError:
            return -1
        text = b"%b\0%b" % (handler, event_id)
        text = text[:TEXT_BYTES]
        start = slot * _SLOT
        self._memory[start + _HEAD.size : start + _HEAD.size + len(text)] = text
        _HEAD.pack_into(self._memory, start, deadline_ns, len(text))
        return slot

    def take(self, slot: int) -> None:
        """The call in ``slot`` is over, or has been told as timed out."""
        if slot >= 0:
            _HEAD.pack_into(self._memory, slot * _SLOT, 0, 0)
            self._free.append(slot)

    def under_way(self) -> list[Underway]:
        """What is noted now."""
        found = []
        for start in range(0, SIZE, _SLOT):
            deadline_ns, size = _HEAD.unpack_from(self._memory, start)
            if deadline_ns:
                text = self._memory[start + _HEAD.size : start + _HEAD.size + min(size, TEXT_BYTES)]
                handler, _, event_id = text.decode("utf-8", "replace").partition("\0")
                found.append(Underway(deadline_ns, handler, event_id))
        return found

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
