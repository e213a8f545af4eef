"""What a publisher gathers into one frame, and what it sends by itself.

The rule is the pace of publishing. An event that comes after a pause goes alone, at once; so do the
first few of a burst, which may be all there is of it. Then events of one channel and depth are gathered
until their frame is full or a millisecond old, and somebody else sends what is left when the burst ends.
A burst that has filled frames is not over with the first pause: its publisher may have had to wait.
Large events go alone, after what was gathered before them, so order is kept.

Decides that, and what the frame holds. Knows no socket, no thread and no clock: each event brings its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...protocol.batches import pack_rows
from ...protocol.envelope import Names

if TYPE_CHECKING:
    from .channel import Channel
    from .numbering import Stream

PAUSE_NS: Final = 40_000
"""A pause, between the end of one publish and the next one."""

ALONE_EVENTS: Final = 8
"""First events of a burst that are not gathered: two or three in a row must not wait for anybody."""

GATHERING: Final = ALONE_EVENTS + 4
"""How far into a burst one is with the first gathered event: each pause leads one step out of it, so that an
interrupt does not end it.
"""

DEEP: Final = GATHERING + 1
"""How far into a burst one is when a frame of as many events as go alone at first has left."""

INTERRUPT_NS: Final = 5_000_000
"""Such a burst goes on after a pause of at most that."""

STALL_NS: Final = 100_000_000
"""It may go on after a pause of at most that: one event goes alone, and the next ones are gathered again."""

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

LEAST_BYTES: Final = GATHERED_BYTES // GATHERED_EVENTS - 1
"""What an event takes of a frame at least, so that a frame without bytes left has no more than its events."""

LARGE_BYTES: Final = 8 * 1024
"""A payload of this size gains nothing in company."""

GATHERED: Final = 0
FIRST: Final = 1
ALONE: Final = 2
TURN: Final = 3
"""Answers of :meth:`Gathering.offer`: taken; taken as the first of its batch; send it alone; send what is
gathered, and :meth:`Gathering.begin` another batch for it.
"""


Row = tuple[int, int, int, str | None, str | None, bytes]


class Batch:
    """One frame of events in the making: those of ``channel`` at ``depth``, begun at ``begun_ns``.

    ``left`` is how many bytes there is room for. After ``until_ns`` it is too old for an event of a burst;
    until ``open_until_ns`` such an event joins it without being offered.
    """

    __slots__ = ("begun_ns", "channel", "depth", "left", "open_until_ns", "rows", "until_ns")

    def __init__(self, channel: Channel, depth: int, now_ns: int) -> None:
        self.channel = channel
        self.depth = depth
        self.begun_ns = now_ns
        self.until_ns = now_ns + AGE_NS
        self.open_until_ns = 0
        self.left = GATHERED_BYTES - len(channel.opening(depth))
        self.rows: list[Row] = []

    def frame(self) -> bytes:
        """The frame, of at least one event."""
        return self.channel.opening(self.depth) + pack_rows(self.rows)


class Gathering:
    """The events that one publisher has gathered and not sent yet: those of ``batch``, if there is one.

    ``allowed`` says whether events may be gathered at all: only while every subscriber reads batches.
    ``last_ns`` is when the last event was dealt with. Times are ns since the epoch.

    A signal handler may publish, or raise, at the end of any call that this code makes. What it does stays
    whole because a batch is taken before it is packed, and is taken or joined without a call in between.
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
        batch = self.batch
        if pause > PAUSE_NS and (batch is None or len(batch.rows) < ALONE_EVENTS):
            if self._run == DEEP and pause <= STALL_NS:
                self._run = ALONE_EVENTS if pause <= INTERRUPT_NS else ALONE_EVENTS - 1
            else:
                self._run = max(0, self._run - pause // PAUSE_NS)
        if self._run < ALONE_EVENTS:
            self._run += 1
            return ALONE
        if size >= LARGE_BYTES or not self.allowed:
            return ALONE
        if batch is None:
            return TURN
        if stream.channel is not batch.channel or depth != batch.depth:
            if len(batch.rows) < 2:  # they take turns: there is nothing to gather
                self._run = 0
                return ALONE
            return TURN
        if not batch.begun_ns - AGE_NS <= now_ns <= batch.until_ns:
            return TURN
        if self._run < GATHERING:
            self._run = GATHERING
        return self._enter(batch, stream, names, body, size, now_ns)

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
            or not -AGE_NS <= now_ns - batch.begun_ns <= COPY_AGE_NS
        ):
            return TURN
        self.last_ns = now_ns
        return self._enter(batch, stream, names, body, size, now_ns)

    def _enter(self, batch: Batch, stream: Stream, names: Names, body: bytes, size: int, now_ns: int) -> int:
        """Enter an event into ``batch``, if that has room and has not left meanwhile, numbering it."""
        cost = max(LEAST_BYTES, size + names.cost)
        left = batch.left - cost
        if left < 0 or self.batch is not batch:
            return TURN
        verdict = GATHERED if batch.rows else FIRST
        batch.left = left
        stream.sequence = sequence = stream.sequence + 1
        if sequence == 1:
            stream.first_time = now_ns
        batch.rows.append((stream.index, sequence, now_ns, names.session_id, names.cause, body))
        if len(batch.rows) == ALONE_EVENTS:  # from now on a pause says nothing
            batch.open_until_ns = batch.until_ns
        return verdict

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
            batch.until_ns = batch.open_until_ns = 0

    def take(self) -> Batch | None:
        """What is gathered, which is no longer: to be sent; None when there is nothing."""
        deep = self.batch is not None and len(self.batch.rows) >= ALONE_EVENTS
        batch, self.batch = self.batch, None
        if batch is None or not batch.rows:
            return None
        if deep:
            self._run = DEEP
        return batch

    def spent(self, now_ns: int) -> None:
        """What we did until now for an event has taken time; that is not a pause of the caller's."""
        self.last_ns = now_ns

    def over(self, now_ns: int) -> bool:
        """Whether something is gathered and the burst has ended (or the clock was set back)."""
        batch = self.batch
        if batch is None or not batch.rows:
            return False
        return now_ns < batch.begun_ns - AGE_NS or not 0 <= now_ns - self.last_ns <= QUIET_NS
