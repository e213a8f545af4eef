"""What a subscriber missed: exact between beacons, never invented, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.core import accounting
from broker.client.core.accounting import CLOSED_SWEEPS, IDLE_SWEEPS, Accounting
from broker.protocol.beacons import Beacon

TOPIC = "prx.x"
READY = 1_000


def publisher(started: int, tag: int = 0) -> bytes:
    """A publisher id that began at ``started`` ns."""
    return started.to_bytes(8, "big") + tag.to_bytes(8, "big")


OLD, NEW = publisher(READY - 1), publisher(READY + 1)


def ready() -> Accounting:
    """An accounting whose subscriber became ready at READY."""
    accounts = Accounting()
    accounts.ready(READY)
    return accounts


def beacon(
    who: bytes, last: int, first_time: int = 0, *, closing: bool = False, topic: str = TOPIC
) -> Beacon:
    """A beacon of one topic."""
    return Beacon(who, "me", closing, {topic: (first_time, last)})


def hear(accounts: Accounting, said: Beacon, now_ns: int = READY + 50) -> None:
    """Account for ``said`` as a subscriber of everything."""
    accounts.beacon(said, lambda _topic: True, now_ns)


def take(accounts: Accounting, who: bytes, *sequences: int, topic: str = TOPIC) -> None:
    """Account for events with these numbers."""
    for sequence in sequences:
        accounts.event(topic, who, "me", sequence, READY + 50)


def test_consecutive_numbers_miss_nothing() -> None:
    """Events in order leave all counts at zero."""
    accounts = ready()
    take(accounts, NEW, 1, 2, 3)
    assert (accounts.missed, accounts.late, accounts.gaps) == (0, 0, {})


def test_a_hole_is_counted_by_topic_and_source() -> None:
    """A jump from 2 to 6 is three missed events, named by topic and by publisher."""
    accounts = ready()
    take(accounts, NEW, 1, 2, 6)
    assert (accounts.missed, accounts.gaps, accounts.publishers) == (3, {TOPIC: 3}, {"me": 3})


def test_a_late_event_takes_its_miss_back() -> None:
    """An event that was overtaken counts as missed only until it arrives."""
    accounts = ready()
    take(accounts, NEW, 1, 3, 2)
    assert (accounts.missed, accounts.late) == (0, 1)
    take(accounts, NEW, 2)
    assert (accounts.missed, accounts.late) == (0, 2)


def test_late_events_of_an_unsure_start_are_not_missed() -> None:
    """When the start of a stream arrives late, the beacon finds nothing missing."""
    accounts = ready()
    take(accounts, OLD, 5, 1, 2, 3, 4)
    hear(accounts, beacon(OLD, 5, first_time=READY + 1))
    assert (accounts.missed, accounts.late) == (0, 4)
    take(accounts, OLD, 5)
    assert (accounts.missed, accounts.late) == (0, 5)


def test_who_began_after_us_begins_at_one() -> None:
    """The first event heard of a publisher that began after we were ready shows what came before it."""
    accounts = ready()
    take(accounts, NEW, 4)
    assert accounts.missed == 3


def test_what_was_before_us_is_not_missed() -> None:
    """A publisher that began before us may have any number; its past is not our loss."""
    accounts = ready()
    take(accounts, OLD, 40, 41)
    hear(accounts, beacon(OLD, 41, first_time=READY - 1))
    assert accounts.missed == 0


def test_a_topic_first_used_after_us_begins_at_one() -> None:
    """An old publisher's new topic: its beacon turns the unsure start into missed events."""
    accounts = ready()
    take(accounts, OLD, 4)
    assert accounts.missed == 0
    hear(accounts, beacon(OLD, 4, first_time=READY + 1))
    assert accounts.missed == 3
    hear(accounts, beacon(OLD, 4, first_time=READY + 1))
    assert accounts.missed == 3


def test_a_beacon_closes_the_tail() -> None:
    """A beacon's last number beyond ours is missed events at the end."""
    accounts = ready()
    take(accounts, NEW, 1, 2)
    hear(accounts, beacon(NEW, 5))
    assert accounts.missed == 3
    take(accounts, NEW, 6)
    assert accounts.missed == 3


@pytest.mark.parametrize("who, first_time, missed", [(NEW, 0, 7), (OLD, READY + 1, 7), (OLD, READY - 1, 0)])
def test_a_beacon_of_a_topic_never_heard(who: bytes, first_time: int, missed: int) -> None:
    """All events of a topic that began after us are missed, none of one that began before."""
    accounts = ready()
    hear(accounts, beacon(who, 7, first_time))
    assert missed == accounts.missed
    take(accounts, who, 8)
    assert missed == accounts.missed


def test_before_we_are_ready_nothing_is_missed() -> None:
    """Events met while becoming ready set the base and accuse nobody."""
    accounts = Accounting()
    take(accounts, NEW, 9)
    hear(accounts, beacon(publisher(READY + 2), 3, READY + 2))
    assert accounts.missed == 0


def test_beacons_of_unwanted_topics_are_ignored() -> None:
    """A beacon shares a channel with topics that we did not ask for."""
    accounts = ready()
    accounts.beacon(beacon(NEW, 7), lambda _topic: False, READY)
    assert (accounts.missed, accounts.topics) == (0, {})


