"""One process per role: start a function in a forked process, take its answer or its traceback, end it by
its own pid.

Decides how roles live and die; refuses to know what they do. Fork, because sixteen subscribers that each
import a client library would spend longer on importing than on the run. Nothing here may be used after the
parent has created a thread, a socket or an event loop; the benchmarks keep the parent free of all three.
"""

from __future__ import annotations

import gc
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

_fork = get_context("fork")


class RoleFailed(RuntimeError):
    """A role raised, died or did not answer in time. The message carries its traceback where there is one."""


class Role:
    """A function that runs in its own process from now on."""

    def __init__(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        self.name = name
        self._answers, theirs = _fork.Pipe(duplex=False)
        gc.collect()
        self._process = _fork.Process(target=_run, args=(theirs, function, arguments), name=name, daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process.pid is not None
        return self._process.pid

    def answer(self, timeout: float) -> Any:
        """What the function returned. Raises RoleFailed after `timeout` seconds or when the role failed."""
        try:
            if not self._answers.poll(timeout):
                raise RoleFailed(f"{self.name} did not answer within {timeout:.0f} s")
            ok, value = self._answers.recv()
        except EOFError:
            self._process.join(1.0)
            raise RoleFailed(f"{self.name} died with exit code {self._process.exitcode}") from None
        if not ok:
            raise RoleFailed(f"{self.name} failed:\n{value}")
        return value

    def end(self, timeout: float = 1.0) -> None:
        """Wait for the process, then kill it (this pid only) if it is still there."""
        self._process.join(timeout)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(5.0)
        self._answers.close()


def _run(answers: Connection, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its roles; a Ctrl-C is for the parent
    try:
        reply = (True, function(*arguments))
    except BaseException:
        reply = (False, traceback.format_exc())
    answers.send(reply)
    answers.close()


def wait_until(condition: Callable[[], object], what: str, timeout: float = 10.0) -> None:
    """Poll `condition` until it is true. Raises RoleFailed that names `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise RoleFailed(f"{what}: not so after {timeout:.0f} s")
        time.sleep(0.005)
