"""Ending one run whose time is over: its group and escaped descendants are signalled and reaped.

Decides whom a signal reaches. Refuses to decide when (the plan) and to wait (the reaper).
The leader stays unreaped until nobody is left, so that its pid, and with it the group's, cannot be reused.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

from .ending_plan import EndingPlan, Step
from .process_table import Process, Table, carries, family, is_same
from .spawn import CHUNK, Child

FAREWELL_BYTES = 1 << 20
"""Output of a program that is being ended, read and thrown away: enough for a trap that says goodbye."""


class Ending:
    """One run that is being ended. ``outputs`` are our ends of the pipes that it still has.

    ``leftovers``: the leader has exited, and these are to be ended when the plan begins.
    """

    def __init__(
        self,
        child: Child,
        outputs: Iterable[int],
        plan: EndingPlan,
        on_end: Callable[[], None] | None = None,
        *,
        leftovers: Iterable[Process] = (),
    ) -> None:
        self.child = child
        self.plan = plan
        self.on_end = on_end
        self._members = {row.pid: row for row in leftovers}
        self.leftovers = bool(self._members)
        self.leader_alive = not self.leftovers
        self.escaped = 0
        self._outputs = dict.fromkeys(outputs, FAREWELL_BYTES)
        self._leader = child.process.pid

    @property
    def outputs(self) -> tuple[int, ...]:
        """The pipes that are still open."""
        return tuple(self._outputs)

    def leader_exited(self, now: float) -> None:
        """Take notice that the leader has ended, and have a look at once who is left."""
        self.leader_alive = False
        self.plan.due = now

    def discard(self, descriptor: int) -> bool:
        """Throw away what the program says while it is being ended; False once the pipe has been closed."""
        try:
            size = len(os.read(descriptor, CHUNK))
        except BlockingIOError:
            return True
        self._outputs[descriptor] -= size
        if size and self._outputs[descriptor] > 0:
            return True
        del self._outputs[descriptor]
        os.close(descriptor)
        return False

    def step(self, table: Table, own: int, now: float) -> bool:
        """Do what the plan says about this snapshot; True once nobody is left. ``own`` is our pid."""
        others_alive = self._look(table, own)
        step = self.plan.step(now, leader_alive=self.leader_alive, others_alive=others_alive)
        if step is Step.TERM:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a stopped process would not notice
        elif step is Step.KILL:
            self._signal(signal.SIGKILL)
        return step is Step.DONE

    def finish(self) -> None:
        """Reap the leader and close what is open."""
        self._signal_group(signal.SIGKILL)  # without /proc nobody could be seen; the group still can be ended
        self.child.process.wait()
        for descriptor in (*self._outputs, self.child.pidfd):
            os.close(descriptor)
        self._outputs.clear()

    def _look(self, table: Table, own: int) -> bool:
        """Find the members, reap those that ended as our children, and say if any but the leader lives."""
        self._members = family(table, self._leader, known=self._members, own=own, marked=self._marked)
        others = [row for row in self._members.values() if row.pid != self._leader]
        for row in others:
            if not row.alive and row.ppid == own:
                with suppress(ChildProcessError):
                    os.waitpid(row.pid, os.WNOHANG)
        return any(row.alive for row in others)

    def _marked(self, row: Process) -> bool:
        return self.child.marker is not None and row.alive and carries(row.pid, self.child.marker)

    def _signal(self, number: signal.Signals) -> None:
        self._signal_group(number)
        outside = [row for row in self._members.values() if row.alive and row.pgid != self._leader]
        self.escaped = max(self.escaped, len(outside))
        for row in outside:
            _signal_one(row, number)

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._leader, number)


def _signal_one(row: Process, number: signal.Signals) -> None:
    """Signal exactly this process, not one that has got its pid since the snapshot."""
    with suppress(OSError):
        descriptor = os.pidfd_open(row.pid)
        try:
            if is_same(row):
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
