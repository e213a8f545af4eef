"""Beacons: split over frames, rejoined, and refused when they are anything else."""

import re

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.beacons import Beacon, decode_beacon, encode_beacons
from broker.protocol.envelope import MAX_SEQUENCE, MAX_TIME, VERSION
from broker.protocol.errors import DecodeError, VersionMismatch
from broker.protocol.limits import BEACON_TOPICS
from broker.protocol.topics import namespace

PUBLISHER = bytes(range(16))

topics = st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=4).map(".".join)
numbers = st.tuples(st.integers(0, MAX_TIME), st.integers(1, MAX_SEQUENCE))


@given(
    st.binary(min_size=16, max_size=16), st.text(max_size=9), st.booleans(), st.dictionaries(topics, numbers)
)
def test_a_beacon_is_split_and_rejoined(
    publisher: bytes, source: str, closing: bool, rows: dict[str, tuple[int, int]]
) -> None:
    """Its frames together say what it said, each topic in the channel of its namespace."""
    frames = list(encode_beacons(Beacon(publisher, source, closing, rows)))
    assert len(frames) == len({namespace(topic) for topic in rows})
    rejoined: dict[str, tuple[int, int]] = {}
    for frame in frames:
        part = decode_beacon(frame)
        assert (part.publisher, part.source, part.closing) == (publisher, source, closing)
        (space,) = {namespace(topic) for topic in part.topics}
        assert frame.startswith(b"0$beacon." + space.encode() + b"\0")
        assert not rejoined.keys() & part.topics.keys()
        rejoined |= part.topics
    assert rejoined == rows


def test_a_large_beacon_takes_several_frames() -> None:
    """No frame names more topics than the limit, and none is lost between them."""
    rows = {f"prx.a.t{number}": (number, number + 1) for number in range(2 * BEACON_TOPICS + 1)}
    parts = [decode_beacon(frame) for frame in encode_beacons(Beacon(PUBLISHER, "", False, rows))]
    assert [len(part.topics) for part in parts] == [BEACON_TOPICS, BEACON_TOPICS, 1]
    assert {topic: pair for part in parts for topic, pair in part.topics.items()} == rows


def beacon(
    key: bytes = b"0$beacon.prx.a\0",
    *,
    version: object = VERSION,
    publisher: object = PUBLISHER,
    source: object = "s",
    closing: object = False,
    topics: object = None,
) -> bytes:
    """A beacon frame written by hand, with some of its parts replaced by others."""
    return key + bytes(msgpack.packb([version, publisher, source, closing, {} if topics is None else topics]))


def test_a_beacon_written_by_hand_is_read() -> None:
    """The body is [version, publisher, source, closing, {topic: [first time, last number]}]."""
    assert decode_beacon(beacon(closing=True, topics={"prx.a.x": [5, 9]})) == Beacon(
        PUBLISHER, "s", True, {"prx.a.x": (5, 9)}
    )


NO_NUMBERS: list[object] = [
    *(None, 1, {}, [], [0], [0, 1, 2]),
    *([0, 0], [-1, 1], [0, 2**63], [2**63, 1], [0, True], [0.0, 1]),
]
"""What is not a first time and a last number."""


@pytest.mark.parametrize(
    "frame, reason, message",
    [
        (b"0prx.a\0\x90", "key", "is not a beacon channel"),
        (b"9$beacon.prx.a\0\x90", "depth", "is not a depth"),
        (b"0$beacon.prx.a\0", "msgpack", "not one msgpack value"),
        (b"0$beacon.prx.a\0\x80", "beacon", "not a msgpack array"),
        (b"0$beacon.prx.a\0\x90", "beacon", "not a msgpack array"),
        (b"0$beacon.prx.a\0\x91\x01", "beacon", "a beacon is [version, publisher, source, closing, topics]"),
        (beacon(publisher=bytes(15)), "beacon", "publisher id or source"),
        (beacon(publisher="p" * 16), "beacon", "publisher id or source"),
        (beacon(source=None), "beacon", "publisher id or source"),
        (beacon(source="s" * 129), "beacon", "publisher id or source"),
        (beacon(closing=1), "beacon", "says whether it closes"),
        (beacon(topics=[]), "beacon", "at most 200 topics"),
        (beacon(topics={f"prx.a.t{n}": [0, 1] for n in range(201)}), "beacon", "at most 200 topics"),
        (beacon(topics={b"prx.a": [0, 1]}), "beacon", "b'prx.a' is not a topic of channel 'prx.a'"),
        (beacon(topics={"prx..a": [0, 1]}), "beacon", "is not a topic of channel"),
        (beacon(topics={"prx.b": [0, 1]}), "beacon", "'prx.b' is not a topic of channel 'prx.a'"),
        (beacon(b"0$beacon.\xff\0", topics={"prx.b": [0, 1]}), "beacon", "is not a topic of channel"),
        (
            beacon(b"0$beacon." + b"x" * 9_000 + b"\0", topics={"prx.b": [0, 1]}),
            "beacon",
            "is not a topic of channel",
        ),
        *((beacon(topics={"prx.a": pair}), "beacon", "numbers of 'prx.a' are") for pair in NO_NUMBERS),
    ],
)
def test_a_malformed_beacon_is_refused_with_its_reason(frame: bytes, reason: str, message: str) -> None:
    """The error says which rule broke."""
    with pytest.raises(DecodeError, match=re.escape(message)) as caught:
        decode_beacon(frame)
    assert caught.value.reason == reason
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("version", [0, 2, None, True, 1.0])
def test_a_beacon_of_another_version_is_a_version_mismatch(version: object) -> None:
    """A beacon tells its version first, like an event."""
    with pytest.raises(VersionMismatch):
        decode_beacon(beacon(version=version))


@given(st.binary(max_size=40), st.data())
def test_any_bytes_are_a_beacon_or_refused(data: bytes, draw: st.DataObject) -> None:
    """Neither noise nor a damaged beacon raises anything but the documented error."""
    damaged = bytearray(beacon(topics={"prx.a.x": [5, 9]}))
    at = draw.draw(st.integers(0, len(damaged)))
    damaged[at : at + draw.draw(st.integers(0, 3))] = draw.draw(st.binary(max_size=3))
    for frame in (data, b"0$beacon.prx.a\0" + data, bytes(damaged)):
        try:
            assert isinstance(decode_beacon(frame), Beacon)
        except DecodeError:
            continue


def test_numbers_nested_without_end_are_refused() -> None:
    """A value nested deeper than Python's own recursion limit is refused like any other."""
    head, tail = beacon(topics={"prx.a": "here"}).split(msgpack.packb("here"))
    with pytest.raises(DecodeError, match=r"numbers of 'prx\.a' are a list of 1"):
        decode_beacon(head + b"\x91" * 1_010 + b"\xc0" + tail)
