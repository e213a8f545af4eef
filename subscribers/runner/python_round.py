"""One ask and the guards of a file that are to answer it.

Decides when it is answered, and what a guard that failed means beside others that did not. Refuses to know
how guards are called.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.errors import shown

from ..handlers.registration import Registration
from ..runtimes.python_traceback import sayable
from .asking import Ask
from .python_flights import Result

log = get_logger("subscribers.python")


class Entry:
    """A handler with what is needed for each of its calls. ``number`` is its place in the file."""

    __slots__ = ("board_name", "name", "number", "registration")

    def __init__(self, number: int, registration: Registration, file: str) -> None:
        self.number = number
        self.registration = registration
        self.name = sayable(f"{file}:{registration.name}")
        self.board_name = self.name.encode()[:128]


class Round:
    """One ask and the guards that are to answer it; whoever brings the last result replies."""

    def __init__(self, ask: Ask, guards: Sequence[Entry]) -> None:
        self._ask = ask
        self._guards = guards
        self._results: list[Result | None] = [None] * len(guards)
        self._left = len(guards)
        self._lock = threading.Lock()

    def waits(self, now: float) -> bool:
        """Whether somebody still waits for the answer."""
        return now <= self._ask.deadline and not self._ask.cancelled

    def hear(self, place: int, result: Result) -> None:
        """The result of the guard at ``place``."""
        with self._lock:
            self._results[place] = result
            self._left -= 1
            if self._left:
                return
        self._reply([result for result in self._results if result is not None])

    def _reply(self, results: list[Result]) -> None:
        errors = [result.error for result in results if result.error is not None]
        if len(errors) == len(results):
            self._ask.fail(errors[0])
            return
        answers = [result.answer for result in results if result.answer is not None]
        for entry, result in zip(self._guards, results, strict=True):
            if result.error is not None and entry.registration.failure == "closed":
                reason = f"{entry.name} failed ({result.error}) and fails closed"
                answers.append(Answer(entry.name, "deny", reason, priority=entry.registration.priority))
        try:
            self._ask.reply(answers)
        except Exception as error:  # a handler may put anything into an answer
            names = sorted({sayable(str(answer.handler)) for answer in answers})
            places = [f"{sayable(e.registration.path)}:{e.registration.line}" for e in self._guards]
            log.error(
                "an answer cannot be sent",
                handlers=names,
                at=places,
                event_id=self._ask.event.id,
                error=shown(error, 300),
            )
            self._ask.fail(f"an answer of {', '.join(names)} cannot be sent: {shown(error, 200)}")
