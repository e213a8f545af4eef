"""How long a publisher waits: without a bus, with one that is stopped, and with a full queue."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.client import Publisher, Subscriber
from broker.client.core.batching import GATHERED_EVENTS
from broker.testing import running_broker
from tests.integration.waiting import until

LARGE = b'{"a":"' + b"x" * 60_000 + b'"}'
SLOW_MACHINE_S = 3.0
"""What a loaded machine may add to a wait that is itself a fraction of a second."""


@contextmanager
def stopped(bus: str) -> Iterator[threading.Timer]:
    """The broker of ``bus`` is stopped; the timer, once started, lets it go on after half a second."""
    pid = int(Path(bus, "lock").read_text().split()[0])
    timer = threading.Timer(0.5, os.kill, (pid, signal.SIGCONT))
    os.kill(pid, signal.SIGSTOP)
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T", "the stop")
    try:
        yield timer
    finally:
        timer.cancel()
        os.kill(pid, signal.SIGCONT)
        if timer.ident is not None:
            timer.join()


def test_a_constructor_without_a_bus_returns_soon(runtime_dir: Path) -> None:
    """It waits for 200 ms, which is both enough for a bus that starts and bearable for an agent."""
    began = time.monotonic()
    with Publisher("me", runtime_dir=runtime_dir) as agent:
        assert 0.2 <= time.monotonic() - began < SLOW_MACHINE_S
        assert not agent.ready


def test_a_constructor_with_a_stopped_bus_returns_soon(runtime_dir: Path) -> None:
    """A broker whose sockets are there and that says nothing keeps an agent no longer than none."""
    with running_broker(runtime_dir) as bus, stopped(bus):
        began = time.monotonic()
        with Publisher("me", runtime_dir=bus) as agent:
            assert time.monotonic() - began < SLOW_MACHINE_S
            assert agent.publish("prx.x", {}) is False
            assert agent.stats["dropped_absent"] == 1


def test_publishing_into_a_full_queue_costs_no_time(runtime_dir: Path) -> None:
    """With drop, what has no room is counted at once: 5,000 calls wait for nothing; one frame may be kept."""
    with running_broker(runtime_dir) as bus, Publisher("me", runtime_dir=bus) as agent, stopped(bus):
        while agent.publish("prx.x", LARGE):
            pass
        dropped = agent.stats["dropped_full"]
        began = time.monotonic()
        taken = sum(agent.publish("prx.x", {}) for _ in range(5_000))
        assert time.monotonic() - began < SLOW_MACHINE_S
        assert taken <= GATHERED_EVENTS
        assert agent.stats["dropped_full"] == dropped + 5_000 - taken


def test_block_waits_for_a_bus_that_appears(runtime_dir: Path) -> None:
    """With on_absent="block" the constructor returns, ready, once there is a bus, and nothing is dropped."""
    made: list[Publisher] = []
    thread = threading.Thread(
        target=lambda: made.append(
            Publisher("me", runtime_dir=runtime_dir, on_absent="block", block_seconds=30)
        )
    )
    thread.start()
    with running_broker(runtime_dir):
        thread.join(30)
        (agent,) = made
        with Subscriber(["prx.x"], runtime_dir=runtime_dir) as events:
            assert agent.ready
            assert agent.publish("prx.x", {})
            assert len(events.batch(timeout=20)) == 1
            assert agent.stats["dropped_absent"] == 0
        agent.close()


def test_block_waits_for_room(runtime_dir: Path) -> None:
    """With on_full="block" the call that finds the queue full returns once there is room; nothing is lost."""
    with (
        running_broker(runtime_dir) as bus,
        Subscriber(["prx.x"], runtime_dir=bus) as events,
        Publisher("me", runtime_dir=bus, on_full="block", block_seconds=30) as agent,
    ):
        total, got = 1_500, 0
        with stopped(bus) as timer:
            timer.start()
            began = time.monotonic()
            for _ in range(total):  # more than the queue holds
                assert agent.publish("prx.x", LARGE)
            assert time.monotonic() - began > 0.3, "it did not have to wait"
        deadline = time.monotonic() + 20
        while got < total and time.monotonic() < deadline:
            got += len(events.batch(timeout=0.2))
        assert (got, agent.stats["published"], agent.stats["dropped_full"]) == (total, total, 0)


def test_raise_with_a_bus_is_ready(runtime_dir: Path) -> None:
    """Where there is a bus, on_absent="raise" raises nothing and the first event counts."""
    with running_broker(runtime_dir) as bus, Subscriber(["prx.x"], runtime_dir=bus) as events:
        with Publisher("me", runtime_dir=bus, on_absent="raise") as agent:
            assert agent.ready
            agent.publish("prx.x", {"n": 1})
        (event,) = events.batch(timeout=20)
        assert event.payload == {"n": 1}


@pytest.mark.parametrize(
    "counter", ["published", "dropped_absent", "dropped_full", "over_depth", "claims", "unanswered"]
)
def test_every_counter_is_there_from_the_start(runtime_dir: Path, counter: str) -> None:
    """Each counter that is documented exists, at zero, before anything happened."""
    with Publisher("me", runtime_dir=runtime_dir) as agent:
        assert agent.stats[counter] == 0
