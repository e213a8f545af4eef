"""Bursts over a real bus: gathered behind the per-event API, and nobody can tell but by the speed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from broker.client import Publisher, Subscriber, aio
from broker.client.tool import Tool
from broker.protocol.control import encode_message
from broker.protocol.errors import ClosedError, ForkedError
from broker.testing import running_broker
from tests.integration.raw_bus import hello
from tests.integration.waiting import until

BURST = 3_000


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


class Wire:
    """A subscriber without a client: the frames as they travel."""

    def __init__(self, bus: str, *prefixes: bytes) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.rcvhwm = 0
        for prefix in prefixes:
            self.socket.subscribe(prefix)
        self.socket.connect(f"ipc://{bus}/egress.sock")
        self.frames: list[bytes] = []

    def read(self) -> list[bytes]:
        """All frames so far, without the greeting."""
        while self.socket.poll(50):
            self.frames.append(self.socket.recv())
        return [frame for frame in self.frames if not frame.startswith(b"$")]

    def close(self) -> None:
        """End."""
        self.socket.close(0)
        self.context.term()


@pytest.fixture
def wire(bus: str) -> Iterator[Wire]:
    """The frames of ``prx.x`` and of its channel, from when it is known to work."""
    made = Wire(bus, b"0prx.x\0", b"0~prx.x\0", b"$welcome")
    with Publisher("probe", runtime_dir=bus, on_absent="block") as agent:
        until(lambda: agent.publish("prx.x", {}) and made.read(), "the wire to be tapped")
    made.frames.clear()
    yield made
    made.close()


def burst(agent: Publisher, events: int = BURST, topic: str = "prx.x") -> None:
    """As many events as fast as they go."""
    for number in range(events):
        assert agent.publish(topic, b'{"n":%d}' % number)


def numbers(events: Subscriber, count: int) -> list[int]:
    """The numbers of the next ``count`` events."""
    got: list[int] = []

    def enough() -> bool:
        got.extend(event.payload["n"] for event in events.batch(timeout=0.1))
        return len(got) >= count

    until(enough, f"{count} events")
    return got


def test_a_burst_takes_few_frames_and_arrives_whole(bus: str, wire: Wire) -> None:
    """3,000 events in a row arrive in order, in far fewer frames, and the last without a word more."""
    with (
        Subscriber(["prx.x"], runtime_dir=bus) as events,
        Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent,
    ):
        burst(agent)
        assert numbers(events, BURST) == list(range(BURST))
        assert events.stats["missed"] == 0
        frames = wire.read()
        assert any(frame.startswith(b"0~prx.x\0") for frame in frames)
        assert len(frames) < BURST / 3


def test_single_events_are_not_gathered(bus: str, wire: Wire) -> None:
    """Events with pauses between them travel one by one."""
    with Publisher("agent", runtime_dir=bus, on_absent="block") as agent:
        pace = threading.Event()
        for number in range(20):
            agent.publish("prx.x", {"n": number})
            pace.wait(0.001)
        until(lambda: len(wire.read()) == 20, "each in a frame of its own")
        assert all(frame.startswith(b"0prx.x\0") for frame in wire.frames)


def test_what_is_published_together_leaves_together(bus: str, wire: Wire) -> None:
    """However slowly it comes, at the end of the block and not before; what follows goes alone again."""
    with Publisher("me", runtime_dir=bus, on_absent="block") as agent:
        with agent.together():
            for number in range(3):
                assert agent.publish("prx.x", {"n": number})
            assert wire.read() == []
        until(wire.read, "the frame")
        (frame,) = wire.read()
        assert frame.startswith(b"0~prx.x\0")
        assert frame.count(b'{"n":') == 3
        agent.publish("prx.x", {"n": 3})
        until(lambda: len(wire.read()) == 2, "the event after it")
        assert wire.read()[1].startswith(b"0prx.x\0")


def test_what_is_gathered_leaves_before_the_end(bus: str) -> None:
    """close() right after a burst loses nothing."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events:
        for _ in range(5):
            with Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent:
                burst(agent, 500)
            assert numbers(events, 500) == list(range(500))
        assert events.stats["missed"] == 0


FORGETFUL = """
import sys
from broker.client import Publisher
agent = Publisher("agent", runtime_dir=sys.argv[1], on_absent="block", on_full="block")
for number in range(500):
    agent.publish("prx.x", b'{"n":%d}' % number)
"""


