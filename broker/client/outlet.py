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
from ..protocol.errors import QueueFull
from ..protocol.events import Names, event_frame, payload_header
from .core.batching import ALONE, FIRST, TURN, Gathering
from .core.numbering import Numbering, Stream
from .flusher import Flusher
from .options import ROOM_SECONDS, OnFull
from .sockets import LINGER_MS, publisher_socket

NOBLOCK: Final = zmq.NOBLOCK


class Outlet:
    """The way out of one publisher, to the broker's ingress at ``endpoint``.

    ``check_usable``, a method, raises what a closed or forked publisher has to say. ``dropped_full`` counts
    events that found no room. ``held`` says that the broker drains: what is gathered waits.
    """

    def __init__(
        self, endpoint: str, on_full: OnFull, block_seconds: float, check_usable: Callable[[], None]
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
        self._closing = threading.Event()  # nobody waits for room any longer
        self._closed = False
        self._flusher: Flusher | None = None
        self._on_tail: Callable[[], object] | None = None

    def deliver(self, verdict: int, stream: Stream, depth: int, names: Names, body: bytes, size: int) -> bool:
        """Do what :meth:`Gathering.offer` has answered for an event; whether it was taken."""
        gathering = self.gathering
        if verdict == FIRST:
            self._look_after_tail()
            return True
        if gathering.rows and not self.flush():
            return self._without_room(stream, depth, names, payload_header(size) + body)
        now_ns = time_ns()
        if verdict == TURN:
            gathering.begin(stream, depth, now_ns)
            verdict = gathering.offer(stream, depth, names, body, size, now_ns)
            if verdict == FIRST:
                self._look_after_tail()
                return True
        assert verdict == ALONE, verdict
        stream.sequence = sequence = stream.sequence + 1
        if sequence == 1:
            stream.first_time = now_ns
        middle = names.layout.pack(sequence, 0xCF, now_ns, names.middle, size)
        try:
            self._send(stream.heads[depth] + middle + body, NOBLOCK)
        except zmq.ZMQError as error:
            stream.sequence = sequence - 1
            self._refuse_other(error)
            return self._without_room(stream, depth, names, payload_header(size) + body)
        gathering.alone(time_ns())
        return True

    def transmit(self, stream: Stream, depth: int, names: Names, content: bytes) -> bool:
        """Send one event by itself, after what is gathered; whether it was taken.

        ``content`` is its payload with the header, or a packed claim.
        """
        if self.flush() and self._try(stream, depth, names, content):
            return True
        return self._without_room(stream, depth, names, content)

    def flush(self) -> bool:
        """Send what is gathered; false when there is no room for it, or the broker drains."""
        if not self.gathering.rows:
            return True
        if self.held:
            return False
        try:
            self._send(self.gathering.frame(), NOBLOCK)
        except zmq.ZMQError as error:
            self._refuse_other(error)
            return False
        self.gathering.sent()
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

    def look(self) -> bool:
        """See :class:`broker.client.flusher.Gatherer`."""
        with self.lock:
            if self._closed:
                return False
            if self.gathering.over(time_ns()):
                self.flush()
            elif not self.gathering.rows and self._flusher is not None:
                self._flusher.rest()
            return True

    def abandon(self) -> None:
        """A forked child forgets what its parent has gathered."""
        self.gathering.sent()

    def close(self, last_words: Callable[[], list[bytes]]) -> None:
        """Send what is gathered, within a second, and ``last_words`` after it; then end."""
        self._closing.set()
        deadline = time.monotonic() + LINGER_MS / 1000
        while not self.flush() and not self.held and time.monotonic() < deadline:
            self._pause()
        self.dropped_full += len(self.gathering.rows)
        self.gathering.sent()
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
        if self._on_tail is not None:
            self._on_tail()
        elif self._flusher is None:
            self._flusher = Flusher(self)
        else:
            self._flusher.wake()

    def _try(self, stream: Stream, depth: int, names: Names, content: bytes) -> bool:
        frame = number(stream, depth, names, content)
        try:
            self._send(frame, NOBLOCK)
        except zmq.ZMQError as error:
            stream.sequence -= 1
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
                if self.flush() and self._try(stream, depth, names, content):
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
