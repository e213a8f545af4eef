"""Streams of events on a real bus: their text, their bounds, and what is told of losses."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from broker.client import Publisher
from broker.protocol.errors import TopicError
from broker.testing import running_broker
from subscribers.http import event_stream
from subscribers.http.blocking import Blocking
from subscribers.http.bus_api import BusApi
from subscribers.http.event_stream import HEARTBEAT, READY, EventStream, Streams, TooManyStreams, chunks
from subscribers.http.metrics import Metrics
from subscribers.http.problems import Problem
from tests.integration.waiting import until

SECONDS = 30.0


@pytest.fixture
def streams(runtime_dir: Path) -> Iterator[Streams]:
    """At most two streams of a real bus."""
    with running_broker(runtime_dir) as bus:
        yield Streams(bus, limit=2)


def filled(stream: EventStream, count: int) -> None:
    """Wait until the stream has taken or dropped so many events."""
    pause = threading.Event()
    for _ in range(int(SECONDS / 0.01)):
        if stream.waiting + stream.dropped >= count:
            return
        pause.wait(0.01)
    pytest.fail(f"{stream.waiting} waiting and {stream.dropped} dropped are not {count}")


def test_what_finds_no_room_is_dropped_counted_and_told_once(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue keeps the first events; a drop is told with the next text and not again."""
    monkeypatch.setattr(event_stream, "QUEUE_EVENTS", 2)
    woken = threading.Event()
    stream = streams.open(["prx.a"], woken.set)
    with Publisher("agent", runtime_dir=streams._runtime_dir, on_absent="raise") as agent:
        for number in range(5):
            agent.publish("prx.a", {"n": number})
        filled(stream, 5)
        assert woken.wait(SECONDS)
        assert (streams.waiting, streams.dropped) == ([2], 3)
        first, second, told = stream.take().decode().split("\n\n")[:3]
        assert [json.loads(text.split("data: ")[1])["payload"]["n"] for text in (first, second)] == [0, 1]
        assert told == 'event: dropped\ndata: {"dropped":3,"missed":0}'
        assert stream.take() == b""
    streams.close(stream)
    assert (streams.waiting, streams.dropped) == ([], 3)


def test_bytes_are_bounded_too(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few large events fill a queue as well as many small ones."""
    monkeypatch.setattr(event_stream, "QUEUE_BYTES", 10)
    stream = streams.open(["prx.a"], lambda: None)
    with Publisher("agent", runtime_dir=streams._runtime_dir, on_absent="raise") as agent:
        agent.publish("prx.a", {})
        agent.publish("prx.a", {})
        filled(stream, 2)
    assert (stream.waiting, stream.dropped) == (1, 1)
    streams.close(stream)


def test_streams_are_limited_and_stopped(streams: Streams) -> None:
    """No more than the limit; a bad pattern takes no place; after a stop none opens and all end."""
    with pytest.raises(TopicError):
        streams.open(["prx.life*"], lambda: None)
    opened = [streams.open(["prx.a"], lambda: None) for _ in range(2)]
    with pytest.raises(TooManyStreams, match="2 streams are open already"):
        streams.open(["prx.a"], lambda: None)
    streams.close(opened.pop())
    streams.stop()
    assert opened[0].ended
    with pytest.raises(TooManyStreams):
        streams.open(["prx.a"], lambda: None)
    streams.close(opened[0])


def test_a_race_for_the_last_place_has_one_winner(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between being opened and being open a stream has its place, whoever looks in between."""
    seen: list[int] = []

    class Watched:
        """A lock that looks, each time it is given back, how many places are taken."""

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            seen.append(len(streams._open) + streams._opening)
            lock.release()

    lock = streams._lock
    monkeypatch.setattr(streams, "_lock", Watched())
    stream = streams.open(["prx.a"], lambda: None)
    assert set(seen) == {1}
    streams.close(stream)


def test_a_stream_that_opened_too_late_is_closed(streams: Streams, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it any more, so its place is free again."""
    go, opened = threading.Event(), threading.Event()
    open_it = streams.open

    def late(patterns: Sequence[str], wake: Callable[[], None]) -> EventStream:
        go.wait(SECONDS)
        stream = open_it(patterns, wake)
        opened.set()
        return stream

    monkeypatch.setattr(streams, "open", late)
    pool = Blocking(1, 1, "test")
    monkeypatch.setattr(pool, "run", functools.partial(pool.run, seconds=0.05))
    api = BusApi(streams._runtime_dir, streams, Metrics(), pool, dict)

    async def ask() -> None:
        with pytest.raises(Problem, match="not done within"):
            await api.open_stream(["prx.a"])
        go.set()
        assert await asyncio.to_thread(opened.wait, SECONDS)
        await asyncio.to_thread(until, lambda: not streams.waiting, "the stream to be closed")

    asyncio.run(ask())
    pool.close()
    assert streams.waiting == []


class Silent:
    """A stream on which nothing happens for a while."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    @property
    def ended(self) -> bool:
        """Ends after so many looks."""
        self.turns -= 1
        return self.turns < 0

    def take(self) -> bytes:
        """Has nothing until the end, then a last word."""
        return b"last" if self.turns < 0 else b""


def test_silence_is_broken_by_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """First that it is ready, then a comment for each while of silence, in the end what was left."""
    monkeypatch.setattr(event_stream, "TURN_SECONDS", 0.001)
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.002)

    async def collect() -> list[bytes]:
        return [text async for text in chunks(Silent(5), asyncio.Event())]  # type: ignore[arg-type] # a fake

    assert asyncio.run(collect()) == [READY, HEARTBEAT, HEARTBEAT, b"last"]
