"""How an ask leaves and its answers come back: lanes, each used by one ask at a time.

A lane is a connection of its own beside the client's control connection, so that the thread that asks sends
and waits by itself, without another thread between. Decides how long to wait and what to raise when there is
no word; what the word means is :mod:`broker.client.core.asking`'s.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple

import zmq

from ..protocol.control import decode_together, encode_message
from ..protocol.errors import (
    BusUnreachable,
    ClosedError,
    DecodeError,
    LimitExceeded,
    RequestRefused,
    RequestTimeout,
)
from .core.session import ControlSession
from .sockets import control_socket

GRACE_SECONDS: Final = 0.25
"""How long after the deadline the broker's word is still waited for: it says who was late."""

SLICE_MS: Final = 250
"""Longest single wait; then the broker's epoch and a close are looked at."""

MOMENT_MS: Final = 2
"""Time in which most answers come."""

LANES: Final = 256
"""Asks of one client at a time, each in a thread of its own."""


class Broker(NamedTuple):
    """One broker, as a client can tell: its ``epoch`` (None: not welcomed yet) and its ``socket`` file."""

    epoch: bytes | None
    socket: tuple[int, int] | None

    def replaces(self, before: Broker) -> bool:
        """Whether this is another one than was there ``before``."""
        if self.socket != before.socket:
            return True
        return before.epoch is not None and self.epoch != before.epoch


class Lane:
    """One connection for asks, number ``index`` of the client ``key``. Not thread-safe."""

    def __init__(self, endpoint: str, key: bytes, index: int) -> None:
        self.socket = control_socket(endpoint, key + b"\x10" + index.to_bytes(2, "big"))
        self._receive = super(zmq.Socket, self.socket).recv
        self.connected = False
        self._slice_ms = 0

    def send(self, data: bytes) -> None:
        """Hand a message to libzmq without waiting; raises :class:`BusUnreachable` without a broker."""
        try:
            self.socket.send(data, zmq.NOBLOCK)
        except zmq.Again:
            self.connected = False
            raise _absent() from None

    def receive_now(self) -> bytes:
        """The next message that is there; raises :class:`zmq.Again`."""
        return self._receive(zmq.NOBLOCK)

    def receive(self, milliseconds: int) -> bytes:
        """The next message; raises :class:`zmq.Again` when there is none in time."""
        if milliseconds != self._slice_ms:
            self._slice_ms = self.socket.rcvtimeo = milliseconds
        return self._receive()


class Asker:
    """The asks of one client whose control connection is named ``key``.

    ``session`` tells which broker is there: when that changes, the asks under way are lost.
    """

    def __init__(self, endpoint: str, key: bytes, session: ControlSession) -> None:
        self._endpoint = endpoint
        self._path = endpoint.removeprefix("ipc://")
        self._key = key
        self._session = session
        self._idle: list[Lane] = []
        self._lock = threading.RLock()
        self._indices = count()
        self._opened = 0
        self._closed = False

    def take(self) -> Lane:
        """A lane that nobody uses; it is given back with :meth:`put`. Raises :class:`LimitExceeded`."""
        with self._lock:
            if self._closed:
                raise ClosedError("this client is closed")
            if self._idle:
                return self._idle.pop()
            if self._opened >= LANES:
                raise LimitExceeded(f"{LANES} asks of this client are under way; that is the most")
            self._opened += 1
        return Lane(self._endpoint, self._key, next(self._indices))

    def put(self, lane: Lane) -> None:
        """``lane`` is free again."""
        with self._lock:
            if self._closed:
                lane.socket.close()
            else:
                self._idle.append(lane)

    def connect(self, lane: Lane, deadline: float) -> None:
        """Wait until ``lane`` has a broker at its end; raises :class:`BusUnreachable` past ``deadline``."""
        if not lane.connected:
            left_ms = max(0, int((deadline - time.monotonic()) * 1000))
            if not lane.socket.poll(left_ms, zmq.POLLOUT):
                raise _absent()
            lane.connected = True

    @property
    def broker(self) -> Broker:
        """Which broker is there: a new one makes its socket anew before anybody has been welcomed by it."""
        try:
            status = os.stat(self._path)
        except OSError:
            return Broker(self._session.epoch, None)
        return Broker(self._session.epoch, (status.st_ino, status.st_ctime_ns))

    @property
    def many(self) -> bool:
        """Whether the broker takes many messages as one."""
        return self._session.many

    def wait(self, lane: Lane, request: int, deadline: float, meanwhile: Callable[[], None]) -> list[Any]:
        """What was heard of ask ``request``; late words of earlier ones are passed over.

        ``meanwhile`` is called when there is no answer after a moment.
        Raises :class:`RequestRefused`, :class:`RequestTimeout` when the broker says nothing at all and
        :class:`BusUnreachable` when it was replaced meanwhile.
        """
        broker = self.broker
        last = deadline + GRACE_SECONDS
        slice_ms = MOMENT_MS
        try:
            while True:
                left_ms = int((last - time.monotonic()) * 1000) + 1
                if left_ms <= 0:
                    raise RequestTimeout("no word of the ask in time; is the broker overloaded or away?")
                try:
                    messages = decode_together(lane.receive(min(slice_ms, left_ms)))
                except zmq.Again:
                    if slice_ms == MOMENT_MS:
                        meanwhile()
                        slice_ms = SLICE_MS
                    broker = self._check(broker)
                    continue
                except DecodeError:
                    continue
                for kind, number, body in messages:
                    if number == request and kind == "answered":
                        heard: list[Any] = body["heard"]
                        return heard
                    if number == request and kind == "error":
                        raise RequestRefused(body["code"], body["message"])
        except BaseException:
            self.cancel(lane, request)
            raise

    def cancel(self, lane: Lane, request: int) -> None:
        """Nobody waits for ``request`` any more."""
        with suppress(BusUnreachable):  # no broker, and so nobody to tell
            lane.send(encode_message("cancel", request))

    def close(self) -> None:
        """No more asks. Lanes that are in use close when they are given back."""
        with self._lock:
            self._closed = True
            for lane in self._idle:
                lane.socket.close()
            self._idle.clear()

    def _check(self, broker: Broker) -> Broker:
        """The broker that is there now, if it can be the one of the ask."""
        if self._closed:
            raise ClosedError("closed while an ask was under way")
        now = self.broker
        if now.replaces(broker):
            raise BusUnreachable("the broker ended while the ask was under way; ask again")
        return now


def _absent() -> BusUnreachable:
    return BusUnreachable("no broker takes the ask; start one with 'prxbus up'")
