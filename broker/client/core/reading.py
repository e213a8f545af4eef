"""Frames in, events out: what a subscriber does with everything its socket hands it.

Decides what a frame is (event, batch, beacon, probe, welcome or garbage), whether a pattern wants
it, and keeps the accounts. The loop over ordinary events is the hot path of a subscriber: a
frame whose key and publisher are known and whose number is the next one is checked by a handful
of comparisons; everything else takes :func:`broker.protocol.events.decode_event`, which says
what is wrong. Knows no socket and never raises for what a peer sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgpack import unpackb

from ...protocol.batches import decode_batch
from ...protocol.beacons import decode_beacon
from ...protocol.errors import DecodeError
from ...protocol.events import MAX_TIME, VERSION, Claim, Event, decode_event
from ...protocol.limits import PAYLOAD_BYTES
from ...protocol.topics import BEACON_PREFIX, DEPTH_BYTES, INBOX_PREFIX, WELCOME, Pattern
from .accounting import Accounting, Stream

ROUTES: Final = 16_384
"""Keys that a reader remembers; beyond that it starts again."""

SMALL_HEADER: Final = 128
"""An envelope with no more bytes than this around its payload cannot hold a name beyond its limit."""

_NONE = type(None)
_SHAPES: Final = frozenset(
    (int, bytes, int, int, session, str, cause, bytes) for session in (str, _NONE) for cause in (str, _NONE)
)


class Route:
    """What a known key means: its topic, its depth and that topic's streams."""

    __slots__ = ("depth", "streams", "topic")

    def __init__(self, topic: str, depth: int, streams: dict[bytes, Stream]) -> None:
        self.topic = topic
        self.depth = depth
        self.streams = streams


class Reader:
    """Reads frames for one subscriber.

    ``received`` counts events delivered, ``refused`` frames by the reason why they were not decoded,
    ``overdelivered`` events that a shared prefix brought and no pattern wants, ``repeated`` events
    that were delivered before as retained values. ``inboxes`` are the probes seen and not yet
    taken; ``welcomes`` counts how often a broker greeted us and ``epoch`` is the latest one's.
    """

    def __init__(
        self, patterns: Iterable[Pattern], load_claim: Callable[[Claim], bytes] | None = None
    ) -> None:
        self.accounting = Accounting()
        self.received = 0
        self.overdelivered = 0
        self.repeated = 0
        self.refused: dict[str, int] = {}
        self.inboxes: set[bytes] = set()
        self.welcomes = 0
        self.epoch = b""
        self._patterns = tuple(patterns)
        self._load_claim = load_claim
        self._routes: dict[bytes, Route] = {}
        self._unwanted: set[bytes] = set()
        self._retained: set[str] = set()

    def wanted(self, topic: str) -> bool:
        """Whether one of the patterns asks for ``topic``."""
        return any(pattern.matches(topic) for pattern in self._patterns)

    def feed(self, frames: Iterable[bytes], now_ns: int) -> list[Event]:
        """The events in ``frames``, in order. ``now_ns`` is ns since the epoch."""
        routes = self._routes
        events: list[Event] = []
        append = events.append
        for frame in frames:
            end = frame.find(b"\0")
            route = routes.get(frame[:end])
            if route is not None:
                try:
                    fields = unpackb(frame[end + 1 :])
                    version, publisher, sequence, time_ns, _, _, _, payload = fields
                    stream = route.streams.get(publisher)
                    if (
                        stream is not None
                        and sequence == stream.last + 1
                        and tuple(map(type, fields)) in _SHAPES
                        and version == VERSION
                        and 0 <= time_ns <= MAX_TIME
                        and len(payload) <= PAYLOAD_BYTES
                        and len(frame) - end - len(payload) <= SMALL_HEADER
                    ):
                        stream.last = sequence
                        append(Event(route.topic, route.depth, fields))
                        continue
                except Exception:
                    pass
            self._read(frame, events, now_ns)
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
            self.overdelivered += 1
            return
        if frame.startswith(WELCOME):
            self.welcomes += 1
            self.epoch = frame[len(WELCOME) :]
            return
        mark = key[1:2]
        try:
            if mark == b"$":
                self._read_special(key, frame, now_ns)
            elif mark == b"~":
                for event in decode_batch(frame):
                    self._deliver(event, events, now_ns)
            else:
                self._deliver(decode_event(frame), events, now_ns)
        except DecodeError as error:
            self._refuse(error)

    def _read_special(self, key: bytes, frame: bytes, now_ns: int) -> None:
        name = key[1:]
        if name.startswith(INBOX_PREFIX):
            self.inboxes.add(name.removeprefix(INBOX_PREFIX))
        elif name.startswith(BEACON_PREFIX):
            self.accounting.beacon(decode_beacon(frame), self.wanted, now_ns)

    def _deliver(self, event: Event, events: list[Event], now_ns: int) -> None:
        if not self.wanted(event.topic):
            self.overdelivered += 1
            self._remember_unwanted(event)
            return
        _, publisher, sequence, _, _, source, _, _ = event.fields
        self.accounting.event(event.topic, publisher, source, sequence, now_ns)
        self._remember(event)
        events.append(self._prepare(event))

    def _prepare(self, event: Event) -> Event:
        if event.claim is not None:
            event.claim.load = self._load_claim
        return event

    def _remember(self, event: Event) -> None:
        if len(self._routes) >= ROUTES:
            self._routes.clear()
        key = DEPTH_BYTES[event.depth] + event.topic.encode()
        if key not in self._routes:
            self._routes[key] = Route(event.topic, event.depth, self.accounting.streams(event.topic))

    def _remember_unwanted(self, event: Event) -> None:
        if len(self._unwanted) >= ROUTES:
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
