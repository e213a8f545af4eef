"""What a subscriber missed, exactly, as far as publishers have told.

A stream is a publisher and a topic; its events are numbered from 1. A hole between two received
events is a gap at once. Beacons close the ends: the last number of each topic, and when the
topic was first used, so that what came before the first received event is known to be missed
(first used after we were ready) or not ours to have (before). Numbers that go backwards are late
arrivals: an acknowledged publish may overtake an ordinary one.

Decides what is missing; knows no frame and no socket. Times are ns since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.beacons import Beacon
from ...protocol.envelope import publisher_started
from ...protocol.limits import STREAM_IDLE_SECONDS, SUBSCRIBER_STREAMS

GAP_TOPICS = 1_000
"""Topics that the gap report names; what more topics missed is in the total alone."""

SWEEP_SECONDS = 60.0
"""Seconds between two sweeps."""

CLOSED_SWEEPS = 2
"""A closed publisher is remembered for two to three minutes: its last words are repeated meanwhile."""

IDLE_SWEEPS = int(STREAM_IDLE_SECONDS / SWEEP_SECONDS)

NEVER = 2**63

FORGOTTEN = -2
"""``last`` of a stream that is no longer kept: no number follows it, whoever still holds it."""


class Stream:
    """Numbers of one publisher and topic: all up to ``last`` are received or counted as missed.

    ``unsure`` numbers at its start were either missed or not ours; a beacon decides.
    """

    __slots__ = ("closed", "idle", "last", "missed", "seen", "unsure")

    def __init__(self, last: int) -> None:
        self.last = last
        self.unsure = last
        self.missed = 0
        self.closed = False
        self.seen = last
        self.idle = 0


class Accounting:
    """The streams of one subscriber and its counts.

    ``missed`` events never arrived, ``late`` ones came after a later number; ``gaps`` says how many
    were missed per topic, ``publishers`` per publisher's name. ``forgotten`` counts streams that
    were dropped to stay within bounds.
    """

    def __init__(self) -> None:
        self.topics: dict[str, dict[bytes, Stream]] = {}
        self.missed = 0
        self.late = 0
        self.forgotten = 0
        self.gaps: dict[str, int] = {}
        self.publishers: dict[str, int] = {}
        self._since = NEVER
        self._count = 0

    def ready(self, now_ns: int) -> None:
        """From now on every event of our topics is ours: what starts later starts at 1."""
        self._since = now_ns

    def streams(self, topic: str) -> dict[bytes, Stream]:
        """The streams of ``topic`` by publisher id; the same dict each time."""
        return self.topics.setdefault(topic, {})

    def event(self, topic: str, publisher: bytes, source: str, sequence: int, now_ns: int) -> None:
        """Account for a received event, in whatever order it came."""
        streams = self.streams(topic)
        stream = streams.get(publisher)
        if stream is None:
            known = sequence == 1 or publisher_started(publisher) > self._since
            stream = self._add(streams, publisher, 0 if known else sequence - 1, now_ns)
        if sequence > stream.last:
            self._miss(topic, source, stream, sequence - stream.last - 1)
            stream.last = sequence
        else:
            self.late += 1
            if stream.missed:
                self._miss(topic, source, stream, -1)
            elif stream.unsure:
                stream.unsure -= 1

    def beacon(self, beacon: Beacon, wanted: Callable[[str], bool], now_ns: int) -> None:
        """Account for what a publisher says of its numbers."""
        for topic, (first_time, last) in beacon.topics.items():
            if not wanted(topic):
                continue
            streams = self.streams(topic)
            stream = streams.get(beacon.publisher)
            ours = first_time > self._since or publisher_started(beacon.publisher) > self._since
            if stream is None:
                stream = self._add(streams, beacon.publisher, 0 if ours else last, now_ns)
            elif stream.unsure and ours:
                self._miss(topic, beacon.source, stream, stream.unsure)
            stream.unsure = 0
            stream.idle = 0
            stream.closed = beacon.closing
            if last > stream.last:
                self._miss(topic, beacon.source, stream, last - stream.last)
                stream.last = last

    def sweep(self, now_ns: int) -> None:
        """Forget, once a minute, streams that were closed or not heard of for an hour."""
        for streams in list(self.topics.values()):
            for publisher, stream in list(streams.items()):
                stream.idle = 0 if stream.last != stream.seen else stream.idle + 1
                stream.seen = stream.last
                if stream.idle > (CLOSED_SWEEPS if stream.closed else IDLE_SWEEPS):
                    streams.pop(publisher).last = FORGOTTEN
                    self._count -= 1
                    if not stream.closed:
                        self._forgot(1, now_ns)

    def _add(self, streams: dict[bytes, Stream], publisher: bytes, last: int, now_ns: int) -> Stream:
        if self._count >= SUBSCRIBER_STREAMS:
            self._make_room(now_ns)
        stream = streams[publisher] = Stream(last)
        self._count += 1
        return stream

    def _make_room(self, now_ns: int) -> None:
        """Forget the closed streams; if that is not enough the idle ones too, and then all."""
        self._drop(lambda stream: stream.closed, now_ns)
        if self._count >= SUBSCRIBER_STREAMS:
            self._drop(lambda stream: stream.idle > 0, now_ns)
        if self._count >= SUBSCRIBER_STREAMS:
            self._drop(lambda _: True, now_ns)

    def _drop(self, chosen: Callable[[Stream], bool], now_ns: int) -> None:
        for streams in self.topics.values():
            for publisher in [key for key, stream in streams.items() if chosen(stream)]:
                streams.pop(publisher).last = FORGOTTEN
                self._count -= 1
                self._forgot(1, now_ns)

    def _forgot(self, count: int, now_ns: int) -> None:
        # A stream that was known and is not any more must not look as if it began unseen.
        self.forgotten += count
        if self._since < NEVER:
            self._since = max(self._since, now_ns)

    def _miss(self, topic: str, source: str, stream: Stream, count: int) -> None:
        if count == 0:
            return
        stream.missed += count
        self.missed += count
        for table, name in ((self.gaps, topic), (self.publishers, source)):
            if name in table or len(table) < GAP_TOPICS:
                table[name] = table.get(name, 0) + count
