"""The asyncio twin: the same promises, without blocking the loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker import client
from broker.client.aio import Publisher, Subscriber
from broker.protocol.errors import BusUnreachable, ClosedError
from broker.testing import running_broker


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


async def take(events: Subscriber, count: int, seconds: float = 20.0) -> list[client.Event]:
    """The next ``count`` events."""
    found: list[client.Event] = []
    deadline = time.monotonic() + seconds
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} came"
        found += await events.batch(count - len(found), timeout=0.5)
    return found


@pytest.mark.asyncio
async def test_events_travel_from_loop_to_loop(bus: str) -> None:
    """What is published in a loop arrives in a loop, in order, right after both are open."""
    async with Subscriber(["prx.*"], name="audit", runtime_dir=bus) as events:
        async with Publisher("agent", runtime_dir=bus) as agent:
            assert agent.ready
            for number in range(300):
                assert agent.publish("prx.x", {"n": number}, session_id="s")
            assert [event.payload["n"] for event in await take(events, 300)] == list(range(300))
            assert await agent.publish_acknowledged("prx.x", {}) == 1
            assert agent.stats["published"] == 301
        assert events.stats["missed"] == 0


@pytest.mark.asyncio
async def test_a_burst_larger_than_a_batch_leaves_nothing_behind(bus: str) -> None:
    """Events beyond one batch come without a new wake-up of the descriptor."""
    async with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("agent", runtime_dir=bus) as agent:
        for number in range(500):
            agent.publish("prx.x", {"n": number})
        got: list[int] = []
        while len(got) < 500:
            batch = await events.batch(7, timeout=10)
            assert 0 < len(batch) <= 7
            got += [event.payload["n"] for event in batch]
        assert got == list(range(500))


@pytest.mark.asyncio
async def test_a_broken_off_loop_loses_nothing(bus: str) -> None:
    """Events that an ``async for`` did not see come first in the next one."""
    async with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("agent", runtime_dir=bus) as agent:
        for number in range(30):
            agent.publish("prx.x", {"n": number})
        seen: list[int] = []
        for stop in (3, 20, 29):
            iterator = aiter(events)
            async for event in iterator:
                seen.append(event.payload["n"])
                if seen[-1] >= stop:
                    break
            await iterator.aclose()  # type: ignore[attr-defined]
        assert seen == list(range(30))


@pytest.mark.asyncio
async def test_waiting_does_not_block_the_loop(bus: str) -> None:
    """While one task waits for events, others run."""
    async with Subscriber(["prx.x"], runtime_dir=bus) as events:
        waiting = asyncio.create_task(events.batch(timeout=0.4))
        ticks = 0
        while not waiting.done():
            ticks += 1
            await asyncio.wait([waiting], timeout=0.005)
        assert await waiting == []
        assert ticks > 10


@pytest.mark.asyncio
async def test_events_wake_a_task_that_waits(bus: str) -> None:
    """A waiting task is woken by the event, not by the end of its patience."""
    async with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("agent", runtime_dir=bus) as agent:
        for number in range(20):
            waiting = asyncio.create_task(events.batch(timeout=30))
            await asyncio.sleep(0)
            agent.publish("prx.x", {"n": number})
            (event,) = await waiting
            assert event.payload == {"n": number}


@pytest.mark.asyncio
async def test_a_loop_that_was_blocked_hears_what_came_meanwhile(bus: str) -> None:
    """The link's thread may look at the socket while the loop is blocked; the events are not forgotten."""
    async with Subscriber(["prx.x"], runtime_dir=bus) as events:
        with client.Publisher("agent", runtime_dir=bus) as agent:
            gate = threading.Event()
            publisher = threading.Thread(target=lambda: [agent.publish("prx.x", {}), gate.wait(1.5)])
            publisher.start()
            publisher.join()  # blocks the loop, long enough for the thread's look
            started = time.monotonic()
            assert len(await take(events, 1)) == 1
            assert time.monotonic() - started < 10


@pytest.mark.asyncio
async def test_closing_ends_the_iteration(bus: str) -> None:
    """A task in ``async for`` ends when the subscriber is closed."""
    events = Subscriber(["prx.x"], runtime_dir=bus)
    await events.__aenter__()

    async def read() -> list[Any]:
        return [event async for event in events]

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    await events.close()
    await events.close()
    assert await asyncio.wait_for(reading, 10) == []
    with pytest.raises(ClosedError):
        await events.batch()


@pytest.mark.asyncio
async def test_what_cannot_be_is_refused(runtime_dir: Path) -> None:
    """No bus, use before ``async with`` and waiting for room are errors that say so."""
    with pytest.raises(ValueError, match="on_full must be drop or raise in an event loop"):
        Publisher("agent", on_full="block")  # type: ignore[arg-type]
    with pytest.raises(ClosedError, match="open this Publisher with 'async with' first"):
        Publisher("agent").publish("prx.x", {})
    with pytest.raises(ClosedError, match="open this Subscriber with 'async with' first"):
        await Subscriber(["*"]).batch()
    with pytest.raises(BusUnreachable):
        async with Subscriber("*", runtime_dir=runtime_dir):
            pass
    async with Publisher("agent", runtime_dir=runtime_dir) as agent:
        assert agent.publish("prx.x", {}) is False
        assert agent.stats["dropped_absent"] == 1
