"""Waiting for everything that is being ended, in one place: exits, farewell output, and times to look again.

Decides when an ending is stepped; all that are due share one snapshot of the process table. Refuses to know
who is waiting for an ending, and how many there may be.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable, Iterable

from .ending import Ending
from .process_table import read_table

LONGEST_WAIT_S = 3_600.0


class EndingLoop:
    """The endings under way. All methods belong to one thread; ``bell`` is an eventfd that wakes it.

    ``finished`` is called with each ending of which nobody is left.
    """

    def __init__(self, bell: int, finished: Callable[[Ending], None]) -> None:
        self._bell = bell
        self._finished = finished
        self._endings: set[Ending] = set()
        self._by_descriptor: dict[int, Ending] = {}
        self._poll = select.poll()
        self._poll.register(bell, select.POLLIN)

    def admit(self, endings: Iterable[Ending]) -> None:
        """Take over these; they are due at once."""
        for ending in endings:
            self._endings.add(ending)
            for descriptor in (ending.child.pidfd, *ending.outputs):
                self._by_descriptor[descriptor] = ending
                self._poll.register(descriptor, select.POLLIN)

    def begin(self) -> None:
        """Let those who wait for their time to be over have it over."""
        now = time.monotonic()
        for ending in self._endings:
            ending.plan.begin(now)

    def hurry(self) -> None:
        """Cut every grace short."""
        now = time.monotonic()
        for ending in self._endings:
            ending.plan.hurry(now)

    def turn(self, until: float) -> None:
        """Wait until something happens or is due, at most until ``until`` (monotonic), and attend to it."""
        wake_at = min([until, *(ending.plan.due for ending in self._endings)])
        wait_s = min(max(0.0, wake_at - time.monotonic()), LONGEST_WAIT_S)
        for descriptor, _ in self._poll.poll(math.ceil(wait_s * 1_000)):
            if descriptor == self._bell:
                os.eventfd_read(self._bell)
            else:
                self._attend(descriptor, self._by_descriptor[descriptor])
        now = time.monotonic()
        due = [ending for ending in self._endings if ending.plan.due <= now]
        if due:
            table, own = read_table(), os.getpid()
            for ending in due:
                if ending.step(table, own, now):
                    self._finish(ending)

    def _attend(self, descriptor: int, ending: Ending) -> None:
        if descriptor == ending.child.pidfd:
            ending.leader_exited(time.monotonic())
        elif ending.discard(descriptor):
            return
        self._forget(descriptor)

    def _finish(self, ending: Ending) -> None:
        for descriptor in (ending.child.pidfd, *ending.outputs):
            self._forget(descriptor)
        self._endings.discard(ending)
        ending.finish()
        self._finished(ending)

    def _forget(self, descriptor: int) -> None:
        if self._by_descriptor.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)
