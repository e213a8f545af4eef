"""Threads that are lent for one task at a time and taken back, and never waited for at exit.

Decides when a new one is started: when none is idle. Refuses to know what they do; how many tasks there are
at once is bounded by whoever hands them out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from broker.logs import get_logger
from broker.protocol.errors import shown

IDLE: Final = 4
"""Idle threads that are kept."""

log = get_logger("subscribers.python")


class Threads:
    """Runs each task in a thread that has nothing else to do. Thread-safe."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[Callable[[], None] | None]] = []
        self._closed = False

    def run(self, task: Callable[[], None]) -> None:
        """Have ``task`` done now, whatever the others do; RuntimeError where no thread can be started."""
        with self._lock:
            if self._idle:
                self._idle.pop().put(task)
                return
        threading.Thread(target=self._work, args=(task,), name=self._name, daemon=True).start()

    def close(self) -> None:
        """Let idle threads end, and the others after what they are doing."""
        with self._lock:
            self._closed = True
            for inbox in self._idle:
                inbox.put(None)
            self._idle.clear()

    def _work(self, task: Callable[[], None] | None) -> None:
        inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        while task is not None:
            try:
                task()
            except Exception as error:  # a thread that dies would only be started again
                log.error("a task failed", thread=self._name, error=shown(error, 300))
            with self._lock:
                if self._closed or len(self._idle) >= IDLE:
                    return
                self._idle.append(inbox)
            task = inbox.get()