def test_an_exit_in_the_middle_of_a_burst_loses_nothing(bus: str) -> None:
    """A process that ends without closing flushes what it has gathered."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events:
        subprocess.run([sys.executable, "-c", FORGETFUL, bus], check=True, timeout=50)
        assert numbers(events, 500) == list(range(500))


def test_a_forked_child_sends_nothing_of_its_parents(bus: str) -> None:
    """What was gathered before a fork arrives once, from the parent."""
    with (
        Subscriber(["prx.x"], runtime_dir=bus) as events,
        Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent,
    ):
        burst(agent, 500)
        child = os.fork()
        if not child:
            try:
                agent.flush()
            except ForkedError:
                agent.close()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        burst(agent, 500)
        assert numbers(events, 1_000) == [*range(500), *range(500)]
        assert (events.stats["missed"], events.stats["late"]) == (0, 0)


def test_one_subscriber_that_reads_no_batches_ends_them(bus: str, wire: Wire) -> None:
    """While such a subscriber is registered every event travels alone; once it is gone, no longer."""
    with Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent:
        context = zmq.Context()
        with context.socket(zmq.DEALER) as control:
            control.connect(f"ipc://{bus}/control.sock")
            control.send(encode_message("hello", **hello("subscriber", "old", batches=False)))
            assert control.poll(20_000)
            until(lambda: not agent._outlet.gathering.allowed, "the news")
            burst(agent)
            until(lambda: len(wire.read()) == BURST, "each in a frame of its own")
            control.send(encode_message("bye"))
            until(lambda: agent._outlet.gathering.allowed, "leave to gather again")
        context.term()
        burst(agent)
        assert agent.flush()
        until(lambda: any(frame.startswith(b"0~prx.x\0") for frame in wire.read()), "a batch")


def test_order_holds_across_topics_sizes_and_ways(bus: str) -> None:
    """Small, large and claimed payloads of two topics, some deeper, come in the order of their publishing."""
    with (
        Subscriber(["prx.*"], runtime_dir=bus) as events,
        Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent,
    ):
        for number in range(600):
            text = "x" * (70_000 if number % 97 == 5 else 9_000 if number % 31 == 7 else 20)
            topic = "prx.x" if number % 3 else "prx.y.deep"
            agent.publish(topic, {"n": number, "text": text}, depth=number % 50 // 49)
        assert numbers(events, 600) == list(range(600))
        assert (events.stats["missed"], events.stats["late"]) == (0, 0)


def test_an_acknowledged_publish_follows_what_was_gathered(bus: str) -> None:
    """The burst before it has left, and all is delivered and accounted for."""
    with (
        Subscriber(["prx.x"], runtime_dir=bus) as events,
        Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent,
    ):
        burst(agent, 100)
        assert agent.publish_acknowledged("prx.x", b'{"n":100}', timeout=20) == 1
        assert sorted(numbers(events, 101)) == list(range(101))
        until(lambda: events.batch(timeout=0.01) == [] and events.stats["missed"] == 0, "a clean account")


def test_a_retained_event_in_a_burst_is_kept_and_comes_once(bus: str) -> None:
    """It is delivered with the burst around it, and is the topic's last value for who comes later."""
    with (
        Subscriber(["prx.x"], runtime_dir=bus) as events,
        Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent,
    ):
        burst(agent, 100)
        assert agent.publish("prx.x", {"n": 100}, retain=True)
        for number in range(101, 200):
            assert agent.publish("prx.x", {"n": number})
        assert sorted(numbers(events, 200)) == list(range(200))
        with Subscriber(["prx.x"], last=True, runtime_dir=bus) as later:
            assert numbers(later, 1) == [100]
        assert events.batch(timeout=0.05) == []


def test_threads_gather_together(bus: str) -> None:
    """Four threads that publish at once: nothing is lost and each one's events are in order."""
    with (
        Subscriber(["prx.*"], runtime_dir=bus) as events,
        Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent,
    ):
        threads = [threading.Thread(target=burst, args=(agent, 500, f"prx.t{n}")) for n in range(4)]
        for thread in threads:
            thread.start()
        got: dict[str, list[int]] = {}

        def collect() -> bool:
            for event in events.batch(timeout=0.1):
                got.setdefault(event.topic, []).append(event.payload["n"])
            return sum(map(len, got.values())) == 2_000

        until(collect, "all of them")
        for thread in threads:
            thread.join()
        assert got == {f"prx.t{n}": list(range(500)) for n in range(4)}
        assert events.stats["missed"] == 0


def test_a_drain_takes_what_was_gathered(runtime_dir: Path) -> None:
    """A broker that is told to stop in the middle of bursts delivers all that publish() took."""
    with (
        running_broker(runtime_dir) as bus,
        Publisher("agent", runtime_dir=bus, on_absent="block") as agent,
        Subscriber(["prx.x"], runtime_dir=bus) as events,
    ):
        received: list[int] = []
        done = threading.Event()

        def listen() -> None:
            deadline = time.monotonic() + 40
            while time.monotonic() < deadline:
                received.extend(event.sequence for event in events.batch(timeout=0.2))
                if done.is_set() and received[-1:] == [agent.stats["published"]]:
                    return

        listener = threading.Thread(target=listen)
        listener.start()
        burst(agent, 2_000)
        with Tool("test", runtime_dir=bus) as tool:
            os.kill(tool.request("status").body["status"]["broker"]["pid"], signal.SIGTERM)
        while agent.publish("prx.x", b'{"n":0}'):
            pass
        done.set()
        listener.join(45)
        assert received == list(range(1, agent.stats["published"] + 1))


