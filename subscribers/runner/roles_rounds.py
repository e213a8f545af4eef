"""One event is handled once, whether it comes as an ask, as the copy that everybody sees, or as both.

Decides who handles it and who waits for what comes of it. Refuses to know how it is handled.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.errors import shown
from broker.protocol.events import Event

from ..hooks.module_hook import ModuleReturn
from ..hooks.role_chain import Walk
from .roles_set import InForce
from .roles_view import Seen

REMEMBERED: Final = 16_384
"""Events that are remembered; the oldest go first."""

ERROR_CHARACTERS: Final = 300

log = get_logger("subscribers.roles")


class Ask(Protocol):
    """As much of :class:`broker.client.decider.Ask` as is needed here."""

    event: Event
    deadline: float
    cancelled: bool

    def reply(self, answers: Iterable[Answer], /) -> bool:
        """Answer."""

    def fail(self, why: str, /) -> bool:
        """Say that there is no answer."""


class Ran(NamedTuple):
    """A call that is over, to be told of: what came of it, and how long the event had waited for its turn."""

    hook: InForce
    seen: Seen
    said: ModuleReturn
    waited_s: float


class Result:
    """What came of an event: answers, or why there are none."""

    __slots__ = ("answers", "error")

    def __init__(self, answers: Sequence[Answer] = (), error: str | None = None) -> None:
        self.answers = answers
        self.error = error


class Round:
    """One event on its way. ``claimed``: somebody has asked. ``walk`` and ``seen`` are there once it begins.

    ``deadline``: when nobody waits any more; None while nobody has asked. ``places`` are the roles that it is
    for, ``ran`` the calls that are over. ``flushed`` is the text that the system prompt was given of what
    waited.
    """

    __slots__ = (
        *("arrived", "claimed", "deadline", "event", "flushed", "key", "places", "ran", "result", "seen"),
        *("waited_s", "waiting", "walk"),
    )

    def __init__(self, event: Event, arrived: float) -> None:
        self.event = event
        self.arrived = arrived
        self.key = event.session_id or f"\0{event.publisher}"
        self.claimed = False
        self.deadline: float | None = None
        self.flushed: str | None = None
        self.result: Result | None = None
        self.waiting: list[Ask] = []
        self.places: tuple[int, ...] = ()
        self.ran: list[Ran] = []
        self.waited_s = 0.0
        self.seen: Seen | None = None
        self.walk: Walk | None = None

    def is_wanted(self, now: float) -> bool:
        """Whether somebody waits for an answer."""
        return any(not ask.cancelled and now < ask.deadline for ask in self.waiting)


class Rounds:
    """The events of this process, by id. Thread-safe."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._lock = threading.Lock()
        self._rounds: OrderedDict[str, Round] = OrderedDict()

    def begin(self, event: Event, now: float, ask: Ask | None = None) -> Round | None:
        """The round of an event that is new, to be handled by the caller; None: somebody else sees to it.

        ``ask`` is answered when the round is over, which may be at once.
        """
        event_id = event.id
        with self._lock:
            found = self._rounds.get(event_id)
            is_new = found is None
            if found is None:
                found = self._rounds[event_id] = Round(event, now)
                if len(self._rounds) > self._remembered:
                    self._rounds.popitem(last=False)
            result = found.result
            if ask is not None:
                found.claimed = True
                if result is None:
                    found.waiting.append(ask)
                    found.deadline = max(ask.deadline, found.deadline or 0.0)
                    if found.walk is not None and not is_new:
                        found.walk.deadline = found.deadline
        if result is not None and ask is not None:
            _answer(ask, result)
        return found if is_new else None

    def land(self, found: Round, result: Result) -> bool:
        """The round is over; whether what came of it has reached somebody who waits."""
        with self._lock:
            found.result = result
            waiting, found.waiting = found.waiting, []
        replies = [_answer(ask, result) for ask in waiting]
        found.walk = found.seen = None  # it is remembered for a while, and these are needed no more
        found.ran = []
        return any(replies)


def _answer(ask: Ask, result: Result) -> bool:
    """Tell an asker; whether it has reached it."""
    if ask.cancelled:
        return False
    try:
        if result.error is None:
            return ask.reply(result.answers)
        ask.fail(result.error)
    except Exception as error:  # a hook may put anything into an edit, and the spool may have no room for it
        log.error("an answer could not be sent", id=ask.event.id, error=shown(error, ERROR_CHARACTERS))
        ask.fail(f"the answer could not be sent: {type(error).__name__}")
    return False
