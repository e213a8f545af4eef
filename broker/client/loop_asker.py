"""Asks from an event loop: many under way on one lane, a future for each.

Decides when a future is done: with what was heard, with the broker's refusal, when there is no word in time,
or when the broker has ended. For the loop's thread only.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ..protocol.errors import (
    BusUnreachable,
    ClosedError,
    DecodeError,
    QueueFull,
    RequestRefused,
    RequestTimeout,
)
from ..protocol.framing import framed
from ..protocol.messages import decode_message, encode_message
from .asker import CONNECT_SECONDS, Asker, Lane, absent, ended
from .core.asking import GRACE_SECONDS

LOOK_SECONDS: Final = 0.1
"""Pause between two looks at the clock while asks are under way."""

TOGETHER: Final = 16
"""Asks that are sent as one: more would have everybody wait for everybody."""

UNSENT_BYTES: Final = 67_108_864
"""What may wait for a broker that does not read."""


class LoopAsker:
    """The asks of one publisher in one event loop, on a lane of ``asker``."""

    def __init__(self, asker: Asker) -> None:
        self._loop = asyncio.get_running_loop()
        self._asker = asker
        self._lane: Lane = asker.take()
        self._watched = -1  # the descriptor from which answers are read
        self._waiting: dict[int, tuple[asyncio.Future[list[Any]], float]] = {}
        self._connecting = asyncio.Lock()
        self._looking: asyncio.TimerHandle | None = None
        self._turning = False
        self._outbox: list[bytes] = []
        self._unsent = b""  # framed
        self._full = False  # room for it is waited for

    @property
    def connected(self) -> bool:
        """Whether a broker was at the other end when last seen."""
        return self._watched >= 0

    async def connect(self, deadline: float) -> None:
        """Wait until a broker is at the other end; raises :class:`BusUnreachable` past ``deadline``."""
        async with self._connecting:  # asks that wait go on in their order
            while not self.connected:
                if self._lane.connect():
                    self._watched = self._lane.fileno()
                    self._loop.add_reader(self._watched, self._drain)
                elif self._loop.time() >= deadline:
                    raise absent()
                else:
                    await asyncio.sleep(CONNECT_SECONDS)

    def send(self, request: int, data: bytes, deadline: float) -> asyncio.Future[list[Any]]:
        """Send an ask; the future of what is heard. Raises :class:`QueueFull`."""
        if len(self._unsent) > UNSENT_BYTES:
            raise QueueFull("the broker does not read what it is asked; try again")
        self._outbox.append(data)
        future = self._loop.create_future()
        self._waiting[request] = (future, deadline + GRACE_SECONDS)
        if len(self._outbox) >= TOGETHER:
            self._flush()
        else:
            self._turn_soon()
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
        self._flush()
        self._disconnect(ClosedError("closed while an ask was under way"))
        if self._looking is not None:
            self._looking.cancel()
        self._asker.put(self._lane)

    def _turn_soon(self) -> None:
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Send what one turn of the loop has led to, together."""
        self._turning = False
        self._flush()

    def _flush(self) -> None:
        if not self.connected:
            self._outbox.clear()
            self._fail(absent())
            return
        if self._outbox:
            self._unsent += framed(self._outbox)
            self._outbox.clear()
        if not self._unsent:
            return
        try:
            self._unsent = self._unsent[self._lane.send_now(self._unsent) :]
        except BusUnreachable:
            self._disconnect(ended())
            return
        if self._unsent and not self._full:
            self._full = True
            self._loop.add_writer(self._watched, self._flush)
        elif self._full and not self._unsent:
            self._full = False
            self._loop.remove_writer(self._watched)

    def _drain(self) -> None:
        try:
            messages = self._lane.receive_now()
        except BusUnreachable as error:
            self._disconnect(error)
            return
        for data in messages:
            try:
                kind, request, body = decode_message(data)
            except DecodeError:
                continue
            waiting = self._waiting.pop(request, None)
            if waiting is None or waiting[0].done():
                continue
            future = waiting[0]
            if kind == "answered":
                future.set_result(body["heard"])
            elif kind == "error":
                future.set_exception(RequestRefused(body["code"], body["message"]))

    def _look(self) -> None:
        """Give up what is late."""
        self._looking = None
        now = self._loop.time()
        for request in [each for each, (_, last) in self._waiting.items() if last < now]:
            future = self._waiting[request][0]  # the ask itself forgets it, and tells the broker
            if not future.done():
                late = RequestTimeout("no word of the ask in time; is the broker overloaded or away?")
                future.set_exception(late)
        if self._waiting:
            self._looking = self._loop.call_later(LOOK_SECONDS, self._look)

    def _disconnect(self, error: Exception) -> None:
        if self._watched >= 0:
            self._loop.remove_reader(self._watched)
            self._loop.remove_writer(self._watched)
            self._watched, self._full = -1, False
        self._lane.close()
        self._unsent = b""
        self._outbox.clear()
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
