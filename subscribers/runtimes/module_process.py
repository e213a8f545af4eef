"""One process that holds hook modules, as the one that started it holds it: started, told, looked at, ended.

Decides how it is started, what it inherits, and that nothing of its process group outlives it, nor the one
that has started it. Refuses to know which hooks are wanted, what follows from what it says, and from its end.
"""

from __future__ import annotations

import math
import mmap
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from ..hooks.module_plan import Change
from ..hooks.withheld import without_secrets
from .module_calls import Flight
from .module_channel import ModuleChannel, frame, hook_as_told
from .python_board import SIZE, Board

PING_S: Final = 0.2
STILL_S: Final = 0.3
"""Seconds of silence, with a call that has not begun, after which a process is asked whether it still moves;
and seconds after that at which it gets a successor."""

READY_S: Final = 20.0
"""Seconds that a process may take to be ready."""

LOAD_S: Final = 20.0
"""Seconds that one hook may take to load."""

MARGIN_S: Final = 0.5
"""Seconds beyond its time that a process is given to say something, or to end."""

WAIT_S: Final = 5.0
"""Seconds that the kernel may take to end a process that was killed."""

HANG_UP_S: Final = 0.5
"""Seconds that a process may live on when it has closed its channel."""

_GUARD: Final = ("/bin/sh", "-c", "read -r _; sleep 1; kill -9 0")
"""Ends its process group a little after the end of whoever holds the other end of its standard input.

A host sees by itself that nobody is there any more, unless its interpreter's lock is held or a thread waits
in the system; and what hooks have started sees nothing."""

