"""One event and all handlers that it starts: who waits for them, and when they are answered.

A round is begun by an ask or by the event's copy that everybody sees, whichever comes first, and never twice.
An ask that comes later claims it; one that nobody claims is observed only. Decides who hears what: each ask
is answered once, when the last handler is done or when its own time is nearly over, with what there is then.
Refuses to know how a handler is run, and what its answer means.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from broker.protocol.decisions import NOTHING, Answer

from .asking import Ask

REMEMBERED: Final = 8_192
"""Rounds that are remembered; the oldest go first."""

KEPT_CHARACTERS: Final = 32_768
"""Most text of a verdict that is kept for an ask that comes after the handlers are done."""

TOO_LONG: Final = "its handlers were done before it was asked, and what they said was too long to be kept"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a round comes to: answers, or why there are none at all."""

    answers: Sequence[Answer] = ()
    error: str | None = None


class Round:
    """The handlers of one event. Thread-safe. ``claimed``: an ask wants to know.

    ``deadline`` is the time by which whoever asked first wants an answer, in seconds of a steady clock; None:
    nobody has asked. ``verdict`` is there once all handlers are done.
    """

    __slots__ = ("_lock", "_now", "_then", "_told", "_waiting", "claimed", "deadline", "event_id", "verdict")

    def __init__(self, event_id: str, deadline: float | None) -> None:
        self.event_id = event_id
        self.deadline = deadline
        self.claimed = False
        self.verdict: Verdict | None = None
        self._told = False
        self._lock = threading.Lock()
        self._waiting: list[Ask] = []
        self._now: Callable[[], Verdict] | None = None
        self._then: list[Callable[[], None]] = []

    def claim(self, ask: Ask) -> bool:
        """Have an ask answered: now, if all is done; else later. Whether it has to wait."""
        with self._lock:
            self.claimed = True
            if self.verdict is None:
                self._waiting.append(ask)
                return True
        self._answer(ask, self.verdict)
        return False

    def runs(self, now: Callable[[], Verdict]) -> None:
        """Handlers are under way; ``now`` gives what they come to if all that is not done is too late."""
        with self._lock:
            self._now = now

    def land(self, verdict: Verdict) -> bool:
        """All handlers are done; whether an answer has reached somebody who waits."""
        with self._lock:
            self.verdict, self._now = _kept(verdict, is_claimed=self.claimed), None
            waiting, self._waiting = self._waiting, []
            then, self._then = self._then, []
        reached = [self._answer(ask, verdict) for ask in waiting]
        for call in then:
            call()
        return any(reached)

    def then(self, call: Callable[[], None]) -> None:
        """Have ``call`` made when all handlers are done: now, if they are."""
        with self._lock:
            if self.verdict is None:
                self._then.append(call)
                return
        call()

    def hurry(self, ask: Ask) -> bool:
        """An ask's time is nearly over: answer it with what there is. Whether it was still waiting."""
        with self._lock:
            if ask not in self._waiting:
                return False
            self._waiting.remove(ask)
            now = self._now
        verdict = now() if now is not None else Verdict(error="no handler was done when the time was over")
        self._answer(ask, verdict)
        return True

    def _answer(self, ask: Ask, verdict: Verdict) -> bool:
        """Answer one of the asks about the event; only the first to hear it hears more than the decision."""
        if verdict.error is not None:
            return ask.fail(verdict.error)
        with self._lock:
            was_told, self._told = self._told, True
        reached = ask.reply(_again(verdict.answers) if was_told else verdict.answers)
        if not reached and not was_told:
            with self._lock:
                self._told = False
        return reached

    def is_wanted(self, now: float) -> bool:
        """Whether a handler that has not begun is of use: an ask still waits, or nobody has asked at all."""
        with self._lock:
            waiting = [ask for ask in self._waiting if not ask.cancelled and now < ask.deadline]
            return bool(waiting) or not self.claimed


class Rounds:
    """The rounds of one process by event. Thread-safe."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._rounds: OrderedDict[str, Round] = OrderedDict()

    def begin(self, event_id: str, deadline: float | None) -> tuple[Round, bool]:
        """The round of an event; whether the caller is the one who has to start its handlers."""
        with self._lock:
            found = self._rounds.get(event_id)
            if found is not None:
                return found, False
            found = self._rounds[event_id] = Round(event_id, deadline)
            if len(self._rounds) > self._remembered:
                self._rounds.popitem(last=False)
            return found, True


def _again(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """What is said of an event to whoever asks about it a second time: the decision, and nothing twice."""
    found = (each._replace(output=NOTHING, contexts=(), system_message=None) for each in answers)
    return tuple(each for each in found if each.verdict != "none" or each.stop)


def _kept(verdict: Verdict, *, is_claimed: bool) -> Verdict:
    """What is remembered: nothing large is held for ever, and of what somebody has heard the decision."""
    if is_claimed:
        verdict = replace(verdict, answers=_again(verdict.answers))
    texts = (text for each in verdict.answers for text in (each.output, each.reason, *each.contexts))
    size = sum(len(text) for text in texts if isinstance(text, str))
    return verdict if size <= KEPT_CHARACTERS else Verdict(error=TOO_LONG)
