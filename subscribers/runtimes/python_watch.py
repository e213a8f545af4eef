"""Looks at calls under way: one that lasts, one whose time is over, one that does not end even then.

Decides when it is told. A call that is over within a few milliseconds costs its thread two changes of a dict
and wakes nobody: while there is something to look at the watch looks by itself, and it goes to sleep after a
second without. Refuses to know what is called and what follows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from broker.logs import get_logger
from broker.protocol.errors import shown

LOOK_S: Final = 0.005
"""Seconds between two looks: a call that lasts is noticed after one or two."""

AWAKE_LOOKS: Final = 200
"""Looks at nothing before it goes to sleep."""

STUCK_S: Final = 0.5
"""Seconds that an asynchronous call may take to end when it is cancelled."""

log = get_logger("subscribers.python")


class Watched:
    """A call as the watch sees it; times in seconds of ``time.monotonic()``.

    ``on_long`` is called when it lasts, ``on_due`` when its time is over, ``on_stuck`` when it is still there
    :data:`STUCK_S` later.
    """

    __slots__ = ("deadline", "is_due", "is_long", "on_due", "on_long", "on_stuck", "started")

    def __init__(
        self,
        started: float,
        timeout_s: float,
        on_due: Callable[[], None],
        *,
        on_long: Callable[[], None] | None = None,
        on_stuck: Callable[[], None] | None = None,
    ) -> None:
        self.started = started
        self.deadline = started + timeout_s
        self.on_long = on_long
        self.on_due = on_due
        self.on_stuck = on_stuck
        self.is_long = self.is_due = False


class Watch:
    """Watches any number of calls. Thread-safe. What it calls has to be quick."""

    def __init__(self) -> None:
        self._calls: dict[int, Watched] = {}
        self._asleep = False
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="watch calls", daemon=True)
        self._thread.start()

    def enter(self, call: Watched) -> None:
        """Begin to look at a call."""
        self._calls[id(call)] = call
        if self._asleep:
            self._wake.set()

    def leave(self, call: Watched) -> None:
        """The call is over."""
        self._calls.pop(id(call), None)

    def close(self) -> None:
        """End the thread; nothing is looked at any longer."""
        self._closed = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        idle = 0
        while not self._closed:
            if self._calls:
                idle = 0
                self._look(time.monotonic())
            else:
                idle += 1
            if idle > AWAKE_LOOKS:
                self._sleep()
                idle = 0
            else:
                time.sleep(LOOK_S)

    def _sleep(self) -> None:
        self._asleep = True  # before the last look at the calls: whoever enters after it wakes us
        if not self._calls and not self._closed:
            self._wake.wait()
        self._asleep = False
        self._wake.clear()

    def _look(self, now: float) -> None:
        for call in tuple(self._calls.values()):
            if not call.is_long and now - call.started >= LOOK_S:
                call.is_long = True
                _try(call.on_long)
            if not call.is_due and now >= call.deadline:
                call.is_due = True
                _try(call.on_due)
            if call.is_due and now >= call.deadline + STUCK_S and id(call) in self._calls:
                self.leave(call)
                _try(call.on_stuck)


def _try(call: Callable[[], None] | None) -> None:
    """Do it, if there is something to do; a failure is logged: this thread looks at all calls."""
    try:
        if call is not None:
            call()
    except Exception as error:
        log.error("what follows a look at a call failed", error=shown(error, 300))
