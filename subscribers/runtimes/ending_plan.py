"""When a run that is out of time gets which signal: SIGTERM, a grace, SIGKILL until nobody is left.

Decides the steps of one ending from times and facts that it is given. Refuses to know processes and clocks.
"""

from __future__ import annotations

import enum
import math

FIRST_PAUSE_S = 0.002
LONGEST_PAUSE_S = 0.25
LOOK_S = 1.0
"""Seconds between looks at whether anybody is left, before it is time to end them."""


class Step(enum.Enum):
    """What to do now."""

    TERM = enum.auto()  # SIGTERM to everyone
    WAIT = enum.auto()
    KILL = enum.auto()  # SIGKILL to everyone
    DONE = enum.auto()  # nobody is left


class EndingPlan:
    """One ending, stepped whenever it is ``due`` or its leader has exited. Times are monotonic seconds.

    ``begin``: nobody is signalled before that time. After SIGKILL it never gives up: whoever the kernel
    cannot end yet is looked at again four times a second.
    """

    __slots__ = ("_begin", "_grace_s", "_kill_at", "_pause_s", "_signalled", "due", "killing")

    def __init__(self, now: float, grace_s: float, begin: float = -math.inf) -> None:
        self.due = now
        self._begin = begin
        self.killing = grace_s <= 0
        self._grace_s = grace_s
        self._kill_at = math.inf  # the grace begins with SIGTERM, however late that is
        self._signalled = False
        self._pause_s = FIRST_PAUSE_S

    def hurry(self, now: float) -> None:
        """Cut the grace short: SIGKILL is next."""
        self.begin(now)
        if not self.killing:
            self._kill_at = self.due = now

    def begin(self, now: float) -> None:
        """Let the time to begin be over."""
        if now < self._begin:
            self._begin = self.due = now

    def step(self, now: float, *, leader_alive: bool, others_alive: bool) -> Step:
        """Decide what to do at ``now`` and when to look again."""
        if not (leader_alive or others_alive):
            return Step.DONE
        if now < self._begin:
            self.due = min(self._begin, now + LOOK_S)
            return Step.WAIT
        if not self.killing and now >= self._kill_at:
            self.killing = True
            self._pause_s = FIRST_PAUSE_S
        if self.killing:
            self.due = now + self._pause()
            return Step.KILL
        step = Step.WAIT
        if not self._signalled:
            self._signalled = True
            self._kill_at = now + self._grace_s
            step = Step.TERM
        # The leader's exit wakes us; that of the others has to be looked for.
        self.due = self._kill_at if leader_alive else min(self._kill_at, now + self._pause())
        return step

    def _pause(self) -> float:
        pause = self._pause_s
        self._pause_s = min(LONGEST_PAUSE_S, 2 * pause)
        return pause
