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
"""Answers of :meth:`Gathering.offer`: taken; taken as the first of its frame; send it alone; send what is
gathered, and :meth:`Gathering.begin` another frame for it.
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


class Gathering:
    """The events that one publisher has gathered and not sent yet.

    ``allowed`` says whether events may be gathered at all: only while every subscriber reads batches.
    ``rows`` are the events of the open frame. Times are ns since the epoch.
    """

    __slots__ = ("_begun_ns", "_channel", "_depth", "_last_ns", "_run", "_used", "allowed", "rows")

    def __init__(self) -> None:
        self.allowed = False
        self.rows: list[tuple[int, int, int, str | None, str | None, bytes]] = []
        self._channel: Channel | None = None
        self._depth = 0
        self._used = 0
        self._begun_ns = 0
        self._last_ns = 0
        self._run = 0

    def offer(self, stream: Stream, depth: int, names: Names, body: bytes, size: int, now_ns: int) -> int:
        """Take the next event of ``stream``, numbering it, or say what is to be done first.

        ``body`` are the ``size`` bytes of its payload.
        """
        pause = now_ns - self._last_ns
        self._last_ns = now_ns
        if pause > PAUSE_NS:
            self._run = max(0, self._run - pause // PAUSE_NS)
        if self._run < ALONE_EVENTS:
            self._run += 1
            return ALONE
        if size >= LARGE_BYTES or not self.allowed:
            return ALONE
        rows, used = self.rows, self._used + size + names.cost
        number = len(rows)
        if (
            used > GATHERED_BYTES
            or number >= GATHERED_EVENTS
            or stream.channel is not self._channel
            or depth != self._depth
            or now_ns - self._begun_ns > AGE_NS
        ):
            return TURN
        self._used = used
        self._run = DEEP
        stream.sequence = sequence = stream.sequence + 1
        if sequence == 1:
            stream.first_time = now_ns
        rows.append((stream.index, sequence, now_ns, names.session_id, names.cause, body))
        return GATHERED if number else FIRST

    def begin(self, stream: Stream, depth: int, now_ns: int) -> None:
        """Open another frame, for events of the channel of ``stream`` at ``depth``; nothing is gathered."""
        self.rows = []
        self._channel = stream.channel
        self._depth = depth
        self._used = len(stream.channel.opening(depth))
        self._begun_ns = self._last_ns = now_ns

    def alone(self, now_ns: int) -> None:
        """An event has been sent by itself; the time that took is not a pause of the caller's."""
        self._last_ns = now_ns

    def over(self, now_ns: int) -> bool:
        """Whether something is gathered and the burst has ended."""
        return bool(self.rows) and now_ns - self._last_ns > QUIET_NS

    def frame(self) -> bytes:
        """The frame of what is gathered (there is something)."""
        assert self._channel is not None
        return self._channel.opening(self._depth) + pack_rows(self.rows)

    def sent(self) -> None:
        """What was gathered has been sent, or is given up; the next event begins another frame."""
        self.rows = []
        self._channel = None
