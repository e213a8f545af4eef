"""Hostile peers of the data plane, by hand-made ZMTP frames, while an honest pair works undisturbed.

Each test is one way in which some broker of this kind was brought down or made to lose events.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq

from broker.protocol.limits import CONTROL_BYTES, FRAME_BYTES, SUBSCRIPTION_BYTES
from broker.protocol.topics import DEPTH_BYTES
from tests.integration.raw_bus import (
    BrokerProcess,
    Peers,
    Zmtp,
    event,
    frame,
    peers_of,
    received,
    running,
    undisturbed,
)
from tests.integration.waiting import until

SUBSCRIBE, CANCEL = b"\x01", b"\x00"


@pytest.fixture
def broker(runtime_dir: Path) -> Iterator[BrokerProcess]:
    """A running broker that has to outlive the test."""
    with running(runtime_dir) as broker:
        yield broker
        assert broker.alive(), broker.log()
        assert broker.stop() == 0, broker.log()


@pytest.fixture
def peers(broker: BrokerProcess) -> Iterator[Peers]:
    """Honest peers."""
    with peers_of(broker) as peers:
        yield peers


def test_who_subscribes_to_everything_gets_no_forbidden_depth(broker: BrokerProcess, peers: Peers) -> None:
    """A rogue that asks for all bytes, and one that sends forbidden depths, meet only at depths 0 to 7."""
    with (
        undisturbed(peers),
        Zmtp(broker.endpoints.egress, "SUB") as everything,
        Zmtp(broker.endpoints.ingress, "PUB") as rogue,
    ):
        everything.send(SUBSCRIBE)
        subscriber = peers.subscriber(b"a.b\0")
        for first in (b"8", b"9", b"\0", b"$", b"", b"x", b"7", b"0"):
            rogue.send(first + b"a.b\0rest")
        frames = received(subscriber, 2)
        assert frames == [b"7a.b\0rest", b"0a.b\0rest"]
        seen = everything.frames(0.5)
        assert {message[:1] for message in seen} <= set(DEPTH_BYTES)
        assert {b"7a.b\0rest", b"0a.b\0rest"} <= set(seen)


@pytest.mark.parametrize(
    "line", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x01\x00", b"\xff" * 100, b"\0" * 100]
)
def test_strangers_that_speak_something_else_are_harmless(
    broker: BrokerProcess, peers: Peers, line: bytes
) -> None:
    """A web browser, netcat and noise on each of the three sockets change nothing for anybody else."""
    with undisturbed(peers), ExitStack() as stack:
        for endpoint in broker.endpoints:
            for _ in range(5):
                stranger = stack.enter_context(socket.socket(socket.AF_UNIX))
                stranger.connect(endpoint.removeprefix("ipc://"))
                stranger.sendall(line)
        peers.publisher().close()
        peers.subscriber(b"a\0").close()


def test_cancelling_what_nobody_subscribed_locks_no_publisher_out(
    broker: BrokerProcess, peers: Peers
) -> None:
    """After cancels of all eight depths, and of everything, new publishers still become ready."""
    with undisturbed(peers), Zmtp(broker.endpoints.egress, "SUB") as rogue:
        rogue.send(*(CANCEL + depth for depth in DEPTH_BYTES), CANCEL)
        rogue.send(*(SUBSCRIBE + depth for depth in DEPTH_BYTES))
        rogue.send(*(CANCEL + depth for depth in DEPTH_BYTES))
        for _ in range(5):
            peers.publisher().close()


def test_a_user_frame_with_more_does_not_end_the_proxy(broker: BrokerProcess, peers: Peers) -> None:
    """An unfinished message to the egress, followed by a subscription it has already, changes nothing."""
    with undisturbed(peers), Zmtp(broker.endpoints.egress, "SUB") as rogue:
        rogue.send(SUBSCRIBE + b"0a")
        rogue.send(b"user data", more=True)
        rogue.send(SUBSCRIBE + b"0a")
        rogue.send(b"more", more=True)
        rogue.send(b"user data")
        rogue.send(SUBSCRIBE + b"0a")
        peers.publisher().close()
        peers.subscriber(b"a\0").close()


@pytest.mark.parametrize("size", [SUBSCRIPTION_BYTES + 1, 2**20])
def test_a_giant_subscription_is_cut_off(broker: BrokerProcess, peers: Peers, size: int) -> None:
    """A subscription larger than allowed ends its own connection, and leaves nothing to trip over."""
    with undisturbed(peers), Zmtp(broker.endpoints.egress, "SUB") as rogue:
        try:
            rogue.send(SUBSCRIBE + b"x" * (size - 1))
        except (BrokenPipeError, ConnectionResetError):
            return
        assert rogue.cut_off()


def test_the_largest_allowed_subscription_is_taken(broker: BrokerProcess, peers: Peers) -> None:
    """A subscription of exactly the allowed size works, and its peer may leave again."""
    prefix = b"0" + b"x" * (SUBSCRIPTION_BYTES - len(b"\x09SUBSCRIBE") - 1)
    with undisturbed(peers):
        subscriber = peers.socket(zmq.SUB)
        subscriber.connect(broker.endpoints.egress)
        subscriber.subscribe(prefix)
        peers.barrier(subscriber)
        publisher = peers.publisher()
        publisher.send(prefix + b"\0")
        assert received(subscriber, 1) == [prefix + b"\0"]
        subscriber.close()


def test_endless_subscriptions_delay_but_lose_nothing(broker: BrokerProcess, peers: Peers) -> None:
    """While one peer subscribes without end, and when it leaves, everybody else works on and may join."""
    with undisturbed(peers), Zmtp(broker.endpoints.egress, "SUB") as rogue:
        number = 0
        for _ in range(60):
            batch = b"".join(frame(SUBSCRIBE + b"0%d" % (number + n)) for n in range(1_000))
            number += 1_000
            rogue.socket.sendall(batch)
        peers.publisher().close()
        rogue.close()
        peers.subscriber(b"a\0").close()


def test_a_flood_of_forbidden_depths_goes_nowhere(broker: BrokerProcess, peers: Peers) -> None:
    """Peers that ignore the subscriptions of the ingress and flood it at depth 8 reach nobody."""
    forbidden = frame(b"8" + event("undisturbed.pair", 1)[1:]) * 500
    with undisturbed(peers), ExitStack() as stack:
        everything = stack.enter_context(Zmtp(broker.endpoints.egress, "SUB"))
        everything.send(SUBSCRIBE + b"8")
        rogues = [stack.enter_context(Zmtp(broker.endpoints.ingress, "PUB")) for _ in range(2)]
        threads = [threading.Thread(target=rogue.flood, args=(forbidden, 1.5)) for rogue in rogues]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [seen for seen in everything.frames(0.5) if seen[:1] == b"8"] == []


@pytest.mark.parametrize("size", [70_001, 10_000_000])
def test_oversize_frames_end_the_connection_that_sent_them(
    broker: BrokerProcess, peers: Peers, size: int
) -> None:
    """On each of the three sockets a frame beyond its bound cuts its sender off, and reaches nobody."""
    bounds = {"ingress": FRAME_BYTES, "egress": SUBSCRIPTION_BYTES, "control": CONTROL_BYTES}
    kinds = {"ingress": "PUB", "egress": "SUB", "control": "DEALER"}
    with undisturbed(peers), Zmtp(broker.endpoints.egress, "SUB") as everything:
        everything.send(SUBSCRIBE)
        for name, kind in kinds.items():
            if size <= bounds[name]:
                continue
            with Zmtp(getattr(broker.endpoints, name), kind) as rogue:
                try:
                    rogue.send(b"0a.b\0" + b"x" * (size - 5))
                except (BrokenPipeError, ConnectionResetError):
                    continue
                assert rogue.cut_off()
        assert all(len(seen) < 1_000 for seen in everything.frames(0.3))


def test_the_largest_frame_passes(peers: Peers) -> None:
    """A frame of exactly the allowed size arrives whole."""
    publisher, subscriber = peers.publisher(), peers.subscriber(b"a.b\0")
    largest = b"0a.b\0" + b"x" * (FRAME_BYTES - 5)
    publisher.send(largest)
    assert received(subscriber, 1) == [largest]


def test_half_open_connections_and_half_messages_hold_up_nobody(broker: BrokerProcess, peers: Peers) -> None:
    """Connections that never greet, and frames that never end, take a descriptor each and nothing else."""
    with undisturbed(peers), ExitStack() as stack:
        for endpoint in broker.endpoints:
            for _ in range(60):
                silent = stack.enter_context(socket.socket(socket.AF_UNIX))
                silent.connect(endpoint.removeprefix("ipc://"))
            for part in (b"\xff", b"\xff" + bytes(8), b"\xff" + bytes(8) + b"\x7f\x03"):
                half = stack.enter_context(socket.socket(socket.AF_UNIX))
                half.connect(endpoint.removeprefix("ipc://"))
                half.sendall(part)
        for endpoint, kind in zip(broker.endpoints[:3], ("PUB", "SUB", "DEALER"), strict=True):
            stuck = stack.enter_context(Zmtp(endpoint, kind))
            stuck.socket.sendall(frame(b"0a.b\0" + b"x" * 900)[:500])
        peers.publisher().close()
        peers.subscriber(b"a\0").close()
        assert peers.status()["broker"]["draining"] is False


def test_an_endless_message_of_many_frames_is_never_delivered(broker: BrokerProcess, peers: Peers) -> None:
    """A message whose parts do not end costs memory while its sender lives, and reaches nobody."""
    with undisturbed(peers), Zmtp(broker.endpoints.egress, "SUB") as everything:
        everything.send(SUBSCRIBE + b"0part")
        with Zmtp(broker.endpoints.ingress, "PUB") as rogue:
            rogue.flood(frame(b"0part" + b"x" * 4_000, more=True) * 10, 1.0, limit=60_000_000)
        assert everything.frames(0.3) == []


def test_a_message_of_many_frames_is_passed_and_breaks_nothing(broker: BrokerProcess, peers: Peers) -> None:
    """A finished message of several frames is forwarded as it is; decoders refuse it."""
    with undisturbed(peers), Zmtp(broker.endpoints.ingress, "PUB") as rogue:
        subscriber = peers.subscriber(b"a.b\0")
        rogue.send(b"0a.b\0one", more=True)
        rogue.send(b"two")
        assert subscriber.poll(30_000)
        assert subscriber.recv_multipart() == [b"0a.b\0one", b"two"]


def test_many_subscribers_do_not_reach_the_publishers(peers: Peers) -> None:
    """Beside 200 subscribers a publisher is asked for eight prefixes, once, and a new one is ready."""
    publisher = peers.publisher()
    subscribers = [peers.subscriber(b"topic%d\0" % n, barrier=False) for n in range(200)]
    peers.barrier(subscribers[-1])
    late = peers.publisher()
    for subscriber in subscribers[:100]:
        subscriber.close()
    peers.barrier(subscribers[-1])
    for idle in (publisher, late):
        assert not idle.poll(100), "a subscription came upstream"


def test_more_connections_than_descriptors_end_the_broker_and_the_next_one_heals(runtime_dir: Path) -> None:
    """libzmq aborts when it runs out of descriptors, which no option prevents: a restart has to be enough."""
    with running(runtime_dir, shell="ulimit -c 0; ulimit -n 100") as broker, peers_of(broker) as peers:
        assert "few descriptors" in broker.log()
        publisher, subscriber = peers.publisher(), peers.subscriber(b"a.b\0")
        with ExitStack() as stack:
            for _ in range(200):
                rogue = stack.enter_context(socket.socket(socket.AF_UNIX))
                try:
                    rogue.connect(broker.endpoints.egress.removeprefix("ipc://"))
                except OSError:
                    break
            assert broker.reap() == -signal.SIGABRT
        broker.start()
        broker.wait_ready()
        wait_admitted_again(publisher, subscriber)
        assert broker.stop() == 0


def wait_admitted_again(publisher: zmq.Socket[bytes], subscriber: zmq.Socket[bytes]) -> None:
    """Publish until the subscriber hears it: both have found the new broker."""

    def heard() -> bool:
        publisher.send(event("a.b", 1), zmq.NOBLOCK)
        return bool(subscriber.poll(20))

    until(heard, "the pair finds the new broker")
