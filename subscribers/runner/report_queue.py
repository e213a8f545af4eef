"""Reports that wait a moment for others, so that runs that end one after another are told of together.

A burst costs a tenth of as many single messages, and nobody waits for a report. Decides when and in which
order they are told: soon, and as they came. Refuses to know what they say and who publishes them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from broker.protocol.events import Event

GATHER_S: Final = 0.02
"""Seconds that the first one waits for others."""

WAITING: Final = 20_000
"""Reports that may wait; beyond it they are counted and not told."""

Publish = Callable[[str, dict[str, Any], Event], None]
"""Publishes a report: topic, payload and the event that it is about. Raises nothing."""


class ReportQueue:
    """Hands reports to ``publish`` in a thread of its own, those of a moment within one ``together``.

    Thread-safe. ``dropped`` counts reports for which there was no room.
    """

    def __init__(self, publish: Publish, together: Callable[[], AbstractContextManager[object]]) -> None:
        self.dropped = 0
        self._publish = publish
        self._together = together
        self._waiting: deque[tuple[str, dict[str, Any], Event]] = deque()
        self._some = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="reports", daemon=True)
        self._thread.start()

    def add(self, topic: str, payload: dict[str, Any], event: Event) -> None:
        """Have a report told soon."""
        if len(self._waiting) >= WAITING:
            self.dropped += 1
            return
        self._waiting.append((topic, payload, event))
        if not self._some.is_set():
            self._some.set()

    def close(self) -> None:
        """Tell what waits, and end."""
        self._closed = True
        self._some.set()
        self._thread.join()
        self._tell()

    def _work(self) -> None:
        while not self._closed:
            self._some.wait()
            time.sleep(GATHER_S)
            self._some.clear()  # before the look: what comes after it sets it again
            self._tell()

    def _tell(self) -> None:
        if self._waiting:
            with self._together():
                while self._waiting:
                    self._publish(*self._waiting.popleft())
