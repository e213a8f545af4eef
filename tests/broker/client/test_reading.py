"""Frames in, events out: the quick way and the careful way agree, and nothing a peer sends raises."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.core import reading
from broker.client.core.reading import Reader
from broker.protocol.batches import encode_batch
from broker.protocol.beacons import Beacon, encode_beacons
from broker.protocol.envelope import Claim, encode_event
from broker.protocol.errors import DecodeError
from broker.protocol.events import Event, decode_event
from broker.protocol.limits import PAYLOAD_BYTES
from broker.protocol.topics import Pattern

PUBLISHER = (2_000).to_bytes(8, "big") + b"p" * 8
READY = 1_000


def reader(*patterns: str, **options: Any) -> Reader:
    """A reader of ``patterns`` that is ready."""
    made = Reader([Pattern(text) for text in patterns or ("prx.*",)], **options)
    made.accounting.ready(READY)
    return made


def frame(sequence: int = 1, topic: str = "prx.a.b", payload: bytes | Claim = b"{}", **more: Any) -> bytes:
    """An event's frame."""
    return encode_event(topic, PUBLISHER, sequence, 5, payload, **{"source": "me", **more})


def frame_event(sequence: int) -> Event:
    """The event in ``frame(sequence)``."""
    return decode_event(frame(sequence))


def shown(events: list[Event]) -> list[tuple[object, ...]]:
    """Events as values that can be compared."""
    return [(e.id, e.depth, e.session_id, e.source, e.caused_by, e.time_ns, e.payload_bytes) for e in events]


def test_events_arrive_in_order_and_are_counted() -> None:
    """Known and new keys, depths and sessions come out as they went in."""
    frames = [
        frame(1),
        frame(2, session_id="s", depth=3),
        frame(3, payload=b'{"a":1}'),
        frame(4, cause="c" * 300),
        frame(1, topic="prx.z"),
    ]
    made = reader()
    assert shown([decode_event(f) for f in frames]) == shown(made.feed(frames, 9))
    assert (made.received, made.accounting.missed, made.refused) == (5, 0, {})


def test_a_gap_between_known_events_is_counted() -> None:
    """The quick way hands a jump in numbers to the account."""
    made = reader()
    made.feed([frame(1), frame(2), frame(5), frame(6)], 9)
    assert (made.received, made.accounting.missed, made.accounting.gaps) == (4, 2, {"prx.a.b": 2})


def test_a_shared_prefix_delivers_only_what_a_pattern_wants() -> None:
    """A star in the middle subscribes wider than it matches; the rest is counted and remembered."""
    made = reader("prx.*.error")
    frames = [frame(1, topic="prx.x.error"), frame(1, topic="prx.x.other"), frame(2, topic="prx.x.other")]
    assert [event.topic for event in made.feed(frames, 9)] == ["prx.x.error"]
    assert (made.received, made.overdelivered, made.accounting.missed) == (1, 2, 0)


def test_another_layout_of_the_same_envelope_is_the_same_event() -> None:
    """A sender that packs numbers in as few bytes as it can is read just as well, every time."""
    made = reader()
    rows = [[1, PUBLISHER, n, 5, None, "me", None, b"{}"] for n in (1, 2, 4)]
    frames = [b"0prx.a.b\0" + bytes(msgpack.packb(row)) for row in rows]
    assert shown(made.feed(frames, 9)) == shown([frame_event(n) for n in (1, 2, 4)])
    assert (made.accounting.missed, made.refused) == (1, {})


def test_sessions_that_take_turns_are_told_apart() -> None:
    """The quick way goes by the previous event's names and must not keep them too long."""
    made = reader()
    sessions = ["a", "b", "b", None, "b", "a"]
    events = made.feed([frame(n + 1, session_id=name) for n, name in enumerate(sessions)], 9)
    assert [event.session_id for event in events] == sessions


def test_batches_are_taken_apart() -> None:
    """Events of a batch are events like others, also for the account and the patterns."""
    made = reader("prx.a.*")
    one, two, three = (decode_event(frame(n, payload=b'{"n":%d}' % n)) for n in (1, 2, 4))
    other = decode_event(frame(1, topic="prx.a"))
    assert shown([one, two, three]) == shown(made.feed([encode_batch([one, two, other, three])], 9))
    assert (made.received, made.overdelivered, made.accounting.missed) == (3, 1, 1)
    assert shown([decode_event(frame(5))]) == shown(made.feed([frame(5)], 9))
    assert made.accounting.missed == 1


def test_beacons_probes_and_welcomes_are_not_events() -> None:
    """They update accounts, inboxes and epoch, and a canary means nothing."""
    made = reader()
    beacons = list(encode_beacons(Beacon(PUBLISHER, "me", False, {"prx.a.b": (3, 7), "other.x": (3, 9)})))
    events = made.feed([*beacons, b"0$inbox.abc\0", b"$welcomeEPOCH", b"0$canary\0", b"0$x\0"], 9)
    assert events == []
    assert (7, {b"abc"}, 1, b"EPOCH") == (made.accounting.missed, made.inboxes, made.welcomes, made.epoch)


