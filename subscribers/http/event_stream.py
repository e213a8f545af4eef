"""Events for a browser-less ``EventSource``: one bounded queue for each client, and what did not fit is told.

Each stream is an ordinary subscriber of the bus, so the broker filters for it and a slow client costs the
others nothing. A thread reads the bus and writes each event as text; the loop sends. What finds no room in
the queue is dropped, counted and told in an event ``dropped``. It refuses to know HTTP.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Final

import orjson

from broker.client import Subscriber
from broker.client.core.describing import describe
from broker.protocol.errors import BusError, ClosedError
from broker.protocol.events import Event

QUEUE_EVENTS: Final = 1_000
QUEUE_BYTES: Final = 4_194_304
"""Events, and bytes of them as text, that wait for one client."""

CLIENTS: Final = 16
"""Streams at a time."""

HEARTBEAT_SECONDS: Final = 15.0
"""Longest silence on a stream; then a comment is sent, by which both ends notice that the other is gone."""

TURN_SECONDS: Final = 0.5
"""Longest wait without looking whether the process ends."""

BATCH: Final = 256

READY: Final = b": ready\n\n"
HEARTBEAT: Final = b": heartbeat\n\n"


class TooManyStreams(Exception):
    """All streams are taken."""


class Streams:
    """The open streams, at most ``limit``."""

    def __init__(self, runtime_dir: str | os.PathLike[str], limit: int = CLIENTS) -> None:
        self.limit = limit
        self._dropped = 0
        self._opened = 0
        self._runtime_dir = runtime_dir
        self._open: set[EventStream] = set()
        self._opening = 0
        self._lock = threading.Lock()
        self._closing = False

    @property
    def waiting(self) -> list[int]:
        """Events in the queue of each open stream."""
        with self._lock:
            return [stream.waiting for stream in self._open]

    @property
    def dropped(self) -> int:
        """Events that found no room, over all clients so far."""
        with self._lock:
            return self._dropped + sum(stream.dropped for stream in self._open)

    def open(self, patterns: Sequence[str], wake: Callable[[], None]) -> EventStream:
        """A stream of the events that match; blocks until none can be missed any more.

        ``wake`` is called, from another thread, when there is something to send. Raises
        :class:`TooManyStreams`, TopicError for a pattern, and BusError without a bus.
        """
        with self._lock:
            if self._closing or len(self._open) + self._opening >= self.limit:
                raise TooManyStreams(f"{self.limit} streams are open already; close one")
            self._opening += 1
            self._opened += 1
            name = f"http-stream-{self._opened}"
        stream = None
        try:
            stream = EventStream(name, patterns, self._runtime_dir, wake)
        finally:
            with self._lock:  # in one: nobody sees a place between them
                self._opening -= 1
                if stream is not None:
                    self._open.add(stream)
        if self._closing:
            stream.stop()
        stream.begin()
        return stream

    def close(self, stream: EventStream) -> None:
        """End a stream; blocks until its thread is gone."""
        stream.close()
        with self._lock:
            self._open.discard(stream)
            self._dropped += stream.dropped

    def stop(self) -> None:
        """Have every stream end by itself, and open no more; does not wait."""
        with self._lock:
            self._closing = True
            for stream in self._open:
                stream.stop()


class EventStream:
    """One client's events as server-sent event text, between a reading thread and a sending loop."""

    def __init__(
        self,
        name: str,
        patterns: Sequence[str],
        runtime_dir: str | os.PathLike[str],
        wake: Callable[[], None],
    ) -> None:
        self.dropped = 0
        self.ended = False
        self._wake = wake
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._told = (0, 0)
        self._lock = threading.Lock()
        self._events = Subscriber(patterns, name=name, runtime_dir=runtime_dir, report=self._counters)
        self._thread = threading.Thread(target=self._read, name=name, daemon=True)

    @property
    def waiting(self) -> int:
        """Events in the queue."""
        return len(self._queue)

    def begin(self) -> None:
        """Start to read."""
        self._thread.start()

    def take(self) -> bytes:
        """Everything that waits, and what was lost since it was last told; empty when there is nothing."""
        with self._lock:
            text = b"".join(self._queue)
            self._queue.clear()
            self._bytes = 0
        lost = (self.dropped, 0 if self._events.closed else self._events.stats["missed"])
        if lost != self._told and lost[1] >= self._told[1]:
            told, self._told = self._told, lost
            news = {"dropped": lost[0] - told[0], "missed": lost[1] - told[1]}
            text += b"event: dropped\ndata: %b\n\n" % orjson.dumps(news)
        return text

    def stop(self) -> None:
        """End; does not wait."""
        self.ended = True
        with suppress(RuntimeError):  # the loop that would be woken is gone
            self._wake()

    def close(self) -> None:
        """End and wait until nothing is left."""
        self.stop()
        self._events.close()
        self._thread.join()

    def _read(self) -> None:
        try:
            while not self.ended:
                batch = self._events.batch(BATCH, timeout=TURN_SECONDS)
                if batch:
                    self._add(batch)
        except (ClosedError, BusError):
            pass
        finally:
            self.stop()

    def _add(self, batch: Sequence[Event]) -> None:
        for event in batch:
            if len(self._queue) >= QUEUE_EVENTS or self._bytes >= QUEUE_BYTES:
                self.dropped += 1
                continue
            text = server_sent(event)
            with self._lock:
                self._queue.append(text)
                self._bytes += len(text)
        with suppress(RuntimeError):
            self._wake()

    def _counters(self) -> dict[str, int]:
        return {"stream_waiting": len(self._queue), "stream_dropped": self.dropped}


def server_sent(event: Event) -> bytes:
    """An event as server-sent event text: its id, and one line of JSON as ``prxbus tap --json`` prints it."""
    shown = describe(event)
    if "payload" in shown:  # it is JSON, so a line end in it stands between tokens
        flat = event.payload_bytes.replace(b"\n", b" ").replace(b"\r", b" ")
        shown["payload"] = orjson.Fragment(flat)
    return b"id: %b\ndata: %b\n\n" % (event.id.encode(), orjson.dumps(shown))


async def chunks(stream: EventStream, woken: asyncio.Event) -> AsyncIterator[bytes]:
    """What to send to the client, until the stream ends; ``woken`` is what its ``wake`` sets."""
    yield READY
    silent_s = 0.0
    while not stream.ended:
        woken.clear()
        text = stream.take()
        if text:
            silent_s = 0.0
            yield text
            continue
        with suppress(TimeoutError):
            async with asyncio.timeout(TURN_SECONDS):
                await woken.wait()
                continue
        silent_s += TURN_SECONDS
        if silent_s >= HEARTBEAT_SECONDS:
            silent_s = 0.0
            yield HEARTBEAT
    text = stream.take()
    if text:
        yield text