PAGE: Final = mmap.ALLOCATIONGRANULARITY
FLAG: Final = -(-SIZE // PAGE) * PAGE
"""Where, in the memory behind a board, the byte stands that tells a process to begin nothing any more."""

_PING: Final = frame({"do": "ping"})


class ModuleProcess:
    """One host. Construction starts it; raises OSError where the system has no room or no such program.

    ``board``: it notes its calls in memory that both share, for the time when it is past speaking; the
    descriptor is given as ``--board N``. The public attributes are for the one that holds it, and are what
    that one has noticed; times are seconds of ``time.monotonic()``.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, now: float, *, board: bool = False
    ) -> None:
        self.started = self.heard = now
        self.pinged = self.kill_at = math.inf
        self.is_ready = self.refuses = self.is_ending = False
        self.version: str | None = None
        self.flights: dict[int, Flight] = {}
        self.overdue: list[str] = []  # hooks of calls that it did not answer in time
        self.loads: tuple[str, float] | None = None  # which hook it loads, and since when
        self.reader: threading.Thread | None = None
        self.why_killed: str | None = None
        self._reaping = threading.Lock()  # whoever kills and whoever reaps: a number may be reused behind it
        ours, theirs = socket.socketpair()
        memory = -1
        inherited = [theirs.fileno()]
        command = [*argv]
        try:
            with theirs:
                if board:
                    memory = os.memfd_create("prxbus-module-calls", os.MFD_CLOEXEC)
                    os.ftruncate(memory, FLAG + PAGE)
                    inherited.append(memory)
                    command += ["--board", str(memory)]
                self._process = subprocess.Popen(
                    [*command, "--channel", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # what modules print is for people
                    env=without_secrets(env),
                    cwd=cwd,
                    pass_fds=inherited,
                    process_group=0,
                )
                self._pidfd = self._opened()
                self._guard, self._alive = self._guarded()
        except OSError:
            ours.close()
            if memory >= 0:
                os.close(memory)
            raise
        self.channel = ModuleChannel(ours)
        self._board: Board | None = None
        self._flag: mmap.mmap | None = None
        if memory >= 0:
            self._board = Board(memory)
            self._flag = mmap.mmap(memory, PAGE, offset=FLAG)
            os.close(memory)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def has_board(self) -> bool:
        """Whether :meth:`begun` can tell."""
        return self._board is not None

    def begun(self) -> dict[int, str]:
        """The calls whose handlers have begun and not ended: number and hook."""
        if self._board is None:
            return {}
        return {int(call.handler): call.event_id for call in self._board.under_way()}

    def suspects(self) -> list[str]:
        """The hooks whose handlers had begun; without a board, those of which nothing was heard."""
        if self._board is not None:
            return [*self.begun().values()]
        return [*self.overdue, *(flight.hook_id for flight in self.flights.values())]

    def take_overdue(self, now: float) -> list[Flight]:
        """The calls of which it should have said something; they are taken out, and it is past hope."""
        overdue = [flight for flight in self.flights.values() if now >= flight.deadline + MARGIN_S]
        for flight in overdue:
            del self.flights[flight.number]
            self.overdue.append(flight.hook_id)
        return overdue

    def hang_up_if_gone(self) -> None:
        """End the stream of a process that has ended, where something that it has started holds it open."""
        if self._ends_within(0):
            self.channel.shut()

    def past_hope(self, now: float) -> str | None:
        """Why it is to be killed, if it is."""
        if self.overdue:
            return "it held its process up: a call was not answered in time"
        if not self.is_ready and now >= self.started + READY_S:
            return f"its process was not ready within {READY_S:g} s"
        if self.loads is not None and now >= self.loads[1] + LOAD_S:
            return f"loading took longer than {LOAD_S:g} s"
        return "it did not end in time" if now >= self.kill_at else None

    def stands_still(self, now: float) -> bool:
        """Whether it says nothing, not even when asked, with calls that it has not begun."""
        if self.heard > self.pinged:
            self.pinged = math.inf
        if self._board is None or now - self.heard < PING_S:
            return False
        waiting = [flight for flight in self.flights.values() if now - flight.sent >= PING_S]
        if not waiting or self.begun().keys() >= {flight.number for flight in waiting}:
            return False
        if self.pinged == math.inf:
            self.pinged = now
            self.channel.send(_PING)
        return now - self.pinged >= STILL_S

    def tell(self, change: Change) -> None:
        """Have it unload and load."""
        if change.unload:
            self.channel.send(frame({"do": "unload", "hooks": list(change.unload)}))
        if change.load:
            self.channel.send(frame({"do": "load", "hooks": [hook_as_told(hook) for hook in change.load]}))

    def end(self, seconds: float, now: float) -> None:
        """Have it dispose its hooks and end; after ``seconds`` and a margin it is to be killed."""
        self.is_ending = True
        self.kill_at = now + seconds + MARGIN_S
        self.channel.send(frame({"do": "end", "ms": int(seconds * 1_000)}))

    def hold(self) -> None:
        """Have it begin nothing any more, also if it cannot hear that now."""
        if self._flag is not None:
            self._flag[0] = 1

    def kill(self, why: str) -> None:
        """End it now, with everything in its process group."""
        self.why_killed = self.why_killed or why
        self.refuses = True
        self._end_group()

    def reap(self) -> str:
        """Wait for its end, which has been seen or brought about; how it ended, in words.

        Whatever else is left in its process group is ended, too: until the leader is reaped, nobody else can
        have that number.
        """
        if not self._ends_within(HANG_UP_S):  # the end of the stream may come first, or alone
            self.kill("it closed its channel")
        if not self._ends_within(WAIT_S):
            return "the system does not end it"
        with self._reaping:
            self._end_group_unless_reaped()
            code = self._process.wait()
        return self._words(code)

    def close(self) -> None:
        """Let go of everything, after the last look."""
        os.close(self._pidfd)
        self._guard.kill()
        self._guard.wait()
        os.close(self._alive)
        self.channel.close()
        if self._board is not None and self._flag is not None:
            self._board.close()
            self._flag.close()

    def _opened(self) -> int:
        """A descriptor of the process that was just started. Raises OSError, and then it has been ended."""
        try:
            return os.pidfd_open(self._process.pid)
        except OSError:
            self._end_group()
            self._process.wait()
            raise

    def _guarded(self) -> tuple[subprocess.Popen[bytes], int]:
        """The guard of its group, and what to hold for as long as that is to live; raises as above."""
        reading, writing = os.pipe()
        try:
            group = self._process.pid
            return subprocess.Popen(_GUARD, stdin=reading, stdout=2, env={}, process_group=group), writing
        except OSError:
            os.close(writing)
            os.close(self._pidfd)
            self._end_group()
            self._process.wait()
            raise
        finally:
            os.close(reading)

    def _end_group(self) -> None:
        with self._reaping:
            self._end_group_unless_reaped()

    def _end_group_unless_reaped(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _ends_within(self, seconds: float) -> bool:
        """Whether it ends; it is not reaped."""
        looking = select.poll()
        looking.register(self._pidfd, select.POLLIN)
        return bool(looking.poll(seconds * 1_000))

    def _words(self, code: int) -> str:
        if self.why_killed is not None:
            return self.why_killed
        if code < 0:
            with suppress(ValueError):
                return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with {code}"
