"""One event as one frame: what goes in comes out, and everything else is refused by name."""

import json
import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.protocol.envelope import (
    MAX_SEQUENCE,
    MAX_TIME,
    VERSION,
    Claim,
    check_payload,
    encode_event,
    is_reference,
    is_text,
    publisher_started,
    split_key,
    topic_of,
    unpack,
)
from broker.protocol.errors import ClaimError, DecodeError, SchemaError, VersionMismatch
from broker.protocol.events import Event, decode_event
from broker.protocol.limits import (
    CAUSE_BYTES,
    CLAIM_BYTES,
    FRAME_BYTES,
    SESSION_ID_BYTES,
    SOURCE_BYTES,
)

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors" / "topics.json").read_text())

PUBLISHER = bytes.fromhex("17e8d0a1c2b3c4d50123456789abcdef")
SAMPLE = encode_event(
    "prx.lifecycle.tool_call",
    PUBLISHER,
    7,
    1_700_000_000_123_456_789,
    b'{"tool":"Bash"}',
    session_id="s1",
    source="my-agent/1.0",
    cause="cause",
    depth=2,
)


def envelope(**changed: object) -> bytes:
    """The sample's frame with some of its fields replaced by others."""
    fields: dict[str, object] = {
        "version": VERSION,
        "publisher": PUBLISHER,
        "sequence": 7,
        "time": 0,
        "session": None,
        "source": "",
        "cause": None,
        "payload": b"{}",
    }
    return b"0prx\0" + bytes(msgpack.packb(list({**fields, **changed}.values())))


def texts(limit: int) -> st.SearchStrategy[str]:
    """Strings of at most ``limit`` bytes in UTF-8."""
    return st.text(max_size=limit).filter(lambda text: is_text(text, limit))


claims = st.builds(
    Claim,
    st.integers(0, CLAIM_BYTES),
    st.binary(min_size=32, max_size=32),
    st.from_regex(r"[0-9a-z-]{1,96}", fullmatch=True),
    st.binary(max_size=256),
)


@given(
    topic=st.sampled_from(["prx", "prx.lifecycle.tool_call", "A-b_9.x", ".".join("abcdefghijklmnop")]),
    publisher=st.binary(min_size=16, max_size=16),
    sequence=st.integers(1, MAX_SEQUENCE),
    time_ns=st.integers(0, MAX_TIME),
    payload=st.binary(max_size=300) | st.sampled_from([65_535, 65_536]).map(bytes) | claims,
    session_id=st.none() | texts(SESSION_ID_BYTES),
    source=texts(SOURCE_BYTES),
    cause=st.none() | texts(CAUSE_BYTES),
    depth=st.integers(0, 7),
)
def test_what_is_encoded_is_decoded(payload: bytes | Claim, **arguments: Any) -> None:
    """Every field of an event survives the wire."""
    event = decode_event(encode_event(payload=payload, **arguments))
    assert (event.topic, event.depth) == (arguments["topic"], arguments["depth"])
    assert event.publisher == arguments["publisher"].hex()
    assert (event.sequence, event.time_ns) == (arguments["sequence"], arguments["time_ns"])
    assert (event.session_id, event.source, event.caused_by) == (
        arguments["session_id"],
        arguments["source"],
        arguments["cause"],
    )
    assert event.time.year <= 2262  # every time that the wire admits is a datetime
    if isinstance(payload, bytes):
        assert event.claim is None
        assert event.payload_bytes == payload
    else:
        assert event.claim is not None
        assert event.claim.fields() == payload.fields()


def test_the_defaults_are_an_event_of_an_agent() -> None:
    """Without options an event has depth 0 and names neither session, source nor cause."""
    event = decode_event(encode_event("prx", PUBLISHER, 1, 0, b"{}"))
    assert (event.depth, event.session_id, event.source, event.caused_by) == (0, None, "", None)


