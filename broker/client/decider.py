"""``Decider``: be asked what you think of an event before it happens, and answer.

    with Decider(["prx.lifecycle.tool_call_start"], name="guard") as asks:
        for ask in asks:
            ask.reply([Answer("guard", "deny", "not here")])

Asks come on a lane, on which the thread that takes them waits; answers leave on it too, from any thread. The
control connection's thread sees to it that there is a lane as long as there is a broker. What an answer means
is :mod:`broker.protocol.decisions`'s.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgpack

from ..logs import get_logger
from ..places import check_directory, endpoints, runtime_directory, spool_directory
from ..protocol.control import DECIDER_LANE
from ..protocol.decisions import FAILURES, Answer, Failure
from ..protocol.envelope import is_text
from ..protocol.errors import (
    ClosedError,
    DecodeError,
    ForkedError,
    LimitExceeded,
    RequestRefused,
)
from ..protocol.events import Event, decode_event
from ..protocol.limits import ANSWER_BYTES, ANSWERS, NAME_BYTES, PRIORITY
from ..protocol.messages import decode_message, encode_message
from ..protocol.topics import parse_patterns
from ..version import __version__
from .closing import Closing
from .core.asking import pack_answers
from .core.session import ControlSession, Identity, Note, Refused, Welcomed
from .lifetime import close_at_exit, forget
from .link import TICK_SECONDS, Link
from .publisher_id import new_key, new_publisher
from .spool import Spool
from .stream import Stream
from .subscriber import READY_SECONDS, SLICE_SECONDS, require_bus, unreachable

ASKS_AT_ONCE: Final = 64
"""Asks that :meth:`Decider.batch` returns at most, unless it is told another number."""

ERROR_CHARACTERS: Final = 500

TOGETHER: Final = 16
"""Answers that are sent as one, at most."""

SMALL_BYTES: Final = 4_096
"""A larger answer does not wait for others."""


class Ask:
    """One event that somebody wants an opinion on.

    ``event`` is the event, its payload decoded when asked for. ``deadline``: an answer is of no use after it,
    in seconds of :func:`time.monotonic`. ``cancelled``: the asker waits no longer.
    """

    __slots__ = ("_decider", "_done", "_lane", "_token", "cancelled", "deadline", "event")

    def __init__(self, decider: Decider, lane: Stream, token: int, event: Event, deadline: float) -> None:
        self.event = event
        self.deadline = deadline
        self.cancelled = False
        self._decider = decider
        self._lane = lane  # another broker may use the same numbers
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
    ``gather``: answers that the receiving thread gives while others are due leave together at the next
    :meth:`batch` or :meth:`flush`, which is cheaper where many asks come at once; who may be busy in between
    sees to a :meth:`flush` within milliseconds.

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
        self._path = addresses.lanes.removeprefix("ipc://")
        self._lane_name = key + DECIDER_LANE
        self._lane: Stream | None = None
        self._mended = threading.Event()  # set while there is a lane
        self._watching = select.epoll()
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
            finally:
                self._inside = False
                if self._closed:
                    self._let_go()

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
    def descriptor(self) -> int:
        """Readable while :meth:`batch` has something to do; it stays the same over a broker's restart."""
        return self._watching.fileno()

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
        lane = self._lane
        if lane is not None:
            lane.end()
        self._mended.set()
        with self._lock:
            if not self._inside:  # else this is a signal handler, and the wait below it ends now
                self._let_go()

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
            if self._waiting.get(ask._token) is ask:
                del self._waiting[ask._token]
            if self._closed or late or ask._lane is not self._lane:
                self._counts["too_late"] += 1
                return False
            self._counts["answered" if error is None else "failed"] += 1
            self._outbox.append(encode_message("answer", ask._token, answers=content, error=error))
            alone = not self._gather or not self._waiting or threading.get_ident() != self._receiver
            if alone or len(self._outbox) >= TOGETHER or len(content) > SMALL_BYTES:
                self.flush()
        return True

    def flush(self) -> None:
        """Send the answers that were gathered. Nobody has to call it but who gathers and is busy."""
        with self._answering:
            outbox, self._outbox = self._outbox, []
            if not outbox or self._closed:
                return
            lane = self._lane
            try:
                if lane is None:
                    raise ConnectionResetError
                lane.send(outbox)
            except OSError:  # no broker is there, or it does not read: nobody waits
                self._counts["too_late"] += len(outbox)
                self._lose(lane)

    # -- for the link's thread ----------------------------------------------------------------

    def tick(self, now: float, /) -> float:
        """See :class:`broker.client.link.Owner`: forget what was never answered, and see to the lane."""
        if self._session.welcomed:
            self._mend()
        with self._answering:
            for token in [token for token, ask in self._waiting.items() if now > ask.deadline]:
                del self._waiting[token]
        return TICK_SECONDS

    def note(self, note: Note) -> None:
        """See :class:`broker.client.link.Owner`."""
        if isinstance(note, Welcomed):
            self._spool.capacity = int(note.limits.get("spool_bytes", self._spool.capacity))
            self._mend()
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
        """See :class:`broker.client.link.Owner`: who takes the asks notices the end of the lane."""
        return None

    # -- parts --------------------------------------------------------------------------------

    def _take(self, most: int, deadline: float | None) -> list[Ask]:
        """Read what is there, or wait for one slice, or until ``deadline``, for the first."""
        asks, self._early = self._early, []
        left = SLICE_SECONDS if deadline is None else min(SLICE_SECONDS, deadline - time.monotonic())
        lane = self._lane
        if lane is None:
            if not asks and left > 0:
                self._mended.wait(left)
        else:
            try:
                if asks or left <= 0:
                    messages = lane.receive_now()
                else:
                    messages = lane.receive(max(1, round(left * 1000)))
            except OSError:
                self._lose(lane)
            else:
                for each in messages:
                    self._read(lane, each, asks)
        if len(asks) > most:
            asks, self._early = asks[:most], asks[most:]
        return asks

    def _read(self, lane: Stream, data: bytes, asks: list[Ask]) -> None:
        """Take one message of the broker; what is malformed is answered as a failure, or passed over."""
        try:
            kind, token, body = decode_message(data)
        except DecodeError:
            self._counts["refused"] += 1
            return
        if kind == "asked":
            deadline = time.monotonic() + body["left_ms"] / 1000
            try:
                event = decode_event(body["frame"])
            except DecodeError as error:
                self._counts["refused"] += 1
                self.answer(Ask(self, lane, token, _NO_EVENT, deadline), (), f"{error.code}: {error}")
                return
            if event.claim is not None:
                event.claim.load = self._spool.load
            self._counts["asked"] += 1
            ask = self._waiting[token] = Ask(self, lane, token, event, deadline)
            asks.append(ask)
        elif kind == "cancelled":
            cancelled = self._waiting.pop(token, None)
            if cancelled is not None:
                cancelled.cancelled = True
                self._counts["cancelled"] += 1
        elif kind == "deciding":
            self._held = not self._session.identity.patterns

    def _mend(self) -> None:
        """Have a lane, if that is possible: at first, and when the one before has ended."""
        with self._answering:
            before = self._lane
            if self._closed or (before is not None and before.alive):
                return
            if before is not None:
                self._drop(before)
            try:
                self._lane = Stream(self._path, self._lane_name)
            except OSError:  # the next tick tries again
                return
            self._watching.register(self._lane, select.EPOLLIN)
            self._mended.set()

    def _lose(self, lane: Stream | None) -> None:
        """``lane`` has ended, for whoever finds out."""
        with self._answering:
            if lane is not None and lane is self._lane and not self._closed:
                self._drop(lane)
                self._link.hello()  # most likely there is another broker: be asked again at once

    def _drop(self, lane: Stream) -> None:
        self._lane = None
        self._mended.clear()
        self._waiting.clear()
        with suppress(OSError):
            self._watching.unregister(lane)
        lane.close()

    def _let_go(self) -> None:
        """The descriptors of a closed decider."""
        with self._answering:
            lane, self._lane = self._lane, None
            if lane is not None:
                lane.close()
        self._watching.close()

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
                early += self._take(ASKS_AT_ONCE, deadline)  # the lane comes with the welcome
            self._early = early


_NO_EVENT: Final = Event.of("none", 0, bytes(16), 1, 0, None, "", None, b"{}")
