"""A worker's process as the ``python`` subscriber holds it: started, heard, looked at, ended.

Decides how it is started and what it inherits. Refuses to know why, and what follows from what it says.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ..hooks.withheld import without_secrets
from ..runtimes.python_board import Board, Underway, create
from ..sources.handlers import HandlerUnit
from .python_channel import Channel

FROZEN_S: Final = 0.5
"""Seconds after a call's deadline at which its process, which has said nothing of it, counts as frozen."""


class WorkerProcess:
    """One process. Construction starts it; raises OSError where the system has no room."""

    def __init__(
        self, unit: HandlerUnit, options: Sequence[str], share: str | None, restarts: int, cwd: str | None
    ) -> None:
        self.unit = unit
        self.share = share
        self.started = time.monotonic()
        self.counts: Mapping[str, int] = {}
        self.guards: tuple[str, ...] = ()
        self.kill_at: float | None = None
        self.why_killed: str | None = None
        ours, theirs = socket.socketpair()
        memory = create()
        try:
            argv = [sys.executable, "-P", "-m", "subscribers.runner.python_worker"]
            argv += ["--channel", str(theirs.fileno()), "--board", str(memory)]
            argv += ["--name", unit.name, "--path", unit.path, "--restarts", str(restarts), *options]
            argv += [] if unit.entry_point is None else ["--entry-point", unit.entry_point]
            argv += [] if share is None else ["--share", share]
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=without_secrets(os.environ),
                pass_fds=(theirs.fileno(), memory),
                cwd=cwd,
            )
            try:
                self.pidfd = os.pidfd_open(self._process.pid)
                self._board = Board(memory)
            except OSError:
                self._process.kill()
                self._process.wait()
                raise
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(memory)
        ours.setblocking(False)
        self.channel = Channel(ours)

    def say(self, message: Mapping[str, Any]) -> None:
        """Send it a message; one that is gone does not hear it."""
        self.channel.send(message)

    def end(self) -> None:
        """Have it finish what it does, and end."""
        self.channel.send({"do": "end"})
        self.channel.end()

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def overdue(self, now: float) -> list[Underway]:
        """Calls whose time has been over for so long that the process should have said so."""
        most = int((now - FROZEN_S) * 1e9)
        return [call for call in self._board.under_way() if call.deadline_ns < most]

    def under_way(self) -> list[Underway]:
        """The calls that it is, or was, busy with."""
        return self._board.under_way()

    def kill(self, why: str) -> None:
        """End it now."""
        self.why_killed = self.why_killed or why
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self) -> int:
        """The exit code of a process that has ended; lets go of everything else."""
        code = self._process.wait()
        os.close(self.pidfd)
        self.channel.close()
        return code

    def close_board(self) -> None:
        """Let go of the board, after the last look at it."""
        self._board.close()


def ended_how(code: int, process: WorkerProcess) -> str:
    """The end of a process in words."""
    if process.why_killed is not None:
        return process.why_killed
    if code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended by itself with {code}"
