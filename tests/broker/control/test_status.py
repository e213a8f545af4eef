"""The parts of a status report that grow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgpack
import orjson

from broker.control.bounds import PATTERNS_SHOWN
from broker.control.peers import Lost, Peer, Roster
from broker.control.reports import pack_report
from broker.control.status import list_peers

NUMBERS: Iterator[int] = count()


def add(roster: Roster, role: str, counters: dict[str, Any] | None = None, **changes: Any) -> Peer:
    """Register one more peer of ``role`` at time 10, with a report of time 11 if there are counters."""
    number = next(NUMBERS)
    patterns = ["a.*"] if role == "subscriber" else []
    hello = {"role": role, "name": role, "pid": number, "release": "1", "batches": True, "publisher": None}
    peer = Peer({**hello, "patterns": patterns, **changes}, None, 10.0)
    key = b"%d" % number
    roster.add(key, peer)
    if counters is not None:
        roster.keep(key, pack_report(counters), 11.0)
    return peer


def test_every_peer_is_listed_with_what_it_said() -> None:
    """Registrations, reports and losses each have their list, with ages in seconds."""
    roster = Roster()
    add(roster, "subscriber", {"received": 5, "gaps": {"a.b": 2}, "name": 9}, pid=1)
    add(roster, "publisher", publisher=b"p" * 16, pid=2)
    add(roster, "tool", pid=3)
    lost = add(roster, "publisher", {"published": 4}, publisher=b"q" * 16, pid=4)
    roster.remove(next(key for key, peer in roster if peer is lost))
    roster.lost.append(Lost(b"x", lost, "died", 12.0))
    listed = list_peers(roster, 13.0)
    assert [(peer["role"], peer["pid"], peer["since_s"], peer["heard_s"]) for peer in listed["peers"]] == [
        ("subscriber", 1, 3.0, 3.0),
        ("publisher", 2, 3.0, 3.0),
        ("tool", 3, 3.0, 3.0),
    ]
    assert listed["subscribers"] == [
        {"received": 5, "gaps": {"a.b": 2}, "name": "subscriber", "pid": 1, "reported_s": 2.0}
    ]
    assert listed["publishers"] == [
        {"name": "publisher", "pid": 2, "publisher": "70" * 16, "reported_s": None}
    ]
    assert listed["lost_publishers"] == [
        {
            "published": 4,
            "name": "publisher",
            "pid": 4,
            "publisher": "71" * 16,
            "reported_s": 2.0,
            "how": "died",
            "ended_s": 1.0,
            "after_report": "unknown",
        }
    ]
    assert listed["omitted"] == {}
    assert orjson.loads(orjson.dumps(listed)) == listed


def test_of_many_patterns_some_are_shown() -> None:
    """A subscriber's patterns are cut to the first ones, and counted."""
    roster = Roster()
    add(roster, "subscriber", patterns=[f"t{number}" for number in range(100)])
    (shown,) = list_peers(roster, 0.0)["peers"]
    assert shown["pattern_count"] == 100
    assert shown["patterns"] == [f"t{number}" for number in range(PATTERNS_SHOWN)]


def test_what_does_not_fit_is_counted() -> None:
    """With more peers than fit, rows are left out and their number is said for each list."""
    roster = Roster()
    for _ in range(30):
        add(roster, "subscriber", {"received": 1})
    listed = list_peers(roster, 0.0, room=1_500)
    assert len(msgpack.packb(listed)) < 1_700
    assert 0 < len(listed["subscribers"]) < 30
    assert listed["omitted"] == {"subscribers": 30 - len(listed["subscribers"]), "peers": 30}
