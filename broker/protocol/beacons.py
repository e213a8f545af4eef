"""A beacon: what a publisher says about its own numbers, so that loss can be counted at the ends.

    key  = '0' | '$beacon.' | namespace | 0x00
    body = [version, publisher id, source, closing, {topic: [first time, last sequence]}]

Between two received events a gap shows by itself. A beacon closes the tail (the last number) and
the head (a topic first used after the subscriber was ready begins at 1, seen or not).
``closing`` is true on the last beacon of a publisher that ends in order.

This module decides how a beacon is written; when one is sent and what it means for a
subscriber's counts is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import msgpack

from .envelope import MAX_SEQUENCE, MAX_TIME, PUBLISHER_BYTES, VERSION, is_text, split_key, unpack
from .errors import DecodeError, VersionMismatch, shown
from .limits import BEACON_TOPICS, SOURCE_BYTES
from .topics import BEACON_PREFIX, is_topic, namespace


class Beacon(NamedTuple):
    """``topics`` maps a topic to when it was first used (ns since the epoch) and its last number."""

    publisher: bytes
    source: str
    closing: bool
    topics: Mapping[str, tuple[int, int]]


def encode_beacons(beacon: Beacon) -> Iterator[bytes]:
    """The frames that carry ``beacon``: one or more for each namespace, none when it has no topic."""
    spaces: dict[str, dict[str, tuple[int, int]]] = {}
    for topic, numbers in beacon.topics.items():
        spaces.setdefault(namespace(topic), {})[topic] = numbers
    for space, topics in spaces.items():
        rows = iter(topics.items())
        while part := dict(islice(rows, BEACON_TOPICS)):
            body = [VERSION, beacon.publisher, beacon.source, beacon.closing, part]
            yield (
                b"0" + BEACON_PREFIX + space.encode() + b"\0" + bytes(msgpack.packb(body, use_bin_type=True))
            )


def decode_beacon(frame: bytes) -> Beacon:
    """The beacon in ``frame``; raises :class:`DecodeError` (or :class:`VersionMismatch`) only."""
    key, start = split_key(frame)
    if not key.name.startswith(BEACON_PREFIX):
        raise DecodeError("key", f"{key.name[:300]!r} is not a beacon channel")
    channel = key.name.removeprefix(BEACON_PREFIX).decode("ascii", "replace")
    body = unpack(frame[start:])
    if type(body) is not list or not body:
        raise DecodeError("beacon", "the body of a beacon is not a msgpack array")
    if type(body[0]) is not int or body[0] != VERSION:
        raise VersionMismatch(body[0], VERSION)
    if len(body) != 5:
        raise DecodeError("beacon", "a beacon is [version, publisher, source, closing, topics]")
    _, publisher, source, closing, topics = body
    if type(publisher) is not bytes or len(publisher) != PUBLISHER_BYTES or not is_text(source, SOURCE_BYTES):
        raise DecodeError("beacon", "publisher id or source of a beacon is malformed")
    if type(closing) is not bool or type(topics) is not dict or len(topics) > BEACON_TOPICS:
        raise DecodeError(
            "beacon", f"a beacon names at most {BEACON_TOPICS} topics and says whether it closes"
        )
    return Beacon(publisher, source, closing, {t: _numbers(t, n, channel) for t, n in topics.items()})


def _numbers(topic: object, numbers: object, channel: str) -> tuple[int, int]:
    if type(topic) is not str or not is_topic(topic) or namespace(topic) != channel:
        raise DecodeError("beacon", f"{shown(topic, 300)} is not a topic of channel {shown(channel)}")
    if type(numbers) is list and len(numbers) == 2:
        first, last = numbers
        if type(first) is int and type(last) is int and 0 <= first <= MAX_TIME and 1 <= last <= MAX_SEQUENCE:
            return first, last
    raise DecodeError("beacon", f"numbers of {topic!r} are {shown(numbers)}")
