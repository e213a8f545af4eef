"""What a publisher gathers: when, how much, and that nobody can tell afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.core import batching
from broker.client.core.batching import ALONE, FIRST, GATHERED, TURN, Gathering
from broker.client.core.channel import Channel
from broker.client.core.numbering import Numbering, Stream
from broker.client.core.reading import Reader
from broker.protocol.batches import decode_batch
from broker.protocol.envelope import Names, event_frame, payload_header
from broker.protocol.events import Event
from broker.protocol.limits import BATCH_TOPICS, CAUSE_BYTES, FRAME_BYTES, SESSION_ID_BYTES
from broker.protocol.topics import Pattern

PUBLISHER = bytes(range(16))
SECOND = 1_000_000_000
NAMES = Names("s1", "me", None)


def deep(numbering: Numbering, topic: str = "prx.a.b", depth: int = 0) -> tuple[Gathering, Stream]:
    """A gathering in the middle of a burst, with an empty frame begun, at time 0."""
    gathering, stream = Gathering(), numbering.open(topic, 0)
    gathering.allowed = True
    for _ in range(batching.ALONE_EVENTS):
        assert gathering.offer(stream, depth, NAMES, b"{}", 2, 0) == ALONE
    assert gathering.offer(stream, depth, NAMES, b"{}", 2, 0) == TURN
    gathering.begin(stream, depth, 0)
    return gathering, stream


def frame_of(gathering: Gathering) -> bytes:
    """The frame of what is gathered, which is taken; nothing when there is nothing."""
    batch = gathering.take()
    return b"" if batch is None else batch.frame()


def numbers() -> Numbering:
    """The numbering of a publisher that has begun."""
    return Numbering(PUBLISHER, "me", 0.0)


def test_an_event_after_a_pause_goes_alone() -> None:
    """Whoever publishes at intervals never waits for company."""
    gathering, stream = Gathering(), numbers().open("prx.a.b", 0)
    gathering.allowed = True
    for turn in range(100):
        now_ns = turn * (batching.PAUSE_NS + 1)
        assert gathering.offer(stream, 0, NAMES, b"{}", 2, now_ns) == ALONE
        assert not gathering.over(now_ns + SECOND)


def test_a_burst_is_gathered_after_its_first_events() -> None:
    """Two or three events in a row go at once; the ninth begins a frame, the next ones join it."""
    gathering, stream = deep(numbers())
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, 1) == FIRST
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, 2) == GATHERED
    taken = gathering.take()
    assert taken is not None
    assert [row[1] for row in taken.rows] == [1, 2]
    assert gathering.take() is None
    assert (stream.sequence, stream.first_time) == (2, 1)


def test_nothing_joins_what_is_sealed() -> None:
    """What was gathered until then leaves as it is, and the next event needs a frame of its own."""
    gathering, stream = deep(numbers())
    gathering.offer(stream, 0, NAMES, b"{}", 2, 1)
    gathering.seal()
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, 2) == TURN
    assert len(decode_batch(frame_of(gathering))) == 1
    gathering.seal()
    assert gathering.batch is None


def burst(pause_ns: int, events: int = batching.ALONE_EVENTS) -> list[int]:
    """What becomes of events in a row that come so long after a frame of ``events`` has left."""
    gathering, stream = deep(numbers())
    for _ in range(events):
        gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    gathering.take()
    answers = []
    for step in range(batching.ALONE_EVENTS + 1):
        answers.append(gathering.offer(stream, 0, NAMES, b"{}", 2, pause_ns + step))
        if answers[-1] == TURN:
            gathering.begin(stream, 0, pause_ns + step)
    return answers


def test_an_interrupt_does_not_end_a_burst_and_silence_does() -> None:
    """After a frame has left, the next event is gathered, or goes alone once, or begins anew."""
    alone = batching.ALONE_EVENTS
    assert burst(batching.INTERRUPT_NS) == [TURN, FIRST, *[GATHERED] * (alone - 1)]
    assert burst(batching.STALL_NS) == [ALONE, TURN, FIRST, *[GATHERED] * (alone - 2)]
    assert burst(batching.STALL_NS + 1) == [*[ALONE] * alone, TURN]


def test_a_few_events_are_no_burst() -> None:
    """A frame of fewer events than go alone at first leads to no conclusion about the next ones."""
    alone = batching.ALONE_EVENTS
    assert burst(batching.INTERRUPT_NS, alone - 1) == [*[ALONE] * alone, TURN]
    assert burst(4 * batching.PAUSE_NS, alone - 1) == [TURN, FIRST, *[GATHERED] * (alone - 1)]
    assert burst(6 * batching.PAUSE_NS, alone - 1) == [ALONE, ALONE, TURN, FIRST, *[GATHERED] * (alone - 3)]


def test_what_is_gathered_is_joined_even_after_a_pause() -> None:
    """An event must come after those before it, so it might as well go with them while that is soon."""
    gathering, stream = deep(numbers())
    for _ in range(batching.ALONE_EVENTS):
        gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, batching.AGE_NS) == GATHERED
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, batching.AGE_NS + 1) == TURN


def test_a_frame_is_open_from_its_eighth_event_until_it_is_old_or_sealed() -> None:
    """Until then a pause counts, after it nothing joins; in between an event need not be offered."""
    gathering, stream = deep(numbers())
    batch = gathering.batch
    assert batch is not None
    for _ in range(batching.ALONE_EVENTS):
        assert batch.open_until_ns == 0
        gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    assert batch.open_until_ns == batching.AGE_NS
    gathering.seal()
    assert batch.open_until_ns == 0


def test_a_clock_that_is_set_back_keeps_nothing() -> None:
    """What was gathered before is to be sent, however quickly other events follow."""
    gathering, stream = deep(numbers())
    gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    assert gathering.batch is not None
    assert not gathering.over(0)
    gathering.batch.begun_ns = SECOND
    assert gathering.over(0)


def test_an_interrupt_in_the_middle_of_joining_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a signal handler's event takes of a frame is not given away again."""
    gathering, stream = deep(numbers())
    gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    batch = gathering.batch
    assert batch is not None
    before, interrupts = batch.left, [None]

    def interrupted(*sizes: int) -> int:
        if interrupts:
            interrupts.pop()
            assert gathering.offer(stream, 0, NAMES, b"{}", 2, 0) == GATHERED
        return max(sizes)

    monkeypatch.setattr(batching, "max", interrupted, raising=False)
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, 0) == GATHERED
    assert before - batch.left == 2 * batching.LEAST_BYTES
    assert [row[1] for row in batch.rows] == [1, 2, 3]


