"""Everything that goes on behind a run's back: the endings of timed-out runs, and orphans that became ours.

Decides how many runs may be ending at once and that none of their processes is forgotten. Refuses to delay a
run: one thread does all of this, started when there is something to do for the first time.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from ..hooks.invocation import Invocation
from .ending import Ending
from .ending_loop import EndingLoop
from .ending_plan import EndingPlan
from .orphans import Orphans
from .process_table import Process, adopted, leftovers
from .spawn import Child, StartFailed, spawn

TURNS = max(2, os.cpu_count() or 1)
"""Runs that have just been started, at once: more of them fight for processors and the interpreter, and all
are slower."""

TURN_S = 0.05
"""Seconds that a run waits for its turn to be started: a disk that hangs holds up nobody else."""

MAX_GRACES = 256
MAX_ENDINGS = 1_024
MAX_LEFTOVERS = 256
SWEEP_S = 0.5
LAST_WORDS_S = 1.0
"""Seconds that ``close`` waits after its deadline, when SIGKILL has been sent to whatever is left."""


@dataclass(frozen=True, slots=True)
class ReaperStats:
    """Counters since the start; ``running`` and ``ending`` are of now.

    ``killed`` runs ended by SIGKILL, ``graces_skipped`` of them at once for lack of room; ``escaped``
    processes had left the group of a run that was ended; ``orphans`` were adopted and reaped. ``leftovers``
    are runs over whose leader has exited and of which something still runs.
    """

    running: int
    ending: int
    ended: int
    killed: int
    graces_skipped: int
    escaped: int
    orphans: int
    leftovers: int


class Turn:
    """One of few that start runs, until it is given back, or from the start none, for lack of one in time."""

    def __init__(self, turns: threading.Semaphore) -> None:
        self._turns: threading.Semaphore | None = turns if turns.acquire(timeout=TURN_S) else None

    def give(self) -> None:
        """Let another run have it; once is enough."""
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.release()


class Reaper:
    """Starts runs, and ends those whose time is over. Thread-safe; one for a process.

    ``adopts``: what ``become_subreaper()`` returned; orphans are then reaped, half a second after they ended.
    ``sealed``: this process has called ``seal()``, which makes starting cheaper.
    ``max_graces``: endings beyond it get SIGKILL at once. ``max_endings``: beyond it nothing new is started.
    ``interruption`` is a descriptor that becomes readable when runs have to end early.
    """

    def __init__(
        self,
        *,
        adopts: bool = False,
        sealed: bool = False,
        max_graces: int = MAX_GRACES,
        max_endings: int = MAX_ENDINGS,
    ) -> None:
        self._sealed = sealed
        self._adopts = adopts
        self._max_graces = max_graces
        self._max_endings = max_endings
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(TURNS)
        self._idle = threading.Condition(self._lock)  # notified when nothing is running or ending
        self._owned: dict[int, object] = {}
        self._starting: set[object] = set()
        self._orphans = Orphans(self._owned, self._starting)
        self._running = self._ending = self._ended = self._killed = self._graces_skipped = self._escaped = 0
        self._leftovers = 0
        self._inbox: deque[Ending] = deque()
        self._sweeping = self._interrupted = False
        self._closing_at: float | None = None  # the deadline of close()
        self._thread: threading.Thread | None = None
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.interruption = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __enter__(self) -> Reaper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(time.monotonic())

    @property
    def stats(self) -> ReaperStats:
        """The counters of now."""
        with self._lock:
            return ReaperStats(
                self._running,
                self._ending,
                self._ended,
                self._killed,
                self._graces_skipped,
                self._escaped,
                self._orphans.reaped,
                self._leftovers,
            )

    def turn(self) -> Turn:
        """Wait for a turn to start a run, for a moment at most: see :data:`TURN_S`."""
        return Turn(self._turns)

    def start(self, invocation: Invocation) -> Child:
        """Start a run, to be given back with :meth:`collect` or :meth:`end`. Raises StartFailed."""
        with self._lock:
            if self._interrupted:
                raise StartFailed("the subscriber is shutting down")
            if self._ending >= self._max_endings:
                raise StartFailed(f"{self._ending} earlier runs are out of time and still being ended")
            self._running += 1
        try:
            with self.starting():
                child = spawn(invocation, sealed=self._sealed)
                self.own(child.process.pid, child)
        except BaseException:
            with self._lock:
                self._running -= 1
                self._notify_if_idle()
            raise
        return child

    def collect(self, child: Child) -> int:
        """Take back a child that has ended; returns its exit code, or minus the number of the signal."""
        returncode = child.process.wait()
        os.close(child.pidfd)
        self.disown(child.process.pid, child)
        with self._lock:
            self._running -= 1
            self._notify_if_idle()
            if self._adopts and not self._sweeping and self._closing_at is None:
                self._sweeping = True
                self._wake()
        return returncode

    def end(
        self, child: Child, outputs: Iterable[int], grace_s: float, on_end: Callable[[], None] | None = None
    ) -> None:
        """Take over a child that is out of time, with our ends of its output pipes, and return at once."""
        with self._lock:
            if self._ending >= self._max_graces and grace_s > 0:
                self._graces_skipped += 1
                grace_s = 0.0
            self._running -= 1
            self._ending += 1
            self._inbox.append(Ending(child, outputs, EndingPlan(time.monotonic(), grace_s), on_end))
            self._wake()

    def left_by(self, child: Child) -> list[Process]:
        """What this run, whose leader has exited and was not collected, has left running.

        Known only to a process that adopts orphans: what the leader leaves behind has then become ours.
        """
        if not self._adopts:
            return []
        strangers = [pid for pid in adopted(os.getpid()) if pid not in self._owned]
        return leftovers(strangers, child.process.pid, child.marker)

    def bound(self, child: Child, left: Iterable[Process], begin: float, grace_s: float) -> int:
        """Take over a child that has left this running, to be ended from ``begin`` (monotonic) on.

        Returns the leader's exit code, or minus the number of the signal, and returns at once.
        """
        said = os.waitid(os.P_PID, child.process.pid, os.WEXITED | os.WNOWAIT)
        assert said is not None
        now = time.monotonic()
        with self._lock:
            if self._leftovers >= MAX_LEFTOVERS:
                self._graces_skipped += 1
                begin, grace_s = now, 0.0
            self._running -= 1
            self._leftovers += 1
            if self._closing_at is not None:
                begin = now
            self._inbox.append(Ending(child, (), EndingPlan(now, grace_s, begin), leftovers=left))
            self._wake()
        return said.si_status if said.si_code == os.CLD_EXITED else -said.si_status

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Start a child inside this block and :meth:`own` it there: so it is never taken for an orphan.

        Only needed for a child in a process group of its own, and if this process adopts orphans.
        """
        token = object()
        self._starting.add(token)
        try:
            yield
        finally:
            self._starting.discard(token)

    def own(self, pid: int, owner: object) -> None:
        """Declare that ``owner`` waits for this child."""
        self._owned[pid] = owner

    def disown(self, pid: int, owner: object) -> None:
        """Take back :meth:`own`, after the child has been reaped."""
        if self._owned.get(pid) is owner:
            del self._owned[pid]

    def interrupt(self) -> None:
        """End every run that is under way as if its time were over, and start no more."""
        with self._lock:
            self._interrupt()

    def close(self, deadline: float) -> int:
        """Interrupt all runs, end them with their grace until ``deadline`` (monotonic), then with SIGKILL.

        Returns the number of runs with a process that the kernel has not ended a second later: 0, unless
        one is stuck in a device. Nothing can be started afterwards.
        """
        with self._lock:
            if self._closing_at is None:
                self._closing_at = deadline
                self._interrupt()
                self._wake()  # the thread closes the descriptors when nobody needs them any more
            self._idle.wait_for(self._is_idle, max(0.0, deadline - time.monotonic()) + LAST_WORDS_S)
            left = self._running + self._ending + self._leftovers
            thread = self._thread
        if thread is not None and not left:
            thread.join()
        return left

    # ------------------------------------------------------------------------------ with the lock held

    def _interrupt(self) -> None:
        if not self._interrupted:
            self._interrupted = True
            os.eventfd_write(self.interruption, 1)

    def _is_idle(self) -> bool:
        return not (self._running or self._ending or self._leftovers)

    def _notify_if_idle(self) -> None:
        if self._is_idle():
            self._idle.notify_all()
            if self._closing_at is not None:
                self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="reaper", daemon=True)
            self._thread.start()
        else:
            os.eventfd_write(self._bell, 1)

    # --------------------------------------------------------------------------- on the reaper's thread

    def _serve(self) -> None:
        loop = EndingLoop(self._bell, self._finished)
        sweep_at = math.inf
        while True:
            with self._lock:
                loop.admit(self._inbox)
                self._inbox.clear()
                closing_at = self._closing_at
                if closing_at is not None:
                    loop.begin()
                if closing_at is not None and self._is_idle():
                    break
                sweeping = self._sweeping
            now = time.monotonic()
            if closing_at is not None and now >= closing_at:
                loop.hurry()
                closing_at = None
            if not sweeping:
                sweep_at = math.inf
            elif sweep_at == math.inf:
                sweep_at = now + SWEEP_S
            elif now >= sweep_at:
                sweep_at = now + SWEEP_S
                self._sweep()
            loop.turn(sweep_at if closing_at is None else min(sweep_at, closing_at))
        self._close_descriptors()

    def _sweep(self) -> None:
        """Reap orphans, and go on doing so while we have children of which orphans may come."""
        with self._lock:
            self._sweeping = False  # before the look: a run that ends now asks for another
        if self._orphans.sweep():
            with self._lock:
                self._sweeping = True

    def _finished(self, ending: Ending) -> None:
        self.disown(ending.child.process.pid, ending.child)
        if ending.on_end is not None:
            try:
                ending.on_end()
            except Exception:
                # As if it had been raised in a thread of its own: that hook is where an application logs it.
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        with self._lock:
            if ending.leftovers:
                self._leftovers -= 1
            else:
                self._ending -= 1
            self._ended += 1
            self._killed += ending.plan.killing
            self._escaped += ending.escaped
            self._notify_if_idle()

    def _close_descriptors(self) -> None:
        os.close(self._bell)
        os.close(self.interruption)
