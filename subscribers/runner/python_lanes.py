"""Threads that take turns at a connection, so that a call that lasts holds nobody else up.

The thread that receives also calls: no hand-over in the usual case. When a call lasts for more than a few
milliseconds another thread goes on receiving, and the first one is out of turn when its call is over.
Decides whose turn it is. Refuses to know what is received and what a task does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from ..runtimes.python_threads import Threads


class Task(Protocol):
    """Something to do with what was received. Raises nothing."""

    def __call__(self, on_long: Callable[[], None], /) -> None:
        """Do it; ``on_long`` is called from another thread if that lasts."""


class Lane:
    """One connection. ``receive`` waits a while and gives what there is to do, in order; it raises nothing.

    ``Lane.stop`` has it be called no more.
    """

    def __init__(self, receive: Callable[[], Iterable[Task]], threads: Threads) -> None:
        self._receive = receive
        self._threads = threads
        self._pending: deque[Task] = deque()
        self._lock = threading.Lock()
        self._turn = object()
        self._stopped = False
        self._idle = threading.Event()

    def start(self) -> None:
        """Begin to receive."""
        self._lead()

    def stop(self, seconds: float) -> bool:
        """Receive nothing more and begin what was received; whether that was done within ``seconds``."""
        self._stopped = True
        return self._idle.wait(seconds)

    @property
    def pending(self) -> int:
        """Tasks that were received and not begun."""
        return len(self._pending)

    def _lead(self) -> None:
        turn = self._turn = object()
        self._threads.run(lambda: self._work(turn))

    def _work(self, turn: object) -> None:
        pending = self._pending

        def lasts() -> None:
            self._call_lasts(turn)

        while True:
            try:
                task = pending.popleft()
            except IndexError:
                if turn is not self._turn:
                    return
                if self._stopped:
                    self._idle.set()
                    return
                pending.extend(self._receive())
            else:
                task(lasts)

    def _call_lasts(self, turn: object) -> None:
        """Have somebody else go on: with the connection if this was its thread, else with what is pending."""
        with self._lock:
            if turn is self._turn:
                self._lead()
            elif self._pending:
                self._threads.run(lambda: self._work(None))
