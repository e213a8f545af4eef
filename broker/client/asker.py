"""How an ask leaves and its answers come back: lanes, each used by one ask at a time.

A lane is a connection of its own beside the client's control connection, so that the thread that asks sends
and waits by itself, without another thread between. Decides how long to wait and what to raise when there is
no word; what the word means is :mod:`broker.client.core.asking`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from ..protocol.errors import (
    BusUnreachable,
    ClosedError,
    DecodeError,
    LimitExceeded,
    RequestRefused,
    RequestTimeout,
)
from ..protocol.messages import decode_message, encode_message
from .core.asking import GRACE_SECONDS

if TYPE_CHECKING:
    from .stream import Stream

SLICE_MS: Final = 250
"""Longest single wait; then a close is looked at."""

MOMENT_MS: Final = 2
"""Time in which most answers come."""

LANES: Final = 256
"""Asks of one client at a time, each in a thread of its own."""

CONNECT_SECONDS: Final = 0.01
"""Pause between two looks for a broker."""


class Lane:
    """One connection for asks to the socket at ``path``, under ``name``. Not thread-safe."""

    def __init__(self, path: str, name: bytes) -> None:
        self._path = path
        self._name = name
        self._stream: Stream | None = None

    @property
    def connected(self) -> bool:
        """Whether a broker is at the other end."""
        return self._stream is not None and self._stream.alive

    def fileno(self) -> int:
        """The descriptor of the connection, -1 without one."""
        return -1 if self._stream is None else self._stream.fileno()

    def connect(self) -> bool:
        """Connect (again), unless that is done; false without a broker."""
        from .stream import Stream  # loads socket, which who never asks does without

        if not self.connected:
            self.close()
            try:
                self._stream = Stream(self._path, self._name)
            except OSError:
                return False
        return True

    def send(self, messages: Iterable[bytes]) -> None:
        """Send messages; raises :class:`BusUnreachable` without a broker, or when it does not read."""
        try:
            self._open.send(messages)
        except OSError:
            self.close()
            raise absent() from None

    def send_now(self, data: bytes | memoryview) -> int:
        """Send what there is room for of framed messages: so many bytes; raises :class:`BusUnreachable`."""
        try:
            return self._open.send_now(data)
        except OSError:
            raise absent() from None

    def receive(self, milliseconds: int) -> list[bytes]:
        """The next messages, none if there are none in time; raises :class:`BusUnreachable` at the end."""
        try:
            return self._open.receive(milliseconds)
        except OSError:
            self.close()
            raise ended() from None

    def receive_now(self) -> list[bytes]:
        """The messages that are there; raises :class:`BusUnreachable` at the end."""
        try:
            return self._open.receive_now()
        except OSError:
            raise ended() from None

    def close(self) -> None:
        """Disconnect."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    @property
    def _open(self) -> Stream:
        if self._stream is None:
            raise absent()
        return self._stream


class Asker:
    """The asks of one client whose control connection is named ``key``; lanes lead to ``endpoint``."""

    def __init__(self, endpoint: str, key: bytes) -> None:
        self._path = endpoint.removeprefix("ipc://")
        self._key = key
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
        return Lane(self._path, self._key + b"\x10" + next(self._indices).to_bytes(2, "big"))

    def put(self, lane: Lane) -> None:
        """``lane`` is free again."""
        with self._lock:
            if self._closed:
                lane.close()
            else:
                self._idle.append(lane)

    def connect(self, lane: Lane, deadline: float) -> None:
        """Wait until ``lane`` has a broker at its end; raises :class:`BusUnreachable` past ``deadline``."""
        while not lane.connect():
            left = deadline - time.monotonic()
            if left <= 0:
                raise absent()
            if self._closed:
                raise ClosedError("closed while an ask was under way")
            time.sleep(min(CONNECT_SECONDS, left))

    def wait(self, lane: Lane, request: int, deadline: float, meanwhile: Callable[[], None]) -> list[Any]:
        """What was heard of ask ``request``; late words of earlier ones are passed over.

        ``meanwhile`` is called when there is no answer after a moment.
        Raises :class:`RequestRefused`, :class:`RequestTimeout` when the broker says nothing at all and
        :class:`BusUnreachable` when it ended meanwhile.
        """
        last = deadline + GRACE_SECONDS
        slice_ms = MOMENT_MS
        try:
            while True:
                left_ms = int((last - time.monotonic()) * 1000) + 1
                if left_ms <= 0:
                    raise RequestTimeout("no word of the ask in time; is the broker overloaded or away?")
                messages = lane.receive(min(slice_ms, left_ms))
                if not messages:
                    if slice_ms == MOMENT_MS:
                        meanwhile()
                        slice_ms = SLICE_MS
                    if self._closed:
                        raise ClosedError("closed while an ask was under way")
                for each in messages:
                    try:
                        kind, number, body = decode_message(each)
                    except DecodeError:
                        continue
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
            lane.send((encode_message("cancel", request),))

    def close(self) -> None:
        """No more asks. Lanes that are in use close when they are given back."""
        with self._lock:
            self._closed = True
            for lane in self._idle:
                lane.close()
            self._idle.clear()


def absent() -> BusUnreachable:
    """There is no broker to ask."""
    return BusUnreachable("no broker takes the ask; start one with 'prxbus up'")


def ended() -> BusUnreachable:
    """There is no broker any more."""
    return BusUnreachable("the broker ended while the ask was under way; ask again")
