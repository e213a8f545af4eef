"""What a publisher counts: a number per topic, and the beacons that tell of it.

Decides what a beacon says and when. Knows no socket: the caller takes a number before it sends
and gives it back when the send was refused.
"""

from __future__ import annotations

from ...protocol.beacons import Beacon
from ...protocol.catalogue import TypesOf, types_for
from ...protocol.envelope import event_head
from ...protocol.limits import BEACON_IDLE_SECONDS, BEACON_SECONDS, DEPTHS, PUBLISHER_TOPICS
from ...protocol.topics import check_topic, namespace
from .channel import Channel


class Stream:
    """One topic of one publisher: what every event of it shares, and its last number.

    ``heads`` is the start of the frame for each depth; ``types_of`` is what the catalogue asks of the
    fields of its payload or None; ``first_time`` is when its first event was taken, ns since the epoch.
    ``retired`` is true when its publisher id is no longer in use: its events need another stream. In
    a batch its events go by ``channel`` and ``index``.
    """

    __slots__ = (
        "channel", "first_time", "heads", "index", "retired", "sequence", "told", "topic", "types_of",
    )  # fmt: skip

    def __init__(self, topic: str, publisher: bytes, now_ns: int, channel: Channel) -> None:
        self.channel = channel
        self.index = channel.add(topic)
        self.topic = topic
        self.heads = tuple(event_head(depth, topic, publisher) for depth in range(DEPTHS))
        self.types_of: TypesOf | None = types_for(topic)
        self.first_time = now_ns
        self.sequence = 0
        self.told = 0
        self.retired = False


class Numbering:
    """The streams of one publisher id and when its next beacon is due.

    ``publisher`` is 16 bytes (see :mod:`broker.protocol.events`). Times are seconds of one
    monotonic clock, except those named ``_ns``, which are ns since the epoch.
    """

    def __init__(self, publisher: bytes, source: str, now: float) -> None:
        self.publisher = publisher
        self.source = source
        self.streams: dict[str, Stream] = {}
        self._channels: dict[str, Channel] = {}
        self._ended = 0
        self._pause = BEACON_SECONDS
        self._due = now + BEACON_SECONDS

    @property
    def published(self) -> int:
        """Events that have taken a number, over all ids."""
        return self._ended + sum(stream.sequence for stream in list(self.streams.values()))

    @property
    def full(self) -> bool:
        """Whether a new topic needs a new publisher id first (see :meth:`renew`)."""
        return len(self.streams) >= PUBLISHER_TOPICS

    def open(self, topic: object, now_ns: int) -> Stream:
        """The stream of a topic used for the first time; raises :class:`TopicError`."""
        name = check_topic(topic)
        space = namespace(name)
        channel = self._channels.get(space)
        if channel is None or channel.full:
            channel = self._channels[space] = Channel(space, self.publisher, self.source)
        stream = self.streams[name] = Stream(name, self.publisher, now_ns, channel)
        return stream

    def renew(self, publisher: bytes) -> Beacon:
        """Go on under a new id with no topics; returns the last beacon of the old one."""
        last = self.beacon(everything=True, closing=True)
        self._ended = self.published
        for stream in self.streams.values():
            stream.retired = True
        self.publisher = publisher
        self.streams = {}
        self._channels = {}
        return last

    def beacon(self, *, everything: bool = False, closing: bool = False) -> Beacon:
        """The beacon to send now: topics with news since the last one, or all of them."""
        topics = {}
        for stream in list(self.streams.values()):
            if stream.sequence and (everything or stream.sequence != stream.told):
                stream.told = stream.sequence
                topics[stream.topic] = (stream.first_time, stream.told)
        return Beacon(self.publisher, self.source, closing, topics)

    def due(self, now: float) -> Beacon | None:
        """The beacon that is due at ``now``, or None.

        Every second while there is news; everything again at doubling pauses up to 64 s when
        there is none, because the last one may itself have been lost.
        """
        if now < self._due:
            return None
        beacon = self.beacon()
        if beacon.topics:
            self._pause = BEACON_SECONDS
        else:
            beacon = self.beacon(everything=True)
            self._pause = min(self._pause * 2, BEACON_IDLE_SECONDS)
        self._due = now + self._pause
        return beacon if beacon.topics else None

    def pause(self, now: float) -> float:
        """Seconds until the next beacon is due."""
        return max(0.0, self._due - now)

    def retell(self, beacon: Beacon) -> None:
        """``beacon`` could not be sent: its topics count as news again."""
        for topic in beacon.topics:
            if topic in self.streams:
                self.streams[topic].told = 0

    def soon(self, now: float) -> None:
        """There is news: the pause of silence ends and a beacon is due within a second."""
        self._pause = BEACON_SECONDS
        self._due = min(self._due, now + BEACON_SECONDS)