def test_the_time_of_sending_is_no_pause() -> None:
    """What a send of our own took does not count as the caller's silence."""
    gathering, stream = Gathering(), numbers().open("prx.a.b", 0)
    gathering.allowed = True
    for turn in range(batching.ALONE_EVENTS):
        assert gathering.offer(stream, 0, NAMES, b"{}", 2, turn * 1_000_000) == ALONE
        gathering.spent(turn * 1_000_000 + 999_000)
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, batching.ALONE_EVENTS * 1_000_000) == TURN


def test_without_leave_nothing_is_gathered() -> None:
    """While a subscriber does not read batches each event of a burst goes alone."""
    gathering, stream = Gathering(), numbers().open("prx.a.b", 0)
    assert {gathering.offer(stream, 0, NAMES, b"{}", 2, 0) for _ in range(100)} == {ALONE}


def test_large_events_go_alone() -> None:
    """A payload of 8 KiB is not gathered, one byte less is."""
    gathering, stream = deep(numbers())
    size = batching.LARGE_BYTES
    assert gathering.offer(stream, 0, NAMES, b"x" * (size - 1), size - 1, 0) == FIRST
    assert gathering.offer(stream, 0, NAMES, b"x" * size, size, 0) == ALONE


@pytest.mark.parametrize("topic,depth", [("prx.other.x", 0), ("prx.a.b", 1)])
def test_another_channel_or_depth_is_another_frame(topic: str, depth: int) -> None:
    """One frame has one namespace and one depth."""
    numbering = numbers()
    gathering, stream = deep(numbering)
    for _ in range(2):
        gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    other = stream if topic == "prx.a.b" else numbering.open(topic, 0)
    assert gathering.offer(other, depth, NAMES, b"{}", 2, 0) == TURN


def test_channels_that_take_turns_are_not_gathered() -> None:
    """Where each event needs another frame than the one before, the next ones go alone."""
    numbering = numbers()
    gathering, stream = deep(numbering)
    gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    other = numbering.open("prx.other.x", 0)
    answers = [gathering.offer((other, stream)[turn % 2], 0, NAMES, b"{}", 2, 0) for turn in range(8)]
    assert answers == [ALONE] * 8


def test_a_clock_that_is_set_back_ends_the_frame() -> None:
    """A frame from the future is sent with the next event, not an hour later."""
    gathering, stream = deep(numbers())
    gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, -3_600 * SECOND) == TURN


def test_topics_of_a_namespace_share_a_frame() -> None:
    """Events of two topics are gathered in the order in which they were published."""
    numbering = numbers()
    gathering, first = deep(numbering)
    second = numbering.open("prx.a.c", 0)
    gathering.take()
    gathering.begin(first, 0, 0)
    for stream in (first, second, first):
        gathering.offer(stream, 0, NAMES, b"{}", 2, 0)
    assert [event.id for event in decode_batch(frame_of(gathering))] == [
        f"{PUBLISHER.hex()}:{topic}:{number}"
        for topic, number in (("prx.a.b", 1), ("prx.a.c", 1), ("prx.a.b", 2))
    ]


