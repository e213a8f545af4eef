"""Clients in many threads, and in a process that forks."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.client import Publisher, Subscriber
from broker.protocol.errors import ForkedError
from broker.testing import running_broker


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


def in_threads(*calls: Callable[[], object]) -> None:
    """Run all of ``calls`` at once and wait for their end."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
        assert not thread.is_alive()


def in_child(call: Callable[[], object]) -> bool:
    """Whether ``call`` is true in a forked child."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int(not call())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def raises_forked(call: Callable[[], object]) -> bool:
    """Whether ``call`` refuses to work in a process that is not its own."""
    try:
        call()
    except ForkedError:
        return True
    return False


def test_threads_share_a_publisher(bus: str) -> None:
    """Topics old and new, sessions, claims and counters from six threads: every topic counts without gaps."""
    with Subscriber(["prx.*"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:

        def work(thread: int) -> None:
            for number in range(60):
                agent.publish("prx.shared", {"n": number}, session_id=f"s{thread}")
                agent.publish(f"prx.own.t{thread}_{number % 7}", {"n": number})
                if number % 30 == 0:
                    agent.publish("prx.large", {"text": "x" * 70_000})
                assert agent.stats["published"] > 0

        in_threads(*(lambda thread=thread: work(thread) for thread in range(6)))
        total = 6 * (60 + 60 + 2)
        seen: dict[str, list[int]] = {}
        deadline = time.monotonic() + 20
        while sum(map(len, seen.values())) < total:
            assert time.monotonic() < deadline, events.stats
            for event in events.batch(timeout=0.5):
                seen.setdefault(event.topic, []).append(event.sequence)
        assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in seen.values())
        assert agent.stats["published"] == total


def test_threads_share_a_subscriber(bus: str) -> None:
    """Each event goes to exactly one of four threads that read, and what each gets is in order."""
    total = 2_000
    shares: list[list[int]] = [[] for _ in range(4)]
    with Subscriber(["prx.x"], runtime_dir=bus) as events:

        def read(share: list[int]) -> None:
            while sum(map(len, shares)) < total:
                share += [event.sequence for event in events.batch(50, timeout=0.05)]

        def write() -> None:
            with Publisher("me", runtime_dir=bus, on_full="block") as agent:
                for number in range(total):
                    agent.publish("prx.x", {"n": number})

        in_threads(write, *(lambda share=share: read(share) for share in shares))
        assert events.stats["missed"] == 0
    assert sorted(number for share in shares for number in share) == list(range(1, total + 1))
    assert all(share == sorted(share) for share in shares)


def test_a_forked_child_may_not_use_what_is_not_its_own(bus: str) -> None:
    """Every call that would touch a socket or a thread of the parent says so in the child."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("me", runtime_dir=bus) as agent:
        agent.publish("prx.x", {"n": 1})  # so that the topic is a known one
        calls: list[Callable[[], object]] = [
            lambda: agent.publish("prx.x", {}),
            lambda: agent.publish("prx.new", {}),
            lambda: agent.publish("prx.x", {}, retain=True),
            lambda: agent.publish_acknowledged("prx.x", {}),
            lambda: events.batch(timeout=0),
            lambda: next(iter(events)),
        ]
        assert in_child(lambda: all(raises_forked(call) for call in calls))
        assert agent.publish("prx.x", {"n": 2})
        got: list[int] = []
        while len(got) < 2:
            batch = events.batch(timeout=20)
            assert batch
            got += [event.payload["n"] for event in batch]
        assert got == [1, 2]


def test_a_child_forked_while_a_thread_publishes_is_not_stuck(bus: str) -> None:
    """Whatever the parent's threads held at the fork, each call in the child says at once that it may not."""
    with Publisher("me", runtime_dir=bus, on_absent="block") as agent:
        agent.publish("prx.x", {"n": 1})
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with agent._lock:  # as in the middle of a publish
                held.set()
                done.wait(20)

        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(20)
        calls: list[Callable[[], object]] = [
            lambda: agent.publish("prx.x", {"n": 2}),
            lambda: agent.publish("prx.x", b'{"n": 2}', retain=True),
            agent.flush,
        ]
        assert in_child(lambda: all(raises_forked(call) for call in calls))
        done.set()
        thread.join()


def test_a_forked_child_may_open_its_own(bus: str) -> None:
    """Clients that a child opens work there, beside the parent's, and leave those alone."""
    with Subscriber(["prx.x"], runtime_dir=bus) as events, Publisher("parent", runtime_dir=bus) as agent:

        def child() -> bool:
            with (
                Subscriber(["prx.x"], runtime_dir=bus) as own_events,
                Publisher("child", runtime_dir=bus, on_absent="raise") as own,
            ):
                own.publish("prx.x", {})
                return [event.source for event in own_events.batch(timeout=20)] == ["child"]

        assert in_child(child)
        agent.publish("prx.x", {})
        sources: list[str] = []
        while len(sources) < 2:
            batch = events.batch(timeout=20)
            assert batch
            sources += [event.source for event in batch]
        assert sources == ["child", "parent"]
