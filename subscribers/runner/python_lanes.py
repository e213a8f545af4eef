"""Threads that take turns at a connection, so that a call that lasts holds nobody else up.

The thread that receives also calls: no hand-over in the usual case. When a call lasts for more than a few
milliseconds another thread goes on receiving, and the first one is out of turn when its call is over.
Decides whose turn it is. Refuses to know what is received and what a task does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from broker.logs import get_logger
from broker.protocol.errors import shown

from ..runtimes.python_threads import Threads

FAILED_SECONDS: Final = 0.5
"""Pause after a look at the connection that has failed."""

ERROR_CHARACTERS: Final = 300

log = get_logger("subscribers.python")


class Task(Protocol):
    """Something to do with what was received. What it raises is logged."""

    def __call__(self, on_long: Callable[[], None], /) -> None:
        """Do it; ``on_long`` is called from another thread if that lasts."""


class Lane:
    """One connection. ``receive`` waits a while and gives what there is to do, in order.

    ``flush`` sends what was gathered since the last look; it is called when the next look may be late.
    """

    def __init__(
        self,
        receive: Callable[[], Iterable[Task]],
        threads: Threads,
        flush: Callable[[], object] | None = None,
    ) -> None:
        self._receive = receive
        self._threads = threads
        self._flush = flush
        self._pending: deque[Task] = deque()
        self._lock = threading.Lock()
        self._turn = object()
        self._stopped = False
        self._idle = threading.Event()
        self._pause = threading.Event()

    def start(self) -> None:
        """Begin to receive."""
        self._lead()

    def stop(self, seconds: float) -> bool:
        """Receive nothing more and begin what was received; whether that was done within ``seconds``."""
        self._stopped = True
        self._pause.set()
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
                pending.extend(self._received())
            else:
                _do(task, lasts)

    def _received(self) -> Iterable[Task]:
        try:
            return self._receive()
        except Exception as error:  # the connection is looked at again, and nobody else's turn is lost
            log.error("receiving failed", error=shown(error, ERROR_CHARACTERS))
            self._pause.wait(FAILED_SECONDS)
            return ()

    def _call_lasts(self, turn: object) -> None:
        """Have somebody else go on: with the connection if this was its thread, else with what is pending."""
        if self._flush is not None:
            self._flush()
        with self._lock:
            if turn is self._turn:
                self._lead()
            elif self._pending:
                self._threads.run(lambda: self._work(None))


def _do(task: Task, on_long: Callable[[], None]) -> None:
    try:
        task(on_long)
    except Exception as error:  # the next ones are not to suffer for it
        log.error("a call could not be made", error=shown(error, ERROR_CHARACTERS))
