"""``Publisher``: hand an event to the bus in a few microseconds, and know what was not taken.

An event is checked, numbered, encoded and given to libzmq without waiting. What the bus does not
take (absent, held, full, too deep) is counted by its cause; what the caller got wrong raises.
Numbers are decided in :mod:`broker.client.core.numbering`, what travels together in
:mod:`broker.client.core.batching`, how it leaves in :mod:`broker.client.outlet`.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import time_ns
from typing import Any, Final

import zmq

from ..logs import get_logger
from ..places import check_directory, endpoints, runtime_directory, spool_directory
from ..protocol.beacons import encode_beacons
from ..protocol.envelope import Names, is_text
from ..protocol.errors import (
    BusUnreachable,
    ClosedError,
    ForkedError,
    LimitExceeded,
    QueueFull,
    RequestRefused,
)
from ..protocol.json_object import look_at_object
from ..protocol.limits import ASK_BYTES, DEPTHS, SOURCE_BYTES
from ..protocol.topics import DEPTH_BYTES
from ..version import __version__
from .asker import Asker
from .asking import Asking
from .closing import Closing
from .context import Cause, current, inherited
from .core.batching import GATHERED, LARGE_BYTES, LEAST_BYTES
from .core.numbering import Numbering, Stream
from .core.session import BatchesTold, ControlSession, Held, Identity, Note, Refused, Welcomed
from .lifetime import close_at_exit, forget
from .link import TICK_SECONDS, Link, Pending
from .names import KnownNames
from .options import (
    ABSENT_SECONDS,
    BLOCK_SECONDS,
    POLL_MS,
    RAISE_SECONDS,
    RETAIN_SECONDS,
    OnAbsent,
    OnFull,
    Oversize,
    check_options,
)
from .outlet import SHORT, Offer, Outlet, number
from .payloads import check_depth, content_of, encode_dict, encode_payload
from .publisher_id import new_key, new_publisher
from .spool import Spool

_FORKED: Final = "this Publisher was opened in another process; open a new one after fork"


class Publisher(Asking, Closing):
    """Publishes events under one name. Safe to use from many threads; not across a fork.

    ``source`` is who you are (at most 128 bytes), such as ``"my-agent/1.2"``. ``runtime_dir`` is the bus's
    directory (default: see :func:`broker.places.runtime_directory`).

    ``on_full`` says what happens when the queue to the broker has no room: ``"drop"`` counts, ``"block"``
    waits at most ``block_seconds`` and then raises :class:`QueueFull`, ``"raise"`` raises it at once.
    ``on_absent`` says what happens without a bus: ``"drop"`` waits 200 ms in the constructor, then counts
    drops until one appears; ``"raise"`` and ``"block"`` make the constructor raise :class:`BusUnreachable`:
    when there is none, or after ``block_seconds``. ``oversize`` says whether a payload above 64 KiB travels
    by claim check (up to 64 MiB) or is refused.

    Once the constructor has returned and ``ready`` is true, no event can be lost to a late connect.
    """

    def __init__(
        self,
        source: str,
        *,
        runtime_dir: str | os.PathLike[str] | None = None,
        on_full: OnFull = "drop",
        on_absent: OnAbsent = "drop",
        oversize: Oversize = "claim",
        block_seconds: float = BLOCK_SECONDS,
    ) -> None:
        check_options(on_full, on_absent, oversize)
        if not is_text(source, SOURCE_BYTES) or not source:
            raise LimitExceeded(f"source must be a string of 1 to {SOURCE_BYTES} bytes, not {source!r}")
        self.source = source
        self.runtime_dir = runtime_directory(runtime_dir)
        check_directory(self.runtime_dir)
        addresses = endpoints(self.runtime_dir)
        self.ready = False
        self._on_full = on_full
        self._oversize = oversize
        self._pid = os.getpid()
        self._outlet = Outlet(addresses.ingress, on_full, block_seconds, self._check_usable, self._current)
        self._lock = self._outlet.lock
        self._gathering = self._outlet.gathering
        self._offer: Offer = self._gathering.offer
        self._descriptor = int(self._outlet.socket.fd)
        self._answered = threading.Event()  # set when the broker has welcomed or refused us
        self._refusal: Refused | None = None
        came_with = inherited(os.environ)
        self._floor = came_with.depth
        self._numbering = Numbering(new_publisher(), source, time.monotonic())
        self._streams = self._numbering.streams
        self._names = KnownNames(source, came_with.event)
        self._known_names = self._names.known
        self._spool = Spool(spool_directory(self.runtime_dir))
        self._ask_bytes = ASK_BYTES
        self._dropped_absent = 0
        self._over_depth = 0
        self._claims = 0
        self._subscribed: set[bytes] = set()
        identity = Identity("publisher", source, self._pid, __version__)
        self._session = ControlSession(identity, self._numbering.publisher)
        key = new_key()
        self._link = Link(addresses.control, self._session, self, key)
        self._asker = Asker(addresses.lanes, key)
        self._closed = False
        self._link.begin()
        close_at_exit(self)
        there = os.path.exists(addresses.control.removeprefix("ipc://"))
        patience = {"drop": ABSENT_SECONDS, "raise": RAISE_SECONDS if there else 0.0, "block": block_seconds}
        self._await_bus(patience[on_absent], on_absent)

    # -- publishing ---------------------------------------------------------------------------

    def publish(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
        retain: bool = False,
    ) -> bool:
        """Hand one event to the bus; returns whether it was taken (else it was counted as dropped).

        ``payload`` is a JSON object as a dict, or already encoded as bytes. ``session_id`` is at most 256
        bytes. ``depth`` raises the depth beyond what the context says; 8 or more is dropped and counted.
        ``caused_by`` is the id of the event that led to this one (default: the one being handled).
        ``retain`` keeps it as the topic's last value.

        Raises :class:`TopicError`, :class:`SchemaError` and :class:`LimitExceeded` for what can never be
        published, :class:`SpoolFull` when a large payload cannot be stored, :class:`QueueFull` as ``on_full``
        says, :class:`ClosedError` and :class:`ForkedError`.
        """
        stream = self._streams.get(topic) or self._open(topic)
        context = current.get()
        if context is None and depth is None and caused_by is None:
            level = self._floor
            names = self._known_names.get(session_id) or self._names.pack(session_id, None, None)
        else:
            level = self._level(context, depth)
            if level >= DEPTHS:
                self._over_depth += 1
                return False
            names = self._names.pack(session_id, caused_by, context)
        if type(payload) is bytes and payload.isascii():
            try:
                look_at_object(payload)
            except Exception:  # of several kinds; the careful look says what is wrong
                encode_payload(payload, stream)
            body = payload
        elif type(payload) is dict:
            body = encode_dict(payload, stream)
        else:
            body = encode_payload(payload, stream)
        size = len(body)
        if retain or size >= LARGE_BYTES:
            return self._publish_slowly(stream, level, names, body, retain)
        cost = size + names.cost
        if cost < LEAST_BYTES:  # max() takes five times as long
            cost = LEAST_BYTES
        gathering, lock = self._gathering, self._lock
        taken = None
        try:
            lock.acquire()  # `with` takes twice as long
            now_ns = time_ns()
            batch = gathering.batch
            if (
                batch is not None
                and now_ns <= batch.open_until_ns
                and stream.channel is batch.channel
                and level == batch.depth
                and (left := batch.left - cost) >= 0
            ):  # what Gathering.offer says of most events of a burst
                gathering.last_ns = now_ns
                batch.left = left
                stream.sequence = sequence = stream.sequence + 1
                if sequence == 1:
                    stream.first_time = now_ns
                batch.rows.append((stream.index, sequence, now_ns, names.session_id, names.cause, body))
                taken = True
            elif self.ready and level < DEPTHS:
                taken = self._hand_over(stream, level, names, body, now_ns)
        except BaseException:  # of a signal handler too, as soon as the lock is ours, or before
            with suppress(RuntimeError):  # it is not
                lock.release()
            raise
        lock.release()
        return self._publish_slowly(stream, level, names, body, retain) if taken is None else taken

    def flush(self) -> bool:
        """Hand what was gathered in a burst to libzmq now; false when its queue has no room for it.

        Nobody has to call it: a burst's end is sent within two milliseconds. Raises :class:`ForkedError`.
        """
        if os.getpid() != self._pid:  # the lock may have been held at the fork
            raise ForkedError(_FORKED)
        with self._lock:
            return self._closed or self._outlet.flush()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is published inside leaves together, at the end or when a frame is full; never for long.

        Cheaper for several events at a time that nobody waits for. What other threads publish meanwhile
        leaves with them.
        """
        with self._lock:
            self._offer = self._outlet.together(begins=True)
        try:
            yield
        finally:
            with self._lock:
                self._offer = self._outlet.together(begins=False)
            self.flush()

    def publish_acknowledged(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        session_id: str | None = None,
        retain: bool = False,
        timeout: float = 2.0,
    ) -> int:
        """Publish through the broker and wait for its word; returns how many subscribers match.

        It may overtake earlier events of this publisher. Besides what :meth:`publish` raises:
        :class:`RequestTimeout` after ``timeout`` seconds and :class:`RequestRefused`.
        """
        self._check_usable()
        self._check_accepted()
        stream = self._streams.get(topic) or self._open(topic)
        body = encode_payload(payload, stream)
        level = self._level(current.get(), None)
        if level >= DEPTHS:
            self._over_depth += 1
            return 0
        names = self._names.pack(session_id, None, current.get())
        content = content_of(body, self._oversize, self._store)
        pending = self._request(stream, level, names, content, retain=retain, timeout=timeout)
        return int(self._link.wait(pending, f"the publish of {topic}").body["matching"])

    # -- life ---------------------------------------------------------------------------------

    @property
    def stats(self) -> dict[str, int]:
        """Every counter of this publisher.

        ``published`` (numbered and handed over), ``dropped_absent`` (no bus, or it was draining),
        ``dropped_full`` (no room; also what was gathered, and so numbered, and found none until the end),
        ``over_depth``, ``claims`` (payloads in the spool), ``unanswered`` (requests without a reply).
        """
        return {
            "published": self._numbering.published,
            "dropped_absent": self._dropped_absent,
            "dropped_full": self._outlet.dropped_full,
            "over_depth": self._over_depth,
            "claims": self._claims,
            "unanswered": self._link.unanswered,
        }

    def on_tail(self, call: Callable[[], object]) -> None:
        """Have ``call`` called when a burst begins a frame, instead of a thread that sees to its end.

        For an event loop: ``call`` arranges for a :meth:`flush` once the loop has turned.
        """
        self._outlet.on_tail(call)

    def close(self) -> None:
        """Send the last beacon, flush for at most a second in the background, and end. Idempotent."""
        if self._closed or os.getpid() != self._pid:
            return
        forget(self)
        last_words: list[bytes] = []
        ready = self.ready  # a welcome that comes while we wait for room makes a closed publisher unready

        def farewell() -> list[bytes]:
            if ready:
                last_words.extend(encode_beacons(self._numbering.beacon(everything=True, closing=True)))
            return last_words

        with self._lock:
            self._closed = True
            self._streams = {}
            self._outlet.close(farewell)
            self.ready = False
        self._outlet.end()
        self._asker.close()
        self._link.close(last_words)

    # -- for the link's thread ----------------------------------------------------------------

    def tick(self, now: float, /) -> float:
        """See :class:`broker.client.link.Owner`: send the beacon that is due."""
        with self._lock:
            if self._closed:
                return TICK_SECONDS
            if not self.ready:
                self._look_for_subscriptions()
                return TICK_SECONDS
            beacon = self._numbering.due(now)
            if beacon is not None:
                self._outlet.beacon(beacon, self._numbering)
            return self._numbering.pause(now)

    def note(self, note: Note) -> None:
        """See :class:`broker.client.link.Owner`."""
        with self._lock:
            self._answered.set()
            if isinstance(note, Held | Refused):
                self._gather(False)
                self.ready = False
            if isinstance(note, Held):
                self._outlet.held = True
            elif isinstance(note, BatchesTold):
                self._gather(note.allowed)
            elif isinstance(note, Welcomed):
                self._spool.capacity = int(note.limits.get("spool_bytes", self._spool.capacity))
                self._ask_bytes = int(note.limits.get("ask_bytes", ASK_BYTES))
                self._outlet.held = False
                self._refusal = None
                self._set_ready()
                self._gather(self._session.batches)
                if note.again and self.ready:
                    self._outlet.beacon(self._numbering.beacon(everything=True), self._numbering)
            elif isinstance(note, Refused):
                self._refusal = note
                get_logger("broker.client").warning("refused", source=self.source, reason=note.error)

    def counters(self) -> dict[str, int]:
        """See :class:`broker.client.link.Owner`."""
        return self.stats

    def watched(self) -> int | None:
        """See :class:`broker.client.link.Owner`: the socket, until the broker's prefixes have come."""
        return None if len(self._subscribed) == DEPTHS or self._closed else self._descriptor

    # -- parts --------------------------------------------------------------------------------

    def _await_bus(self, seconds: float, on_absent: OnAbsent) -> None:
        deadline = time.monotonic() + seconds
        readable = select.poll()  # of the descriptor: the socket itself is the link's thread's too
        readable.register(self._descriptor, select.POLLIN)
        while not self._settled(on_absent) and (left := deadline - time.monotonic()) > 0:
            with self._lock:
                self._look_for_subscriptions()
            if not self.ready:
                readable.poll(min(POLL_MS, max(1, int(left * 1000))))
            elif not self._settled(on_absent):
                self._answered.wait(left)
        if on_absent == "drop" or (self.ready and self._session.welcomed):
            return
        self.close()
        self._check_accepted()
        hint = "start one with 'prxbus up', or name its directory with runtime_dir or PRXBUS_RUNTIME_DIR"
        raise BusUnreachable(f"no bus answers in {self.runtime_dir!r} within {seconds:g} s; {hint}")

    def _settled(self, on_absent: OnAbsent) -> bool:
        """Whether waiting is over. Who insists on a bus also waits for its word that it takes us."""
        if on_absent == "drop":
            return self.ready
        return self._refusal is not None or (self.ready and self._session.welcomed)

    def _look_for_subscriptions(self) -> None:
        """Ready means: the broker's eight prefixes were seen, by content."""
        try:
            while True:
                frame = self._outlet.socket.recv(zmq.NOBLOCK)
                if frame[:1] == b"\1" and frame[1:] in DEPTH_BYTES:
                    self._subscribed.add(frame[1:])
        except zmq.Again:
            self._set_ready()
        except zmq.ZMQError:
            self._check_usable()  # a signal handler may have closed us a moment ago
            raise

    def forked(self) -> None:
        """A forked child does not own the socket: from now on every call takes the slow way and says so."""
        self.ready = False
        self._lock = threading.RLock()  # another thread of the parent may have held the other one
        self._outlet.abandon()

    def _level(self, context: Cause | None, depth: int | None) -> int:
        level = self._floor if context is None else max(self._floor, context.depth)
        return level if depth is None else max(level, check_depth(depth))

    def _set_ready(self) -> None:
        whole = len(self._subscribed) == DEPTHS
        self.ready = whole and self._refusal is None and not self._outlet.held and not self._closed

    def _gather(self, allowed: bool) -> None:
        self._gathering.allowed = allowed and not self._closed and not self._outlet.held
        if not allowed:
            self._gathering.seal()
            self._outlet.flush()

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise ForkedError(_FORKED)
        if self._closed:
            raise ClosedError("this Publisher is closed")

    def _check_accepted(self) -> None:
        if self._refusal is not None:
            raise RequestRefused(self._refusal.code, self._refusal.error)

    def _open(self, topic: object) -> Stream:
        self._check_usable()
        with self._lock:
            if self._numbering.full:
                self._gathering.seal()
                self._outlet.beacon(self._numbering.renew(new_publisher()), self._numbering)
                self._streams = self._numbering.streams
                self._session.publisher = self._numbering.publisher
            if isinstance(topic, str) and topic in self._streams:
                return self._streams[topic]
            stream = self._numbering.open(topic, time_ns())
            self._numbering.soon(time.monotonic())
            return stream

    def _current(self, stream: Stream) -> Stream:
        """The stream that the topic of ``stream`` has now: another one since the publisher id was renewed."""
        return self._open(stream.topic) if stream.retired else stream

    def _request(
        self, stream: Stream, level: int, names: Names, content: bytes, *, retain: bool, timeout: float
    ) -> Pending:
        with self._lock:
            stream = self._current(stream)
            self._outlet.flush()  # so that it overtakes no more than it must
            frame = number(stream, level, names, content)
            try:
                return self._link.start("publish", timeout, frame=frame, retain=retain)
            except (QueueFull, ClosedError):
                stream.sequence -= 1
                raise

    def _publish_slowly(self, stream: Stream, level: int, names: Names, body: bytes, retain: bool) -> bool:
        """Too deep, no bus yet (or a draining one), closed, retained or large: what may take longer."""
        if level >= DEPTHS:
            self._over_depth += 1
            return False
        self._check_usable()
        with self._lock:
            if not self.ready:
                self._look_for_subscriptions()
            if not self.ready:
                self._dropped_absent += 1
                return False
        if retain:
            return self._retain(stream, level, names, body)
        content = content_of(body, self._oversize, self._store) if len(body) > SHORT else None
        with self._lock:
            if content is None:
                return self._hand_over(stream, level, names, body, time_ns())
            return self._outlet.transmit(self._current(stream), level, names, content)

    def _hand_over(self, stream: Stream, level: int, names: Names, body: bytes, now_ns: int) -> bool:
        """Have an event gathered or sent; for a holder of the lock."""
        stream, size = self._current(stream), len(body)
        verdict = self._offer(stream, level, names, body, size, now_ns)
        return verdict == GATHERED or self._outlet.deliver(verdict, stream, level, names, body, size)

    def _retain(self, stream: Stream, level: int, names: Names, body: bytes) -> bool:
        content = content_of(body, self._oversize, self._store)
        try:
            self._request(stream, level, names, content, retain=True, timeout=RETAIN_SECONDS)
        except QueueFull:
            if self._on_full != "drop":
                raise
            self._outlet.dropped_full += 1
            return False
        return True
