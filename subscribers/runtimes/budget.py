"""Which run may start, which waits and which is dropped: bounded in total, per hook, and in what waits.

What waits is bounded in number and in bytes.

Decides nothing but that, from what it is told. Refuses to know threads, processes and clocks.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

TOTAL = 32
PER_HOOK = 8
QUEUE = 1_024
QUEUE_BYTES = 67_108_864
"""Bytes of data that waiting runs may hold (64 MiB); the data of one run may always wait."""


class Verdict(enum.Enum):
    """What becomes of a run that was offered."""

    START = enum.auto()
    WAIT = enum.auto()
    DROP = enum.auto()


class Budget(Generic[T]):
    """Slots for runs. ``total`` runs at once, ``per_hook`` of them of one hook, ``queue`` more may wait.

    ``queue_bytes``: what all that wait may hold of the data they were offered with; data that several runs
    share counts once, and the first may be larger.

    The runs of one hook start in the order in which they were offered. Between hooks, whose turn it is goes
    round: a hook that is slow, or often fired, makes its own runs wait and not those of others.
    """

    def __init__(
        self,
        *,
        total: int = TOTAL,
        per_hook: int = PER_HOOK,
        queue: int = QUEUE,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        if total < 1 or per_hook < 1 or queue < 0:
            raise ValueError(
                f"a budget needs total >= 1, per_hook >= 1, queue >= 0, not {total}, {per_hook}, {queue}"
            )
        self.total = total
        self.per_hook = per_hook
        self.queue = queue
        self.queue_bytes = queue_bytes
        self.running = 0
        self.waiting = 0
        self.waiting_bytes = 0
        self._running_of: dict[str, int] = {}
        self._waiting_of: dict[
            str, deque[tuple[T, bytes]]
        ] = {}  # in the order of turns; never an empty deque
        self._holders: dict[
            int, int
        ] = {}  # waiting runs of each data, by the id of what the queue keeps alive

    def offer(self, hook_id: str, run: T, data: bytes = b"") -> Verdict:
        """Decide about a new run: the caller starts it now, :meth:`finish` hands it out later, or nobody.

        ``data`` is what the run holds while it waits.
        """
        if self.running < self.total and self._has_slot(hook_id):
            self._take_slot(hook_id)
            return Verdict.START
        if self.waiting >= self.queue or not self._has_room(data):
            return Verdict.DROP
        self._waiting_of.setdefault(hook_id, deque()).append((run, data))
        self.waiting += 1
        self._hold(data)
        return Verdict.WAIT

    def finish(self, hook_id: str) -> tuple[str, T] | None:
        """Give a slot back. Returns the hook and the run that the caller has to start now, if any may."""
        self.running -= 1
        left = self._running_of[hook_id] - 1
        if left:
            self._running_of[hook_id] = left
        else:
            del self._running_of[hook_id]
        # One slot more means at most one run more: before, nothing that waits was allowed to start.
        following = next(filter(self._has_slot, self._waiting_of), None)
        if following is None:
            return None
        queued = self._waiting_of.pop(following)
        run, data = queued.popleft()
        if queued:
            self._waiting_of[following] = queued  # at the end: the others have their turn first
        self.waiting -= 1
        self._let_go(data)
        self._take_slot(following)
        return following, run

    def forget_waiting(self) -> int:
        """Drop everything that waits; returns how many runs that were."""
        dropped = self.waiting
        self._waiting_of.clear()
        self._holders.clear()
        self.waiting = self.waiting_bytes = 0
        return dropped

    def _has_room(self, data: bytes) -> bool:
        more = 0 if id(data) in self._holders else len(data)
        return not self.waiting_bytes or not more or self.waiting_bytes + more <= self.queue_bytes

    def _hold(self, data: bytes) -> None:
        holders = self._holders.get(id(data), 0)
        self._holders[id(data)] = holders + 1
        self.waiting_bytes += 0 if holders else len(data)

    def _let_go(self, data: bytes) -> None:
        holders = self._holders.pop(id(data)) - 1
        if holders:
            self._holders[id(data)] = holders
        else:
            self.waiting_bytes -= len(data)

    def _has_slot(self, hook_id: str) -> bool:
        return self._running_of.get(hook_id, 0) < self.per_hook

    def _take_slot(self, hook_id: str) -> None:
        self.running += 1
        self._running_of[hook_id] = self._running_of.get(hook_id, 0) + 1