def test_closed_streams_are_forgotten_soon() -> None:
    """A closed publisher's streams go after a few quiet sweeps and leave nothing behind."""
    accounts = ready()
    take(accounts, NEW, 1)
    hear(accounts, beacon(NEW, 1, closing=True))
    for _ in range(CLOSED_SWEEPS):
        accounts.sweep(READY + 100)
    assert accounts.streams(TOPIC) != {}
    for _ in range(2):
        accounts.sweep(READY + 100)
    assert (accounts.streams(TOPIC), accounts.forgotten) == ({}, 0)


def test_a_silent_stream_is_forgotten_after_an_hour_and_not_held_against_its_return() -> None:
    """After forgetting, a returning publisher's high number is not counted as missed events."""
    accounts = ready()
    take(accounts, NEW, 1)
    for _ in range(IDLE_SWEEPS + 2):
        accounts.sweep(READY + 100)
    assert (accounts.streams(TOPIC), accounts.forgotten) == ({}, 1)
    take(accounts, NEW, 500)
    assert accounts.missed == 0


def test_a_stream_that_is_heard_of_stays() -> None:
    """News, or a beacon without news, keeps a stream from being forgotten."""
    accounts = ready()
    take(accounts, NEW, 1)
    for sweep in range(IDLE_SWEEPS * 3):
        if sweep % 2:
            hear(accounts, beacon(NEW, 1))
        accounts.sweep(READY + 100)
    assert list(accounts.streams(TOPIC)) == [NEW]


def test_the_table_of_streams_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """At its bound the table starts again, says so, and invents no loss."""
    monkeypatch.setattr(accounting, "SUBSCRIBER_STREAMS", 3)
    accounts = ready()
    many = [publisher(READY + 1, tag) for tag in range(4)]
    for who in many:
        take(accounts, who, 1)
    assert accounts.forgotten == 3
    take(accounts, many[0], 7)
    assert accounts.missed == 0


def test_at_the_bound_closed_streams_go_first_and_idle_ones_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that are in use keep their numbers as long as others can be forgotten."""
    monkeypatch.setattr(accounting, "SUBSCRIBER_STREAMS", 3)
    accounts = ready()
    busy, closed, idle, fresh, another = (publisher(READY + 1, tag) for tag in range(5))
    for who in (busy, closed, idle):
        take(accounts, who, 1)
    accounts.sweep(READY + 60)
    accounts.sweep(READY + 70)
    take(accounts, busy, 2)
    accounts.sweep(READY + 80)
    hear(accounts, beacon(closed, 1, closing=True))
    take(accounts, fresh, 1)
    assert set(accounts.streams(TOPIC)) == {busy, idle, fresh}
    take(accounts, another, 1)
    assert set(accounts.streams(TOPIC)) == {busy, fresh, another}
    assert (accounts.forgotten, accounts.missed) == (2, 0)


def test_forgetting_before_being_ready_leaves_the_start_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that overflows before we are ready does not make us ready."""
    monkeypatch.setattr(accounting, "SUBSCRIBER_STREAMS", 1)
    accounts = Accounting()
    take(accounts, publisher(1), 1)
    take(accounts, publisher(2), 5)
    take(accounts, publisher(READY + 9), 5)
    assert accounts.missed == 0


def test_the_gap_report_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Topics beyond the bound are in the total and not by name; known ones keep counting."""
    monkeypatch.setattr(accounting, "GAP_TOPICS", 1)
    accounts = ready()
    for topic in ("a.one", "a.two", "a.one"):
        last = accounts.streams(topic)[NEW].last if NEW in accounts.streams(topic) else 0
        take(accounts, NEW, last + 3, topic=topic)
    assert (accounts.missed, accounts.gaps) == (6, {"a.one": 4})


@given(
    events=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["a.x", "a.y"]), st.booleans()), max_size=80
    ),
    heard=st.data(),
)
def test_after_the_last_beacon_sent_is_received_plus_missed(
    events: list[tuple[int, str, bool]], heard: st.DataObject
) -> None:
    """However events and beacons are lost, once the final beacons arrive the account is exact.

    Publisher 0 began before the subscriber but uses the topics only after it was ready.
    """
    accounts = ready()
    numbers: dict[tuple[int, str], tuple[int, int]] = {}
    received = 0
    for moment, (index, topic, arrives) in enumerate(events):
        who = publisher(READY + index if index else READY - 1, index)
        first, last = numbers.get((index, topic), (READY + 1 + moment, 0))
        numbers[index, topic] = (first, last + 1)
        if arrives:
            received += 1
            accounts.event(topic, who, "me", last + 1, READY + moment)
        if heard.draw(st.integers(0, 9)) == 0:
            hear(accounts, Beacon(who, "me", False, {topic: numbers[index, topic]}))
    for (index, topic), told in numbers.items():
        who = publisher(READY + index if index else READY - 1, index)
        hear(accounts, Beacon(who, "me", True, {topic: told}))
    assert len(events) == received + accounts.missed
