"""Asks from an event loop: many under way on one lane, a future for each.

Decides when a future is done: with what was heard, with the broker's refusal, when there is no word in time,
or when the broker was replaced. For the loop's thread only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import zmq

from ..protocol.control import decode_together, encode_message, encode_together
from ..protocol.errors import (
    BusUnreachable,
    ClosedError,
    DecodeError,
    RequestRefused,
    RequestTimeout,
)
from .asker import GRACE_SECONDS, Asker, Lane

LOOK_SECONDS: Final = 0.1
"""Pause between two looks at the clock and the broker's epoch while asks are under way."""

CONNECT_SECONDS: Final = 0.002

TOGETHER_BYTES: Final = 524_288
"""Bytes of messages that are sent as one."""

TOGETHER: Final = 16
"""Asks that are sent as one: more would have everybody wait for everybody."""

AT_ONCE: Final = 256
"""Messages that are read before the loop gets its turn."""


class LoopAsker:
    """The asks of one publisher in one event loop, on a lane of ``asker``."""

    def __init__(self, asker: Asker) -> None:
        self._loop = asyncio.get_running_loop()
        self._asker = asker
        self._lane: Lane = asker.take()
        self._waiting: dict[int, tuple[asyncio.Future[list[Any]], float]] = {}
        self._broker = asker.broker
        self._connecting = asyncio.Lock()
        self._looking: asyncio.TimerHandle | None = None
        self._turning = False
        self._outbox: list[bytes] = []
        self._loop.add_reader(int(self._lane.socket.fd), self._drain)

    @property
    def connected(self) -> bool:
        """Whether a broker was at the other end when last seen."""
        return self._lane.connected

    async def connect(self, deadline: float) -> None:
        """Wait until a broker is at the other end; raises :class:`BusUnreachable` past ``deadline``."""
        if self._lane.connected:
            return
        async with self._connecting:  # asks that wait go on in their order
            while not self._lane.connected:
                if self._lane.socket.poll(0, zmq.POLLOUT):
                    self._lane.connected = True
                elif self._loop.time() >= deadline:
                    raise BusUnreachable("no broker takes the ask; start one with 'prxbus up'")
                else:
                    await asyncio.sleep(CONNECT_SECONDS)

    def send(self, request: int, data: bytes, deadline: float) -> asyncio.Future[list[Any]]:
        """Send an ask; the future of what is heard. Raises :class:`BusUnreachable`."""
        if not self._waiting:
            self._broker = self._asker.broker
        self._outbox.append(data)
        if len(self._outbox) >= TOGETHER:
            self._flush()
        self._turn_soon()
        future = self._loop.create_future()
        self._waiting[request] = (future, deadline + GRACE_SECONDS)
        if self._looking is None:
            self._looking = self._loop.call_later(LOOK_SECONDS, self._look)
        return future

    def forget(self, request: int) -> None:
        """Nobody waits for ``request``; the broker is told unless it has answered."""
        waiting = self._waiting.pop(request, None)
        if waiting is not None:
            waiting[0].cancel()
            self._outbox.append(encode_message("cancel", request))
            self._turn_soon()

    def close(self) -> None:
        """No more asks; those under way fail."""
        self._loop.remove_reader(int(self._lane.socket.fd))
        if self._looking is not None:
            self._looking.cancel()
        self._fail(ClosedError("closed while an ask was under way"))
        self._asker.put(self._lane)

    def _turn_soon(self) -> None:
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Send what one turn of the loop has led to, together; that may have taken the descriptor's edge."""
        self._turning = False
        if self._lane.socket.closed:
            return
        self._flush()
        self._drain()

    def _flush(self) -> None:
        outbox, self._outbox = self._outbox, []
        try:
            for part in _together(outbox) if self._asker.many else ([each] for each in outbox):
                self._lane.send(encode_together(part))
        except BusUnreachable as error:
            self._fail(error)

    def _drain(self) -> None:
        if self._lane.socket.closed:
            return
        for _ in range(AT_ONCE):
            try:
                data = self._lane.receive_now()
            except zmq.Again:
                return
            try:
                messages = decode_together(data)
            except DecodeError:
                continue
            for kind, request, body in messages:
                waiting = self._waiting.pop(request, None)
                if waiting is None or waiting[0].done():
                    continue
                future = waiting[0]
                if kind == "answered":
                    future.set_result(body["heard"])
                elif kind == "error":
                    future.set_exception(RequestRefused(body["code"], body["message"]))
        self._turn_soon()

    def _look(self) -> None:
        """Give up what is late, and everything when another broker is there."""
        self._looking = None
        now = self._loop.time()
        for request in [each for each, (_, last) in self._waiting.items() if last < now]:
            future = self._waiting[request][0]  # the ask itself forgets it, and tells the broker
            if not future.done():
                late = RequestTimeout("no word of the ask in time; is the broker overloaded or away?")
                future.set_exception(late)
        before, self._broker = self._broker, self._asker.broker
        if self._broker.replaces(before):
            self._fail(BusUnreachable("the broker ended while the ask was under way; ask again"))
        if self._waiting:
            self._looking = self._loop.call_later(LOOK_SECONDS, self._look)

    def _fail(self, error: Exception) -> None:
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()


def _together(messages: list[bytes]) -> Iterator[list[bytes]]:
    """``messages`` in order, in parts that are each small enough to be sent as one."""
    part: list[bytes] = []
    size = 0
    for each in messages:
        if part and size + len(each) > TOGETHER_BYTES:
            yield part
            part, size = [], 0
        part.append(each)
        size += len(each)
    if part:
        yield part