@pytest.mark.parametrize(
    "content, size, inline",
    [(b'{"a":1}', 7, b'{"a":1}'), (Claim(70_000, bytes(32), "ref", b"{"), 70_000, b"")],
)
def test_an_event_is_made_of_its_parts(content: bytes | Claim, size: int, inline: bytes) -> None:
    """And taken apart again, with a payload or with a claim, which says how long the payload is."""
    parts = ("prx.a", 3, PUBLISHER, 7, 5, "s1", "me", "cause", content)
    event = Event.of(*parts)
    assert event.parts() == parts
    assert (event.size, event.inline) == (size, inline)
    assert event == Event.of(*parts)
    assert event != Event.of("prx.a", 4, *parts[2:])
    assert len({event, Event.of(*parts)}) == 1
    with pytest.raises(AttributeError):
        event.topic = "prx.b"  # type: ignore[misc]


@pytest.mark.parametrize(
    "payload, value",
    [
        (b'{"a":1e999}', {"a": math.inf}),
        (b'{"a":36893488147419103232}', {"a": 2**65}),
        (b'{"a":' + b"[" * 1_010 + b"]" * 1_010 + b"}", None),
    ],
)
def test_unusual_payloads_are_read_all_the_same(payload: bytes, value: dict[str, Any] | None) -> None:
    """Numbers beyond what others hold, and values that are nested very deeply."""
    read = decode_event(encode_event("prx", PUBLISHER, 1, 0, payload)).payload
    assert list(read) == ["a"]
    assert value is None or read == value


def test_an_event_reads_as_documented() -> None:
    """Each property of a decoded event has its documented type and unit."""
    event = decode_event(SAMPLE)
    assert event.id == f"{PUBLISHER.hex()}:prx.lifecycle.tool_call:7"
    assert event.time == datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC)
    assert event.payload == {"tool": "Bash"}
    assert event.payload is not event.payload
    assert repr(event) == f"<Event {event.id} depth=2 source='my-agent/1.0'>"


@pytest.mark.parametrize(
    "payload, message",
    [
        (b"{", "is not JSON"),
        (b'{"a": 1e999', "is not JSON"),
        (b"NaN", "is not JSON"),
        (b"", "is not JSON"),
        (b"[1]", "is list"),
    ],
)
def test_a_payload_that_is_no_object_is_an_error_when_read(payload: bytes, message: str) -> None:
    """The frame is delivered, its bytes can be read, and the error names the event."""
    event = decode_event(envelope(payload=payload))
    assert event.payload_bytes == payload
    with pytest.raises(SchemaError, match=message) as caught:
        _ = event.payload
    assert event.id in str(caught.value)


def test_a_claim_is_loaded_by_what_the_client_put_in() -> None:
    """A claimed payload reads like any other once there is a loader, and is a claim error without one."""
    event = decode_event(encode_event("prx", PUBLISHER, 1, 0, Claim(9, bytes(32), "ref-1", b'{"a"')))
    with pytest.raises(ClaimError, match="payload ref-1 lies in a spool that this reader was not given"):
        _ = event.payload
    assert event.claim is not None
    event.claim.load = lambda claim: b'{"size":%d}' % claim.size
    assert event.payload == {"size": 9}


@given(st.integers(0, 2**64 - 1), st.binary(min_size=8, max_size=8))
def test_a_publisher_id_tells_when_it_began(started: int, rest: bytes) -> None:
    """The first eight bytes are the start in ns, big-endian."""
    assert publisher_started(started.to_bytes(8, "big") + rest) == started


@pytest.mark.parametrize("size, admitted", VECTORS["payload_bytes"])
def test_a_payload_has_its_limit(size: int, admitted: bool) -> None:
    """Each vector of sizes is decoded or refused."""
    if admitted:
        assert check_payload(bytes(size)) == bytes(size)
        return
    with pytest.raises(DecodeError, match="payload is"):
        check_payload(bytes(size))


@pytest.mark.parametrize("depth, delivered", VECTORS["depth"])
def test_a_depth_has_its_limit(depth: int, delivered: bool) -> None:
    """A first byte beyond '7' is refused."""
    frame = bytes([(0x30 + depth) % 256]) + SAMPLE[1:]
    if delivered:
        assert decode_event(frame).depth == depth
        return
    with pytest.raises(DecodeError, match=r"is not a depth '0'\.\.'7'"):
        decode_event(frame)


