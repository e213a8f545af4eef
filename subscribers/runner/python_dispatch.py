"""An event, the handlers of one file that are called for it, and what becomes of their answers.

Decides which handlers are called, that a guard is called once for an event however it comes here, and when an
ask is answered. Calls are bounded at once, per handler and in what waits; what finds no room is counted.
Knows no socket: asks and events come in as values, and reports go out through a function.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import msgpack

from broker.client import handling
from broker.logs import get_logger
from broker.protocol.decisions import NOTHING, VERDICTS, Answer, Failure, answer_of
from broker.protocol.errors import BusError, shown
from broker.protocol.events import Event

from ..handlers.context import Context, answer_in
from ..handlers.decorators import RESULT_TOPIC
from ..handlers.happening import HandlerEvent
from ..handlers.registration import HandlerError, Registration
from ..runtimes.budget import Budget, Verdict
from ..runtimes.python_board import Board
from ..runtimes.python_caller import Caller, Outcome, Raised, Returned, TimedOut
from ..runtimes.python_threads import Threads
from ..runtimes.python_traceback import Fault
from .asking import Ask
from .python_claims import Claims
from .python_flights import Flight, Flights, Result
from .python_lanes import Task
from .python_reports import Reporter, Run, failure_of
from .python_round import Entry, Round

ERROR_CHARACTERS: Final = 200

PUT_OFF: Final = 1_000
"""Events that may wait for the end of a change of versions."""

LATE: Final = Result(None, "nobody waited for it any more when its turn came")

TOPICS: Final = 4_096
"""Topics whose handlers are remembered."""

log = get_logger("subscribers.python")


class Publish(Protocol):
    """Publishes what a handler wants published while it handles ``event``; whether it was taken."""

    def __call__(
        self, event: Event, topic: str, payload: Mapping[str, Any], /, *, session_id: str | None
    ) -> bool:
        """Hand it to the bus."""


class Limits(NamedTuple):
    """``total`` calls at once, ``per_handler`` of them of one handler; ``queue`` more may wait."""

    total: int = 32
    per_handler: int = 8
    queue: int = 1_024


class _Call:
    """One call of one handler, to be made by whoever has its turn."""

    __slots__ = ("_dispatcher", "arrived", "entry", "event", "event_id", "flight")

    def __init__(
        self,
        dispatcher: HandlerDispatcher,
        entry: Entry,
        event: Event,
        event_id: str,
        flight: Flight | None,
        arrived: float,
    ) -> None:
        self._dispatcher = dispatcher
        self.entry = entry
        self.event = event
        self.event_id = event_id
        self.flight = flight
        self.arrived = arrived

    def __call__(self, on_long: Callable[[], None], /) -> None:
        self._dispatcher.make(self, on_long)


class HandlerDispatcher:
    """The handlers of one file. Thread-safe.

    ``name`` is the file's in reports. Between :meth:`share` and :meth:`alone` another version of the file is
    in service too: an ask is then decided by the first of those that were asked, and guards for events that
    nobody asks about wait, so that an observer never takes an ask's place.
    """

    def __init__(
        self,
        registrations: Sequence[Registration],
        *,
        name: str,
        publish: Publish,
        caller: Caller,
        threads: Threads,
        reporter: Reporter,
        limits: Limits,
        board: Board | None = None,
    ) -> None:
        entries = [Entry(number, each, name) for number, each in enumerate(registrations)]
        self._watchers = [entry for entry in entries if entry.registration.kind == "on"]
        self._guards = [entry for entry in entries if entry.registration.kind == "decide"]
        self._publish = publish
        self._caller = caller
        self._threads = threads
        self._reporter = reporter
        self._board = board
        self._budget: Budget[_Call] = Budget(
            total=limits.total, per_hook=limits.per_handler, queue=limits.queue
        )
        self._lock = threading.Lock()
        self._flights = Flights()
        self._topics: dict[tuple[str, str], list[Entry]] = {}
        self._counts: Counter[str] = Counter()
        self._sharing = threading.Lock()
        self._put_off: deque[Event] = deque()
        self._claims: Claims | None = None
        self._catching_up = False  # whether calls that were put off wait for their thread

    # -- what comes from the bus --------------------------------------------------------------

    def ask(self, ask: Ask, failure: Failure) -> list[Task]:
        """The calls that an ask makes necessary; it is answered when the last of them is over.

        ``failure`` tells which guards it was sent to.
        """
        event = ask.event
        if ask.cancelled or time.monotonic() > ask.deadline:
            self._count("late")
            return []
        try:
            guards = self._wanted(self._guards, failure, event)
        except BusError as error:
            ask.fail(f"the payload cannot be had: {error}")
            return []
        event_id = event.id
        if not guards:
            ask.reply([])
            return []
        if self._claims is not None and not self._claims.take("decide", event_id):
            for entry in guards:  # the copy that everybody sees is not our business either
                self._flights.land(self._flights.begin(event_id, entry.number)[0], Result(None))
            ask.reply([])
            return []
        ordered = Round(ask, guards)
        calls: list[Task] = []
        for place, entry in enumerate(guards):
            flight, is_new = self._flights.begin(event_id, entry.number)
            if is_new:
                calls.append(_Call(self, entry, event, event_id, flight, time.monotonic()))
            self._flights.claim(flight, partial(ordered.hear, place), ordered.waits)
        return calls

    def event(self, event: Event) -> list[Task]:
        """The calls that an event makes necessary which everybody sees."""
        event_id, now = event.id, time.monotonic()
        calls: list[Task] = []
        try:
            watchers = self._wanted(self._watchers, "", event)
            if watchers and (self._claims is None or self._claims.take("on", event_id)):
                calls += [_Call(self, entry, event, event_id, None, now) for entry in watchers]
            if self._guards and event.topic != RESULT_TOPIC:
                calls += self._observing(event, event_id, now)
        except BusError as error:
            self._count("unreadable")
            log.error("an event could not be handled", id=event_id, error=str(error))
        return calls

    def _observing(self, event: Event, event_id: str, now: float) -> list[Task]:
        """Calls of guards for an event that nobody may have asked about, or not yet."""
        guards = self._topic(self._guards, "both", event.topic)
        new = [entry for entry in guards if not self._flights.knows(event_id, entry.number)]
        new = _passing(new, event)
        if not new:
            return []
        if self._claims is not None:
            with self._sharing:
                if self._claims is not None:
                    self._put_off.append(event)
                    if len(self._put_off) > PUT_OFF:
                        self._put_off.popleft()
                        self._count("dropped")
                    return []
        return self._begin(new, event, event_id, now)

    def _begin(self, entries: list[Entry], event: Event, event_id: str, now: float) -> list[Task]:
        calls: list[Task] = []
        for entry in entries:
            flight, is_new = self._flights.begin(event_id, entry.number)
            if is_new:
                calls.append(_Call(self, entry, event, event_id, flight, now))
        return calls

    def _wanted(self, entries: list[Entry], which: str, event: Event) -> list[Entry]:
        return _passing(self._topic(entries, which, event.topic), event)

    def _topic(self, entries: list[Entry], which: str, topic: str) -> list[Entry]:
        """Those that ask for ``topic``; ``which`` is a failure policy of guards, ``both``, or empty."""
        key = (which, topic)
        found = self._topics.get(key)
        if found is None:
            found = [entry for entry in entries if entry.registration.wants_topic(topic)]
            if which in ("open", "closed"):
                found = [entry for entry in found if entry.registration.failure == which]
            if len(self._topics) < TOPICS:
                self._topics[key] = found
        return found

    def share(self, claims: Claims) -> None:
        """Another version comes into service: claim what is handled from now on."""
        self._claims = claims

    def alone(self) -> None:
        """It is gone: handle what was put off, as far as the other one has not, and claim no longer."""
        calls: list[Task] = []
        with self._sharing:
            claims, self._claims = self._claims, None
            waiting, self._put_off = self._put_off, deque()
        for event in waiting:
            event_id = event.id
            guards = self._topic(self._guards, "both", event.topic)
            new = [entry for entry in guards if not self._flights.knows(event_id, entry.number)]
            if not new or (claims is not None and not claims.take("decide", event_id)):
                continue
            with suppress(BusError):  # its payload was read before, and may have expired since
                calls += self._begin(_passing(new, event), event, event_id, time.monotonic())
        if calls:
            self._catching_up = True
            self._threads.run(lambda: self._make_all(calls))

    def _make_all(self, calls: list[Task]) -> None:
        try:
            for call in calls:
                call(_nothing)
        finally:
            self._catching_up = False

    # -- calling ------------------------------------------------------------------------------

    def make(self, call: _Call, on_long: Callable[[], None]) -> None:
        """Make a call now, or when there is room for it."""
        if self._is_late(call):
            return
        with self._lock:
            verdict = self._budget.offer(call.entry.name, call, _bytes_of(call.event))
        if verdict is Verdict.START:
            self._start(call, on_long)
        elif verdict is Verdict.DROP:
            self._count("dropped")
            if call.flight is not None:
                self._flights.land(call.flight, Result(None, "too many calls wait for it"))

    def _start(self, call: _Call, on_long: Callable[[], None] | None) -> None:
        registration, event = call.entry.registration, call.event
        began = time.monotonic()
        timeout_s = registration.timeout_s
        slot = -1
        if self._board is not None:
            deadline_ns = int((began + timeout_s) * 1e9)
            slot = self._board.put(deadline_ns, call.entry.board_name, call.event_id.encode())
        context = Context(
            registration,
            call.entry.name,
            began + timeout_s,
            partial(self._publish, event),
            event.session_id,
        )

        def done(outcome: Outcome) -> None:
            if self._board is not None:
                self._board.take(slot)
            self._told(call, outcome, began - call.arrived)

        try:
            with handling(event):
                self._caller.start(
                    registration,
                    (HandlerEvent(event), context),
                    timeout_s,
                    done,
                    on_long,
                    partial(self._ended, call.entry.name),
                )
        except RuntimeError as error:  # no thread can be started for it
            done(Raised(Fault(f"it could not be called: {error}", None, None, ""), 0.0))
            self._ended(call.entry.name)

    def _told(self, call: _Call, outcome: Outcome, waited_s: float) -> None:
        """What came of a call: first the reply, then the report."""
        if call.flight is not None:
            outcome, result = _result(call.entry.registration, outcome)
            self._flights.land(call.flight, result)
        self._count(_status(outcome))
        self._reporter.add(
            Run(
                call.entry.registration,
                call.entry.name,
                call.event,
                outcome,
                waited_s,
                call.flight,
                time.monotonic(),
            )
        )

    def _ended(self, name: str) -> None:
        """A call is really over: what waits for its place may begin, in another thread."""
        while True:
            with self._lock:
                following = self._budget.finish(name)
            if following is None:
                return
            name, call = following
            if not self._is_late(call):
                self._threads.run(partial(self._start, call, None))
                return

    def _is_late(self, call: _Call) -> bool:
        """Whether a call whose turn has come is given up, because all who asked for it wait no longer."""
        if call.flight is None or not self._flights.give_up(call.flight, LATE, time.monotonic()):
            return False
        self._count("late")
        return True

    # -- counting -----------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether calls are under way that may come to an end, or are about to begin."""
        return self._catching_up or self._budget.running > self._caller.stuck

    @property
    def running(self) -> int:
        """Calls under way, those that are stuck among them."""
        return self._budget.running

    @property
    def waiting(self) -> int:
        """Calls that wait for room."""
        return self._budget.waiting

    def counters(self) -> dict[str, Any]:
        """What the broker's status shows of this process."""
        with self._lock:
            counts = dict(self._counts)
            running, waiting = self._budget.running, self._budget.waiting
        return {
            "hooks": len(self._watchers) + len(self._guards),
            "runs": counts,
            "runs_now": running,
            "runs_waiting": waiting,
            "runs_dropped": counts.get("dropped", 0),
            "stuck": self._caller.stuck,
            "reports_dropped": self._reporter.dropped,
        }

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1


