"""A batch: many events in one frame, each the same event as if it had come alone."""

import re
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.batches import batch_topics, decode_batch, encode_batch, pack_rows
from broker.protocol.envelope import MAX_SEQUENCE, VERSION, Claim, batch_opening, encode_event
from broker.protocol.errors import DecodeError, VersionMismatch
from broker.protocol.events import Event, decode_event
from broker.protocol.limits import BATCH_EVENTS

PUBLISHER = bytes(range(16))

payloads = st.binary(max_size=30) | st.builds(
    Claim,
    st.integers(0, 9),
    st.just(bytes(32)),
    st.just("ref"),
    st.just(b"{"),
)

rows = st.tuples(
    st.sampled_from(["prx.a", "prx.a.x", "prx.a.y.z"]),
    st.integers(1, MAX_SEQUENCE),
    st.integers(0, 9),
    payloads,
    st.none() | st.text(max_size=3),
    st.none() | st.text(max_size=3),
)


def seen(event: Event) -> list[object]:
    """Everything that an event says, comparable."""
    *fields, content = event.parts()
    return [*fields, content.fields() if isinstance(content, Claim) else content]


@given(st.lists(rows, min_size=1, max_size=8), st.text(max_size=5), st.integers(0, 7))
def test_a_batch_is_its_events(rows: list[Any], source: str, depth: int) -> None:
    """Events that are put into a batch come out of it as they are decoded alone, in order."""
    events = [
        decode_event(
            encode_event(
                topic,
                PUBLISHER,
                number,
                time,
                payload,
                session_id=session,
                source=source,
                cause=cause,
                depth=depth,
            )
        )
        for topic, number, time, payload, session, cause in rows
    ]
    assert list(map(seen, decode_batch(encode_batch(events)))) == list(map(seen, events))


def batch(
    key: bytes = b"3~prx.a\0",
    *,
    version: object = VERSION,
    publisher: object = PUBLISHER,
    source: object = "s",
    topics: object = ("prx.a.x",),
    events: object = ((0, 1, 0, None, None, b"{}"),),
) -> bytes:
    """A batch frame written by hand, with some of its parts replaced by others."""
    return key + bytes(msgpack.packb([version, publisher, source, topics, events]))


def test_a_batch_written_by_hand_is_read() -> None:
    """The body is [version, publisher, source, topics, events], and an event names its topic by index."""
    first, second = decode_batch(
        batch(
            topics=["prx.a", "prx.a.x"],
            events=[[1, 5, 9, "s1", None, b"{}"], [0, 1, 9, None, "c", [1, bytes(32), "r", b""]]],
        )
    )
    assert seen(first) == ["prx.a.x", 3, PUBLISHER, 5, 9, "s1", "s", None, b"{}"]
    assert seen(second) == ["prx.a", 3, PUBLISHER, 1, 9, None, "s", "c", [1, bytes(32), "r", b""]]


def test_a_batch_may_hold_as_many_events_as_the_limit_and_no_more() -> None:
    """The limit is inclusive, for events and for topics, and an empty batch holds no event."""
    row = [0, 1, 0, None, "", b""]
    assert decode_batch(batch(topics=[], events=[])) == []
    full = batch(topics=["prx.a"] * BATCH_EVENTS, events=[row] * BATCH_EVENTS)
    assert len(decode_batch(full)) == BATCH_EVENTS
    with pytest.raises(DecodeError, match="more than 4,096"):
        decode_batch(batch(events=[row] * (BATCH_EVENTS + 1)))
    with pytest.raises(DecodeError, match="more than 4,096"):
        decode_batch(batch(topics=["prx.a"] * (BATCH_EVENTS + 1)))


def test_a_batch_of_one_segment_has_a_channel_of_one() -> None:
    """A topic of one segment travels in the channel of that name."""
    (event,) = decode_batch(batch(b"0~prx\0", topics=["prx"]))
    assert event.topic == "prx"


