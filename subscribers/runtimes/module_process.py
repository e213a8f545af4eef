"""One process that holds hook modules, as the one that started it holds it: started, heard, ended.

Decides how it is started, what it inherits, and that nothing of its process group outlives it. Refuses to
know which hooks it is to load, and what follows from its end.
"""

from __future__ import annotations

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

from ..hooks.withheld import without_secrets
from .module_channel import ModuleChannel
from .python_board import SIZE, Board

WAIT_S: Final = 5.0
"""Seconds that the kernel may take to end a process that was killed."""

HANG_UP_S: Final = 0.5
"""Seconds that a process may live on when it has closed its channel."""

PAGE: Final = mmap.ALLOCATIONGRANULARITY
FLAG: Final = -(-SIZE // PAGE) * PAGE
"""Where, in the memory behind a board, the byte stands that tells a process to begin nothing any more."""


class ModuleProcess:
    """One host. Construction starts it; raises OSError where the system has no room or no such program.

    ``board``: it notes its calls in memory that both share, for the time when it is past speaking; the
    descriptor is given as ``--board N``.
    """

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, *, board: bool = False
    ) -> None:
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

    def hold(self) -> None:
        """Have it begin nothing any more, also if it cannot hear that now."""
        if self._flag is not None:
            self._flag[0] = 1

    def kill(self, why: str) -> None:
        """End it now, with everything in its process group."""
        self.why_killed = self.why_killed or why
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
        self.channel.close()
        if self._board is not None and self._flag is not None:
            self._board.close()
            self._flag.close()

    def _end_group(self) -> None:
        with self._reaping:
            self._end_group_unless_reaped()

    def _end_group_unless_reaped(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _ends_within(self, seconds: float) -> bool:
        """Whether it ends; it is not reaped."""
        descriptor = os.pidfd_open(self._process.pid)
        try:
            looking = select.poll()
            looking.register(descriptor, select.POLLIN)
            return bool(looking.poll(seconds * 1_000))
        finally:
            os.close(descriptor)

    def _words(self, code: int) -> str:
        if self.why_killed is not None:
            return self.why_killed
        if code < 0:
            with suppress(ValueError):
                return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with {code}"