@pytest.mark.parametrize(
    "frame, reason, message",
    [
        (b"", "key", "no NUL byte"),
        (b"0prx", "key", "no NUL byte"),
        (b"\0", "depth", "is not a depth"),
        (b"8prx\0", "depth", "is not a depth"),
        (b"/prx\0", "depth", "is not a depth"),
        (b"0\0", "topic", "b'' is not a topic"),
        (b"0prx..x\0", "topic", "is not a topic"),
        (b"0prx.\xe9\0", "topic", "is not a topic"),
        (b"0$inbox.abc\0", "topic", "is not a topic"),
        (b"0~prx\0", "topic", "is not a topic"),
        (b"0prx\0", "msgpack", "not one msgpack value"),
        (b"0prx\0\xc1", "msgpack", "not one msgpack value"),
        (b"0prx\0\xc0\xc0", "msgpack", "ExtraData"),
        (b"0prx\0\xdd\xff\xff\xff\xff", "msgpack", "not one msgpack value"),
        (b"0prx\0\xa1\xff", "msgpack", "UnicodeDecodeError"),
        (b"0prx\0" + b"\x91" * 20_000, "msgpack", "StackError"),
        (b"0prx\0\xd6\xff\xff\xff\xff\xff", "envelope", "not a msgpack array"),
        (b"0prx\0\x80", "envelope", "not a msgpack array"),
        (b"0prx\0\x90", "envelope", "not a msgpack array"),
        (b"0prx\0\x91\x01", "envelope", "1 fields, not 8"),
        (b"0prx\0" + bytes(FRAME_BYTES), "size", "a frame of 67,589 bytes; at most 67,584"),
    ],
)
def test_a_malformed_frame_is_refused_with_its_reason(frame: bytes, reason: str, message: str) -> None:
    """The error says which rule broke."""
    with pytest.raises(DecodeError, match=re.escape(message)) as caught:
        decode_event(frame)
    assert caught.value.reason == reason


def test_a_frame_may_be_as_large_as_the_limit() -> None:
    """The limit of a frame is inclusive."""
    key, start = split_key(b"0prx\0" + bytes(FRAME_BYTES - 5))
    assert (key.name, start) == (b"prx", 5)


@pytest.mark.parametrize("version", [0, 2, -1, None, True, 1.0, "1", [], {}])
def test_another_version_is_a_version_mismatch(version: object) -> None:
    """Whatever else stands in the first place is reported as their version."""
    with pytest.raises(VersionMismatch) as caught:
        decode_event(envelope(version=version))
    assert caught.value.theirs == version
    assert caught.value.ours == VERSION


CLAIM: list[object] = [1, bytes(32), "ref", b""]
NO_PAYLOADS: list[object] = [None, "{}", {}, [], CLAIM[:3], [*CLAIM, 1]]


@pytest.mark.parametrize(
    "field, value, message",
    [
        *(("publisher", value, "publisher is") for value in (None, "p" * 16, bytes(15), bytes(17))),
        *(("sequence", value, "sequence is") for value in (0, -1, 2**63, True, 1.0, None, "1")),
        *(("time", value, "time is") for value in (-1, 2**63, False, 0.0, None)),
        *(("session", value, "session id is") for value in (b"s", 1, "s" * 257, "é" * 129)),
        *(("source", value, "source is") for value in (None, b"s", "s" * 129, "é" * 65)),
        *(("cause", value, "cause is") for value in (1, "c" * 321)),
        *(("payload", value, "payload is") for value in NO_PAYLOADS),
        *(("payload", [size, *CLAIM[1:]], "claim size is") for size in (-1, CLAIM_BYTES + 1, None, True)),
        *(("payload", [1, digest, "ref", b""], "claim digest is") for digest in (bytes(31), "d" * 32)),
        *(("payload", [1, bytes(32), reference, b""], "claim reference is") for reference in ("", "../x", 1)),
        *(("payload", [1, bytes(32), "ref", head], "claim head is") for head in (bytes(257), "h")),
    ],
)
def test_a_field_out_of_bounds_is_refused_by_name(field: str, value: object, message: str) -> None:
    """The error names the field and shows a bounded piece of what stood there."""
    with pytest.raises(DecodeError, match=message) as caught:
        decode_event(envelope(**{field: value}))
    assert caught.value.reason == "envelope"
    assert len(str(caught.value)) < 200


