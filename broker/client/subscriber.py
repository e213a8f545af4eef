"""``Subscriber``: events by pattern, many at a wake-up, with an exact account of what was missed.

The application's thread reads the socket itself while it waits for events: no hand-over. While it
is busy elsewhere the link's thread looks after the socket, because libzmq renews subscriptions
after a broker's restart only when somebody asks the socket. What a frame means is decided in
:mod:`broker.client.core.reading`.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgpack
import zmq

from ..logs import get_logger
from ..places import check_directory, endpoints, runtime_directory, spool_directory
from ..protocol.envelope import is_text
from ..protocol.errors import BusUnreachable, ClosedError, ForkedError, LimitExceeded, RequestRefused
from ..protocol.events import Event
from ..protocol.limits import NAME_BYTES
from ..protocol.topics import INBOX_PREFIX, parse_patterns, subscriptions
from ..version import __version__
from .closing import Closing
from .core.accounting import SWEEP_SECONDS
from .core.reading import Reader
from .core.session import ControlSession, Identity, Note, Refused, Welcomed
from .lifetime import close_at_exit, forget
from .link import TICK_SECONDS, Link
from .sockets import subscriber_socket
from .spool import Spool

READY_SECONDS: Final = 5.0
"""How long the constructor waits for a bus that is there to make the subscription effective."""

LOOK_SECONDS: Final = 0.5
"""How soon the link's thread notices that the application has gone to do something else."""

SLICE_SECONDS: Final = 0.25
"""Longest single wait on the socket, so that close() from another thread is noticed."""

FIRST_PROBE_SECONDS: Final = 0.002
LAST_PROBE_SECONDS: Final = 0.064

BATCH_EVENTS: Final = 1_024
"""Most events of one :meth:`Subscriber.batch`, unless told otherwise."""

BURST_EVENTS: Final = 32
"""Frames that hold as many events are taken one by one: each is in the processor's cache when it is read, and
nobody asks for one that is not there, which takes as long as reading several events.
"""

FRAMES: Final = 256
"""Most frames that are read before they are decoded; each may hold as many events, and 57 KiB."""


