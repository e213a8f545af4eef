"""Frames in, events out: what a subscriber does with everything its socket hands it.

Decides what a frame is (event, batch, beacon, probe, welcome or garbage), whether a pattern wants
it, and keeps the accounts. The loop over ordinary events is the hot path of a subscriber: a
frame that begins like the one before it on its lane (key, publisher, names) and has the next
number is an event without decoding anything; everything else takes
:func:`broker.protocol.events.decode_event`, which says what is wrong. Knows no socket and never
raises for what a peer sent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ...protocol.batches import batch_topics, decode_batch
from ...protocol.beacons import decode_beacon
from ...protocol.envelope import MAX_TIME, Claim, Names, event_head, split_key
from ...protocol.errors import DecodeError
from ...protocol.events import Event, Origin, decode_event
from ...protocol.limits import BATCH_TOPICS
from ...protocol.topics import BEACON_PREFIX, DEPTH_BYTES, INBOX_PREFIX, WELCOME, Pattern
from .accounting import FORGOTTEN, Accounting, Stream
from .batch_reading import BatchLane, BatchReader, lane_opening

LANES: Final = 16_384
"""Lanes, and unwanted keys, that a reader remembers; beyond that it starts again."""

BATCH_LANES: Final = 1_024
"""Pairs of channel and publisher whose batches a reader remembers; beyond that it starts again."""

OPENINGS: Final = 4
"""Ways in which the batches of such a pair may open: a publisher has a new one when its table is full."""

_HEAD: Final = 22
"""Bytes from a key's NUL to the sequence, in the layout that our own publishers write."""

_BATCH_HEAD: Final = 21
"""Bytes from a channel's NUL to the end of the publisher id, in the same layout."""

_NUMBERS: Final = 17
"""Bytes of sequence, tag and time."""


class Lane(NamedTuple):
    """What the frames of one key and publisher have in common: how they begin, and their layout.

    ``middle`` is that of its latest event (see :class:`broker.protocol.events.Names`): an event with the
    same bytes there has the same names. ``unpack`` gives what its layout says, of a frame at the
    length of ``head``; the payload begins at ``start``.
    """

    head: bytes
    skip: int
    unpack: Callable[[bytes, int], tuple[int, int, int, bytes, int]]
    middle: bytes
    start: int
    stream: Stream
    topic: str
    session_id: str | None
    caused_by: str | None
    origin: Origin


def lane_of(event: Event, head: bytes, names: Names, stream: Stream) -> Lane:
    """The lane of ``event``, whose frame begins with ``head`` and has these ``names``."""
    return Lane(
        head=head,
        skip=len(head),
        unpack=names.layout.unpack_from,
        middle=names.middle,
        start=len(head) + names.layout.size,
        stream=stream,
        topic=event.topic,
        session_id=event.session_id,
        caused_by=event.caused_by,
        origin=event.origin,
    )


_NO_LANE: Final = lane_of(
    Event.of("", 0, b"", 0, 0, None, "", None, b""), b"\xff", Names(None, "", None), Stream(FORGOTTEN)
)
"""A lane for no frame: none that is an event begins like this, and no number follows a forgotten one."""


