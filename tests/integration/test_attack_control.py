"""Hostile peers of the control plane, and processes that end without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgpack
import pytest

from broker.protocol.control import encode_message
from tests.integration.raw_bus import (
    BrokerProcess,
    Peers,
    Zmtp,
    event,
    frame,
    hello,
    peers_of,
    receive,
    running,
    undisturbed,
)
from tests.integration.waiting import until


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


@pytest.mark.parametrize(
    "data,reason",
    [
        (b"", "msgpack"),
        (b"\xc1", "msgpack"),
        (b"not msgpack at all", "msgpack"),
        (msgpack.packb({"a": 1}), "control"),
        (msgpack.packb([1, "dance", 5, {}]), "kind"),
        (msgpack.packb([1, "hello", 5, {"role": 7}]), "control"),
        (msgpack.packb([1, "publish", 5, {"frame": b"8a\0", "retain": False}]), "depth"),
        (b"\x91" * 2_000, "msgpack"),
        (b"\xdd\xff\xff\xff\xff", "msgpack"),
        (os.urandom(100_000), None),
    ],
)
def test_garbage_is_answered_and_counted(
    broker: BrokerProcess, peers: Peers, data: bytes, reason: str | None
) -> None:
    """Whatever is no message is refused with an error to its sender, and counted by its reason."""
    with undisturbed(peers), peers.control() as rogue:
        rogue.send(data)
        reply = receive(rogue)
        assert reply.kind == "error"
        if reason is not None:
            assert peers.status()["refused"] == {reason: 1}


def test_another_version_is_told_both_versions(peers: Peers) -> None:
    """A client of version 7 hears, under its own request number, that it is 7 and we are 1."""
    with peers.control() as client:
        client.send(msgpack.packb([7, "greeting", 12, {"anything": 1}, "more"]))
        reply = receive(client)
        assert (reply.kind, reply.request, reply.body["code"]) == ("error", 12, "wrong_version")
        assert "version 7 is not 1" in reply.body["message"]
        client.send(b"\x95\x07\xc1\xc1\xc1 what only version 7 can read")
        assert receive(client).body["code"] == "wrong_version"


def test_a_message_in_several_frames_is_refused(peers: Peers) -> None:
    """A REQ socket, or anybody who sends more than one frame, is told so."""
    with peers.control() as rogue:
        rogue.send_multipart([b"", encode_message("status", 1)])
        assert "one frame, not 2" in receive(rogue).body["message"]
        rogue.send_multipart([b""] * 1_000)
        assert "one frame, not 1000" in receive(rogue).body["message"]


def test_a_flood_of_garbage_holds_up_nobody(broker: BrokerProcess, peers: Peers) -> None:
    """While peers flood the control plane and read nothing, others register and get answers."""
    with undisturbed(peers), ExitStack() as stack:
        for _ in range(3):
            rogue = stack.enter_context(Zmtp(broker.endpoints.control, "DEALER"))
            rogue.socket.settimeout(0.2)
            with suppress(TimeoutError):  # the broker reads no faster than it answers
                rogue.flood(frame(os.urandom(2_000)) * 50, 0.7)
        with peers.register("tool", "honest"):
            status = peers.status()
        assert sum(status["refused"].values()) > 100
        assert broker.memory() < 200_000_000


def test_who_asks_for_the_status_without_end_and_never_reads_delays_nobody(
    broker: BrokerProcess, peers: Peers
) -> None:
    """Answers that nobody fetches are bounded; everybody else gets theirs."""
    with undisturbed(peers), Zmtp(broker.endpoints.control, "DEALER") as rogue:
        rogue.socket.settimeout(0.2)
        with suppress(TimeoutError):
            rogue.flood(frame(encode_message("status", 1)) * 20, 1.0, limit=200_000)
        assert peers.status()["broker"]["pid"] == broker.process.pid


def test_a_peer_cannot_name_another_process(peers: Peers) -> None:
    """The process of a peer is the one that the kernel knows, whatever its hello says."""
    with peers.register("publisher", "liar", pid=1):
        (peer,) = [peer for peer in peers.status()["peers"] if peer["name"] == "liar"]
        assert peer["pid"] == os.getpid()


@pytest.mark.parametrize(
    "changes,code",
    [
        ({"name": "x" * 129}, "limit_exceeded"),
        ({"name": "two\nlines"}, "limit_exceeded"),
        ({"role": "king"}, "bad_message"),
        ({"patterns": ["a", "b..c"]}, "bad_topic"),
        ({"patterns": [f"t{n}" for n in range(1_001)]}, "limit_exceeded"),
        ({"publisher": b"short"}, "bad_message"),
    ],
)
def test_a_wrong_hello_is_refused_with_its_code(peers: Peers, changes: dict[str, object], code: str) -> None:
    """Each wrong field of a hello is answered with the code of its rule, and nobody is registered."""
    reply = peers.ask("hello", **hello("subscriber", "x", **changes))
    assert (reply.kind, reply.body["code"]) == ("error", code)
    assert peers.status()["registered"] == 0


def test_a_killed_publisher_is_listed_as_lost_at_once(broker: BrokerProcess, peers: Peers) -> None:
    """The end of a process is noticed by its pidfd: its publisher is lost by name, with its last report."""
    code = (
        "import sys, zmq; from broker.protocol.control import encode_message as e;"
        "s = zmq.Context().socket(zmq.DEALER); s.connect(sys.argv[1]);"
        "s.send(e('hello', 1, role='publisher', name='doomed', pid=5, release='0', patterns=[], batches=True,"
        " publisher=b'p' * 16)); s.recv(); s.send(e('report', counters={'published': 41}));"
        "s.send(e('probe', 0, inbox='done')); print('in', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-P", "-c", code, broker.endpoints.control]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"in\n"
        until(lambda: peers.status()["publishers"][0]["reported_s"] is not None, "its report has come")
        child.kill()
        until(lambda: peers.status()["lost_publishers"], "its end is noticed", seconds=10)
    (lost,) = peers.status()["lost_publishers"]
    assert (lost["name"], lost["published"], lost["how"]) == ("doomed", 41, "died")
    assert lost["after_report"] == "unknown"
    assert peers.status()["registered"] == 0


def test_a_hello_of_a_process_that_has_ended_is_forgotten(broker: BrokerProcess, peers: Peers) -> None:
    """A process that says hello and is gone before that is read does not stay registered."""
    code = (
        "import os, sys, zmq; from broker.protocol.control import encode_message as e;"
        "s = zmq.Context().socket(zmq.DEALER); s.connect(sys.argv[1]);"
        "s.send(e('hello', 1, role='subscriber', name='brief', pid=5, release='0', patterns=['*'],"
        " batches=True, publisher=None)); s.recv(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-P", "-c", code, broker.endpoints.control], timeout=30, check=True)
    until(lambda: peers.status()["registered"] == 0, "nobody is registered")
    frame = event("a.b", 1)
    assert peers.ask("publish", frame=frame, retain=False).body == {"matching": 0}


def test_a_peer_that_closes_without_a_word_is_found_out_when_it_is_written_to(
    broker: BrokerProcess, peers: Peers
) -> None:
    """A connection that is gone cannot be written to: the peer behind it is forgotten then."""
    with peers.register("publisher", "stays") as stays, peers.control() as subscriber:
        subscriber.send(encode_message("status", 1))
        assert receive(subscriber).kind == "status_is"
        gone = peers.register("publisher", "gone")
        before = broker.sockets()
        gone.close()
        until(lambda: broker.sockets() < before, "it is disconnected")
        subscriber.send(encode_message("hello", 1, **hello("subscriber", "old", batches=False)))
        assert receive(subscriber).kind == "welcome"
        assert receive(stays).body == {"batches": False}
        assert [peer["name"] for peer in peers.status()["publishers"]] == ["stays"]
        assert [lost["how"] for lost in peers.status()["lost_publishers"]] == ["disconnected"]
        subscriber.send(encode_message("bye"))
        assert receive(stays).body == {"batches": True}


def test_retained_values_come_page_by_page(peers: Peers) -> None:
    """The last value of each topic is stored with its acknowledgement and read back in pages."""
    with peers.control() as client:
        for number in range(1, 41):
            frame = event(f"state.t{number % 20}", number, b'{"x":"' + b"y" * 50_000 + b'"}')
            client.send(encode_message("publish", number, frame=frame, retain=True))
            assert receive(client).kind == "published"
    after: int | None = 0
    pages = []
    while after is not None:
        reply = peers.ask("retained", patterns=["state.*"], after=after)
        pages.append(len(reply.body["frames"]))
        after = reply.body["next"]
    assert sum(pages) == 20
    assert len(pages) == 2
    assert peers.status()["retained"]["topics"] == 20
    assert peers.ask("retained", patterns=["other.*"], after=0).body["frames"] == []


def test_an_acknowledged_event_reaches_the_subscribers(peers: Peers) -> None:
    """What is published over the control plane comes out of the data plane, and the matching are counted."""
    subscriber = peers.subscriber(b"a.b\0")
    with peers.register("subscriber", "one", patterns=["a.*"]), peers.register("subscriber", "two"):
        frame = event("a.b", 1)
        assert peers.ask("publish", frame=frame, retain=False).body == {"matching": 2}
        assert subscriber.poll(30_000)
        assert subscriber.recv() == frame
