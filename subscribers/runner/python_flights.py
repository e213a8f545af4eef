"""One run of a guard for one event, whoever asks first: the ask, or the event's copy that everybody sees.

Decides who has to run and who waits for a run that is under way or just over. Refuses to know how it is run.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from broker.protocol.decisions import Answer

REMEMBERED: Final = 16_384
"""Runs that are remembered; the oldest go first."""


class Result(NamedTuple):
    """What came of a run: an answer or none, or else why there is none."""

    answer: Answer | None
    error: str | None = None


Hear = Callable[[Result], None]
Waits = Callable[[float], bool]
"""Whether somebody still waits for a result, at a time of ``time.monotonic()``."""


class Flight:
    """One run. ``claimed``: an ask wants its result."""

    __slots__ = ("claimed", "result", "waiting")

    def __init__(self) -> None:
        self.claimed = False
        self.result: Result | None = None
        self.waiting: list[tuple[Hear, Waits]] = []

    def is_wanted(self, now: float) -> bool:
        """Whether the run is of use: to an ask that still waits, or to observers where nobody has asked."""
        return not self.claimed or any(waits(now) for _, waits in self.waiting)


class Flights:
    """The runs of one process, by event and handler. Thread-safe."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._flights: OrderedDict[tuple[str, int], Flight] = OrderedDict()  # a dict is slow at its front

    def begin(self, event_id: str, handler: int) -> tuple[Flight, bool]:
        """The run of ``handler`` for an event; whether the caller is the one who has to run it."""
        key = (event_id, handler)
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return flight, False
            flight = self._flights[key] = Flight()
            if len(self._flights) > self._remembered:
                self._flights.popitem(last=False)
            return flight, True

    def knows(self, event_id: str, handler: int) -> bool:
        """Whether there is such a run."""
        return (event_id, handler) in self._flights

    def claim(self, flight: Flight, hear: Hear, waits: Waits) -> None:
        """Have ``hear`` called with the result: now, where there is one, else by whoever brings it.

        ``waits`` tells whether it is still of use.
        """
        with self._lock:
            flight.claimed = True
            result = flight.result
            if result is None:
                flight.waiting.append((hear, waits))
        if result is not None:
            hear(result)

    def land(self, flight: Flight, result: Result) -> None:
        """The run is over."""
        with self._lock:
            flight.result = result
            waiting, flight.waiting = flight.waiting, []
        for hear, _ in waiting:
            hear(result)

    def give_up(self, flight: Flight, result: Result, now: float) -> bool:
        """End a run that has not begun, with ``result``, if nobody wants it any more; whether that is so."""
        if flight.is_wanted(now):
            return False
        with self._lock:
            if flight.is_wanted(now):  # an ask has come meanwhile
                return False
            flight.result = result
            waiting, flight.waiting = flight.waiting, []
        for hear, _ in waiting:
            hear(result)
        return True
