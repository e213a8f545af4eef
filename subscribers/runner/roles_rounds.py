"""One event is handled once, whether it comes as an ask, as the copy that everybody sees, or as both.

Decides who handles it and who waits for what comes of it. Refuses to know how it is handled.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.errors import shown
from broker.protocol.events import Event

from ..hooks.module_hook import ModuleReturn
from ..hooks.role_chain import Walk
from .asking import Ask
from .roles_set import NOTHING, InForce, RoleSet
from .roles_view import Seen

REMEMBERED: Final = 16_384
"""Events that are remembered; the oldest go first."""

ANSWERED: Final = 4_096
ANSWERED_BYTES: Final = 33_554_432
"""Events of which answers are kept for asks that come later, and the bytes (32 MiB) of their payloads."""

ERROR_CHARACTERS: Final = 300

log = get_logger("subscribers.roles")


class Ran(NamedTuple):
    """A call that is over, to be told of: what came of it, and how long the event had waited for its turn."""

    hook: InForce
    seen: Seen
    said: ModuleReturn
    waited_s: float


class Result(NamedTuple):
    """What came of an event: answers, or why there are none."""

    answers: Sequence[Answer] = ()
    error: str | None = None


class Round:
    """One event on its way. ``claimed``: somebody has asked. ``walk`` and ``seen`` are there once it begins.

    ``within``: a hook of an event that is under way has caused it, and may wait for it: so it waits for none.

    ``deadline``: when nobody waits any more; None while nobody has asked. ``roles`` were in force when it
    began, ``places`` are those that it is for, ``ran`` the calls that are over. ``flushed`` is the text that
    the system prompt was given of what waited.
    """

    __slots__ = (
        *("__weakref__", "arrived", "claimed", "deadline", "event", "flushed", "key", "places", "ran"),
        *("roles", "seen", "waited_s", "waiting", "walk"),
    )

    def __init__(self, event: Event, arrived: float, *, within: bool = False) -> None:
        self.event = event
        self.arrived = arrived
        self.key = f"\0{event.id}" if within else event.session_id or f"\0{event.publisher}"
        self.claimed = False
        self.deadline: float | None = None
        self.flushed: str | None = None
        self.waiting: list[Ask] = []
        self.roles: RoleSet = NOTHING
        self.places: tuple[int, ...] = ()
        self.ran: list[Ran] = []
        self.waited_s = 0.0
        self.seen: Seen | None = None
        self.walk: Walk | None = None

    def is_wanted(self, now: float) -> bool:
        """Whether somebody waits for an answer."""
        return any(not ask.cancelled and now < ask.deadline for ask in self.waiting)

    def claim(self, ask: Ask) -> None:
        """Have an ask answered when it is over."""
        self.claimed = True
        self.waiting.append(ask)
        self.deadline = max(ask.deadline, self.deadline or 0.0)
        if self.walk is not None:
            self.walk.deadline = self.deadline


class _Over:
    """A round that is over: what came of it, and the round itself while somebody has still to tell of it."""

    __slots__ = ("found", "result")

    def __init__(self, found: Round, result: Result) -> None:
        self.found = weakref.ref(found)
        self.result = result


class Rounds:
    """The events of this process, by id. Thread-safe.

    Of an event that is over little is kept: no payload, and answers only of the last ``answered`` ones, by
    bytes too: an ask may still come, or come again because the broker was started anew.
    """

    def __init__(self, remembered: int = REMEMBERED, answered: int = ANSWERED) -> None:
        self._remembered = remembered
        self._answered = answered
        self._lock = threading.Lock()
        self._rounds: OrderedDict[str, Round | _Over] = OrderedDict()
        self._with_answers: deque[tuple[_Over, int]] = deque()
        self._bytes = 0

    def begin(self, event: Event, now: float, ask: Ask | None = None) -> Round | None:
        """The round of an event that is new, to be handled by the caller; None: somebody else sees to it.

        ``ask`` is answered when the round is over, which may be at once.
        """
        event_id = event.id
        with self._lock:
            found = self._rounds.get(event_id)
            if found is None:
                cause = None if event.caused_by is None else self._rounds.get(event.caused_by)
                begun = self._rounds[event_id] = Round(event, now, within=isinstance(cause, Round))
                if ask is not None:
                    begun.claim(ask)
                if len(self._rounds) > self._remembered:
                    self._rounds.popitem(last=False)
                return begun
            if ask is None:
                return None
            if isinstance(found, Round):
                found.claim(ask)
                return None
            result, told = found.result, found.found()
            if told is not None:
                told.claimed = True
        _answer(ask, result)
        return None

    def land(self, found: Round, result: Result) -> bool:
        """The round is over; whether what came of it has reached somebody who waits."""
        event_id = found.event.id
        with self._lock:
            waiting, found.waiting = found.waiting, []
            if event_id in self._rounds:
                over = self._rounds[event_id] = _Over(found, result)
                if result.answers:
                    self._keep(over, found.event)
        found.walk = found.seen = None
        replies = [_answer(ask, result) for ask in waiting]
        return any(replies)

    def _keep(self, over: _Over, event: Event) -> None:
        size = event.size
        self._with_answers.append((over, size))
        self._bytes += size
        while len(self._with_answers) > self._answered or self._bytes > ANSWERED_BYTES:
            oldest, size = self._with_answers.popleft()
            oldest.result = Result()
            self._bytes -= size


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
