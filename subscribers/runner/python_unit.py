"""One file of handlers over time: which worker is in service, which is coming, which are leaving.

    found -> coming -> in service -> leaving -> gone

A change is loaded by a new worker beside the one in service, which leaves only when the other is ready; one
that cannot load changes nothing but what is said. A worker that was condemned by a stuck handler is replaced
in the same way; one that has died, after a pause. A version that lacks a guard of the one in service takes
over a moment later than others, for a file may be half saved, and it is said which. Decides that order.
Refuses to know descriptors and clocks: times are arguments, and processes are started through a function.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from broker.logs import get_logger

from ..hooks.diagnostics import Diagnostic
from ..hooks.restarts import Restarts
from ..runtimes.python_board import Underway
from ..sources.handlers import HandlerUnit

READY_SECONDS: Final = 40.0
"""How long a worker may take to load its file and to connect."""

LEAVE_SECONDS: Final = 65.0
"""How long one that leaves may take: its calls have at most a minute."""

FIRST_PAUSE, LAST_PAUSE = 1.0, 10.0
"""Seconds until a file that ends its process while it is loaded is loaded again; they double."""

SHRINK_SECONDS: Final = 0.8
"""How long a version that lacks guards has to stand still: an edit is noticed within 0.6 s."""

log = get_logger("subscribers.python")


class Process(Protocol):
    """A worker's process."""

    share: str | None
    started: float
    counts: Mapping[str, int]
    guards: tuple[str, ...]
    kill_at: float | None

    @property
    def pid(self) -> int:
        """Its id."""

    def say(self, message: Mapping[str, Any]) -> None:
        """Send it a message; one that is gone does not hear it."""

    def overdue(self, now: float) -> list[Underway]:
        """Calls that it should have told as timed out."""

    def kill(self, why: str) -> None:
        """End it now."""

    def end(self) -> None:
        """Have it finish what it does, and end."""


Start = Callable[[HandlerUnit, str | None, int], Process]
"""Starts a process for a unit, with its directory of claims and the number of restarts; raises OSError."""


