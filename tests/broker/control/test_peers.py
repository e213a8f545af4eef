"""The roster: who may register, who is forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from broker.control.bounds import LOST_PUBLISHERS
from broker.control.peers import Lost, Peer, Roster
from broker.protocol.errors import BusError, DecodeError, LimitExceeded, TopicError
from broker.protocol.limits import NAME_BYTES, PEER_SILENCE_SECONDS


def hello(**changes: Any) -> dict[str, Any]:
    """The body of a subscriber's hello."""
    return {
        "role": "subscriber",
        "name": "audit",
        "pid": 7,
        "release": "0.1.0",
        "patterns": ["a.*"],
        "batches": True,
        "publisher": None,
        **changes,
    }


def publisher(number: int = 0, now: float = 0.0) -> Peer:
    """A publisher with an id made from ``number``."""
    return Peer(hello(role="publisher", patterns=[], publisher=b"%016d" % number), None, now)


def test_a_peer_is_what_its_hello_says() -> None:
    """Every field of a hello is kept; the kernel's word on the process goes before the peer's."""
    peer = Peer(hello(), None, 3.0)
    assert (peer.name, peer.role, peer.pid, peer.patterns) == ("audit", "subscriber", 7, ("a.*",))
    assert (peer.since, peer.heard, peer.report) == (3.0, 3.0, b"")
    assert Peer(hello(), 99, 3.0).pid == 99


@pytest.mark.parametrize(
    "changes,error",
    [
        ({"role": "king"}, DecodeError),
        ({"name": ""}, LimitExceeded),
        ({"name": "a\nb"}, LimitExceeded),
        ({"name": "ä" * (NAME_BYTES // 2 + 1)}, LimitExceeded),
        ({"release": "x" * 500}, LimitExceeded),
        ({"publisher": b"short"}, DecodeError),
        ({"patterns": []}, TopicError),
        ({"patterns": ["a..b"]}, TopicError),
        ({"patterns": [7]}, TopicError),
        ({"patterns": [f"t{n}" for n in range(1001)]}, LimitExceeded),
        ({"role": "tool"}, DecodeError),
        ({"role": "publisher"}, DecodeError),
    ],
)
def test_a_wrong_hello_is_refused(changes: dict[str, Any], error: type[BusError]) -> None:
    """Each field that is not what it has to be is refused with the error of its kind."""
    with pytest.raises(error):
        Peer(hello(**changes), None, 0.0)


def test_the_number_of_peers_is_bounded() -> None:
    """A further peer is refused; one that says hello again is not a further one."""
    roster = Roster(limit=2)
    roster.add(b"1", publisher(1))
    roster.add(b"2", publisher(2))
    with pytest.raises(LimitExceeded, match="2 peers"):
        roster.add(b"3", publisher(3))
    roster.add(b"2", publisher(2))
    assert roster.remove(b"1") is not None
    roster.add(b"3", publisher(3))
    assert len(roster) == 2
    assert b"3" in roster
    assert b"1" not in roster
    assert roster.remove(b"1") is None


def test_the_number_of_all_patterns_is_bounded() -> None:
    """Patterns of all subscribers count together; those of a renewed registration are replaced."""
    roster = Roster(patterns=3)
    roster.add(b"1", Peer(hello(patterns=["a", "b"]), None, 0.0))
    with pytest.raises(LimitExceeded, match="2 patterns"):
        roster.add(b"2", Peer(hello(patterns=["a", "b"]), None, 0.0))
    roster.add(b"1", Peer(hello(patterns=["a", "b", "c"]), None, 0.0))
    assert roster.interests.held == 3
    assert roster.interests.of("c") == {b"1"}


def test_the_bytes_of_all_reports_are_bounded() -> None:
    """Reports of all peers count together; a new report takes the place of the one before."""
    roster = Roster(reports=10)
    roster.add(b"1", publisher(1))
    roster.add(b"2", publisher(2))
    assert roster.keep(b"1", b"x" * 6, 1.0)
    with pytest.raises(LimitExceeded, match="10 bytes"):
        roster.keep(b"2", b"x" * 5, 1.0)
    assert roster.keep(b"1", b"x" * 5, 2.0)
    assert roster.keep(b"2", b"x" * 5, 2.0)
    roster.remove(b"1")
    assert roster.keep(b"2", b"x" * 10, 3.0)
    assert not roster.keep(b"9", b"", 3.0)


def test_a_second_hello_keeps_the_history() -> None:
    """A peer that says hello again keeps when it came and what it reported."""
    roster = Roster()
    roster.add(b"1", publisher(1, now=1.0))
    roster.keep(b"1", b"\x80", 2.0)
    roster.add(b"1", publisher(5, now=3.0))
    ((_, peer),) = roster
    assert (peer.since, peer.heard, peer.reported, peer.report) == (1.0, 3.0, 2.0, b"\x80")


def test_batches_need_every_subscriber() -> None:
    """Batches are decoded by all as long as no registered subscriber says otherwise."""
    roster = Roster()
    assert roster.batches
    roster.add(b"1", Peer(hello(batches=False), None, 0.0))
    roster.add(b"2", Peer(hello(batches=True), None, 0.0))
    assert not roster.batches
    roster.add(b"1", Peer(hello(batches=True), None, 0.0))
    assert roster.batches
    roster.add(b"1", Peer(hello(batches=False), None, 0.0))
    roster.remove(b"1")
    assert roster.batches
    roster.add(b"3", Peer(hello(role="publisher", patterns=[], batches=False), None, 0.0))
    assert roster.batches


def test_only_the_silent_are_found() -> None:
    """Those not heard of for the stated time are found, whatever the order in which they came."""
    roster = Roster()
    for number in range(3):
        roster.add(b"%d" % number, publisher(number))
    roster.heard(b"0", PEER_SILENCE_SECONDS)
    roster.heard(b"9", PEER_SILENCE_SECONDS)
    assert roster.silent(PEER_SILENCE_SECONDS) == []
    assert roster.silent(PEER_SILENCE_SECONDS + 0.1) == [b"1", b"2"]
    assert roster.silent(PEER_SILENCE_SECONDS * 3) == [b"1", b"2", b"0"]


def test_lost_publishers_are_bounded_and_can_be_found_again() -> None:
    """The most recent losses are kept; a publisher that shows up under its id or key is none of them."""
    roster = Roster()
    for number in range(LOST_PUBLISHERS + 3):
        roster.lost.append(Lost(b"%d" % number, publisher(number), "died", 0.0))
    assert len(roster.lost) == LOST_PUBLISHERS
    roster.found(b"7")
    roster.add(b"new", publisher(8))
    roster.add(b"9", publisher(500))
    left = {lost.key for lost in roster.lost}
    assert len(left) == LOST_PUBLISHERS - 3
    assert not left & {b"7", b"8", b"9"}