def test_each_field_may_be_at_its_limit() -> None:
    """The limits are inclusive."""
    event = decode_event(
        envelope(
            sequence=MAX_SEQUENCE,
            time=MAX_TIME,
            session="é" * 128,
            source="s" * 128,
            cause="c" * 320,
            payload=[CLAIM_BYTES, bytes(32), "r" * 96, bytes(256)],
        )
    )
    assert event.time.year == 2262
    least = decode_event(envelope(sequence=1, time=0, session="", cause="", payload=[0, bytes(32), "r", b""]))
    assert least.claim is not None
    assert (least.claim.size, least.session_id, least.caused_by) == (0, "", "")


@pytest.mark.parametrize("field", ["publisher", "sequence", "session", "payload"])
def test_a_field_nested_without_end_is_refused(field: str) -> None:
    """A value nested deeper than Python's own recursion limit is refused like any other."""
    marker = "here"
    head, tail = envelope(**{field: marker}).split(msgpack.packb(marker))
    with pytest.raises(DecodeError):
        decode_event(head + b"\x91" * 1_010 + b"\xc0" + tail)


@pytest.mark.parametrize(
    "text, limit, expected",
    [
        ("", 0, True),
        ("é", 2, True),
        ("é", 1, False),
        ("ab", 1, False),
        ("\ud800", 9, False),
        (b"a", 9, False),
    ],
)
def test_a_text_is_measured_in_bytes(text: object, limit: int, expected: bool) -> None:
    """A limit counts UTF-8; what has no UTF-8 is no text."""
    assert is_text(text, limit) is expected


@pytest.mark.parametrize(
    "value, expected",
    [
        ("0-9a-z", True),
        ("a" * 96, True),
        ("a" * 97, False),
        ("", False),
        ("A", False),
        ("a/b", False),
        ("..", False),
        ("a\n", False),
        ("٣", False),
        (b"a", False),
    ],
)
def test_a_reference_is_a_file_name_and_never_a_path(value: object, expected: bool) -> None:
    """Lower-case letters, digits and '-' only."""
    assert is_reference(value) is expected


@given(st.binary(max_size=80) | st.binary(max_size=80).map(b"0prx\0".__add__))
def test_any_bytes_are_an_event_or_refused(frame: bytes) -> None:
    """No input raises anything but the documented error."""
    try:
        event = decode_event(frame)
    except DecodeError as error:
        assert error.reason
        assert len(str(error)) < 500
    else:
        assert isinstance(event, Event)


@given(st.data())
@example(None)
def test_a_damaged_frame_is_an_event_or_refused(data: st.DataObject | None) -> None:
    """Changed, cut and inserted bytes raise nothing but the documented error; what is taken is sound."""
    frame = bytearray(SAMPLE)
    for _ in range(data.draw(st.integers(1, 4)) if data else 0):
        assert data is not None
        at = data.draw(st.integers(0, len(frame)))
        end = data.draw(st.integers(at, min(len(frame), at + 3)))
        frame[at:end] = data.draw(st.binary(max_size=3))
    try:
        event = decode_event(bytes(frame))
    except DecodeError:
        return
    again = encode_event(
        event.topic,
        bytes.fromhex(event.publisher),
        event.sequence,
        event.time_ns,
        event.claim or event.payload_bytes,
        session_id=event.session_id,
        source=event.source,
        cause=event.caused_by,
        depth=event.depth,
    )
    assert decode_event(again).id == event.id


@given(st.binary(max_size=40))
def test_the_parts_of_a_decoder_refuse_alike(data: bytes) -> None:
    """Key, topic and body decoders are total on their own, for the batches and beacons that use them."""
    for decode in (split_key, topic_of, unpack):
        try:
            decode(data)
        except DecodeError:
            continue
    key, start = split_key(b"3" + data.replace(b"\0", b"") + b"\0rest")
    assert key.depth == 3
    assert key.name == data.replace(b"\0", b"")
    assert start == len(key.name) + 2
