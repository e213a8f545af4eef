"""Rogue peers on each of the three sockets while our own clients work: they lose nothing and say so."""

from __future__ import annotations

import os
import socket as stdlib_socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import zmq

from broker.client import Publisher, Subscriber
from tests.integration.raw_bus import BrokerProcess, Zmtp, event, frame, peers_of, running
from tests.integration.waiting import until

KINDS = {"ingress": "PUB", "egress": "SUB", "control": "DEALER"}
"""What an honest peer of each socket would be."""


@pytest.fixture
def broker(runtime_dir: Path) -> Iterator[BrokerProcess]:
    """A running broker that has to outlive the test."""
    with running(runtime_dir) as broker:
        yield broker
        assert broker.alive(), broker.log()
        assert broker.stop() == 0, broker.log()


@contextmanager
def at_work(broker: BrokerProcess) -> Iterator[None]:
    """Our own publisher and subscriber work all the time; in the end what was sent is received, in order."""
    stop, published = threading.Event(), threading.Event()
    got: list[int] = []
    with (
        Subscriber(["prx.honest"], runtime_dir=broker.directory) as events,
        Publisher("honest", runtime_dir=broker.directory, on_absent="raise") as agent,
    ):

        def publish() -> None:
            while not stop.wait(0.002):
                agent.publish("prx.honest", {"fill": "x" * 200})
            published.set()

        def receive() -> None:
            while not published.is_set() or len(got) < agent.stats["published"]:
                batch = events.batch(timeout=0.2)
                got.extend(each.sequence for each in batch)
                if published.is_set() and not batch:
                    return

        threads = [threading.Thread(target=publish), threading.Thread(target=receive)]
        for thread in threads:
            thread.start()
        try:
            until(lambda: len(got) > 20, "events before the attack")
            yield
            after = len(got)
            until(lambda: len(got) > after + 20, "events after the attack")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert got == list(range(1, agent.stats["published"] + 1))
        assert (events.stats["missed"], events.stats["away"]) == (0, 0)
        assert agent.stats["dropped_full"] == agent.stats["dropped_absent"] == 0


def attack(rogue: Zmtp, *data: bytes) -> None:
    """Send ``data``; a broker that hangs up or reads no further is within its rights."""
    rogue.socket.settimeout(1.0)
    with suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
        for part in data:
            rogue.socket.sendall(part)


@pytest.mark.parametrize("socket", KINDS)
@pytest.mark.parametrize(
    "kind", ["garbage", "half a message", "endless subscriptions", "10 MB", "many parts", "no message at all"]
)
def test_a_rogue_disturbs_nobody(broker: BrokerProcess, socket: str, kind: str) -> None:
    """Whatever it sends to whichever socket, other clients lose nothing, and it may leave when it likes."""
    attacks = {
        "garbage": [frame(os.urandom(1_000)) for _ in range(200)] + [os.urandom(10_000)],
        "half a message": [frame(b"0prx.honest\0" + b"x" * 900)[:400]],
        "endless subscriptions": [
            b"".join(frame(b"\x010prx.honest%d" % (start + n)) for n in range(1_000))
            for start in range(0, 40_000, 1_000)
        ],
        "10 MB": [frame(b"0prx.honest\0" + b"x" * 10_000_000)],
        "many parts": [frame(b"0prx.honest\0part", more=True) * 1_000] * 20,
        "no message at all": [frame(b"")] * 200,
    }
    with at_work(broker):
        with Zmtp(getattr(broker.endpoints, socket), KINDS[socket]) as rogue:
            attack(rogue, *attacks[kind])
            with (
                Subscriber(["prx.fresh"], runtime_dir=broker.directory) as fresh,
                Publisher("fresh", runtime_dir=broker.directory, on_absent="raise") as agent,
            ):
                agent.publish("prx.fresh", {"n": 1})
                (came,) = fresh.batch(timeout=20)
                assert came.payload == {"n": 1}
        assert broker.alive()


@pytest.mark.parametrize("socket, kind", [("ingress", "SUB"), ("egress", "PUB"), ("control", "PULL")])
def test_a_peer_of_the_wrong_kind_is_turned_away(broker: BrokerProcess, socket: str, kind: str) -> None:
    """A subscriber at the ingress, a publisher at the egress, a puller at the control plane are cut off."""
    ready = b"\x05READY\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind.encode()
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    with at_work(broker), stdlib_socket.socket(stdlib_socket.AF_UNIX) as rogue:
        rogue.settimeout(20)
        rogue.connect(getattr(broker.endpoints, socket).removeprefix("ipc://"))
        rogue.sendall(greeting + b"\x04" + bytes([len(ready)]) + ready + frame(b"0prx.honest\0x") * 100)
        with suppress(ConnectionResetError):
            while rogue.recv(65_536):
                pass


STOPPED = """
import os, signal, sys, zmq
s = zmq.Context().socket(zmq.SUB)
s.rcvhwm = 1
s.subscribe(b"0prx.large")
s.connect(sys.argv[1])
s.recv()
print("in", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_what_a_stopped_subscriber_costs_is_bounded(broker: BrokerProcess) -> None:
    """With the largest events the broker keeps its stated queue for it, at most 260 MB, and no more."""
    with peers_of(broker) as peers:
        publisher = peers.publisher()
        command = [sys.executable, "-P", "-c", STOPPED, broker.endpoints.egress]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            try:
                assert child.stdout is not None
                os.set_blocking(child.stdout.fileno(), False)

                def heard() -> bool:
                    publisher.send(event("prx.large", 1))
                    return bool(child.stdout.read() if child.stdout else b"")

                until(heard, "the subscriber to be there")
                base = broker.memory()
                large = event("prx.large", 2, b'{"a":"' + b"x" * 65_000 + b'"}')
                before = peers.status()["forwarded"]["frames_in"]
                for _ in range(6_000):
                    until(lambda: sent(publisher, large), "room in the publisher's queue")
                until(lambda: peers.status()["forwarded"]["frames_in"] >= before + 6_000, "all to come in")
                grown = broker.memory() - base
                assert 100_000_000 < grown < 280_000_000
            finally:
                child.kill()


def sent(publisher: zmq.Socket[bytes], data: bytes) -> bool:
    """Whether the socket took ``data``."""
    try:
        publisher.send(data, zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True
