"""The order of events: those of one session one after another, those of several side by side.

Decides whose turn it is, how many are under way, and how many may wait; of sessions that wait, each has its
turn. What finds no room is not taken, and counted. Refuses to know what an event is. Nobody waits here:
whoever is through with one takes the next one along.
"""

from __future__ import annotations

import threading
from collections import deque
from enum import Enum, auto
from typing import Final, Generic, TypeVar

T = TypeVar("T")

AT_ONCE: Final = 48
"""Lanes in which something is under way; fewer than a host takes calls of one hook."""

PER_LANE: Final = 1_024
"""Events of one session that may wait."""

WAITING: Final = 4_096
"""Events that may wait in all."""

WAITING_BYTES: Final = 134_217_728
"""Bytes of their payloads (128 MiB)."""


class Place(Enum):
    """What becomes of one that comes."""

    START = auto()
    WAIT = auto()
    NO_ROOM = auto()


class Lanes(Generic[T]):
    """Lanes by key. Thread-safe.

    ``dropped`` counts what found no room; ``running`` is under way, and ``resting`` waits for something else.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.dropped = 0
        self.running = 0
        self.resting = 0
        self._at_once = at_once
        self._lock = threading.Lock()
        self._lanes: dict[str, deque[tuple[T, int]]] = {}  # of those that run or wait for their turn
        self._ready: deque[str] = deque()  # those that wait for their turn
        self._waiting = 0
        self._bytes = 0

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._waiting

    def enter(self, key: str, item: T, size: int) -> Place:
        """Have ``item`` of so many bytes handled in its turn; START: by the caller, now."""
        with self._lock:
            lane = self._lanes.get(key)
            if lane is None and self.running < self._at_once:
                self._lanes[key] = deque()
                self.running += 1
                return Place.START
            full = self._waiting >= WAITING or (lane is not None and len(lane) >= PER_LANE)
            if full or (self._bytes and self._bytes + size > WAITING_BYTES):
                self.dropped += 1
                return Place.NO_ROOM
            if lane is None:
                lane = self._lanes[key] = deque()
                self._ready.append(key)
            lane.append((item, size))
            self._waiting += 1
            self._bytes += size
            return Place.WAIT

    def leave(self, key: str) -> T | None:
        """What was under way in a lane is over: what the caller is to handle next, of whatever lane."""
        with self._lock:
            if self._lanes[key]:
                self._ready.append(key)
            else:
                del self._lanes[key]
            if not self._ready:
                self.running -= 1
                return None
            return self._next()

    def rest(self) -> T | None:
        """What is under way in a lane waits for something else, and takes no place until then.

        Its lane stays as it is. Returns what the caller is to handle next, of whatever lane.
        """
        with self._lock:
            self.resting += 1
            if not self._ready:
                self.running -= 1
                return None
            return self._next()

    def go_on(self, key: str, item: T) -> Place:
        """What has rested in a lane is to go on: by the caller, now (START), or in its turn (WAIT)."""
        with self._lock:
            self.resting -= 1
            if self.running < self._at_once:
                self.running += 1
                return Place.START
            self._lanes[key].appendleft((item, 0))
            self._ready.append(key)
            self._waiting += 1
            return Place.WAIT

    def _next(self) -> T:
        item, size = self._lanes[self._ready.popleft()].popleft()
        self._waiting -= 1
        self._bytes -= size
        return item
