"""A batch: many events of one publisher, one depth and one namespace in one frame.

    key  = depth byte | '~' | namespace | 0x00
    body = [version, publisher id, source, [topic, ...], [event, ...]]
    event = [topic index, sequence, time, session id, cause, payload]

An event that arrives so is the same event in every respect as one that came alone.

This module decides what a batch may hold; it knows nothing of when one is worth sending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from .envelope import VERSION, batch_opening, split_key, unpack
from .errors import DecodeError, VersionMismatch, shown
from .events import Event, event_of
from .limits import BATCH_EVENTS
from .topics import BATCH_MARK, is_topic, namespace

_encode: Final = msgspec.msgpack.Encoder().encode


def pack_rows(rows: Sequence[Sequence[object]]) -> bytes:
    """The events of a batch, each ``(topic index, sequence, time, session id, cause, payload)``."""
    return _encode(rows)


def encode_batch(events: Sequence[Event]) -> bytes:
    """One frame of ``events``, which share publisher, source, depth and namespace (taken as checked)."""
    first = events[0]
    topics = list(dict.fromkeys(event.topic for event in events))
    index = {topic: position for position, topic in enumerate(topics)}
    rows = []
    for event in events:
        content = event.payload_bytes if event.claim is None else event.claim.fields()
        rows.append(
            [index[event.topic], event.sequence, event.time_ns, event.session_id, event.caused_by, content]
        )
    channel = namespace(first.topic)
    return batch_opening(first.depth, channel, first.publisher_id, first.source, topics) + pack_rows(rows)


def decode_batch(frame: bytes) -> list[Event]:
    """The events of a batch in order; raises :class:`DecodeError` and then delivers none of them."""
    key, start = split_key(frame)
    if not key.name.startswith(BATCH_MARK):
        raise DecodeError("key", f"{key.name[:300]!r} is not a batch channel")
    channel = key.name[1:].decode("ascii", "replace")
    publisher, source, topics, rows = _check_body(unpack(frame[start:]))
    for topic in topics:
        if type(topic) is not str or not is_topic(topic) or namespace(topic) != channel:
            raise DecodeError("batch", f"{shown(topic, 300)} is not a topic of channel {shown(channel)}")
    events = []
    for row in rows:
        if type(row) is not list or len(row) != 6:
            raise DecodeError("batch", "an event of a batch is an array of 6")
        index, sequence, time_ns, session_id, cause, payload = row
        if type(index) is not int or not 0 <= index < len(topics):
            raise DecodeError("batch", f"topic index {shown(index)} is not in the table of {len(topics)}")
        fields = [VERSION, publisher, sequence, time_ns, session_id, source, cause, payload]
        events.append(event_of(topics[index], key.depth, fields))
    return events


def batch_topics(frame: bytes) -> tuple[str, ...]:
    """The topic table of a batch that :func:`decode_batch` accepts."""
    return tuple(unpack(frame[frame.find(b"\0") + 1 :])[3])


def _check_body(body: Any) -> tuple[Any, Any, list[Any], list[Any]]:
    if type(body) is not list or not body:
        raise DecodeError("batch", "the body of a batch is not a msgpack array")
    if type(body[0]) is not int or body[0] != VERSION:
        raise VersionMismatch(body[0], VERSION)
    if len(body) != 5 or type(body[3]) is not list or type(body[4]) is not list:
        raise DecodeError("batch", "a batch is [version, publisher, source, topics, events]")
    if len(body[4]) > BATCH_EVENTS or len(body[3]) > BATCH_EVENTS:
        raise DecodeError("batch", f"more than {BATCH_EVENTS:,} topics or events in one batch")
    return body[1], body[2], body[3], body[4]