@pytest.mark.asyncio
async def test_a_turn_of_the_loop_gathers(bus: str, wire: Wire) -> None:
    """What one turn of an event loop publishes is sent at its end, in few frames, without a thread."""
    before = threading.active_count()
    async with (
        aio.Subscriber(["prx.x"], runtime_dir=bus) as events,
        aio.Publisher("agent", runtime_dir=bus, on_absent="block") as agent,
    ):
        for number in range(500):
            assert agent.publish("prx.x", b'{"n":%d}' % number)
        assert "prxbus-flush" not in {thread.name for thread in threading.enumerate()}
        got: list[int] = []
        while len(got) < 500:
            got += [event.payload["n"] for event in await events.batch(timeout=20)]
        assert got == list(range(500))
        assert len(wire.read()) < 250
        await asyncio.to_thread(lambda: [agent.publish("prx.x", b'{"n":%d}' % n) for n in range(500)])
        while len(got) < 1_000:
            got += [event.payload["n"] for event in await events.batch(timeout=20)]
        assert got == [*range(500), *range(500)]
    assert threading.active_count() <= before + 2  # the loop's own pool


def received(events: Subscriber, number: float) -> int:
    """How many events have come once they and the missed ones are ``number``, and no more come."""
    got = 0

    def enough() -> bool:
        nonlocal got
        batch = events.batch(timeout=0.2)
        got += len(batch)
        return not batch and got + int(events.stats["missed"]) >= number

    until(enough, f"{number} events")
    return got


def test_nothing_is_taken_after_the_close(bus: str) -> None:
    """A thread that was about to publish when another one closed is told so, and no event vanishes."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events:
        agent = Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block")
        taken = 0

        def work() -> None:
            nonlocal taken
            try:
                while agent.publish("prx.x", b'{"n":0}'):
                    taken += 1
            except ClosedError:
                closed.set()

        closed = threading.Event()
        thread = threading.Thread(target=work)
        thread.start()
        until(lambda: taken > 300, "a burst")
        agent.close()
        thread.join(20)
        assert closed.is_set()
        assert taken == agent.stats["published"]
        assert (received(events, taken), events.stats["missed"]) == (taken, 0)


INTERRUPTED = """
import os, signal, sys, threading, time
from broker.client import Publisher
agent = Publisher("agent", runtime_dir=sys.argv[1], on_absent="block", on_full="block")
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        agent.publish("prx.x", b'{"n":0}')
except KeyboardInterrupt:
    began = time.monotonic()
    agent.close()
    print(agent.stats["published"], time.monotonic() - began)
"""


def test_an_interrupt_in_a_burst_sends_nothing_twice(bus: str) -> None:
    """Ctrl-C anywhere in a burst: no event arrives twice, what was lost is counted, and closing is quick."""
    for _ in range(5):
        with Subscriber(["prx.x"], runtime_dir=bus) as events:
            command = [sys.executable, "-c", INTERRUPTED, bus]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
            published, seconds = map(float, ran.stdout.split())
            assert seconds < 1.9
            got = received(events, published)
            assert got + events.stats["missed"] == published
            assert events.stats["late"] == 0


def test_a_handler_that_publishes_in_a_burst_loses_nothing(bus: str) -> None:
    """Events that a signal handler publishes in the middle of others all arrive, once."""
    with (
        Subscriber(["prx.*"], runtime_dir=bus) as events,
        Publisher("agent", runtime_dir=bus, on_absent="block", on_full="block") as agent,
    ):
        rung = 0

        def ring(_signal: int, _frame: object) -> None:
            nonlocal rung
            for number in range(3):
                assert agent.publish("prx.rung", b'{"n":%d}' % number)
                rung += 1

        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            burst(agent, 20_000)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        agent.flush()
        assert received(events, 20_000 + rung) == 20_000 + rung
        assert events.stats["missed"] == 0


@pytest.mark.asyncio
async def test_unwanted_events_do_not_hold_a_loop_up(bus: str) -> None:
    """Behind thousands of frames without anything wanted, the one that has it comes in good time."""
    async with (
        aio.Subscriber(["prx.wanted"], runtime_dir=bus) as events,
        aio.Publisher("agent", runtime_dir=bus, on_absent="block") as agent,
    ):
        for _ in range(3_000):
            for _ in range(20):
                agent.publish("prx.wanted.not", b'{"n":0}')
            agent._opened().flush()
        assert agent.publish("prx.wanted", b"{}")
        assert [event.topic for event in await events.batch(timeout=30)] == ["prx.wanted"]