class Unit:
    """One unit's workers. ``digest`` is that of the content in service or coming."""

    def __init__(self, unit: HandlerUnit, digest: str, start: Start) -> None:
        self.unit = unit
        self.digest = digest
        self.restarts = Restarts()
        self._start = start
        self.current: Process | None = None
        self.coming: Process | None = None
        self.leaving: list[Process] = []
        self.settled = False  # whether the first load has come to an end, good or bad
        self._due: float | None = None
        self._share: str | None = None
        self._taking: Process | None = None  # the one that leaves and may still take something
        self._is_ending = False  # whether the one in service was told that it is alone
        self._is_asked = False  # whether the one in service was told that another one comes
        self._again = False
        self._is_explained = False  # whether the one that is coming has said why it will not come
        self._is_condemned = False
        self.is_gone = False
        self.counts: Mapping[str, int] = {}
        self.refusal: str | None = None  # why what was loaded last is not in force
        self._pause = FIRST_PAUSE
        self._guards: tuple[str, ...] = ()  # those of the worker that was last in service
        self._shrinks_at: float | None = None  # when a version that lacks some of them takes over
        self._shrunk: tuple[Process, Mapping[str, Any]] | None = None  # it, unless it needs no worker at all

    # -- from outside -------------------------------------------------------------------------

    @property
    def kept(self) -> str:
        """What is in force beside something that cannot be loaded."""
        return "nothing of it is in force" if self.current is None else "the version before stays in force"

    @property
    def processes(self) -> list[Process]:
        """Every process that there is."""
        return [p for p in (self.current, self.coming, *self.leaving) if p is not None]

    @property
    def due(self) -> float | None:
        """When :meth:`look` is next to be called."""
        dues = [process.kill_at for process in self.processes if process.kill_at is not None]
        dues += [due for due in (self._due, self._shrinks_at) if due is not None]
        return min(dues, default=None)

    def load(self, now: float) -> None:
        """Load the file as it is now, beside what is in service."""
        self._pause = FIRST_PAUSE
        self._load(now)

    def _load(self, now: float) -> None:
        if self._shrunk is None:
            self._shrinks_at = None  # what was found before is not what there is
        if self._is_asked:
            return  # the one in service has been told, and will answer: then it is loaded
        if self.coming is not None or self._share is not None:
            self._again = True  # what is being loaded may be the old content, or the new one: look again
        elif self.current is None:
            self._begin(now)
        else:
            try:
                self._share = tempfile.mkdtemp(prefix="prxbus-change-")
            except OSError as error:
                log.error("there is no room for a change", file=self.unit.path, error=str(error))
                self._due = self.restarts.ended(now)
                return
            self._is_asked = True
            self.current.say({"do": "share", "directory": self._share})

    def remove(self, now: float) -> None:
        """The file is gone: what is under way ends, nothing else begins."""
        self.is_gone, self._due, self._shrinks_at, self._shrunk = True, None, None, None
        self._say_lost(())
        if self.coming is not None:
            self.coming.kill("its file is gone")
        if self.current is not None:
            self._leave(self.current, now, 0)
            self.current = None

    def end(self) -> None:
        """Have everything finish and end."""
        self.is_gone, self._due, self._shrinks_at, self._shrunk = True, None, None, None
        for process in self.processes:
            process.end()

    def look(self, now: float) -> None:
        """Do what is due, and end what has frozen."""
        for process in self.processes:
            if process.kill_at is not None and now >= process.kill_at:
                process.kill_at = None
                process.kill("it took too long")
            elif overdue := process.overdue(now):
                process.kill(f"{overdue[0].handler} did not end in time, and nothing could interrupt it")
        if self._shrinks_at is not None and now >= self._shrinks_at:
            self._shrink(now)
        if self._due is not None and now >= self._due and not self.is_gone:
            self._due = None
            self._load(now)

    # -- what processes say -------------------------------------------------------------------

    def heard(self, process: Process, message: Mapping[str, Any], now: float) -> None:
        """A process says something."""
        said = message.get("is")
        if process is self.coming:
            if said == "loaded":
                process.counts = message.get("counts", {})
                process.guards = tuple(message.get("guards", ()))
            elif said == "ready":
                self._is_ready(process, message, now)
            elif said == "refused":
                self._say_refused(message)
            elif said == "idle":
                self._say_idle(process, message, now)
        elif process is self.current:
            if said == "sharing" and self._is_asked:
                self._is_asked = False
                self._begin(now)
            elif said == "alone" and self._is_ending:
                self._forget_sharing(now)
            elif said == "condemned":
                self._condemned(message, now)
        elif said == "retired":
            self._has_left(process, now)

    def ended(self, process: Process, how: str, now: float) -> bool:
        """A process is gone, for the reason ``how``; whether it was expected to end."""
        is_expected = self._ended(process, how, now)
        if self.is_gone and not self.processes:
            self._forget_sharing(now)
        return is_expected

    # -- parts --------------------------------------------------------------------------------

    def _ended(self, process: Process, how: str, now: float) -> bool:
        if process in self.leaving:
            self.leaving.remove(process)
            self._has_left(process, now)
            return True
        if process is self.coming:
            self._has_not_come(how, now)
            return True
        self.current, self._is_condemned = None, False
        if not self.is_gone:
            self._has_died(how, now)
        return self.is_gone

    def _begin(self, now: float) -> None:
        self.restarts.started(now)
        try:
            self.coming = self._start(self.unit, self._share, self.restarts.count)
        except OSError as error:
            log.error("a worker cannot be started", file=self.unit.path, error=str(error))
            self._due = self.restarts.ended(now)
            self._end_sharing(now)
            return
        self.coming.kill_at = now + READY_SECONDS

    def _is_ready(self, process: Process, message: Mapping[str, Any], now: float) -> None:
        if self.current is None or not set(self._guards).difference(process.guards):
            self._take_over(process, message, now)
        elif self._shrunk is None:
            process.kill_at, self._shrinks_at, self._shrunk = None, now + SHRINK_SECONDS, (process, message)

    def _shrink(self, now: float) -> None:
        """The file has stood still for a while with fewer guards than before: so it is meant."""
        shrunk, self._shrunk, self._shrinks_at = self._shrunk, None, None
        if shrunk is None:
            self._give_up(now)
        elif self._again:  # it is another file by now, and that is loaded next
            self._is_explained = True
            shrunk[0].kill("its file has changed meanwhile")
        else:
            self._take_over(*shrunk, now)

    def _give_up(self, now: float) -> None:
        """Nothing is to be in service any more."""
        self._say_lost(())
        if self.current is not None:
            self._leave(self.current, now, 0)
            self.current = None

    def _say_lost(self, guards: tuple[str, ...]) -> None:
        """``guards`` are what is in force from now on."""
        lost = [name for name in self._guards if name not in guards]
        self._guards = guards
        if lost:
            log.warning("guards are no longer in force", file=self.unit.path, guards=lost)

    def _take_over(self, process: Process, message: Mapping[str, Any], now: float) -> None:
        """The new worker is in service: the old one has to take only what was published before."""
        before = self.current
        self.current, self.coming = process, None
        process.kill_at = None
        self.refusal = None
        self.counts = process.counts
        self.settled = True
        self._is_condemned = False
        self._say_lost(process.guards)
        log.info("handlers are in force", file=self.unit.path, pid=process.pid, **process.counts)
        if before is not None:
            self._leave(before, now, message.get("at_ns", 0))
        elif self._share is not None:
            self._end_sharing(now)
        else:
            self._load_again(now)

    def _leave(self, process: Process, now: float, after_ns: int) -> None:
        process.say({"do": "retire", "after_ns": after_ns})
        process.kill_at = now + LEAVE_SECONDS
        self.leaving.append(process)
        self._taking = process

    def _has_left(self, process: Process, now: float) -> None:
        """A worker that leaves takes nothing more; what it finishes meanwhile is no matter of this change."""
        if process is self._taking:
            self._taking = None
            self._end_sharing(now)

    def _has_not_come(self, how: str, now: float) -> None:
        """The new worker ended before it was ready."""
        is_explained, self._is_explained = self._is_explained, False
        has_loaded = self.coming is not None and bool(self.coming.counts)
        self.coming = None
        if self._shrunk is not None:
            self._shrunk, self._shrinks_at = None, None
        self.settled = True
        if not (is_explained or self.is_gone):
            self._due = self.restarts.ended(now)  # no bus, no room: perhaps not the file's fault
            if not has_loaded:  # but perhaps it is: so not as soon
                self._due = max(self._due, now + self._pause)
                self._pause = min(2 * self._pause, LAST_PAUSE)
            self.refusal = f"{self.unit.path}: it could not be loaded: {how}"
            again_in_s = round(max(0.0, self._due - now), 2)
            path, kept = self.unit.path, self.kept
            log.error("handlers could not be loaded", file=path, how=how, kept=kept, again_in_s=again_in_s)
        if self._share is not None:
            self._end_sharing(now)
        else:
            self._load_again(now)

    def _has_died(self, how: str, now: float) -> None:
        """The worker in service has ended by itself, or was killed for not telling of a call."""
        self._due = self.restarts.ended(now)
        log.error(
            "a worker ended by itself and is started again",
            file=self.unit.path,
            how=how,
            again_in_s=round(max(0.0, self._due - now), 2),
            restarts=self.restarts.count,
        )
        if self.coming is not None:
            self._due = None  # another one comes anyway
        else:
            self._is_asked = False
            self._end_sharing(now)

    def _end_sharing(self, now: float) -> None:
        """Only one worker is left that takes anything: it says when it needs the claims no more."""
        if self._share is None or self.coming is not None:
            return
        if self.current is None:
            self._forget_sharing(now)
        elif not self._is_ending:  # said once, for the answer belongs to this change and to no later one
            self._is_ending = True
            self.current.say({"do": "alone"})

    def _forget_sharing(self, now: float) -> None:
        if self._share is not None and self.coming is None:
            shutil.rmtree(self._share, ignore_errors=True)
            self._share, self._is_ending = None, False
            self._load_again(now)

    def _load_again(self, now: float) -> None:
        if self._again and not self.is_gone:
            self._again, self._due = False, None
            self.load(now)

    def _say_refused(self, message: Mapping[str, Any]) -> None:
        self._is_explained = True
        self.refusal = Diagnostic(**message["diagnostic"]).render()
        log.error(self.refusal, kept=self.kept, traceback=message.get("traceback", ""))

    def _say_idle(self, process: Process, message: Mapping[str, Any], now: float) -> None:
        """The file has no handler for this process: nothing is to be in service."""
        self._is_explained, self.refusal = True, None
        process.counts = self.counts = message.get("counts", {})
        log.info("a file has no handlers that watch or decide", file=self.unit.path, **self.counts)
        if self.current is None or not self._guards:
            self._give_up(now)
        else:
            self._shrinks_at = now + SHRINK_SECONDS

    def _condemned(self, message: Mapping[str, Any], now: float) -> None:
        if not self._is_condemned:
            self._is_condemned = True
            log.error(
                "a handler is stuck: another worker takes over",
                file=self.unit.path,
                handler=message.get("handler"),
            )
            self.load(now)
