"""A broker that is killed, stopped peers, and who notices what: nothing is lost without a trace."""

from __future__ import annotations

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

from broker.protocol.topics import DEPTH_BYTES, WELCOME
from tests.integration.raw_bus import (
    BrokerProcess,
    Flow,
    Peers,
    event,
    peers_of,
    received,
    running,
    undisturbed,
)
from tests.integration.waiting import until


@pytest.fixture
def broker(runtime_dir: Path) -> Iterator[BrokerProcess]:
    """A running broker."""
    with running(runtime_dir) as broker:
        yield broker
        assert broker.alive(), broker.log()
        assert broker.stop() == 0, broker.log()


@pytest.fixture
def peers(broker: BrokerProcess) -> Iterator[Peers]:
    """Honest peers."""
    with peers_of(broker) as peers:
        yield peers


def test_clients_heal_after_a_kill_without_duplicates_or_disorder(
    broker: BrokerProcess, peers: Peers
) -> None:
    """Publisher and subscribers of a killed broker find the next one by themselves; only a gap is left."""
    flow = Flow(peers, "a.b", subscribers=2, pause=0.001)
    try:
        for _ in range(2):
            flow.wait_for_more()
            broker.restart()
        flow.wait_for_more()
    finally:
        flow.end()
    for numbers in flow.numbers:
        assert numbers == sorted(set(numbers))  # neither twice nor out of order
        assert numbers[-1] == flow.accepted  # and whole to the end


def test_a_new_broker_says_so_to_every_subscriber(broker: BrokerProcess, peers: Peers) -> None:
    """The first message of a connection is the broker's epoch, another one after each restart."""
    subscriber = peers.socket(zmq.SUB)
    subscriber.set(zmq.RECONNECT_IVL, 10)
    subscriber.subscribe(WELCOME)
    subscriber.connect(broker.endpoints.egress)
    epochs = []
    for _ in range(2):
        assert subscriber.poll(30_000)
        epochs.append(subscriber.recv().removeprefix(WELCOME).hex())
        assert epochs[-1] == broker.ready["epoch"]
        broker.restart()
    assert epochs[0] != epochs[1]


def test_a_thousand_patterns_are_all_alive_after_a_restart(broker: BrokerProcess, peers: Peers) -> None:
    """8,000 subscriptions of one peer survive: with its default queue libzmq would drop them silently."""
    subscriber = peers.subscriber(*(b"t%d\0" % number for number in range(1_000)))
    broker.restart()
    peers.await_welcome(subscriber, broker)
    peers.barrier(subscriber)
    publisher = peers.publisher()
    wanted = [event(f"t{number}", 1, depth=number % 8) for number in (0, 1, 499, 500, 998, 999)]
    for frame in wanted:
        publisher.send(frame)
    assert received(subscriber, len(wanted)) == wanted


def test_what_a_publisher_accepts_without_a_broker_reaches_the_next_one(
    broker: BrokerProcess, peers: Peers
) -> None:
    """The socket keeps what it accepts, up to its bound, then refuses: nothing of it just vanishes."""
    publisher = peers.publisher()
    monitor = publisher.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    broker.kill()
    assert monitor.poll(30_000)
    publisher.disable_monitor()
    monitor.close()
    accepted = 0
    try:
        while accepted < 5_000:
            publisher.send(event("a.b", accepted + 1), zmq.NOBLOCK)
            accepted += 1
    except zmq.Again:
        pass
    assert 500 <= accepted < 5_000
    broker.start()
    broker.wait_ready()
    until(lambda: peers.status()["forwarded"]["frames_in"] >= accepted, "all of it has come in")
    assert peers.status()["forwarded"]["frames_in"] == accepted


