"""Tells the bus and the log of calls that are over; of an edit that nobody has asked for, a moment later.

An event's copy may come before the ask about it, so that an edit is only called ignored when no ask has come
for a while. Decides that moment, and that it comes after the reply. Refuses to know what a report says.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from broker.protocol.events import Event

from .reports import reports
from .roles_reports import log_failure, outcome_of, spec_of
from .roles_rounds import Ran, Round
from .roles_view import GUARDED

CLAIM_S: Final = 0.5
"""Seconds that an event's copy, or the report of its edits, waits for the ask that it may belong to."""

HELD: Final = 1_024
"""Events whose reports may wait so; one more is told of at once."""

Publish = Callable[[str, dict[str, Any], Event], None]
"""Has a report published soon: topic, payload and the event that it is about. Raises nothing."""


class Teller:
    """Reports calls. Thread-safe."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._lock = threading.Lock()
        self._early: deque[tuple[Round, Sequence[Ran], float]] = deque()

    def add(self, found: Round, ran: Sequence[Ran]) -> None:
        """These calls of an event are over."""
        if ran and ran[0].seen.happening.event in GUARDED and not found.claimed:
            with self._lock:
                if len(self._early) < HELD:
                    self._early.append((found, ran, time.monotonic()))
                    return
        self._tell(found, ran)

    def tick(self, now: float) -> None:
        """Tell of what has waited for long enough; to be called several times a second."""
        due: list[tuple[Round, Sequence[Ran]]] = []
        with self._lock:
            while self._early and now - self._early[0][2] >= CLAIM_S:
                found, ran, _ = self._early.popleft()
                due.append((found, ran))
        for found, ran in due:
            self._tell(found, ran)

    def _tell(self, found: Round, ran: Sequence[Ran]) -> None:
        for hook, seen, said, waited_s in ran:
            is_ignored = seen.happening.event in GUARDED and not found.claimed
            if said.status != "ok":
                log_failure(hook, seen, said)
            outcome = outcome_of(said, is_ignored=is_ignored)
            for topic, payload in reports(spec_of(hook, seen), found.event, outcome, waited_s):
                self._publish(topic, payload, found.event)
