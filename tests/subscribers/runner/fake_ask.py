"""An ask that nobody has put, for tests of what answers it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from broker.protocol.decisions import Answer, Decision, Heard, input_of, merge
from broker.protocol.events import Event

SECONDS: Final = 30.0
"""How long an answer is waited for."""


class FakeAsk:
    """An ask, and what it was answered. ``on_reply`` is called before an answer is taken."""

    def __init__(self, event: Event, seconds: float) -> None:
        self.event = event
        self.deadline = time.monotonic() + seconds
        self.cancelled = False
        self.answers: list[Answer] | None = None
        self.error: str | None = None
        self.answered = threading.Event()
        self.times = 0
        self.on_reply: Callable[[], None] = lambda: None

    def reply(self, answers: Iterable[Answer], /) -> bool:
        """It is answered; whether in time, and for the first time."""
        self.on_reply()
        self.answers = list(answers)
        return self._done() and time.monotonic() < self.deadline

    def fail(self, why: str, /) -> bool:
        """There is no answer."""
        self.error = why
        return self._done()

    def _done(self) -> bool:
        self.times += 1
        self.answered.set()
        return self.times == 1

    def wait(self) -> FakeAsk:
        """Wait for the answer."""
        assert self.answered.wait(SECONDS)
        return self

    @property
    def decision(self) -> Decision:
        """What the bus makes of it."""
        heard = Heard("hooks", "open", None, 0.0, tuple(self.wait().answers or ()))
        return merge([heard], input_of(self.event.payload))
