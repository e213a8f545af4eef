"""What a publisher gathers into one frame, and what it sends by itself.

The rule is the pace of publishing. An event that comes after a pause goes alone, at once; so do the
first few of a burst, which may be all there is of it. Then events of one channel and depth are gathered
until their frame is full or a millisecond old, and somebody else sends what is left when the burst ends.
Large events go alone, after what was gathered before them, so order is kept.

Decides that, and what the frame holds. Knows no socket, no thread and no clock: each event brings its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...protocol.batches import batch_opening, pack_rows
from ...protocol.events import Names
from ...protocol.limits import BATCH_TOPICS

if TYPE_CHECKING:
    from .numbering import Stream

PAUSE_NS: Final = 40_000
"""A pause, between the end of one publish and the next one."""

ALONE_EVENTS: Final = 8
"""First events of a burst that are not gathered: two or three in a row must not wait for anybody."""

DEEP: Final = ALONE_EVENTS + 4
"""How far into a burst one can be: each pause leads one step out of it, so an interrupt does not end it."""

AGE_NS: Final = 1_000_000
"""A frame that old is sent with the next event, full or not."""

COPY_AGE_NS: Final = 5_000_000
"""A frame that old takes no further copy of an ask. Nobody waits for a copy: longer than for other events."""

QUIET_NS: Final = 300_000
"""After so long without an event the burst is over, and what is gathered is to be sent."""

GATHERED_EVENTS: Final = 256
"""Events of a full frame: beyond it the cost of the frame itself is nothing any more."""

GATHERED_BYTES: Final = 57 * 1024
"""Bytes of a full frame; below the limit of frames by more than any estimate of a row is wrong."""

LARGE_BYTES: Final = 8 * 1024
"""A payload of this size gains nothing in company."""

GATHERED: Final = 0
FIRST: Final = 1
ALONE: Final = 2
TURN: Final = 3
"""Answers of :meth:`Gathering.offer`: taken; taken as the first of its batch; send it alone; send what is
gathered, and :meth:`Gathering.begin` another batch for it.
"""


class Channel:
    """Topics of one namespace under one publisher id: what the events of a batch refer to.

    The table only grows, so that frames of one channel begin alike and a reader knows them again.
    """

    __slots__ = ("_namespace", "_openings", "_publisher", "_source", "topics")

    def __init__(self, namespace: str, publisher: bytes, source: str) -> None:
        self._namespace = namespace
        self._publisher = publisher
        self._source = source
        self._openings: dict[int, bytes] = {}
        self.topics: list[str] = []

    @property
    def full(self) -> bool:
        """Whether another topic needs another channel."""
        return len(self.topics) >= BATCH_TOPICS

    def add(self, topic: str) -> int:
        """Enter ``topic``, which is not there yet; its index."""
        self.topics.append(topic)
        self._openings.clear()
        return len(self.topics) - 1

    def opening(self, depth: int) -> bytes:
        """A batch of this channel up to its events."""
        known = self._openings.get(depth)
        if known is None:
            known = batch_opening(depth, self._namespace, self._publisher, self._source, self.topics)
            self._openings[depth] = known
        return known


Row = tuple[int, int, int, str | None, str | None, bytes]


class Batch:
    """One frame of events in the making: those of ``channel`` at ``depth``, begun at ``begun_ns``.

    ``count`` is how many there are, ``used`` how many bytes they take at most. From ``until_ns`` on it is
    too old for an event of a burst.
    """

    __slots__ = ("begun_ns", "channel", "count", "depth", "rows", "until_ns", "used")

    def __init__(self, channel: Channel, depth: int, now_ns: int) -> None:
        self.channel = channel
        self.depth = depth
        self.begun_ns = now_ns
        self.until_ns = now_ns + AGE_NS
        self.used = len(channel.opening(depth))
        self.count = 0
        self.rows: list[Row] = []

    def frame(self) -> bytes:
        """The frame, of at least one event."""
        return self.channel.opening(self.depth) + pack_rows(self.rows)


class Gathering:
    """The events that one publisher has gathered and not sent yet: those of ``batch``, if there is one.

    ``allowed`` says whether events may be gathered at all: only while every subscriber reads batches.
    ``last_ns`` is when the last event was dealt with. Times are ns since the epoch.

    A signal handler may publish between any two calls that this code makes. What it does stays whole
    because a batch is taken before it is packed, and an event joins it without a call in between.
    """

    __slots__ = ("_run", "allowed", "batch", "last_ns")

    def __init__(self) -> None:
        self.allowed = False
        self.batch: Batch | None = None
        self.last_ns = 0
        self._run = 0

    def offer(self, stream: Stream, depth: int, names: Names, body: bytes, size: int, now_ns: int) -> int:
        """Take the next event of ``stream``, numbering it, or say what is to be done first.

        ``body`` are the ``size`` bytes of its payload.
        """
        pause = now_ns - self.last_ns
        self.last_ns = now_ns
        if pause > PAUSE_NS:
            self._run = max(0, self._run - pause // PAUSE_NS)
        if self._run < ALONE_EVENTS:
            self._run += 1
            return ALONE
        if size >= LARGE_BYTES or not self.allowed:
            return ALONE
        batch = self.batch
        if batch is None:
            return TURN
        used = batch.used + size + names.cost
        if stream.channel is not batch.channel or depth != batch.depth:
            if batch.count < 2:  # they take turns: there is nothing to gather
                self._run = 0
                return ALONE
            return TURN
        if (
            used > GATHERED_BYTES
            or batch.count >= GATHERED_EVENTS
            or not batch.begun_ns - AGE_NS <= now_ns <= batch.until_ns
        ):
            return TURN
        self._run = DEEP
        batch.used = used
        batch.count = count = batch.count + 1
        stream.sequence = sequence = stream.sequence + 1
        if sequence == 1:
            stream.first_time = now_ns
        batch.rows.append((stream.index, sequence, now_ns, names.session_id, names.cause, body))
        return FIRST if count == 1 else GATHERED

    def join(self, stream: Stream, depth: int, names: Names, body: bytes, size: int, now_ns: int) -> int:
        """Take an event that may wait for the end of a burst even if it is none, numbering it.

        Answers as :meth:`offer`; ``ALONE``: it cannot be gathered.
        """
        batch = self.batch
        if size >= LARGE_BYTES or not self.allowed:
            return ALONE
        if (
            batch is None
            or stream.channel is not batch.channel
            or depth != batch.depth
            or batch.used + size + names.cost > GATHERED_BYTES
            or batch.count >= GATHERED_EVENTS
            or not -AGE_NS <= now_ns - batch.begun_ns <= COPY_AGE_NS
        ):
            return TURN
        self.last_ns = now_ns
        batch.used += size + names.cost
        batch.count = count = batch.count + 1
        stream.sequence = sequence = stream.sequence + 1
        if sequence == 1:
            stream.first_time = now_ns
        batch.rows.append((stream.index, sequence, now_ns, names.session_id, names.cause, body))
        return FIRST if count == 1 else GATHERED

    def begin(self, stream: Stream, depth: int, now_ns: int) -> None:
        """Open a batch for events of the channel of ``stream`` at ``depth``, unless there is one by now."""
        batch = Batch(stream.channel, depth, now_ns)
        if self.batch is None:
            self.batch = batch
        self.last_ns = now_ns

    def seal(self) -> None:
        """Nothing joins what is gathered now; it leaves as it is."""
        batch = self.batch
        if batch is not None:
            batch.until_ns = 0

    def take(self) -> Batch | None:
        """What is gathered, which is no longer: to be sent; None when there is nothing."""
        batch = self.batch
        self.batch = None
        return batch if batch is not None and batch.rows else None

    def alone(self, now_ns: int) -> None:
        """An event has been sent by itself; the time that took is not a pause of the caller's."""
        self.last_ns = now_ns

    def over(self, now_ns: int) -> bool:
        """Whether something is gathered and the burst has ended (or the clock was set back)."""
        batch = self.batch
        return batch is not None and batch.count > 0 and not 0 <= now_ns - self.last_ns <= QUIET_NS