class Subscriber(Closing):
    """Receives the events whose topics match one of ``patterns``; ready when the constructor returns.

    ``patterns`` are at most 1,000; ``name`` is what status and reports call it. With ``last`` the last
    retained value of each topic comes first. ``wait`` is how many seconds to wait for a bus to
    appear (default: none). ``report`` gives more counters for the broker's status, such as a hook
    runner's own; it is called from another thread. Raises :class:`TopicError`, :class:`LimitExceeded` and
    :class:`BusUnreachable`.

    Iterating yields events for ever; it ends when the subscriber is closed. Safe to use from many
    threads (each event goes to one of them); not across a fork. ``emptied`` says whether the latest look
    left nothing unread.
    """

    def __init__(
        self,
        patterns: Iterable[str],
        *,
        name: str | None = None,
        last: bool = False,
        wait: float = 0.0,
        report: Callable[[], Mapping[str, Any]] | None = None,
        runtime_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.patterns = parse_patterns(patterns)
        self.name = name if name is not None else f"subscriber-{os.getpid()}"
        if not is_text(self.name, NAME_BYTES) or not self.name:
            raise LimitExceeded(f"name must be a string of 1 to {NAME_BYTES} bytes, not {name!r}")
        self.runtime_dir = runtime_directory(runtime_dir)
        check_directory(self.runtime_dir)
        addresses = endpoints(self.runtime_dir)
        require_bus(addresses.control, self.runtime_dir, wait)
        self._report = report
        self._report_errors = 0
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a signal handler may close us in the middle of a wait
        self._inside = False
        self._emptied = False
        self.emptied = False
        self._away = 0
        self._lag_ns = 0
        self._unread_since_ns = 0  # when the link's thread first saw events that nobody takes; 0: none
        self._queue: deque[Event] = deque()
        self._per_frame = 1  # events that a frame of the last look held
        self._next_sweep = time.monotonic() + SWEEP_SECONDS
        self._refused: Refused | None = None
        self._spool = Spool(spool_directory(self.runtime_dir))
        self._reader = Reader(self.patterns, self._spool.load)
        self._welcomes = 0
        self._inbox: bytes | None = None
        self._probe_pause = FIRST_PROBE_SECONDS
        self._next_probe = 0.0
        self._slice_ms = 0
        self._socket = subscriber_socket(addresses.egress)
        self._receive = super(zmq.Socket, self._socket).recv
        self.descriptor = int(self._socket.fd)
        self._touched: Callable[[], object] | None = None
        for prefix in subscriptions(self.patterns):
            self._socket.subscribe(prefix)
        texts = tuple(pattern.text for pattern in self.patterns)
        self._session = ControlSession(Identity("subscriber", self.name, self._pid, __version__, texts))
        self._link = Link(addresses.control, self._session, self)
        self._closed = False
        self._link.begin()
        close_at_exit(self)
        try:
            self._become_ready(READY_SECONDS + wait)
            if last:
                self._fetch_retained()
        except BaseException:
            self.close()
            raise

    # -- receiving ----------------------------------------------------------------------------

    def batch(self, max_events: int = BATCH_EVENTS, timeout: float | None = None) -> list[Event]:
        """At least one event and at most ``max_events``, in order; an empty list after ``timeout`` seconds.

        Without ``timeout`` it waits until there is an event or the subscriber is closed (then the
        list is empty). Raises :class:`ClosedError` when it was closed before, and :class:`ForkedError`.
        """
        if os.getpid() != self._pid:
            raise ForkedError("this Subscriber was opened in another process; open a new one after fork")
        if self._closed:
            raise ClosedError("this Subscriber is closed")
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            self._inside = True
            try:
                while not self._closed:
                    if self._queue:
                        return [self._queue.popleft() for _ in range(min(max_events, len(self._queue)))]
                    events = self._take(max_events, deadline)
                    if len(events) > max_events:  # the rest of a frame of many
                        self._queue.extend(events[max_events:])
                        del events[max_events:]
                    if events:
                        return events
                    if deadline is not None and time.monotonic() >= deadline:
                        break
                return []
            except zmq.ZMQError:
                if self._closed:  # by a signal handler, while this thread waited
                    return []
                raise
            finally:
                self._inside = False
                if self._closed:
                    self._socket.close(0)

    def __iter__(self) -> Iterator[Event]:
        while not self._closed:
            rest = iter(self.batch())
            try:
                yield from rest
            finally:
                self.put_back(rest)

    def put_back(self, events: Iterable[Event]) -> None:
        """Events that a broken-off loop did not see: they come first next time."""
        self._queue.extendleft(reversed(list(events)))

    def on_touched(self, call: Callable[[], object]) -> None:
        """Have ``call`` called when the link's thread has looked at the socket.

        Who waits on ``descriptor`` needs it: the look may have taken the descriptor's edge.
        """
        self._touched = call

    # -- life ---------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    @property
    def stats(self) -> dict[str, Any]:
        """Every counter of this subscriber.

        ``received``; ``missed`` (published for us and never arrived), with ``gaps`` by topic and
        ``gaps_by_source``; ``late``; ``away`` (times a broker came back); ``overdelivered`` and ``repeated``
        (received, but not for us or not again); ``refused`` by reason (frames that were no
        events); ``lag_ms`` (age of the newest event when it was received, or how long events have been
        waiting for somebody to read them, whichever is more); ``forgotten``.
        """
        reader, accounts, lag_ns = self._reader, self._reader.accounting, self._lag_ns
        since_ns = self._unread_since_ns
        if since_ns:
            lag_ns = max(lag_ns, time.time_ns() - since_ns)
        return {
            "received": reader.received,
            "missed": accounts.missed,
            "late": accounts.late,
            "away": self._away,
            "overdelivered": reader.overdelivered,
            "repeated": reader.repeated,
            "forgotten": accounts.forgotten,
            "lag_ms": round(lag_ns / 1e6, 3),
            "refused": dict(reader.refused),
            "gaps": dict(accounts.gaps),
            "gaps_by_source": dict(accounts.publishers),
        }

    def close(self) -> None:
        """Stop receiving. Idempotent; wakes a thread that waits for events within 250 ms."""
        if self._closed or os.getpid() != self._pid:
            return
        forget(self)
        self._closed = True
        self._link.close()
        with self._lock:
            if self._inside:  # this is a signal handler, and the wait below it goes on: let it end
                self._socket.rcvtimeo = 1
            else:
                self._socket.close(0)

    def forked(self) -> None:
        """A forked child is noticed by its process id, in every call."""

    # -- for the link's thread ----------------------------------------------------------------

    def tick(self, _now: float, /) -> float:
        """See :class:`broker.client.link.Owner`: renew subscriptions while the application is busy."""
        if self._inside or self._closed or not self._lock.acquire(blocking=False):
            return LOOK_SECONDS
        try:
            if not self._closed:
                if not int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
                    self._unread_since_ns = 0
                elif not self._unread_since_ns:
                    self._unread_since_ns = time.time_ns()
                if self._touched is not None:
                    self._touched()
        finally:
            self._lock.release()
        return TICK_SECONDS

    def note(self, note: Note) -> None:
        """See :class:`broker.client.link.Owner`."""
        if isinstance(note, Welcomed):
            self._spool.capacity = int(note.limits.get("spool_bytes", self._spool.capacity))
        elif isinstance(note, Refused):
            self._refused = note

    def counters(self) -> dict[str, Any]:
        """See :class:`broker.client.link.Owner`."""
        if self._report is None:
            return self.stats
        try:
            extra = msgpack.unpackb(msgpack.packb(dict(self._report())))  # of plain types
        except Exception as error:
            self._report_errors += 1
            get_logger("broker.client").warning(
                "a report failed", subscriber=self.name, error=repr(error)[:200]
            )
            extra = {"report_errors": self._report_errors}
        return {**self.stats, **extra}

    def watched(self) -> int | None:
        """See :class:`broker.client.link.Owner`: the socket, while the application is elsewhere."""
        return None if self._inside or self._closed else self.descriptor

    # -- parts, all under the lock ------------------------------------------------------------

    def _take(self, max_events: int, deadline: float | None) -> list[Event]:
        """Read what is there, or else wait for one slice or until ``deadline`` and read what has come."""
        frames: list[bytes] = []
        self.emptied = False
        most = min(FRAMES, max(1, max_events // self._per_frame))
        is_burst = self._per_frame >= BURST_EVENTS
        if is_burst or self._emptied or not self._drain(frames, most):
            self._emptied = False
            if not self._wait(frames, deadline):
                return []
            if not is_burst:
                self._drain(frames, most - 1)
        now_ns = time.time_ns()
        self._unread_since_ns = 0
        events = self._reader.feed(frames, now_ns)
        self._per_frame = max(1, len(events) // len(frames), self._per_frame // 2)
        if events:
            self._lag_ns = max(0, now_ns - events[-1].time_ns)
        if self._reader.welcomes > self._welcomes or self._inbox is not None:
            self._look_after_barrier()
        return events

    def _drain(self, frames: list[bytes], most: int) -> bool:
        """Take up to ``most`` frames that are there; whether there is any."""
        append, receive = frames.append, self._receive
        try:
            for _ in range(most):
                append(receive(zmq.NOBLOCK))
        except zmq.Again:
            self._emptied = self.emptied = True  # the next look need not ask again before it waits
        return bool(frames)

    def _wait(self, frames: list[bytes], deadline: float | None) -> bool:
        """Wait for the first frame; meanwhile do what is due. Whether one came."""
        now = time.monotonic()
        left = SLICE_SECONDS if deadline is None else min(SLICE_SECONDS, deadline - now)
        if self._inbox is not None:
            left = min(left, self._next_probe - now)
        if now >= self._next_sweep:
            self._next_sweep = now + SWEEP_SECONDS
            self._reader.accounting.sweep(time.time_ns())
        try:
            if left > 0:
                milliseconds = max(1, round(left * 1000))
                if milliseconds != self._slice_ms:
                    self._slice_ms = self._socket.rcvtimeo = milliseconds
                frames.append(self._receive())
            else:
                frames.append(self._receive(zmq.NOBLOCK))
        except zmq.Again:
            self.emptied = True
            if self._inbox is not None:
                self._probe(time.monotonic())
            return False
        return True

    def _look_after_barrier(self) -> None:
        """Each welcome begins the barrier, a second one also means that we were away; a probe ends it.

        Not before the welcome: libzmq sends all subscriptions of a new connection in the order of
        their bytes, so an inbox that is among them could be heard before the last pattern is.
        """
        if self._reader.welcomes > self._welcomes:
            if self._welcomes:
                self._away += 1
                self._link.hello()
            self._welcomes = self._reader.welcomes
            self._begin_barrier()
        if self._inbox is not None and self._inbox in self._reader.inboxes:
            self._socket.unsubscribe(b"0" + INBOX_PREFIX + self._inbox + b"\0")
            self._reader.inboxes.clear()
            self._inbox = None

    def _begin_barrier(self) -> None:
        """A new inbox for each barrier: an old probe still under way must not end it."""
        if self._inbox is not None:
            self._socket.unsubscribe(b"0" + INBOX_PREFIX + self._inbox + b"\0")
        self._inbox = os.urandom(8).hex().encode()
        self._socket.subscribe(b"0" + INBOX_PREFIX + self._inbox + b"\0")
        self._probe_pause = FIRST_PROBE_SECONDS
        self._probe(time.monotonic())

    def _probe(self, now: float) -> None:
        if self._inbox is not None:
            self._next_probe = now + self._probe_pause
            self._probe_pause = min(self._probe_pause * 2, LAST_PROBE_SECONDS)
            with suppress(ClosedError):  # closed meanwhile
                self._link.send("probe", inbox=self._inbox.decode())

    def _become_ready(self, seconds: float) -> None:
        """Wait for the welcome and for a probe to come through the data plane; keep the events met."""
        deadline = time.monotonic() + seconds
        with self._lock:
            self._inside = True
            try:
                while self._welcomes == 0 or self._inbox is not None:
                    if self._refused is not None:
                        raise RequestRefused(self._refused.code, self._refused.error)
                    if time.monotonic() > deadline:
                        raise unreachable(self.runtime_dir, seconds)
                    self._queue.extend(self._take(BATCH_EVENTS, deadline))
            finally:
                self._inside = False
        self._reader.accounting.ready(time.time_ns())

    def _fetch_retained(self) -> None:
        """The last values of our topics come before everything that was met meanwhile."""
        after: int | None = 0
        events: list[Event] = []
        patterns = [pattern.text for pattern in self.patterns]
        while after is not None:
            pending = self._link.start("retained", READY_SECONDS, patterns=patterns, after=after)
            body = self._link.wait(pending, "the request for retained values").body
            events += self._reader.retained(body["frames"])
            after = body["next"]
        known = {event.id for event in events}
        with self._lock:
            self._queue = deque(events + [event for event in self._queue if event.id not in known])


def require_bus(endpoint: str, directory: str, wait: float) -> None:
    """Wait at most ``wait`` seconds for the broker's socket; raises :class:`BusUnreachable`."""
    path = endpoint.removeprefix("ipc://")
    deadline = time.monotonic() + wait
    while not os.path.exists(path):
        if time.monotonic() >= deadline:
            raise unreachable(directory, wait)
        time.sleep(0.01)


def unreachable(directory: str, seconds: float) -> BusUnreachable:
    """What to raise when no bus has answered in ``directory`` within ``seconds``."""
    within = f" within {seconds:g} s" if seconds else ""
    return BusUnreachable(
        f"no bus answers in {directory!r}{within}; start one with 'prxbus up', or name its directory "
        "with runtime_dir or PRXBUS_RUNTIME_DIR"
    )
