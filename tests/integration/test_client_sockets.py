"""Rules of the data plane that a client keeps by itself: options, readiness, barriers, being stopped."""

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

from broker.client import Publisher, Subscriber, sockets
from broker.client.link import Link
from broker.places import endpoints
from broker.protocol.limits import PUBLISHER_HWM, SUBSCRIBER_HWM, SUBSCRIBER_TTL_MS
from broker.protocol.topics import DEPTH_BYTES
from tests.integration.raw_bus import BrokerProcess, peers_of, running
from tests.integration.waiting import until


@pytest.fixture
def broker(runtime_dir: Path) -> Iterator[BrokerProcess]:
    """A running broker."""
    with running(runtime_dir) as broker:
        yield broker


def test_a_subscriber_has_the_options_that_keep_it_alive(runtime_dir: Path) -> None:
    """No subscription is dropped, a stop ends the connection, no large frame does, and exit never waits."""
    with sockets.subscriber_socket(endpoints(str(runtime_dir)).egress) as socket:
        assert socket.get(zmq.SNDHWM) == 0
        assert socket.get(zmq.RCVHWM) == SUBSCRIBER_HWM
        assert socket.get(zmq.MAXMSGSIZE) == -1
        assert (socket.get(zmq.RECONNECT_IVL), socket.get(zmq.RECONNECT_IVL_MAX)) == (10, 200)
        assert socket.get(zmq.HEARTBEAT_IVL) == 1_000
        assert socket.get(zmq.HEARTBEAT_TTL) == SUBSCRIBER_TTL_MS
        assert SUBSCRIBER_TTL_MS in range(3_000, 5_001)
        assert socket.get(zmq.HEARTBEAT_TIMEOUT) == 10_000
        assert socket.get(zmq.LINGER) == 0


def test_a_publisher_has_the_options_that_count_every_loss(runtime_dir: Path) -> None:
    """Its queue is bounded, keeps what was accepted without a broker, and is flushed for a second at most."""
    with sockets.publisher_socket(endpoints(str(runtime_dir)).ingress) as socket:
        assert socket.get(zmq.SNDHWM) == PUBLISHER_HWM
        assert socket.get(zmq.IMMEDIATE) == 0
        assert socket.get(zmq.MAXMSGSIZE) == -1
        assert socket.get(zmq.RECONNECT_IVL) == 100
        assert socket.get(zmq.LINGER) == 1_000


def test_a_control_connection_is_bounded(runtime_dir: Path) -> None:
    """What waits for an absent broker has a bound, and so has the wait at exit."""
    with sockets.control_socket(endpoints(str(runtime_dir)).control) as socket:
        assert socket.get(zmq.SNDHWM) in range(1, 10_001)
        assert socket.get(zmq.RCVHWM) in range(1, 10_001)
        assert socket.get(zmq.LINGER) in range(2_000)


def test_a_publisher_is_ready_by_content_not_by_number(runtime_dir: Path) -> None:
    """Forty subscriptions and seven depths make nobody ready; the eighth depth does."""
    complete, heard = threading.Event(), threading.Event()

    def ingress() -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        with context, context.socket(zmq.XSUB) as socket:
            socket.linger = 0
            socket.bind(endpoints(str(runtime_dir)).ingress)
            for name in [b"0noise%d" % number for number in range(40)] + list(DEPTH_BYTES[:-1]):
                socket.send(b"\x01" + name)
            while not complete.is_set():
                assert not socket.poll(10), "an event came from a publisher that is not ready"
            socket.send(b"\x01" + DEPTH_BYTES[-1])
            if socket.poll(20_000) and socket.recv().startswith(b"0prx.x\0"):
                heard.set()

    thread = threading.Thread(target=ingress)
    thread.start()
    try:
        with Publisher("me", runtime_dir=runtime_dir) as agent:
            until(lambda: len(agent._subscribed) == 7, "the seven depths to arrive")
            assert agent.publish("prx.x", {}) is False
            assert not agent.ready
            complete.set()
            until(lambda: agent.publish("prx.x", {}), "the eighth depth to arrive")
            thread.join(20)
    finally:
        complete.set()
        thread.join()
    assert heard.is_set()


def test_each_barrier_has_an_inbox_of_its_own(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe of an earlier barrier that is still under way cannot end a later one."""
    probes: list[str] = []
    send = Link.send

    def noted(self: Link, kind: str, /, **body: object) -> bool:
        if kind == "probe":
            probes.append(str(body["inbox"]))
        return send(self, kind, **body)

    monkeypatch.setattr(Link, "send", noted)
    with (
        Subscriber(["prx.x"], runtime_dir=broker.directory) as events,
        Subscriber(["prx.x"], runtime_dir=broker.directory),
    ):
        first = len(set(probes))
        broker.restart()
        until(lambda: events.batch(timeout=0.05) == [] and events.stats["away"] == 1, "the new welcome")
        assert (first, len(set(probes))) == (2, 3)


def test_a_frame_of_any_size_leaves_a_subscriber_hearing(runtime_dir: Path) -> None:
    """A broker that sends more than it may is refused by the decoder; the subscription lives on."""
    with running(runtime_dir) as broker, peers_of(broker) as peers:
        publisher = peers.publisher()
        with Subscriber(["prx.x"], runtime_dir=runtime_dir) as events:
            publisher.send(b"0prx.x\0" + b"\x98" + b"x" * 67_000)
            until(lambda: events.batch(timeout=0.05) == [] and events.stats["refused"], "the refusal")
            with Publisher("me", runtime_dir=runtime_dir, on_absent="raise") as agent:
                agent.publish("prx.x", {"n": 1})
            (event,) = events.batch(timeout=20)
            assert event.payload == {"n": 1}


STOPPABLE = """
import sys
from broker.client import Subscriber
with Subscriber(["prx.x"], name="stopped", runtime_dir=sys.argv[1]) as events:
    print("ready", flush=True)
    while True:
        for event in events.batch(timeout=0.2):
            print(event.sequence, flush=True)
        if events.stats["away"]:
            print("away", flush=True)
"""


def test_a_stopped_subscriber_is_let_go_and_comes_back(broker: BrokerProcess) -> None:
    """Within its TTL the broker ends the connection of a stopped process; continued, it joins by itself."""
    command = [sys.executable, "-P", "-c", STOPPABLE, str(broker.directory)]
    with (
        Publisher("me", runtime_dir=broker.directory) as agent,
        subprocess.Popen(command, stdout=subprocess.PIPE) as child,
    ):
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            agent.publish("prx.x", {})
            assert child.stdout.readline() == b"1\n"
            heartbeat = time.monotonic() + 1.5  # the first one goes out after 1 s and tells the TTL
            until(lambda: time.monotonic() > heartbeat, "a heartbeat")
            child.send_signal(signal.SIGSTOP)
            before = connections(broker)
            until(lambda: connections(broker) < before, "its connection to end")
            child.send_signal(signal.SIGCONT)
            assert child.stdout.readline() == b"away\n"
            assert broker.alive()
        finally:
            child.kill()


def connections(broker: BrokerProcess) -> int:
    """The sockets that the broker holds."""
    found = 0
    for entry in os.scandir(f"/proc/{broker.process.pid}/fd"):
        try:
            found += os.readlink(entry.path).startswith("socket:")
        except FileNotFoundError:
            continue
    return found