def test_a_frame_is_full_at_its_number_of_events() -> None:
    """After 256 events the next one begins another frame."""
    gathering, stream = deep(numbers())
    answers = [gathering.offer(stream, 0, NAMES, b"{}", 2, 0) for _ in range(batching.GATHERED_EVENTS + 1)]
    assert answers == [FIRST, *[GATHERED] * (batching.GATHERED_EVENTS - 1), TURN]


def test_a_frame_grows_old() -> None:
    """An event that comes when its frame is a millisecond old begins another one."""
    gathering, stream = deep(numbers())
    answers = [gathering.offer(stream, 0, NAMES, b"{}", 2, step * batching.PAUSE_NS) for step in range(27)]
    assert answers[0] == FIRST
    assert answers[-1] == TURN


def test_a_burst_that_ends_is_seen_by_whoever_looks() -> None:
    """What is gathered is to be sent once nothing has come for a while, not before."""
    gathering, stream = deep(numbers())
    assert not gathering.over(SECOND)
    gathering.offer(stream, 0, NAMES, b"{}", 2, 5)
    assert not gathering.over(5 + batching.QUIET_NS)
    assert gathering.over(6 + batching.QUIET_NS)
    assert gathering.over(0), "the clock was set back"
    gathering.take()
    assert not gathering.over(SECOND)


@given(
    st.integers(1, BATCH_TOPICS),
    st.integers(0, SESSION_ID_BYTES),
    st.integers(0, CAUSE_BYTES),
    st.lists(st.integers(2, batching.LARGE_BYTES - 1), min_size=1, max_size=600),
)
def test_no_frame_is_too_long(topics: int, session: int, cause: int, sizes: list[int]) -> None:
    """With the longest topics and names, a frame keeps the limit and no payload is counted too low."""
    numbering = Numbering(PUBLISHER, "m" * 128, 0.0)
    long = ".".join(["s" * 63] * 3)
    streams = [numbering.open(f"{long}.{number:063d}", 0) for number in range(topics)]
    names = Names("s" * session, "m" * 128, "c" * cause)
    gathering = Gathering()
    gathering.allowed = True
    for number, size in enumerate(sizes):
        stream = streams[number % topics]
        answer = gathering.offer(stream, 0, names, b"x" * size, size, 0)
        if answer == TURN:
            assert len(frame_of(gathering)) <= FRAME_BYTES
            gathering.begin(stream, 0, 0)
            assert gathering.offer(stream, 0, names, b"x" * size, size, 0) == FIRST
    assert len(frame_of(gathering)) <= FRAME_BYTES


def test_a_full_table_is_followed_by_another() -> None:
    """The 33rd topic of a namespace has a channel of its own, and earlier ones keep theirs."""
    numbering = numbers()
    streams = [numbering.open(f"prx.a.t{number}", 0) for number in range(BATCH_TOPICS + 1)]
    assert {stream.channel for stream in streams[:-1]} == {streams[0].channel}
    assert streams[-1].channel is not streams[0].channel
    assert streams[-1].index == 0
    assert numbering.open("prx.b.x", 0).channel is not streams[-1].channel


def test_the_opening_follows_the_table() -> None:
    """A topic that is added is in the next frame, and is not lost from a frame that is open."""
    channel = Channel("prx.a", PUBLISHER, "me")
    channel.add("prx.a.b")
    before = channel.opening(3)
    assert channel.opening(3) is before
    channel.add("prx.a.c")
    assert channel.opening(3) != before


@dataclass
class Sender:
    """A publisher without a socket: what it would hand over, gathered as the rule says or never."""

    numbering: Numbering
    gathering: Gathering
    frames: list[bytes]

    def publish(self, topic: str, depth: int, session: str | None, body: bytes, now_ns: int) -> None:
        """One event, at a time that the test chooses."""
        stream = self.numbering.streams.get(topic) or self.numbering.open(topic, now_ns)
        names = Names(session, "me", None)
        answer = self.gathering.offer(stream, depth, names, body, len(body), now_ns)
        if answer in (ALONE, TURN):
            self.flush()
        if answer == TURN:
            self.gathering.begin(stream, depth, now_ns)
            answer = self.gathering.offer(stream, depth, names, body, len(body), now_ns)
        if answer == ALONE:
            stream.sequence += 1
            content = payload_header(len(body)) + body
            self.frames.append(
                event_frame(stream.heads[depth], stream.sequence, now_ns, names, content),
            )

    def flush(self) -> None:
        """Send what is gathered."""
        batch = self.gathering.take()
        if batch is not None:
            self.frames.append(batch.frame())