class Reader:
    """Reads frames for one subscriber.

    ``received`` counts events delivered, ``refused`` frames by the reason why they were not decoded,
    ``repeated`` events that were delivered before as retained values. ``inboxes`` are the probes seen
    and not yet taken; ``welcomes`` counts how often a broker greeted us and ``epoch`` is the latest one's.
    """

    def __init__(
        self, patterns: Iterable[Pattern], load_claim: Callable[[Claim], bytes] | None = None
    ) -> None:
        self.accounting = Accounting()
        self.received = 0
        self._overdelivered = 0
        self.repeated = 0
        self.refused: dict[str, int] = {}
        self.inboxes: set[bytes] = set()
        self.welcomes = 0
        self.epoch = b""
        self._patterns = tuple(patterns)
        self._load_claim = load_claim
        self._lanes: dict[bytes, Lane] = {}
        self._batches = BatchReader()
        self._batch_lanes: dict[bytes, list[BatchLane]] = {}
        self._unwanted: set[bytes] = set()
        self._retained: set[str] = set()

    @property
    def overdelivered(self) -> int:
        """Events that a shared prefix or a batch brought and no pattern asks for."""
        return self._overdelivered + self._batches.overdelivered

    def wanted(self, topic: str) -> bool:
        """Whether one of the patterns asks for ``topic``."""
        return any(pattern.matches(topic) for pattern in self._patterns)

    def feed(self, frames: Iterable[bytes], now_ns: int) -> list[Event]:
        """The events in ``frames``, in order. ``now_ns`` is ns since the epoch."""
        lanes = self._lanes
        events: list[Event] = []
        append = events.append
        head, skip, unpack, middle, start, stream, topic, session, cause, origin = _NO_LANE
        for frame in frames:
            if not frame.startswith(head):
                lane = lanes.get(frame[: frame.find(b"\0") + _HEAD])
                if lane is None:
                    self._read(frame, events, now_ns)
                    head, stream = _NO_LANE.head, _NO_LANE.stream  # what was read may have changed the lanes
                    continue
                head, skip, unpack, middle, start, stream, topic, session, cause, origin = lane
            try:
                sequence, tag, time_ns, found, size = unpack(frame, skip)
            except struct.error:  # it ends too early: the careful way says so
                sequence, tag, time_ns, found, size = 0, 0, 0, b"", -1
            if (
                size == len(frame) - start
                and sequence == stream.last + 1
                and found == middle
                and tag == 0xCF
                and time_ns <= MAX_TIME
            ):
                stream.last = sequence
                append(Event(topic, sequence, time_ns, session, cause, frame[start:], origin))
            else:
                self._read(frame, events, now_ns)
                head, stream = _NO_LANE.head, _NO_LANE.stream
        if self._retained:
            events = self._without_repeats(events)
        self.received += len(events)
        return events

    def retained(self, frames: Iterable[bytes]) -> list[Event]:
        """The events of the broker's retained values; each will be delivered once, now.

        They tell nothing of what came before them, so they do not count as numbers.
        """
        events: list[Event] = []
        for frame in frames:
            try:
                event = self._prepare(decode_event(frame))
            except DecodeError as error:
                self._refuse(error)
                continue
            if self.wanted(event.topic):
                events.append(event)
                self._retained.add(event.id)
        self.received += len(events)
        return events

    def _read(self, frame: bytes, events: list[Event], now_ns: int) -> None:
        key = frame[: frame.find(b"\0")]
        if key in self._unwanted:
            self._overdelivered += 1
            return
        if frame.startswith(WELCOME):
            self.welcomes += 1
            self.epoch = frame[len(WELCOME) :]
            return
        mark = key[1:2]
        try:
            if mark == b"$":
                self._read_special(split_key(frame)[0].name, frame, now_ns)
            elif mark == b"~":
                self._read_batch(frame, events, now_ns)
            else:
                event = decode_event(frame)
                self._deliver(event, events, now_ns)
                if event.topic in self.accounting.topics:
                    self._remember(event, frame)
        except DecodeError as error:
            self._refuse(error)

    def _read_batch(self, frame: bytes, events: list[Event], now_ns: int) -> None:
        head = frame[: frame.find(b"\0") + _BATCH_HEAD]
        for lane in self._batch_lanes.get(head, ()):
            if frame.startswith(lane.opening):
                quick = self._batches.read(lane, frame)
                if quick is not None:
                    events += quick
                    return
        found = decode_batch(frame)
        for event in found:
            self._deliver(event, events, now_ns)
        self._remember_batch(head, frame, found)

    def _remember_batch(self, head: bytes, frame: bytes, found: list[Event]) -> None:
        """Frames that open like this one may take the quick way, if it has our own publishers' layout."""
        self._batches.learn(found)
        topics = batch_topics(frame)
        opening = lane_opening(found[0], topics) if found else b"\0"
        if not frame.startswith(opening) or len(topics) > BATCH_TOPICS or len({*topics}) < len(topics):
            return
        if len(self._batch_lanes) >= BATCH_LANES:
            self._batch_lanes.clear()
        first, wanted = found[0], tuple(map(self.wanted, topics))
        streams = tuple(
            self.accounting.topics.get(topic, {}).get(first.publisher_id) if asked else None
            for topic, asked in zip(topics, wanted, strict=True)
        )
        lane = BatchLane(opening, topics, first.origin, wanted, streams)
        others = [other for other in self._batch_lanes.get(head, ()) if other.opening != opening]
        self._batch_lanes[head] = [lane, *others][:OPENINGS]

    def _read_special(self, name: bytes, frame: bytes, now_ns: int) -> None:
        if name.startswith(INBOX_PREFIX):
            self.inboxes.add(name.removeprefix(INBOX_PREFIX))
        elif name.startswith(BEACON_PREFIX):
            self.accounting.beacon(decode_beacon(frame), self.wanted, now_ns)

    def _deliver(self, event: Event, events: list[Event], now_ns: int) -> None:
        if not self.wanted(event.topic):
            self._overdelivered += 1
            self._remember_unwanted(event)
            return
        self.accounting.event(event.topic, event.publisher_id, event.source, event.sequence, now_ns)
        events.append(self._prepare(event))

    def _prepare(self, event: Event) -> Event:
        if event.claim is not None:
            event.claim.load = self._load_claim
        return event

    def _remember(self, event: Event, frame: bytes) -> None:
        """Frames like this one may take the quick way, if it has our own publishers' layout."""
        names = Names(event.session_id, event.source, event.caused_by)
        start = frame.find(b"\0") + _HEAD
        head = frame[:start]
        if head == event_head(event.depth, event.topic, event.publisher_id) and frame.startswith(
            names.packed, start + _NUMBERS
        ):
            if len(self._lanes) >= LANES:
                self._lanes.clear()
            stream = self.accounting.streams(event.topic)[event.publisher_id]
            self._lanes[head] = lane_of(event, head, names, stream)

    def _remember_unwanted(self, event: Event) -> None:
        if len(self._unwanted) >= LANES:
            self._unwanted.clear()
        self._unwanted.add(DEPTH_BYTES[event.depth] + event.topic.encode())

    def _without_repeats(self, events: list[Event]) -> list[Event]:
        fresh = []
        for event in events:
            if event.id in self._retained:
                self._retained.discard(event.id)
                self.repeated += 1
            else:
                fresh.append(event)
        return fresh

    def _refuse(self, error: DecodeError) -> None:
        self.refused[error.reason] = self.refused.get(error.reason, 0) + 1
