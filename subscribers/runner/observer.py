"""A thread that hears of events while the main thread is asked about some of them.

Decides that what cannot be received is logged, and the next one heard. Refuses to know what is done about an
event.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from broker.client import Subscriber
from broker.logs import Logger
from broker.protocol.errors import BusError
from broker.protocol.events import Event

from .service import BUS_SECONDS, TURN_SECONDS

GATHER_S: Final = 0.005
"""Seconds until the next look after events have come: most are copies of what is asked, and in its way."""


class Observer:
    """Hands every event of these topics to ``hear``, in its own thread, until it is closed."""

    def __init__(
        self,
        patterns: Sequence[str],
        hear: Callable[[Event], None],
        log: Logger,
        *,
        name: str,
        runtime_dir: str | None,
    ) -> None:
        self._hear = hear
        self._log = log
        self._stop = threading.Event()
        self._events = Subscriber(patterns, name=name, wait=BUS_SECONDS, runtime_dir=runtime_dir)
        self._thread = threading.Thread(target=self._observe, name="observer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hear of nothing more."""
        self._stop.set()
        self._thread.join()
        self._events.close()

    def _observe(self) -> None:
        while not self._stop.is_set():
            try:
                events = self._events.batch(timeout=TURN_SECONDS)
                for event in events:
                    self._hear(event)
                if events:
                    self._stop.wait(GATHER_S)
            except BusError as error:
                self._log.error("an event could not be received", error=str(error))
                self._stop.wait(TURN_SECONDS)
