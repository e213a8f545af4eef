"""``Decider``: be asked what you think of an event before it happens, and answer.

    with Decider(["prx.lifecycle.tool_call_start"], name="guard") as asks:
        for ask in asks:
            ask.reply([Answer("guard", "deny", "not here")])

Asks come on a connection of their own, which belongs to the thread that takes them; answers leave on
another one, so that any thread can give them. What an answer means is :mod:`broker.protocol.decisions`'s.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgpack
import zmq

from ..logs import get_logger
from ..places import check_directory, endpoints, runtime_directory, spool_directory
from ..protocol.control import DECIDER_LANE, decode_together, encode_message, encode_together
from ..protocol.decisions import FAILURES, Answer, Failure
from ..protocol.errors import (
    ClosedError,
    DecodeError,
    ForkedError,
    LimitExceeded,
    RequestRefused,
)
from ..protocol.events import Event, decode_event, is_text
from ..protocol.limits import ANSWER_BYTES, ANSWERS, NAME_BYTES, PRIORITY
from ..protocol.topics import parse_patterns
from ..version import __version__
from .closing import Closing
from .core.asking import pack_answers
from .core.session import ControlSession, Identity, Note, Refused, Welcomed
from .lifetime import close_at_exit, forget
from .link import TICK_SECONDS, Link
from .publisher_id import new_key, new_publisher
from .sockets import control_socket
from .spool import Spool
from .subscriber import READY_SECONDS, SLICE_SECONDS, require_bus, unreachable

ANSWER_LANE: Final = b"\x02"
ASKS_AT_ONCE: Final = 64
"""Asks that :meth:`Decider.batch` returns at most, unless it is told another number."""

ERROR_CHARACTERS: Final = 500

_EVENTS: Final = int(zmq.EVENTS)
_READABLE: Final = int(zmq.POLLIN)

TOGETHER: Final = 16
"""Answers that are sent as one, at most."""

SMALL_BYTES: Final = 4_096
"""A larger answer does not wait for others."""


class Ask:
    """One event that somebody wants an opinion on.

    ``event`` is the event, its payload decoded when asked for. ``deadline``: an answer is of no use after it,
    in seconds of :func:`time.monotonic`. ``cancelled``: the asker waits no longer.
    """

    __slots__ = ("_decider", "_done", "_token", "cancelled", "deadline", "event")

    def __init__(self, decider: Decider, token: int, event: Event, deadline: float) -> None:
        self.event = event
        self.deadline = deadline
        self.cancelled = False
        self._decider = decider
        self._token = token
        self._done = False

    @property
    def id(self) -> str:
        """The id of the event."""
        return self.event.id

    def reply(self, answers: Iterable[Answer]) -> bool:
        """Answer, from any thread, once; no answers: there is nothing to say.

        False when it is too late: answered before, cancelled, or past the deadline. Raises
        :class:`LimitExceeded` for too many answers, TypeError or ValueError for what msgpack cannot say and
        :class:`SpoolFull` when a large answer finds no room; the ask can be answered again then.
        """
        return self._decider.answer(self, tuple(answers), None)

    def fail(self, why: str) -> bool:
        """Say that there is no answer because something went wrong: the failure policy decides."""
        return self._decider.answer(self, (), why[:ERROR_CHARACTERS])


class Decider(Closing):
    """Answers asks about the topics that ``patterns`` match, under ``name``.

    ``priority``: its place among the deciders of an ask, the lower the earlier. ``failure`` says what its
    silence means: ``"open"`` no opinion, ``"closed"`` a denial; one that fails closed and dies is a denial
    until it is back. ``wait``: seconds to wait for a bus. ``report`` adds to the counters in its status.
    ``gather``: answers that the receiving thread gives leave together at the next :meth:`batch` or
    :meth:`flush`, which is cheaper where many asks come at once; who may be busy in between sees to a
    :meth:`flush` within milliseconds.

    Raises :class:`TopicError` and :class:`LimitExceeded` for what can never work, :class:`BusUnreachable`
    and :class:`RequestRefused`. Once the constructor has returned, it is asked.
    """

    def __init__(
        self,
        patterns: Iterable[str],
        *,
        name: str | None = None,
        priority: int = 0,
        failure: Failure = "open",
        wait: float = 0.0,
        report: Callable[[], Mapping[str, Any]] | None = None,
        gather: bool = False,
        runtime_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.patterns = parse_patterns([patterns] if isinstance(patterns, str) else patterns)
        self.name = name if name is not None else f"decider-{os.getpid()}"
        if not is_text(self.name, NAME_BYTES) or not self.name:
            raise LimitExceeded(f"name must be a string of 1 to {NAME_BYTES} bytes, not {name!r}")
        if type(priority) is not int or not -PRIORITY <= priority <= PRIORITY:
            raise LimitExceeded(
                f"priority must be a whole number from -{PRIORITY:,} to {PRIORITY:,}, not {priority!r}"
            )
        if failure not in FAILURES:
            raise ValueError(f"failure must be one of {', '.join(FAILURES)}, not {failure!r}")
        self.runtime_dir = runtime_directory(runtime_dir)
        check_directory(self.runtime_dir)
        addresses = endpoints(self.runtime_dir)
        require_bus(addresses.control, self.runtime_dir, wait)
        self._pid = os.getpid()
        self._report = report
        self._gather = gather
        self._outbox: list[bytes] = []
        self._receiver = 0
        self._counts = dict.fromkeys(("asked", "answered", "failed", "cancelled", "too_late", "refused"), 0)
        self._waiting: dict[int, Ask] = {}
        self._refused: Refused | None = None
        self._held = True  # until the broker says that it asks us
        self._lock = threading.RLock()  # a signal handler may close us in the middle of a wait
        self._inside = False
        self._early: list[Ask] = []
        self._answering = threading.RLock()
        self._spool = Spool(spool_directory(self.runtime_dir))
        key = new_key()
        self._lane = control_socket(addresses.control, key + DECIDER_LANE, probe=True)
        self._receive = super(zmq.Socket, self._lane).recv
        self._look: Callable[[int], Any] = super(zmq.Socket, self._lane).get
        self._slice_ms = 0
        self.descriptor = int(self._lane.fd)
        self._answers = control_socket(addresses.control, key + ANSWER_LANE)
        texts = tuple(pattern.text for pattern in self.patterns)
        identity = Identity("decider", self.name, self._pid, __version__, texts, priority, failure)
        self._session = ControlSession(identity)
        self._link = Link(addresses.control, self._session, self, key)
        self._closed = False
        self._link.begin()
        close_at_exit(self)
        try:
            self._become_ready(READY_SECONDS + wait)
        except BaseException:
            self.close()
            raise

    # -- being asked --------------------------------------------------------------------------

    def batch(self, max_asks: int = ASKS_AT_ONCE, timeout: float | None = None) -> list[Ask]:
        """At least one ask and at most ``max_asks``, in order; an empty list after ``timeout`` seconds.

        Without ``timeout`` it waits until there is one or the decider is closed (then the list is
        empty). For one thread at a time. Raises :class:`ClosedError` and :class:`ForkedError`.
        """
        if os.getpid() != self._pid:
            raise ForkedError("this Decider was opened in another process; open a new one after fork")
        if self._closed:
            raise ClosedError("this Decider is closed")
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._outbox:
            self.flush()
        self._receiver = threading.get_ident()
        with self._lock:
            self._inside = True
            try:
                while not self._closed:
                    asks = self._take(max_asks, deadline)
                    if asks or (deadline is not None and time.monotonic() >= deadline):
                        return asks
                return []
            except zmq.ZMQError:
                if self._closed:  # by a signal handler, while this thread waited
                    return []
                raise
            finally:
                self._inside = False
                if self._closed:
                    self._lane.close(0)

    def __iter__(self) -> Iterator[Ask]:
        while not self._closed:
            yield from self.batch(1, SLICE_SECONDS)

    def hold(self) -> None:
        """Be asked nothing more; what was asked before still comes, and can be answered.

        Once :attr:`held` is true, no more comes.
        """
        self._session.identity = self._session.identity._replace(patterns=())
        self._link.hello()

    @property
    def held(self) -> bool:
        """Whether the broker has ceased to ask, and all that it asked before has been taken."""
        return self._held

    # -- life ---------------------------------------------------------------------------------

    @property
    def stats(self) -> dict[str, int]:
        """Every counter of this decider.

        ``asked``; ``answered``; ``failed`` (said that there is no answer); ``cancelled``; ``too_late``
        (answered when nobody waited any more); ``refused`` (asks that were no events); ``waiting`` now.
        """
        return {**self._counts, "waiting": len(self._waiting)}

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    def close(self) -> None:
        """Be asked no more; who waits for an answer hears that we left. Idempotent."""
        if self._closed or os.getpid() != self._pid:
            return
        forget(self)
        self.flush()
        self._closed = True
        self._link.close()
        with self._lock:
            if self._inside:  # this is a signal handler, and the wait below it goes on: let it end
                self._lane.rcvtimeo = 1
            else:
                self._lane.close(0)
        with self._answering:
            self._answers.close()

    def forked(self) -> None:
        """A forked child is noticed by its process id, in every call."""

    # -- for asks -----------------------------------------------------------------------------

    def answer(self, ask: Ask, answers: tuple[Answer, ...], error: str | None) -> bool:
        """See :meth:`Ask.reply` and :meth:`Ask.fail`."""
        if os.getpid() != self._pid:
            raise ForkedError("this Decider was opened in another process; open a new one after fork")
        content: bytes | list[object] = self._content(answers)
        with self._answering:
            late = ask._done or ask.cancelled or time.monotonic() > ask.deadline
            ask._done = True
            self._waiting.pop(ask._token, None)
            if self._closed or late:
                self._counts["too_late"] += 1
                return False
            self._counts["answered" if error is None else "failed"] += 1
            self._outbox.append(encode_message("answer", ask._token, answers=content, error=error))
            alone = not self._gather or threading.get_ident() != self._receiver
            if alone or len(self._outbox) >= TOGETHER or len(content) > SMALL_BYTES:
                self.flush()
        return True

    def flush(self) -> None:
        """Send the answers that were gathered. Nobody has to call it but who gathers and is busy."""
        with self._answering:
            outbox, self._outbox = self._outbox, []
            if not outbox or self._closed:
                return
            try:
                if self._session.many:
                    self._answers.send(encode_together(outbox), zmq.NOBLOCK)
                else:
                    for each in outbox:
                        self._answers.send(each, zmq.NOBLOCK)
            except zmq.Again:  # no broker is there, and so nobody waits
                self._counts["too_late"] += len(outbox)

    # -- for the link's thread ----------------------------------------------------------------

    def tick(self, now: float, /) -> float:
        """See :class:`broker.client.link.Owner`: forget what was never answered."""
        with self._answering:
            for token in [token for token, ask in self._waiting.items() if now > ask.deadline]:
                del self._waiting[token]
        return TICK_SECONDS

    def note(self, note: Note) -> None:
        """See :class:`broker.client.link.Owner`."""
        if isinstance(note, Welcomed):
            self._spool.capacity = int(note.limits.get("spool_bytes", self._spool.capacity))
        elif isinstance(note, Refused):
            self._refused = note
            get_logger("broker.client").warning("refused", decider=self.name, reason=note.error)

    def counters(self) -> dict[str, Any]:
        """See :class:`broker.client.link.Owner`."""
        if self._report is None:
            return self.stats
        try:
            extra = msgpack.unpackb(msgpack.packb(dict(self._report())))  # of plain types
        except Exception as error:
            get_logger("broker.client").warning("a report failed", decider=self.name, error=repr(error)[:200])
            extra = {"report_errors": 1}
        return {**self.stats, **extra}

    def watched(self) -> int | None:
        """See :class:`broker.client.link.Owner`: a DEALER comes back by itself."""
        return None

    # -- parts --------------------------------------------------------------------------------

    def _take(self, most: int, deadline: float | None) -> list[Ask]:
        """Read what is there, or wait for one slice, or until ``deadline``, for the first."""
        asks, self._early = self._early[:most], self._early[most:]
        left = SLICE_SECONDS if deadline is None else min(SLICE_SECONDS, deadline - time.monotonic())
        try:
            if asks or left <= 0:
                self._read(self._receive(zmq.NOBLOCK), asks)
            else:
                milliseconds = max(1, round(left * 1000))
                if milliseconds != self._slice_ms:
                    self._slice_ms = self._lane.rcvtimeo = milliseconds
                self._read(self._receive(), asks)
            if self._look(_EVENTS) & _READABLE:  # cheaper than a try that finds nothing
                while len(asks) < most:
                    self._read(self._receive(zmq.NOBLOCK), asks)
        except zmq.Again:
            pass
        return asks

    def _read(self, data: bytes, asks: list[Ask]) -> None:
        """Take one message of the broker; what is malformed is answered as a failure, or passed over."""
        try:
            messages = decode_together(data)
        except DecodeError:
            self._counts["refused"] += 1
            return
        for kind, token, body in messages:
            self._hear(kind, token, body, asks)

    def _hear(self, kind: str, token: int, body: dict[str, Any], asks: list[Ask]) -> None:
        if kind == "asked":
            deadline = time.monotonic() + body["left_ms"] / 1000
            try:
                event = decode_event(body["frame"])
            except DecodeError as error:
                self._counts["refused"] += 1
                self.answer(Ask(self, token, _NO_EVENT, deadline), (), f"{error.code}: {error}")
                return
            if event.claim is not None:
                event.claim.load = self._spool.load
            self._counts["asked"] += 1
            ask = self._waiting[token] = Ask(self, token, event, deadline)
            asks.append(ask)
        elif kind == "cancelled":
            cancelled = self._waiting.pop(token, None)
            if cancelled is not None:
                cancelled.cancelled = True
                self._counts["cancelled"] += 1
        elif kind == "deciding":
            self._held = not self._session.identity.patterns

    def _content(self, answers: tuple[Answer, ...]) -> bytes | list[object]:
        if len(answers) > ANSWERS:
            raise LimitExceeded(f"{len(answers):,} answers to one ask; at most {ANSWERS:,}")
        packed = pack_answers(answers)
        if len(packed) <= ANSWER_BYTES:
            return packed
        return self._spool.store(new_publisher().hex(), packed).fields()

    def _become_ready(self, seconds: float) -> None:
        """Wait until the broker knows both of us and our lane."""
        deadline = time.monotonic() + seconds
        early: list[Ask] = []
        with self._lock:
            while self._held:
                if self._refused is not None:
                    raise RequestRefused(self._refused.code, self._refused.error)
                if time.monotonic() > deadline:
                    raise unreachable(self.runtime_dir, seconds)
                early += self._take(ASKS_AT_ONCE, deadline)
            self._early = early


_NO_EVENT: Final = Event("none", 0, bytes(16), 1, 0, None, "", None, b"{}")