def test_claims_get_their_loader() -> None:
    """A claimed payload is loaded by what the reader was given, when it is asked for."""
    made = reader(load_claim=lambda claim: b'{"size":%d}' % claim.size)
    claim = Claim(70_000, b"d" * 32, "ref", b"")
    (event,) = made.feed([frame(1, payload=claim)], 9)
    assert event.payload == {"size": 70_000}


@pytest.mark.parametrize(
    "junk, reason",
    [
        (b"", "key"),
        (b"0prx.a.bX", "key"),
        (b"9prx.a.b\0", "depth"),
        (b"\xff", "key"),
        (b"\xff" * 40, "key"),
        (b"\xff\0" + b"\0" * 40, "depth"),
        (b"\xff" + b"\0" * 17 + b"\xc5\0\0", "depth"),
        (b"\1$\0", "depth"),
        (b"0prx..b\0", "topic"),
        (b"0prx.a.b\0", "msgpack"),
        (b"0prx.a.b\0\x05", "envelope"),
        (b"0prx.a.b\0\x91\x02", "version"),
        (b"0prx.a.b\0" + msgpack.packb([1, [], 2, 5, None, "me", None, b""]), "envelope"),
        (b"0prx.a.b\0" + msgpack.packb([1, PUBLISHER, 2, 2**64 - 1, None, "me", None, b""]), "envelope"),
        (b"0prx.a.b\0" + msgpack.packb([1, PUBLISHER, 2, 5, "s" * 257, "me", None, b""]), "envelope"),
        (b"0prx.a.b\0" + msgpack.packb([1, PUBLISHER, 2, 5, None, "m" * 129, None, b""]), "envelope"),
        (b"0prx.a.b\0" + msgpack.packb([1, PUBLISHER, 2, 5, True, "me", None, b""]), "envelope"),
        (frame(2, payload=b"x" * (PAYLOAD_BYTES + 1)), "envelope"),
        (b"0prx.a.b\0" + b"x" * 70_000, "size"),
        (b"0~prx.a\0\x05", "batch"),
        (b"0$beacon.prx.a\0\x05", "beacon"),
    ],
)
def test_garbage_is_counted_by_reason_and_disturbs_nothing(junk: bytes, reason: str) -> None:
    """Between two good events of a known stream, bad frames are counted and the stream goes on."""
    made = reader()
    events = made.feed([frame(1), junk, frame(2)], 9)
    assert [event.sequence for event in events] == [1, 2]
    assert ({reason: 1}, 0) == (made.refused, made.accounting.missed)


def test_retained_values_come_once() -> None:
    """A retained value is delivered first; its live copy is counted by the account and not repeated."""
    made = reader()
    first = made.retained([frame(7), frame(1, topic="other.x"), b"junk"])
    assert [event.sequence for event in first] == [7]
    live = made.feed([frame(7), frame(8), frame(8)], 9)
    assert [event.sequence for event in live] == [8, 8]
    assert (made.received, made.repeated, made.refused) == (3, 1, {"key": 1})


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key tables start again at their bound; delivery and accounts do not notice."""
    monkeypatch.setattr(reading, "LANES", 2)
    made = reader("prx.*.want")
    for sequence in (1, 2, 3):
        for name in "abcd":
            made.feed([frame(sequence, topic=f"prx.{name}.want"), frame(sequence, topic=f"prx.{name}.no")], 9)
    assert (made.received, made.overdelivered, made.accounting.missed) == (12, 12, 0)


@given(
    st.lists(
        st.one_of(st.binary(max_size=80), st.binary(max_size=60).map(lambda b: b"0prx.a.b\0" + b)), max_size=5
    )
)
def test_any_bytes_are_survived(frames: list[bytes]) -> None:
    """Whatever arrives, reading returns events or counts a refusal."""
    made = reader()
    made.feed([frame(1)], 9)
    events = made.feed(frames, 9)
    silent = sum(f.startswith((b"$welcome", b"0$")) for f in frames)
    assert len(frames) >= len(events) + sum(made.refused.values()) >= len(frames) - silent


MUTATIONS = st.tuples(st.integers(0, 200), st.integers(0, 255))


@given(
    st.builds(
        frame,
        st.integers(1, 3),
        payload=st.binary(max_size=30),
        session_id=st.sampled_from([None, "s"]) | st.text(max_size=20),
        depth=st.integers(0, 7),
    ),
    st.lists(MUTATIONS, max_size=3),
)
def test_the_quick_way_accepts_exactly_what_the_careful_way_does(
    good: bytes, changes: list[tuple[int, int]]
) -> None:
    """For a frame, possibly damaged, a reader that has just seen one like it agrees with decode_event."""
    damaged = bytearray(good)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    data = bytes(damaged)
    made = reader("*")
    like_it = [frame(1, depth=depth, session_id=session) for session in (None, "s") for depth in range(8)]
    before = len(made.feed(like_it, 9))
    events = made.feed([*like_it[good[0] - 0x30 :: 8], data], 9)[2:]
    try:
        expected = [decode_event(data)] if data[1:2] not in (b"$", b"~") else None
    except DecodeError:
        expected = []
    if expected is not None:
        assert shown(expected) == shown(events)
        assert before + 2 + len(expected) == made.received