@pytest.mark.parametrize(
    "frame, reason, message",
    [
        (b"0prx.a\0\x90", "key", "is not a batch channel"),
        (b"8~prx.a\0\x90", "depth", "is not a depth"),
        (b"0~prx.a", "key", "no NUL byte"),
        (b"0~prx.a\0", "msgpack", "not one msgpack value"),
        (b"0~prx.a\0\x80", "batch", "not a msgpack array"),
        (b"0~prx.a\0\x90", "batch", "not a msgpack array"),
        (b"0~prx.a\0\x91\x01", "batch", "a batch is [version, publisher, source, topics, events]"),
        (batch(topics={}), "batch", "a batch is"),
        (batch(events={}), "batch", "a batch is"),
        (batch(topics=[1]), "batch", "1 is not a topic of channel 'prx.a'"),
        (batch(topics=["prx..a"]), "batch", "'prx..a' is not a topic of channel 'prx.a'"),
        (batch(topics=["prx.b.x"]), "batch", "'prx.b.x' is not a topic of channel 'prx.a'"),
        (batch(b"0~prx\0"), "batch", "'prx.a.x' is not a topic of channel 'prx'"),
        (batch(b"0~\0"), "batch", "is not a topic of channel ''"),
        (batch(b"0~\xff\0"), "batch", "is not a topic of channel"),
        (batch(b"0~" + b"x" * 9_000 + b"\0"), "batch", "is not a topic of channel"),
        (batch(events=[1]), "batch", "an event of a batch is an array of 6"),
        (batch(events=[[0, 1, 0, None, None]]), "batch", "an event of a batch is an array of 6"),
        (batch(events=[[1, 1, 0, None, None, b""]]), "batch", "topic index 1 is not in the table of 1"),
        (batch(events=[[-1, 1, 0, None, None, b""]]), "batch", "topic index -1"),
        (batch(events=[[True, 1, 0, None, None, b""]]), "batch", "topic index True"),
        (batch(events=[[0, 0, 0, None, None, b""]]), "envelope", "sequence is 0"),
        (batch(publisher=b"short"), "envelope", "publisher is"),
        (batch(source=None), "envelope", "source is None"),
    ],
)
def test_a_malformed_batch_is_refused_with_its_reason(frame: bytes, reason: str, message: str) -> None:
    """One fault refuses the whole frame, and the error says which rule broke."""
    with pytest.raises(DecodeError, match=re.escape(message)) as caught:
        decode_batch(frame)
    assert caught.value.reason == reason
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("version", [0, 2, None, True, 1.0])
def test_a_batch_of_another_version_is_a_version_mismatch(version: object) -> None:
    """A batch tells its version first, like an event."""
    with pytest.raises(VersionMismatch):
        decode_batch(batch(version=version))


@given(st.binary(max_size=40), st.data())
def test_any_bytes_are_a_batch_or_refused(data: bytes, draw: st.DataObject) -> None:
    """Neither noise nor a damaged batch raises anything but the documented error."""
    damaged = bytearray(batch())
    at = draw.draw(st.integers(0, len(damaged)))
    damaged[at : at + draw.draw(st.integers(0, 3))] = draw.draw(st.binary(max_size=3))
    for frame in (data, b"0~prx.a\0" + data, bytes(damaged)):
        try:
            events = decode_batch(frame)
        except DecodeError:
            continue
        assert all(isinstance(event, Event) for event in events)


@pytest.mark.parametrize("field", ["topics", "events", "version"])
def test_a_batch_nested_without_end_is_refused(field: str) -> None:
    """A value nested deeper than Python's own recursion limit is refused like any other."""
    marker: Any = ["here"] if field != "version" else "here"
    head, tail = batch(**{field: marker}).split(msgpack.packb("here"))
    with pytest.raises(DecodeError):
        decode_batch(head + b"\x91" * 1_010 + b"\xc0" + tail)


def test_the_opening_of_a_batch_and_its_rows_are_a_batch() -> None:
    """Written in two parts, with a table longer than its events need, it is decoded as a whole."""
    topics = ["prx.a.x", "prx.a.y"]
    frame = batch_opening(3, "prx.a", PUBLISHER, "me", topics) + pack_rows([(1, 7, 5, "s", None, b"{}")])
    assert list(map(seen, decode_batch(frame))) == [["prx.a.y", 3, PUBLISHER, 7, 5, "s", "me", None, b"{}"]]
    assert batch_topics(frame) == ("prx.a.x", "prx.a.y")
