"""Batches, many events at a time: the quick way of a subscriber through a frame like an earlier one.

A batch that opens like one before it (channel, publisher, source and topics) becomes events in one call,
which checks types and ranges. Whatever is out of the ordinary (a gap, a value of another type, a name not
seen before) is for the careful way, :func:`broker.protocol.batches.decode_batch`. Of a frame that holds
nothing wanted no event is decoded.
Decides only whether the quick way may be taken. Knows no socket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import force_setattr

from ...protocol.envelope import batch_opening
from ...protocol.events import Event, Origin, read_rows
from ...protocol.limits import BATCH_EVENTS, FRAME_BYTES, PAYLOAD_BYTES
from ...protocol.topics import namespace
from .accounting import NEVER, Stream

NAMES: Final = 4_096
"""Session ids and causes that are remembered as proper; beyond that a reader starts again."""


class BatchLane(NamedTuple):
    """What batches that open alike have in common.

    ``wanted`` says of each topic whether a pattern asks for it; ``streams`` has the account of each
    that is wanted.
    """

    opening: bytes
    topics: tuple[str, ...]
    origin: Origin
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
        self._sessions: set[str] = set()
        self._causes: set[str] = set()

    def learn(self, events: Iterable[Event]) -> None:
        """Names that the careful way has found proper need not be looked at again."""
        for event in events:
            if len(self._sessions) + len(self._causes) >= NAMES:
                self._sessions, self._causes = set(), set()
            if event.session_id is not None:
                self._sessions.add(event.session_id)
            if event.caused_by is not None:
                self._causes.add(event.caused_by)

    def read(self, lane: BatchLane, frame: bytes) -> list[Event] | None:
        """The wanted events of a frame that opens as ``lane`` does; None when it needs care.

        What it returns is accounted for in the lane's streams; what it does not was not touched.
        """
        try:
            if not any(lane.wanted):
                self.overdelivered += rows_in(frame, len(lane.opening))
                return []
            events = read_rows(memoryview(frame)[len(lane.opening) :])
        except Exception:  # of several kinds, for malformed bytes and for values that are no names or numbers
            return None
        if not 0 < len(events) <= BATCH_EVENTS or len(frame) > FRAME_BYTES:
            return None
        if len(frame) > PAYLOAD_BYTES and max(event.size for event in events) > PAYLOAD_BYTES:
            return None
        return self._of_one(lane, events) if len(lane.topics) == 1 else self._of_several(lane, events)

    # Both fill in events that nobody has seen yet, and that nobody will see if the answer is None. What is
    # asked of each stands in one loop: a comprehension for each question takes half as much time again.

    def _of_one(self, lane: BatchLane, events: list[Event]) -> list[Event] | None:
        """The events of a batch whose table has one topic, which is wanted."""
        (topic,), (stream,), origin = lane.topics, lane.streams, lane.origin
        if stream is None or stream.last < 0:  # not met yet, or no longer kept
            return None
        sessions, causes, last = self._sessions, self._causes, stream.last
        for event in events:
            last += 1
            if (
                event.sequence != last
                or event.topic  # as yet the topic's index
                or (event.session_id is not None and event.session_id not in sessions)
                or (event.caused_by is not None and event.caused_by not in causes)
            ):
                return None
            force_setattr(event, "topic", topic)
            force_setattr(event, "origin", origin)
        stream.last = last
        return events

    def _of_several(self, lane: BatchLane, events: list[Event]) -> list[Event] | None:
        """The same of a table with several topics: those events of it that are wanted."""
        topics, wanted, origin, sessions, causes = (
            lane.topics, lane.wanted, lane.origin, self._sessions, self._causes
        )  # fmt: skip
        last = [NEVER if stream is None else stream.last for stream in lane.streams]
        kept = []
        for event in events:
            index: int = event.topic  # type: ignore[assignment]  # as yet
            if (
                index >= len(topics)
                or (event.session_id is not None and event.session_id not in sessions)
                or (event.caused_by is not None and event.caused_by not in causes)
            ):
                return None
            if wanted[index]:
                last[index] = number = last[index] + 1
                if event.sequence != number:
                    return None
                force_setattr(event, "topic", topics[index])
                force_setattr(event, "origin", origin)
                kept.append(event)
        for stream, number in zip(lane.streams, last, strict=True):
            if stream is not None and number > stream.last:
                stream.last = number
        self.overdelivered += len(events) - len(kept)
        return kept
