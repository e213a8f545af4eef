"""Where a publisher's events leave: its socket, what is gathered before it, and what happens without room.

Decides when a frame is handed to libzmq and what "full" means to a caller. What is gathered together is
decided in :mod:`broker.client.core.batching`; what an event is, and whether there is a bus, elsewhere.
Everything but :meth:`Outlet.look` is for a holder of :attr:`Outlet.lock`.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from time import time_ns
from typing import Final

import zmq

from ..protocol.beacons import Beacon, encode_beacons
from ..protocol.envelope import Names, event_frame, payload_header
from ..protocol.errors import QueueFull
from .core.batching import ALONE, COPY_AGE_NS, FIRST, GATHERED, TURN, Batch, Gathering
from .core.numbering import Numbering, Stream
from .flusher import LOOK_SECONDS, Flusher
from .options import ROOM_SECONDS, OnFull
from .sockets import LINGER_MS, publisher_socket

NOBLOCK: Final = zmq.NOBLOCK

SHORT: Final = 0xFFFF
"""Longest payload with a two-byte length on the wire; a longer one takes the slow way."""

PATIENCE_SECONDS: Final = 0.05
"""Longest pause between two tries to send what found no room, and longest wait of a look for the lock."""


Offer = Callable[[Stream, int, Names, bytes, int, int], int]
"""How an event is offered to a :class:`Gathering`: as :meth:`Gathering.offer` or :meth:`Gathering.join`."""


class Outlet:
    """The way out of one publisher, to the broker's ingress at ``endpoint``.

    ``check_usable``, a method, raises what a closed or forked publisher has to say; ``current``, another one,
    gives the stream that a topic has now. ``dropped_full`` counts events that found no room. ``held`` says
    that the broker drains: what is gathered waits.
    """

    def __init__(
        self,
        endpoint: str,
        on_full: OnFull,
        block_seconds: float,
        check_usable: Callable[[], None],
        current: Callable[[Stream], Stream],
    ) -> None:
        self.lock = threading.RLock()
        self.gathering = Gathering()
        self.dropped_full = 0
        self.held = False
        self.socket = publisher_socket(endpoint)
        self._send = super(zmq.Socket, self.socket).send  # past pyzmq's checks for other socket types
        self._on_full = on_full
        self._block_seconds = block_seconds
        self._check = weakref.WeakMethod(check_usable)  # a publisher that nobody holds is to be collected
        self._current = weakref.WeakMethod(current)
        self._closing = threading.Event()  # nobody waits for room any longer
        self._closed = False
        self._flusher: Flusher | None = None
        self._on_tail: Callable[[], object] | None = None
        self._offer: Offer = self.gathering.offer
        self._tail_is_seen_to = False
        self._retry_s = LOOK_SECONDS

    def deliver(self, verdict: int, stream: Stream, depth: int, names: Names, body: bytes, size: int) -> bool:
        """Do what :meth:`Gathering.offer` has answered for an event; whether it was taken."""
        gathering = self.gathering
        while verdict != ALONE:
            if verdict == FIRST:
                self._look_after_tail()
                gathering.spent(time_ns())
            if verdict != TURN:
                return True
            if not self.flush():
                return self._without_room(stream, depth, names, payload_header(size) + body)
            now_ns = time_ns()
            gathering.begin(stream, depth, now_ns)
            verdict = self._offer(stream, depth, names, body, size, now_ns)
        frame = b""
        sequence = now_ns = -1
        while stream.sequence != sequence - 1:  # or a signal handler's event has come first meanwhile
            if not self.flush():
                return self._without_room(stream, depth, names, payload_header(size) + body)
            now_ns = time_ns()
            sequence = stream.sequence + 1
            middle = names.layout.pack(sequence, 0xCF, now_ns, names.middle, size)
            frame = stream.heads[depth] + middle + body
        stream.sequence = sequence
        if sequence == 1:
            stream.first_time = now_ns
        try:
            self._send(frame, NOBLOCK)
        except zmq.ZMQError as error:
            stream.sequence = sequence - 1
            self._refuse_other(error)
            return self._without_room(stream, depth, names, payload_header(size) + body)
        gathering.spent(time_ns())
        return True

    def together(self, *, begins: bool) -> Offer:
        """What is offered from now on waits for its end, or no longer; how it is to be offered."""
        self._tail_is_seen_to = begins
        self._offer = self.gathering.join if begins else self.gathering.offer
        if not begins and not self.flush():  # no room yet
            self._look_after_tail()
        return self._offer

    def transmit(self, stream: Stream, depth: int, names: Names, content: bytes) -> bool:
        """Send one event by itself, after what is gathered; whether it was taken.

        ``content`` is its payload with the header, or a packed claim.
        """
        return self._try(stream, depth, names, content) or self._without_room(stream, depth, names, content)

    def copy(self, frame: bytes) -> bool:
        """Send the published copy of an ask, which keeps its number whatever comes of it; whether it went."""
        try:
            if not self.flush():
                raise zmq.Again
            self._send(frame, NOBLOCK)
        except zmq.ZMQError as error:
            self._refuse_other(error)
            self.dropped_full += 1
            return False
        self.gathering.spent(time_ns())
        return True

    def gather(
        self, stream: Stream, depth: int, names: Names, body: bytes, now_ns: int, *, tail: bool
    ) -> bool:
        """Take the published copy of an ask into a batch, numbering it, if that is possible.

        It leaves a moment later: what the ask waits for is its answer. Without ``tail`` the caller sees to a
        :meth:`flush` by itself.
        """
        verdict = self.gathering.join(stream, depth, names, body, len(body), now_ns)
        if verdict == TURN and self.flush():
            self.gathering.begin(stream, depth, now_ns)
            verdict = self.gathering.join(stream, depth, names, body, len(body), now_ns)
        if verdict == FIRST and tail:
            self._look_after_tail()
        return verdict in (FIRST, GATHERED)

    def leave(self, now_ns: int) -> None:
        """Have what is gathered sent soon: by whoever looks after the tail, or now if it has waited."""
        batch = self.gathering.batch
        if batch is not None and batch.rows:
            if 0 <= now_ns - batch.begun_ns <= COPY_AGE_NS:
                self._look_after_tail()
            else:
                self.flush()

    def flush(self) -> bool:
        """Send what is gathered; false when there is no room for it, or the broker drains."""
        if self.held:
            return self.gathering.batch is None
        batch = self.gathering.take()  # before it is packed: an interrupt must not send it twice
        if batch is None:
            return True
        try:
            frame = batch.frame()
        except BaseException:  # an interrupt
            self._keep(batch)
            raise
        try:
            self._send(frame, NOBLOCK)
        except zmq.ZMQError as error:
            self._keep(batch)
            self._refuse_other(error)
            return False
        return True

    def beacon(self, beacon: Beacon, numbering: Numbering) -> None:
        """Send a beacon after the events it tells of; one that cannot be sent is told again."""
        try:
            if not self.flush():
                raise zmq.Again
            for frame in encode_beacons(beacon):
                self._send(frame, NOBLOCK)
        except zmq.Again:  # the next beacon says the same and more
            numbering.retell(beacon)

    def on_tail(self, call: Callable[[], object]) -> None:
        """Have ``call`` called when a frame is begun, instead of a thread that looks after it.

        It must see to a :meth:`flush` soon.
        """
        self._on_tail = call

    def look(self) -> float | None:
        """See :class:`broker.client.flusher.Gatherer`."""
        if not self.lock.acquire(timeout=PATIENCE_SECONDS):
            return None if self._closed else LOOK_SECONDS
        try:
            if self._closed:
                return None
            if self.gathering.over(time_ns()):
                self._retry_s = LOOK_SECONDS if self.flush() else min(2 * self._retry_s, PATIENCE_SECONDS)
                return self._retry_s
            if self.gathering.batch is None and self._flusher is not None:
                self._flusher.rest()
            return LOOK_SECONDS
        finally:
            self.lock.release()

    def abandon(self) -> None:
        """A forked child forgets what its parent has gathered."""
        self.gathering.take()

    def close(self, last_words: Callable[[], list[bytes]]) -> None:
        """Send what is gathered, within a second, and ``last_words`` after it; then end."""
        self.gathering.allowed = False
        self._closing.set()
        deadline = time.monotonic() + LINGER_MS / 1000
        while not self.flush() and not self.held and time.monotonic() < deadline:
            self._pause()
        given_up = self.gathering.take()
        if given_up is not None:
            self.dropped_full += len(given_up.rows)
        try:
            for frame in last_words():
                self._send(frame, NOBLOCK)
        except zmq.Again:  # the broker says it again
            pass
        self._closed = True
        self.socket.close()

    def end(self) -> None:
        """After :meth:`close`, and without the lock: wait for the thread, if there is one."""
        if self._flusher is not None:
            self._flusher.close()

    def _look_after_tail(self) -> None:
        if self._tail_is_seen_to:
            return
        try:
            if self._on_tail is not None:
                self._on_tail()
            elif self._flusher is None:
                self._flusher = Flusher(self)
            else:
                self._flusher.wake()
        except RuntimeError:  # no thread can be started, or the loop is closed: the process ends
            self.flush()

    def _keep(self, batch: Batch) -> None:
        """A batch that found no room goes next; a signal handler's may have taken its place."""
        if self.gathering.batch is None:
            self.gathering.batch = batch
        else:
            self.dropped_full += len(batch.rows)

    def _try(self, stream: Stream, depth: int, names: Names, content: bytes) -> bool:
        """Send one event after what is gathered, if there is room."""
        frame = b""
        sequence = now_ns = -1
        while stream.sequence != sequence - 1:  # see `deliver`
            if not self.flush():
                return False
            now_ns = time_ns()
            sequence = stream.sequence + 1
            frame = event_frame(stream.heads[depth], sequence, now_ns, names, content)
        stream.sequence = sequence
        if sequence == 1:
            stream.first_time = now_ns
        try:
            self._send(frame, NOBLOCK)
        except zmq.ZMQError as error:
            stream.sequence = sequence - 1
            self._refuse_other(error)
            return False
        return True

    def _refuse_other(self, error: zmq.ZMQError) -> None:
        """Anything but a full queue is not for the counters: the publisher was closed, or it is a fault."""
        if not isinstance(error, zmq.Again):
            self._check_usable()
            raise error

    def _check_usable(self) -> None:
        check = self._check()
        if check is not None:
            check()

    def _without_room(self, stream: Stream, depth: int, names: Names, content: bytes) -> bool:
        """An event that has no number yet found no room: wait, count or raise, as the publisher was told."""
        if self._on_full == "block":
            deadline = time.monotonic() + self._block_seconds
            while time.monotonic() < deadline:
                self._pause()
                self._check_usable()
                current = self._current()
                if current is not None:
                    stream = current(stream)
                if self._try(stream, depth, names, content):
                    return True
        self.dropped_full += 1
        if self._on_full == "drop":
            return False
        raise QueueFull(
            f"the queue to the broker is full; it is away or overloaded. Not published: {stream.topic}"
        )

    def _pause(self) -> None:
        """A moment with the lock given back, so that nobody else waits."""
        self.lock.release()
        try:
            if self._closing.wait(ROOM_SECONDS):
                time.sleep(ROOM_SECONDS)
        finally:
            self.lock.acquire()


def number(stream: Stream, depth: int, names: Names, content: bytes) -> bytes:
    """The frame of the next event of ``stream``, which takes its number."""
    now_ns = time_ns()
    stream.sequence += 1
    if stream.sequence == 1:
        stream.first_time = now_ns
    return event_frame(stream.heads[depth], stream.sequence, now_ns, names, content)
