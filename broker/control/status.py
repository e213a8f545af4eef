"""The status report: what the broker knows, as one map of plain values that fits into one message.

Decides what is shown and what is left out when there is too much of it, counted under
``omitted``. Numbers that peers reported stand as they reported them, with their age.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack

from .bounds import PATTERNS_SHOWN, STATUS_BYTES
from .peers import Lost, Peer, Roster
from .reports import unpack_report

Row = dict[str, Any]


def list_peers(roster: Roster, now: float, room: int = STATUS_BYTES) -> dict[str, Any]:
    """The parts of a status report that grow with the number of peers, within ``room`` bytes.

    What peers reported comes first, because losses stand there.
    """
    peers = [peer for _, peer in roster]
    parts: dict[str, Iterator[Row]] = {
        "subscribers": (_reported(peer, now) for peer in peers if peer.role == "subscriber"),
        "publishers": (_reported(peer, now) for peer in peers if peer.role == "publisher"),
        "deciders": (_decider(peer, now) for peer in peers if peer.role == "decider"),
        "lost_publishers": (_lost(lost, now) for lost in reversed(roster.lost)),
        "peers": (_registered(peer, now) for peer in peers),
    }
    listed: dict[str, Any] = {}
    omitted = {}
    for part, rows in parts.items():
        shown: list[Row] = []
        for row in rows:
            room -= len(msgpack.packb(row))
            if room < 0:
                omitted[part] = 1 + sum(1 for _ in rows)
                break
            shown.append(row)
        listed[part] = shown
    listed["omitted"] = omitted
    return listed


def _registered(peer: Peer, now: float) -> Row:
    return {
        "name": peer.name,
        "role": peer.role,
        "pid": peer.pid,
        "release": peer.release,
        "batches": peer.batches,
        "patterns": list(peer.patterns[:PATTERNS_SHOWN]),
        "pattern_count": len(peer.patterns),
        "since_s": round(now - peer.since, 3),
        "heard_s": round(now - peer.heard, 3),
    }


def _decider(peer: Peer, now: float) -> Row:
    return {
        **_reported(peer, now),
        "patterns": list(peer.patterns[:PATTERNS_SHOWN]),
        "priority": peer.priority,
        "failure": peer.failure,
    }


def _reported(peer: Peer, now: float) -> Row:
    row: Row = {"name": peer.name, "pid": peer.pid}
    if peer.publisher is not None:
        row["publisher"] = peer.publisher.hex()
    row["reported_s"] = round(now - peer.reported, 3) if peer.report else None
    return {**unpack_report(peer.report), **row}


def _lost(lost: Lost, now: float) -> Row:
    return {
        **_reported(lost.peer, now),
        "how": lost.how,
        "ended_s": round(now - lost.when, 3),
        "after_report": "unknown",
    }
