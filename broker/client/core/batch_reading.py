"""Batches, many events at a time: the quick way of a subscriber through a frame like an earlier one.

A batch that opens like one before it (channel, publisher, source and topics) is unpacked in one call, and
what its events must be is asked of whole columns, not of each. Whatever is out of the ordinary — a gap, a
value of another type, a name not seen before — is for the careful way,
:func:`broker.protocol.batches.decode_batch`. Of a frame that holds nothing wanted no event is decoded.
Decides only whether the quick way may be taken. Knows no socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, repeat
from typing import Any, Final, NamedTuple

import msgpack

from ...protocol.batches import batch_opening
from ...protocol.events import MAX_SEQUENCE, MAX_TIME, Event
from ...protocol.limits import BATCH_EVENTS, FRAME_BYTES, PAYLOAD_BYTES
from ...protocol.topics import namespace
from .accounting import Stream

NAMES: Final = 4_096
"""Session ids and causes that are remembered as proper; beyond that a reader starts again."""

_MAKE: Final = tuple.__new__


class BatchLane(NamedTuple):
    """What batches that open alike have in common.

    ``wanted`` says of each topic whether a pattern asks for it; ``streams`` has the account of each
    that is wanted.
    """

    opening: bytes
    topics: tuple[str, ...]
    depth: int
    publisher_id: bytes
    source: str
    wanted: tuple[bool, ...]
    streams: tuple[Stream | None, ...]


def lane_opening(event: Event, topics: Sequence[str]) -> bytes:
    """How a batch with this event and table opens, in the layout that our own publishers write."""
    return batch_opening(event.depth, namespace(event.topic), event.publisher_id, event.source, topics)


def rows_in(frame: bytes, start: int) -> int:
    """How many events a batch says that it holds; they begin at ``start``. IndexError if it ends before."""
    tag = frame[start]
    if tag & 0xF0 == 0x90:
        return tag & 0x0F
    return int.from_bytes(frame[start + 1 : start + 3]) if tag == 0xDC else 0


class BatchReader:
    """Takes the quick way where it may; ``overdelivered`` counts events that no pattern asks for."""

    def __init__(self) -> None:
        self.overdelivered = 0
        self._sessions: set[str | None] = {None}
        self._causes: set[str | None] = {None}

    def learn(self, events: Iterable[Event]) -> None:
        """Names that the careful way has found proper need not be looked at again."""
        for event in events:
            if len(self._sessions) + len(self._causes) >= NAMES:
                self._sessions, self._causes = {None}, {None}
            self._sessions.add(event.session_id)
            self._causes.add(event.caused_by)

    def read(self, lane: BatchLane, frame: bytes) -> list[Event] | None:
        """The wanted events of a frame that opens as ``lane`` does; None when it needs care.

        What it returns is accounted for in the lane's streams; what it does not was not touched.
        """
        try:
            if not any(lane.wanted):
                self.overdelivered += rows_in(frame, len(lane.opening))
                return []
            rows = msgpack.unpackb(memoryview(frame)[len(lane.opening) :], use_list=False)
            columns = tuple(zip(*rows, strict=True))
            if len(columns) != 6 or len(rows) > BATCH_EVENTS or len(frame) > FRAME_BYTES:
                return None
            if len(frame) > PAYLOAD_BYTES and max(map(len, columns[5])) > PAYLOAD_BYTES:
                return None
            return self._events(lane, columns)
        except Exception:  # of many kinds, for malformed bytes and for values that are no names or numbers
            return None

    def _events(self, lane: BatchLane, columns: tuple[tuple[Any, ...], ...]) -> list[Event] | None:
        indices, sequences, times, sessions, causes, contents = columns
        if (
            {*map(type, indices), *map(type, sequences), *map(type, times)} != {int}
            or {*map(type, contents)} != {bytes}
            or not self._sessions.issuperset({*sessions})
            or not self._causes.issuperset({*causes})
            or min(times) < 0
            or max(times) > MAX_TIME
        ):
            return None
        topics: Iterable[str] = repeat(lane.topics[0])
        unwanted = 0
        if len(lane.topics) == 1:
            if any(indices):
                return None
        else:
            if min(indices) < 0 or min(sequences) < 1 or max(sequences) > MAX_SEQUENCE:
                return None
            if not all(lane.wanted):
                mask = [*map(lane.wanted.__getitem__, indices)]
                columns = tuple(tuple(compress(column, mask)) for column in columns)
                indices, sequences, times, sessions, causes, contents = columns
                unwanted = len(mask) - len(indices)
            topics = map(lane.topics.__getitem__, indices)
        if not self._in_order(lane, indices, sequences):
            return None
        self.overdelivered += unwanted
        fields = zip(
            topics,
            repeat(lane.depth),
            repeat(lane.publisher_id),
            sequences,
            times,
            sessions,
            repeat(lane.source),
            causes,
            contents,
            strict=False,  # some of them have no end
        )
        return [*map(_MAKE, repeat(Event), fields)]

    def _in_order(self, lane: BatchLane, indices: Sequence[int], sequences: Sequence[int]) -> bool:
        """Whether each number follows the one before it of its topic; if so they are taken as received."""
        last: dict[int, int] = {}
        streams = lane.streams
        for index in {*indices}:
            stream = streams[index]
            if stream is None or stream.last < 0:  # not met yet, or no longer kept
                return False
            last[index] = stream.last
        if len(last) == 1:
            (index,) = last
            first = last[index] + 1
            if sequences != tuple(range(first, first + len(sequences))) or sequences[-1] > MAX_SEQUENCE:
                return False
            last[index] = sequences[-1]
        else:
            for index, sequence in zip(indices, sequences, strict=True):
                if sequence != last[index] + 1:
                    return False
                last[index] = sequence
        for index, number in last.items():
            stream = streams[index]
            assert stream is not None
            stream.last = number
        return True
