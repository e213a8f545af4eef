"""What a publisher counts, and when its beacons are due."""

from __future__ import annotations

from itertools import pairwise

import pytest

from broker.client.core import numbering
from broker.client.core.numbering import Numbering
from broker.protocol.envelope import encode_event
from broker.protocol.errors import TopicError
from broker.protocol.events import decode_event

FIRST, SECOND = b"a" * 16, b"b" * 16


def counted(topic: str = "prx.x", events: int = 3, now: float = 0.0) -> Numbering:
    """A numbering with one topic that has ``events`` events."""
    numbers = Numbering(FIRST, "me", now)
    numbers.open(topic, 5).sequence = events
    return numbers


def test_heads_are_the_starts_of_real_frames() -> None:
    """A stream's head for a depth is how the frame of an event of that depth begins."""
    stream = Numbering(FIRST, "me", 0.0).open("prx.x", 5)
    for depth, head in enumerate(stream.heads):
        frame = encode_event("prx.x", FIRST, 1, 2, b"{}", depth=depth)
        assert frame.startswith(head)
        assert depth == decode_event(frame).depth


def test_a_bad_topic_opens_nothing() -> None:
    """A refused topic raises and leaves no stream behind."""
    numbers = Numbering(FIRST, "me", 0.0)
    with pytest.raises(TopicError):
        numbers.open("prx.*", 5)
    assert numbers.streams == {}


def test_catalogued_topics_bring_their_types() -> None:
    """A stream of a catalogued topic checks payloads, any other does not."""
    numbers = Numbering(FIRST, "me", 0.0)
    assert numbers.open("prx.lifecycle.tool_call", 5).types_of is not None
    assert numbers.open("other.topic", 5).types_of is None


def test_a_beacon_tells_only_news() -> None:
    """A topic is told once for each change, with its first time and last number."""
    numbers = counted()
    assert numbers.beacon().topics == {"prx.x": (5, 3)}
    assert numbers.beacon().topics == {}
    numbers.streams["prx.x"].sequence = 4
    assert numbers.beacon().topics == {"prx.x": (5, 4)}


def test_a_topic_without_events_is_not_told() -> None:
    """A topic that was opened and never numbered is in no beacon."""
    assert counted(events=0).beacon(everything=True).topics == {}


def test_beacons_are_due_each_second_of_news() -> None:
    """While there is news a beacon is due a second after the last one, not before."""
    numbers = counted(now=10.0)
    assert numbers.due(10.9) is None
    assert round(numbers.pause(10.9), 6) == 0.1
    assert numbers.pause(12.0) == 0.0
    first = numbers.due(11.0)
    assert first is not None
    assert not first.closing
    numbers.streams["prx.x"].sequence = 4
    assert numbers.due(11.5) is None
    assert numbers.due(12.0) is not None


def test_silence_repeats_everything_at_doubling_pauses() -> None:
    """Without news the whole account is repeated after 1, 2, 4 ... and at most 64 seconds."""
    numbers = counted(now=0.0)
    moments, now = [], 0.0
    while now < 330:
        now += 0.5
        beacon = numbers.due(now)
        if beacon is not None:
            assert beacon.topics == {"prx.x": (5, 3)}
            moments.append(now)
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]


def test_nothing_published_means_no_beacon() -> None:
    """A publisher that never published stays silent."""
    numbers = Numbering(FIRST, "me", 0.0)
    assert numbers.due(1.0) is None
    assert numbers.due(100.0) is None


def test_news_ends_the_pause_of_silence() -> None:
    """After a long silence a new topic is told within a second."""
    numbers = counted(now=0.0)
    for now in (1.0, 2.0, 4.0, 8.0, 16.0):
        numbers.due(now)
    numbers.open("prx.y", 6).sequence = 1
    numbers.soon(17.0)
    beacon = numbers.due(18.0)
    assert beacon is not None
    assert beacon.topics == {"prx.y": (6, 1)}


def test_a_beacon_that_was_not_sent_is_told_again() -> None:
    """What a failed beacon said counts as news; topics that are gone since are passed over."""
    numbers = counted()
    beacon = numbers.beacon()
    numbers.retell(beacon._replace(topics={**beacon.topics, "prx.gone": (1, 1)}))
    assert beacon.topics == numbers.beacon().topics


def test_a_new_id_starts_again_and_keeps_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the table is full, a closing beacon ends the old id and the count of published goes on."""
    monkeypatch.setattr(numbering, "PUBLISHER_TOPICS", 2)
    numbers = counted()
    assert not numbers.full
    numbers.open("prx.y", 6).sequence = 2
    assert numbers.full
    last = numbers.renew(SECOND)
    assert (last.publisher, last.closing, last.topics) == (FIRST, True, {"prx.x": (5, 3), "prx.y": (6, 2)})
    assert numbers.streams == {}
    numbers.open("prx.x", 7).sequence = 1
    assert numbers.published == 6
    assert numbers.beacon().publisher == SECOND