def sender(number: int, *, gathers: bool) -> Sender:
    """One of several publishers."""
    made = Sender(Numbering(bytes([number]) * 16, "me", 0.0), Gathering(), [])
    made.gathering.allowed = gathers
    return made


def told(events: list[Event]) -> list[tuple[object, ...]]:
    """All that an event says."""
    return [event.parts() for event in events]


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # publisher
        st.sampled_from(["prx.a.b", "prx.a.c", "prx.z.b", "alone", "prx.a.c.deep"]),
        st.sampled_from([0, 0, 0, 3]),  # depth
        st.sampled_from([None, "s1", "s2"]),
        st.sampled_from([2, 300, 9_000]),  # size
        st.sampled_from([0, 1_000, 50_000, 400_000]),  # pause before it, ns
        st.booleans(),  # somebody looks for the end of the burst
    ),
    max_size=120,
)
PATTERNS = st.sampled_from([("*",), ("prx.a.c",), ("prx.*.b", "alone"), ("prx.a.*",), ("nothing.*",)])


@given(STEPS, PATTERNS, st.integers(1, 9))
def test_nobody_can_tell_how_an_event_travelled(
    steps: list[Any], patterns: tuple[str, ...], cut: int
) -> None:
    """Whatever publishers, topics, depths, sizes and pauses: gathered or not, a subscriber has the same
    events in the same order of each publisher, and the same account.
    """
    results = []
    for gathers in (False, True):
        senders = [sender(number, gathers=gathers) for number in range(3)]
        now_ns = SECOND
        for publisher, topic, depth, session, size, pause, looks in steps:
            now_ns += pause
            for other in senders:
                if looks and other.gathering.over(now_ns):
                    other.flush()
            senders[publisher].publish(topic, depth, session, b"x" * size, now_ns)
        reader = Reader([Pattern(text) for text in patterns])
        reader.accounting.ready(0)
        seen = []
        for one in senders:
            one.flush()
            events: list[Event] = []
            for start in range(0, len(one.frames), cut):
                events += reader.feed(one.frames[start : start + cut], now_ns)
            seen.append(told(events))
        accounts = reader.accounting
        results.append((seen, reader.received, accounts.missed, accounts.late, reader.refused))
    assert results[0] == results[1]


def test_a_batch_that_is_there_is_kept() -> None:
    """Whoever begins a batch when a signal handler has just begun one joins that."""
    gathering, stream = deep(numbers())
    gathering.offer(stream, 0, NAMES, b"{}", 2, 1)
    gathering.begin(stream, 0, 2)
    assert gathering.offer(stream, 0, NAMES, b"{}", 2, 2) == GATHERED


def test_an_event_that_may_wait_joins_what_is_there() -> None:
    """Even outside of a burst it begins or joins a batch of its channel and depth."""
    numbering = numbers()
    gathering, stream = Gathering(), numbering.open("prx.a.b", 0)
    assert gathering.join(stream, 0, NAMES, b"{}", 2, 1) == ALONE  # not every subscriber reads batches
    gathering.allowed = True
    assert gathering.join(stream, 0, NAMES, b"{}", batching.LARGE_BYTES, 1) == ALONE
    assert gathering.join(stream, 0, NAMES, b"{}", 2, 1) == TURN
    gathering.begin(stream, 0, 1)
    assert gathering.join(stream, 0, NAMES, b"{}", 2, 1) == FIRST
    assert gathering.join(stream, 0, NAMES, b"{}", 2, 2) == GATHERED
    assert (stream.sequence, stream.first_time) == (2, 1)
    assert gathering.join(stream, 1, NAMES, b"{}", 2, 3) == TURN
    assert gathering.join(numbering.open("prx.other.b", 0), 0, NAMES, b"{}", 2, 3) == TURN
    assert gathering.join(stream, 0, NAMES, b"{}", 2, 2 * batching.COPY_AGE_NS) == TURN
    assert [event.sequence for event in decode_batch(frame_of(gathering))] == [1, 2]


def test_what_joins_fills_a_frame_and_no_more() -> None:
    """A batch has room for 256 events, and for so many bytes."""
    gathering, stream = deep(numbers())
    for _ in range(batching.GATHERED_EVENTS):
        assert gathering.join(stream, 0, NAMES, b"{}", 2, 1) in (FIRST, GATHERED)
    assert gathering.join(stream, 0, NAMES, b"{}", 2, 1) == TURN
    gathering.take()
    gathering.begin(stream, 0, 1)
    large = b"x" * (batching.LARGE_BYTES - 1)
    verdicts = [gathering.join(stream, 0, NAMES, large, len(large), 1) for _ in range(10)]
    assert verdicts[-1] == TURN
    assert len(frame_of(gathering)) <= FRAME_BYTES
