"""The quick way through a batch: taken where it may be, and never told apart from the careful one."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.client.core import batch_reading, reading
from broker.client.core.accounting import FORGOTTEN
from broker.client.core.reading import Reader
from broker.protocol.batches import decode_batch, pack_rows
from broker.protocol.envelope import MAX_SEQUENCE, MAX_TIME, batch_opening
from broker.protocol.errors import DecodeError
from broker.protocol.events import Event
from broker.protocol.limits import BATCH_EVENTS, BATCH_TOPICS, PAYLOAD_BYTES
from broker.protocol.topics import Pattern

PUBLISHER = (2_000).to_bytes(8, "big") + b"p" * 8
TOPICS = ["prx.a.b", "prx.a.c"]


def batch(*rows: tuple[Any, ...], topics: list[str] = TOPICS, source: str = "me") -> bytes:
    """A batch as our own publishers write it."""
    return batch_opening(0, "prx.a", PUBLISHER, source, topics) + pack_rows(rows)


def row(number: int, topic: int = 0, **changes: Any) -> tuple[Any, ...]:
    """An event of a batch."""
    fields = {
        "index": topic,
        "sequence": number,
        "time": 5,
        "session": "s1",
        "cause": None,
        "payload": b"{}",
    }
    return tuple({**fields, **changes}.values())


def reader(*patterns: str, topics: list[str] = TOPICS) -> Reader:
    """A ready reader that has seen a batch with the first event of each topic."""
    made = Reader([Pattern(text) for text in patterns or ("prx.*",)])
    made.accounting.ready(1_000)
    made.feed([batch(*(row(1, index) for index in range(len(topics))), topics=topics)], 9)
    return made


def quick(made: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the careful way is a fault."""

    def careful(frame: bytes) -> list[Event]:
        raise AssertionError(f"the careful way was taken for {frame[:60]!r}")

    monkeypatch.setattr(reading, "decode_batch", careful)


def test_a_batch_like_the_one_before_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one topic or of several, with names seen before, it takes the quick way and is accounted for."""
    made = reader()
    quick(made, monkeypatch)
    events = made.feed([batch(row(2), row(3)), batch(row(4), row(2, 1), row(5)), batch(row(3, 1))], 9)
    assert [(event.topic, event.sequence) for event in events] == [
        ("prx.a.b", 2), ("prx.a.b", 3), ("prx.a.b", 4), ("prx.a.c", 2), ("prx.a.b", 5), ("prx.a.c", 3),
    ]  # fmt: skip
    assert (made.received, made.accounting.missed, made.accounting.late) == (8, 0, 0)
    assert events[0] == Event.of("prx.a.b", 0, PUBLISHER, 2, 5, "s1", "me", None, b"{}")


def test_unwanted_events_are_counted_and_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """In company of wanted ones they are left out; a frame without any wanted one is not decoded."""
    made = reader("prx.a.c")
    assert (made.received, made.overdelivered) == (1, 1)
    quick(made, monkeypatch)
    assert [event.sequence for event in made.feed([batch(row(2), row(2, 1), row(3))], 9)] == [2]
    assert made.feed([batch(row(4), row(5))], 9) == []
    assert made.overdelivered == 5


@pytest.mark.parametrize("count", [3, 20, 70_000])
def test_a_frame_of_other_topics_is_only_counted(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many events it holds is read from its head, also when that is more than there may be."""
    made = Reader([Pattern("prx.*.c")])
    made.feed([batch(row(1), topics=["prx.a.b"])], 9)
    quick(made, monkeypatch)
    frame = batch(*[row(2)] * count, topics=["prx.a.b"])[:60_000]
    assert made.feed([frame], 9) == []
    assert made.overdelivered == 1 + (count if count <= BATCH_EVENTS else 0)


def test_a_gap_in_a_batch_is_counted() -> None:
    """A number that does not follow is for the careful way: what is missing is missed, once."""
    made = reader()
    made.feed([batch(row(2), row(5)), batch(row(4, 1), row(6))], 9)
    assert (made.received, made.accounting.missed, made.accounting.gaps) == (
        6,
        4,
        {"prx.a.b": 2, "prx.a.c": 2},
    )
    assert len(made.feed([batch(row(7), row(5, 1))], 9)) == 2
    assert made.accounting.missed == 4