def test_a_stopped_subscriber_costs_the_others_nothing(broker: BrokerProcess, peers: Peers) -> None:
    """A subscriber that is stopped loses its connection by its own TTL, and comes back with a gap only."""
    code = (
        "import sys, zmq; from broker.protocol.events import decode_event as d;"
        "s = zmq.Context().socket(zmq.SUB); s.sndhwm = 0; s.rcvhwm = 10; s.reconnect_ivl = 10;"
        "s.heartbeat_ivl = 200; s.heartbeat_ttl = 1000; s.heartbeat_timeout = 10000; s.subscribe(b'0a.b\\0');"
        "s.connect(sys.argv[1])\n"
        "while True:\n print(d(s.recv()).sequence, flush=True)"
    )
    publisher = peers.publisher()
    command = [sys.executable, "-P", "-c", code, broker.endpoints.egress]
    sequence = 0

    def publish() -> bool:
        nonlocal sequence
        sequence += 1
        publisher.send(event("a.b", sequence))
        return False

    with subprocess.Popen(command, stdout=subprocess.PIPE) as child, undisturbed(peers):
        try:
            assert child.stdout is not None
            os.set_blocking(child.stdout.fileno(), False)
            output = b""

            def heard() -> bytes:
                nonlocal output
                publish()
                output += child.stdout.read() or b"" if child.stdout else b""
                return output

            until(heard, "the subscriber hears")
            pinged = time.monotonic() + 0.7  # its first heartbeat tells the broker the TTL
            until(lambda: heard() and time.monotonic() > pinged, "it has sent heartbeats")
            child.send_signal(signal.SIGSTOP)
            before = broker.sockets()
            until(lambda: publish() or broker.sockets() < before, "its connection ends", seconds=20)
            child.send_signal(signal.SIGCONT)
            first_after = sequence + 1
            until(lambda: heard() and int(output.split()[-1]) >= first_after, "it hears again")
            got = list(map(int, output.split()))
            assert got == sorted(set(got))
        finally:
            child.send_signal(signal.SIGCONT)
            child.kill()


def test_coming_and_going_of_large_subscribers_delays_but_loses_nothing(peers: Peers) -> None:
    """Subscribers with 8,000 subscriptions may come and go; nobody loses an event by it."""
    with undisturbed(peers):
        for _ in range(3):
            subscriber = peers.subscriber(*(b"big%d\0" % number for number in range(1_000)))
            subscriber.close()
            peers.subscriber(b"a\0").close()


def test_who_joins_late_loses_nothing(peers: Peers) -> None:
    """Fresh publishers and fresh subscribers, again and again beside a flood: every event arrives."""
    flood = peers.publisher()
    stop = threading.Event()

    def pour() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                flood.send(event("flood.x", number, b'"' + b"x" * 300 + b'"'), zmq.NOBLOCK)
            except zmq.Again:
                stop.wait(0.001)

    thread = threading.Thread(target=pour)
    thread.start()
    try:
        for number in range(1, 41):
            subscriber = peers.subscriber(b"late.x\0")
            publisher = peers.publisher()
            sent = [event("late.x", number * 10 + n) for n in range(5)]
            for frame in sent:
                publisher.send(frame)
            assert received(subscriber, 5) == sent
            publisher.close()
            subscriber.close()
    finally:
        stop.set()
        thread.join()


def test_many_publishers_and_subscribers_at_once(peers: Peers) -> None:
    """A hundred of each connect at the same time and every event of every publisher arrives."""
    subscribers = [peers.subscriber(b"t%d\0" % n, barrier=False) for n in range(100)]
    publishers = [peers.publisher(ready=False) for _ in range(100)]
    for subscriber in subscribers:
        peers.barrier(subscriber)
    for number, publisher in enumerate(publishers):
        assert publisher.poll(30_000)
        seen = {publisher.recv()[1:] for _ in range(8)}
        assert seen == set(DEPTH_BYTES)
        publisher.send(event(f"t{number}", 1))
    for subscriber in subscribers:
        assert len(received(subscriber, 1)) == 1
