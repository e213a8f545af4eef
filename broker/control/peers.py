"""Who is registered, since when, and what each last said of itself.

Decides who may register and who is forgotten; what a peer is told is the plane's. The order of
the table is the order in which peers were last heard, so that the silent ones stand first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ..protocol.control import ROLES
from ..protocol.decisions import FAILURES, Failure
from ..protocol.envelope import PUBLISHER_BYTES, is_text
from ..protocol.errors import DecodeError, LimitExceeded, shown
from ..protocol.limits import NAME_BYTES, PEER_SILENCE_SECONDS, PEERS, PRIORITY
from ..protocol.topics import parse_patterns
from .bounds import LOST_PUBLISHERS, PATTERNS_HELD, REPORTS_BYTES
from .matching import Interests


class Peer:
    """One registered client, as it described itself; ``pid`` is the kernel's word where there is one."""

    __slots__ = (
        "batches", "failure", "heard", "name", "patterns", "pid", "priority", "publisher",
        "release", "report", "reported", "role", "since",
    )  # fmt: skip

    def __init__(self, hello: dict[str, Any], pid: int | None, now: float) -> None:
        """``hello`` is a decoded body; raises what is wrong with it as a BusError."""
        self.role: str = hello["role"]
        self.name: str = hello["name"]
        self.pid: int = hello["pid"] if pid is None else pid
        self.release: str = hello["release"]
        self.batches: bool = hello["batches"]
        self.publisher: bytes | None = hello["publisher"]
        self.since = self.heard = self.reported = now
        self.report = b""
        if self.role not in ROLES:
            raise DecodeError("hello", f"role {self.role[:80]!r} is not one of {', '.join(ROLES)}")
        for field, text in (("name", self.name), ("release", self.release)):
            if not is_text(text, NAME_BYTES) or not text.isprintable() or not text:
                raise LimitExceeded(
                    f"{field} {text[:80]!r} is not 1 to {NAME_BYTES} bytes of printable characters"
                )
        if self.publisher is not None and len(self.publisher) != PUBLISHER_BYTES:
            raise DecodeError("hello", f"a publisher id has {PUBLISHER_BYTES} bytes")
        self.priority, self.failure = _decides(hello)
        if self.role in ("subscriber", "decider"):
            idle = self.role == "decider" and not hello["patterns"]  # it takes no more asks
            self.patterns = () if idle else tuple(p.text for p in parse_patterns(hello["patterns"]))
        elif hello["patterns"]:
            raise DecodeError("hello", f"a {self.role} has no patterns")
        else:
            self.patterns = ()


def _decides(hello: dict[str, Any]) -> tuple[int, Failure]:
    """Priority and failure policy that a hello tells, or what holds without."""
    priority, failure = hello.get("priority", 0), hello.get("failure", "open")
    if type(priority) is not int or not -PRIORITY <= priority <= PRIORITY:
        raise DecodeError(
            "hello", f"priority {shown(priority)} is not a number from -{PRIORITY} to {PRIORITY}"
        )
    if failure not in FAILURES:
        raise DecodeError("hello", f"failure {shown(failure)} is not one of {', '.join(FAILURES)}")
    return priority, failure


class Lost:
    """A publisher that ended without a goodbye. What it published after its last report is unknown."""

    __slots__ = ("how", "key", "peer", "when")

    def __init__(self, key: bytes, peer: Peer, how: str, when: float) -> None:
        self.key = key
        self.peer = peer
        self.how = how
        self.when = when


class Roster:
    """The registered peers by routing id, within the limits on their number and on all their patterns.

    ``interests`` holds what the subscribers ask for, ``lost`` the publishers that broke off.
    """

    def __init__(
        self, limit: int = PEERS, patterns: int = PATTERNS_HELD, reports: int = REPORTS_BYTES
    ) -> None:
        self.interests = Interests()
        self.lost: deque[Lost] = deque(maxlen=LOST_PUBLISHERS)
        self._peers: dict[bytes, Peer] = {}  # least recently heard first
        self._limit = limit
        self._patterns = patterns
        self._reports = reports
        self._held = 0
        self._without_batches = 0
        self._patterns_held = 0

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[tuple[bytes, Peer]]:
        return iter(self._peers.items())

    def __contains__(self, key: bytes) -> bool:
        return key in self._peers

    @property
    def batches(self) -> bool:
        """Whether every registered subscriber decodes batches."""
        return not self._without_batches

    def add(self, key: bytes, peer: Peer) -> None:
        """Register ``peer`` under ``key``, in place of what was there; raises :class:`LimitExceeded`."""
        before = self._peers.get(key)
        if before is None and len(self._peers) >= self._limit:
            raise LimitExceeded(f"{self._limit:,} peers are registered; that is the most")
        held = self._patterns_held - (len(before.patterns) if before else 0)
        if held + len(peer.patterns) > self._patterns:
            raise LimitExceeded(
                f"all peers together hold {held:,} patterns and may hold {self._patterns:,}; "
                f"there is no room for {len(peer.patterns):,} more"
            )
        if before is not None:
            peer.since, peer.report, peer.reported = before.since, before.report, before.reported
            self._uncount(key, before)
        self._peers[key] = peer
        self._held += len(peer.report)
        self._patterns_held += len(peer.patterns)
        self.found(key, peer.publisher)
        if peer.role == "subscriber":
            self.interests.put(key, peer.patterns)
            self._without_batches += not peer.batches

    def is_publisher(self, key: bytes) -> bool:
        """Whether a registered publisher has this key."""
        peer = self._peers.get(key)
        return peer is not None and peer.role == "publisher"

    def remove(self, key: bytes) -> Peer | None:
        """Take the peer out; None when there is none."""
        peer = self._peers.get(key)
        if peer is not None:
            self._uncount(key, peer)
        return peer

    def found(self, key: bytes, publisher: bytes | None = None) -> None:
        """A publisher is not lost after all: its connection has spoken, or its id is in use again."""
        for lost in list(self.lost):
            if lost.key == key or (publisher is not None and lost.peer.publisher == publisher):
                self.lost.remove(lost)

    def heard(self, key: bytes, now: float) -> None:
        """A peer has said something; an unknown one is no error."""
        peer = self._peers.pop(key, None)
        if peer is not None:
            peer.heard = now
            self._peers[key] = peer

    def keep(self, key: bytes, report: bytes, now: float) -> bool:
        """Keep the report of a peer; false for an unknown one. Raises :class:`LimitExceeded`."""
        peer = self._peers.get(key)
        if peer is None:
            return False
        held = self._held - len(peer.report) + len(report)
        if held > self._reports:
            raise LimitExceeded(f"the reports of all peers together take {self._reports:,} bytes at most")
        self._held = held
        peer.report, peer.reported = report, now
        return True

    def silent(self, now: float) -> list[bytes]:
        """Those of whom nothing was heard for too long."""
        found = []
        for key, peer in self._peers.items():
            if now - peer.heard <= PEER_SILENCE_SECONDS:
                break
            found.append(key)
        return found

    def _uncount(self, key: bytes, peer: Peer) -> None:
        del self._peers[key]
        self._held -= len(peer.report)
        self._patterns_held -= len(peer.patterns)
        if peer.role == "subscriber":
            self.interests.drop(key)
            self._without_batches -= not peer.batches