def test_a_topic_that_was_not_met_before_joins() -> None:
    """A table that has grown, or a stream that is new to us, takes the careful way once."""
    made = reader()
    grown = [*TOPICS, "prx.a.d"]
    assert (
        len(made.feed([batch(row(2), row(1, 2), topics=grown), batch(row(2, 2), topics=grown)], 9)) == 2 + 1
    )
    fresh = Reader([Pattern("prx.*")])
    fresh.accounting.ready(1_000)
    assert len(fresh.feed([batch(row(1)), batch(row(2), row(1, 1)), batch(row(2, 1))], 9)) == 4
    assert fresh.accounting.missed == 0


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and lanes that were remembered are forgotten at their bound; nothing is lost by it."""
    monkeypatch.setattr(batch_reading, "NAMES", 3)
    monkeypatch.setattr(reading, "BATCH_LANES", 1)
    made = reader()
    frames = []
    for number in range(2, 10):
        frames.append(batch(row(number, session=f"s{number}")))
        other = batch_opening(0, "prx.z", PUBLISHER, "me", ["prx.z.x"])
        frames.append(other + pack_rows([row(number - 1)]))
    assert len(made.feed(frames, 9)) == 16
    assert made.accounting.missed == 0


def test_an_empty_batch_is_nothing() -> None:
    """A batch may hold no event; it teaches nothing and disturbs nothing."""
    made = reader()
    assert made.feed([batch(), batch(topics=[]), batch(row(2))], 9)[0].sequence == 2
    assert made.refused == {}


def test_another_writers_layout_is_read_too() -> None:
    """Another msgpack that means the same takes the careful way each time."""
    made = Reader([Pattern("prx.*")])
    made.accounting.ready(1_000)
    for number in (1, 2):
        body = b"\xdc\x00\x05" + b"".join(map(msgpack.packb, [1, PUBLISHER, "me", TOPICS, [row(number)]]))
        assert len(made.feed([b"0~prx.a\0" + body], 9)) == 1


ODD = st.sampled_from(
    [
        row(2, index=True), row(2, index=-1), row(2, index=2), row(2, index=0.0), row(2, index="0"),
        row(2, sequence=2.0), row(2, sequence=True), row(2, sequence=0), row(2, time=MAX_TIME + 1),
        row(2, time=-1), row(2, time=5.0), row(2, session=1), row(2, session=[]), row(2, session="s" * 257),
        row(2, cause=True), row(2, cause="c" * 400), row(2, payload="{}"), row(2, payload=None),
        row(2, payload=b"x" * (PAYLOAD_BYTES + 1)), row(2, payload=[3, bytes(32), "ref", b"{"]), row(2)[:5],
        (*row(2), 1), (*row(2), [0, PUBLISHER, "me"]), (*row(2), None, None),
        row(2), row(3), row(2, 1), row(2, session=None), row(2, session="new"), row(1),
    ]
)  # fmt: skip


@given(
    st.lists(ODD, max_size=4),
    st.binary(max_size=2),
    st.lists(st.tuples(st.integers(), st.integers(0, 255))),
    st.sampled_from([TOPICS, TOPICS[:1]]),
)
@example([row(2, 1)], b"", [], TOPICS[:1])
@example([row(2, payload=b"x" * (PAYLOAD_BYTES + 1))], b"", [], TOPICS)
def test_the_quick_way_accepts_exactly_what_the_careful_way_does(
    rows: list[Any], rest: bytes, changes: list[tuple[int, int]], topics: list[str]
) -> None:
    """Of a batch with odd events, or damaged, a reader that knows its like makes what decode_batch makes."""
    damaged = bytearray(batch(*rows, topics=topics) + rest)
    for position, value in changes[:3]:
        damaged[position % len(damaged)] = value
    frame = bytes(damaged)
    if frame[1:2] != b"~":
        return
    made = reader("*", topics=topics)
    before = made.received
    events = made.feed([frame], 9)
    try:
        expected = decode_batch(frame)
    except DecodeError:
        assert made.received == before
        assert sum(made.refused.values()) == 1
        return
    assert [repr(event) for event in events] == [repr(event) for event in expected]
    assert [event.parts()[:-1] for event in events] == [event.parts()[:-1] for event in expected]
    assert made.refused == {}


def test_a_publisher_may_use_several_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one channel that take turns with two tables both go the quick way."""
    made = reader()
    other = ["prx.a.d"]
    made.feed([batch(row(1), topics=other), batch(row(2), topics=other)], 9)
    quick(made, monkeypatch)
    frames = [batch(row(2)), batch(row(3), topics=other), batch(row(3)), batch(row(4), topics=other)]
    assert [event.sequence for event in made.feed(frames, 9)] == [2, 3, 3, 4]


def test_odd_tables_are_not_remembered() -> None:
    """A table larger than ours, or with a topic twice, is read with care each time, and leaves nothing."""
    made = reader()
    many = [f"prx.a.t{number}" for number in range(BATCH_TOPICS + 1)]
    twice = ["prx.a.b", "prx.a.b"]
    assert len(made.feed([batch(row(1), topics=many), batch(row(2), topics=many)], 9)) == 2
    assert len(made.accounting.topics) == len(TOPICS) + 1
    frames = [batch(row(2), row(3, 1), topics=twice), batch(row(3), row(3, 1), topics=twice)]
    assert len(made.feed(frames, 9)) == 4
    assert (made.accounting.late, made.accounting.missed) == (2, 0)


@pytest.mark.parametrize("topics", [TOPICS, TOPICS[:1]])
def test_a_forgotten_stream_is_not_revived_by_a_lane(topics: list[str]) -> None:
    """When a stream is no longer kept its lane takes the careful way, and the account begins anew."""
    made = reader(topics=topics)
    for topic in topics:
        made.accounting.streams(topic).pop(PUBLISHER).last = FORGOTTEN
    events = made.feed([batch(row(5), topics=topics), batch(row(6), topics=topics)], 9)
    assert [event.sequence for event in events] == [5, 6]
    assert made.accounting.streams("prx.a.b")[PUBLISHER].last == 6


def test_a_number_beyond_all_numbers_is_refused() -> None:
    """Where a beacon has told of the last possible number, none comes after it."""
    made = reader()
    made.accounting.streams("prx.a.b")[PUBLISHER].last = MAX_SEQUENCE
    assert made.feed([batch(row(MAX_SEQUENCE + 1))], 9) == []
    assert made.refused == {"envelope": 1}


def test_a_cause_is_no_session_id() -> None:
    """What was proper as the one is not thereby proper as the other."""
    made = reader()
    long = "c" * 300
    assert len(made.feed([batch(row(2, cause=long)), batch(row(3, cause=long))], 9)) == 2
    assert made.feed([batch(row(4, session=long))], 9) == []
    assert made.refused == {"envelope": 1}
