"""One child from start to outcome: fed, drained, capped, timed.

Decides when a run is over. Refuses to know what the program is for, and never waits for more than the run's
timeout and a short drain.

The rules, which hold for every dialect:

* The clock starts when the program has been executed, before its standard input has been fed.
* Standard input is fed while both outputs are drained, so neither side can block the other. A program that
  closes its standard input or never reads it has done nothing wrong.
* A run is over when its *leader* has exited, not when its pipes close: what the leader wrote is in the
  pipes by then. Output of others that keep a pipe open is awaited for at most ``DRAIN_S``, and given up
  after ``QUIET_S`` of silence.
* What a program leaves running in the background after a normal exit goes on, nobody waits for it, and nobody
  reads its output any more. Where the invocation bounds it, it is ended when the run's time is over.
* At the deadline the outcome is ``timeout``, at once. The reaper ends the process group behind it.
"""

from __future__ import annotations

import math
import os
import select
import time
from collections.abc import Callable

from ..hooks.invocation import Invocation
from ..hooks.outcome import Outcome
from .capture import Capture
from .reaper import Reaper, Turn
from .spawn import CHUNK, Child, StartFailed

DRAIN_S = 0.05
QUIET_S = 0.02

YOUNG_S = 0.02
"""Seconds after which a run counts as one that takes its time, and no longer as one that was just started."""

SHUTTING_DOWN = "ended early: its subscriber is shutting down"
UNWANTED = "ended early: nobody wants its result any more"


def run(
    invocation: Invocation,
    reaper: Reaper,
    on_end: Callable[[], None] | None = None,
    *,
    unwanted: int | None = None,
) -> Outcome:
    """Run the program and return its outcome, whatever it is; call it from a thread that may block.

    ``on_end`` is called exactly once, when nothing needs the run's files any more: before this returns, or,
    after a timeout, from the reaper's thread when the program is gone. ``unwanted`` is a descriptor that
    becomes readable when nobody wants the run any more: it then ends as if its time were over.
    """
    asked = time.monotonic()
    turn = reaper.turn()
    try:
        child = reaper.start(invocation)
        return _Run(child, invocation, reaper, asked, unwanted, turn).outcome(on_end)
    except StartFailed as failure:
        if on_end is not None:
            on_end()
        return Outcome.not_started(str(failure))
    finally:
        turn.give()


class _Run:
    """The loop over one child's descriptors."""

    def __init__(
        self,
        child: Child,
        invocation: Invocation,
        reaper: Reaper,
        asked: float,
        unwanted: int | None,
        turn: Turn,
    ) -> None:
        self._asked = asked
        self._turn = turn
        started = time.monotonic()
        self._settled = started + YOUNG_S
        self._deadline = started + invocation.timeout_s
        self._grace_s = invocation.grace_s
        self._bounds_leftovers = invocation.bounds_leftovers
        self._child = child
        self._reaper = reaper
        self._stdout = Capture(invocation.output_limit)
        self._stderr = Capture(invocation.output_limit)
        self._outputs = {child.stdout: self._stdout, child.stderr: self._stderr}
        self._ended: float | None = None
        self._interrupted: str | None = None  # why it is ended early
        self._unwanted = unwanted
        self._poll = poll = select.poll()
        poll.register(child.stdout, select.POLLIN)
        poll.register(child.stderr, select.POLLIN)
        poll.register(child.pidfd, select.POLLIN)
        poll.register(reaper.interruption, select.POLLIN)
        if unwanted is not None:
            poll.register(unwanted, select.POLLIN)
        if child.stdin is not None:
            poll.register(child.stdin, select.POLLOUT)

    def outcome(self, on_end: Callable[[], None] | None) -> Outcome:
        """Run to the end or to the deadline."""
        while self._ended is None:
            now = time.monotonic()
            self._attend(min(self._deadline, self._settled) - now)
            if now >= self._settled:
                self._settled = math.inf
                self._turn.give()
            if self._ended is None and (self._interrupted or time.monotonic() >= self._deadline):
                return self._hand_over(on_end)
        duration_s = self._ended - self._asked
        self._drain(self._ended + DRAIN_S)
        self._close_stdin()
        for descriptor in self._outputs:
            os.close(descriptor)
        if self._bounds_leftovers and (left := self._reaper.left_by(self._child)):
            returncode = self._reaper.bound(self._child, left, self._deadline, self._grace_s)
        else:
            returncode = self._reaper.collect(self._child)
        if on_end is not None:
            on_end()
        return Outcome.exited(returncode, duration_s, self._stdout.captured(), self._stderr.captured())

    def _attend(self, wait_s: float) -> bool:
        """Wait for at most ``wait_s`` and serve what is ready; False if nothing was."""
        ready = self._poll.poll(max(0, math.ceil(wait_s * 1_000)))
        for descriptor, _ in ready:
            if descriptor in self._outputs:
                self._read(descriptor)
            elif descriptor == self._child.pidfd:
                self._ended = time.monotonic()
                self._poll.unregister(descriptor)
                self._poll.unregister(self._reaper.interruption)
                if self._unwanted is not None:
                    self._poll.unregister(self._unwanted)
            elif descriptor == self._child.stdin:
                self._feed(descriptor)
            elif descriptor == self._unwanted:
                self._interrupted = UNWANTED
            else:  # the reaper's interruption
                self._interrupted = SHUTTING_DOWN
        return bool(ready)

    def _drain(self, until: float) -> None:
        """Read what the leader left in the pipes, and a little of what others still write."""
        self._close_stdin()
        while self._outputs and (left_s := until - time.monotonic()) > 0:
            if not self._attend(min(left_s, QUIET_S)):
                return

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._outputs[descriptor].add(chunk)
            return
        del self._outputs[descriptor]
        self._poll.unregister(descriptor)
        os.close(descriptor)

    def _feed(self, descriptor: int) -> None:
        unfed = self._child.unfed
        try:
            self._child.unfed = unfed = unfed[os.write(descriptor, unfed[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # the program closed its standard input: its right
            unfed = memoryview(b"")
        if not unfed:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._child.stdin is not None:
            self._poll.unregister(self._child.stdin)
            os.close(self._child.stdin)
            self._child.stdin = None

    def _hand_over(self, on_end: Callable[[], None] | None) -> Outcome:
        duration_s = time.monotonic() - self._asked
        stdout, stderr = self._stdout.captured(), self._stderr.captured()
        self._close_stdin()
        self._reaper.end(self._child, list(self._outputs), self._grace_s, on_end)
        return Outcome("timeout", None, None, duration_s, stdout, stderr, self._interrupted)