def _nothing() -> None:
    """Nobody waits for this thread."""


def _passing(entries: list[Entry], event: Event) -> list[Entry]:
    """Those whose filters let the event pass; raises what :attr:`Event.payload` raises."""
    if not any(entry.registration.filters for entry in entries):
        return entries
    payload = event.payload
    return [entry for entry in entries if entry.registration.wants_payload(payload)]


def _result(registration: Registration, outcome: Outcome) -> tuple[Outcome, Result]:
    """What a guard's call comes to; a value that is no answer makes it a failure."""
    if isinstance(outcome, Returned):
        try:
            answer = answer_in(outcome.value, registration)
            if answer is not None and not _is_simple(answer):
                _check_sendable(answer)
            return outcome, Result(answer)
        except HandlerError as error:
            fault = Fault(str(error), registration.path, registration.line, "")
            outcome = Raised(fault, outcome.seconds)
    return outcome, Result(None, failure_of(outcome))


def _is_simple(answer: Answer) -> bool:
    """Whether the answer is one that can be sent for certain: a verdict, and perhaps a plain reason."""
    if answer.updated_input is not None or answer.output is not NOTHING or answer.contexts:
        return False
    if answer.stop_reason is not None or answer.system_message is not None or answer.verdict not in VERDICTS:
        return False
    return answer.reason is None or (type(answer.reason) is str and answer.reason.isascii())


def _check_sendable(answer: Answer) -> None:
    """A handler may put anything into an answer; raises :class:`HandlerError` for what cannot be sent."""
    try:
        answer_of(msgpack.unpackb(msgpack.packb(answer.fields())))
    except Exception as error:
        raise HandlerError(f"its answer cannot be sent: {shown(error, ERROR_CHARACTERS)}") from None


def _status(outcome: Outcome) -> str:
    if isinstance(outcome, Returned):
        return "ok"
    return "timeout" if isinstance(outcome, TimedOut) else "failed"


def _bytes_of(event: Event) -> bytes:
    return event.inline
