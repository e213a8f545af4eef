"""Counters that only grow, from peers that come and go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.beacons import Beacon
from subscribers.http import tallies
from subscribers.http.tallies import CLOSED_SECONDS, FORGET_SECONDS, FURTHER, Growing, Tallies

ONE, TWO = b"1" * 16, b"2" * 16


def beacon(publisher: bytes, **topics: int) -> Beacon:
    """What a publisher says of its topics' last numbers."""
    return Beacon(publisher, "test", False, {f"prx.{name}": (0, last) for name, last in topics.items()})


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.integers(1, 50)), max_size=30))
def test_a_topic_counts_what_its_publishers_say(said: list[tuple[bytes, int]]) -> None:
    """The sum of each publisher's highest number, in whatever order and however often beacons come."""
    found = Tallies()
    for publisher, last in said:
        found.beacon(beacon(publisher, a=last), 0.0)
    highest = [max((n for p, n in said if p == publisher), default=0) for publisher in (ONE, TWO)]
    assert found.topics.get("prx.a", 0) == sum(highest)


def test_topics_beyond_the_bound_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher of endless topics costs one line."""
    monkeypatch.setattr(tallies, "TOPICS", 1)
    found = Tallies()
    found.beacon(beacon(ONE, a=2, b=3, c=4), 0.0)
    found.beacon(beacon(ONE, a=3, b=4), 0.0)
    assert found.topics == {"prx.a": 3, FURTHER: 8}


def test_streams_beyond_the_bound_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known ones go on; silent ones make room."""
    monkeypatch.setattr(tallies, "STREAMS", 1)
    found = Tallies()
    found.beacon(beacon(ONE, a=2), 0.0)
    found.beacon(beacon(TWO, a=5), 1.0)
    found.beacon(beacon(ONE, a=3), 1.0)
    assert found.topics == {"prx.a": 3}
    found.beacon(beacon(TWO, a=5), 2.0 + FORGET_SECONDS)
    assert found.topics == {"prx.a": 8}


def closing(publisher: bytes, **topics: int) -> Beacon:
    """The last word of a publisher."""
    return beacon(publisher, **topics)._replace(closing=True)


def test_publishers_that_closed_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each counts once, however often its last word is said again, and is soon forgotten."""
    monkeypatch.setattr(tallies, "STREAMS", 110 * 61)
    found, counted = Tallies(), 0
    for second in range(600):
        for number in range(110):
            publisher = f"{second:08}{number:08}".encode()
            found.beacon(closing(publisher, a=3), float(second))
            counted += 3
            for echo in (2, 8, 30):  # of one that closed so long ago
                if second >= echo:
                    again = f"{second - echo:08}{number:08}".encode()
                    found.beacon(closing(again, a=3), float(second))
    assert found.topics == {"prx.a": counted}


def test_a_last_word_comes_in_parts() -> None:
    """Topics are told over several beacons, and one that was told before its end may come late."""
    found = Tallies()
    found.beacon(beacon(ONE, a=2, b=1), 0.0)
    found.beacon(closing(ONE, a=5), 1.0)
    found.beacon(closing(ONE, b=4), 1.0)
    found.beacon(beacon(ONE, a=4, b=4), 1.0)
    found.beacon(closing(ONE, a=6), 31.0)
    assert found.topics == {"prx.a": 6, "prx.b": 4}
    found.forget(1.0 + CLOSED_SECONDS + 0.1)
    assert not found._streams


def test_a_full_table_is_not_swept_for_each_beacon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a second at most, whatever comes."""
    monkeypatch.setattr(tallies, "STREAMS", 1)
    found, sweeps = Tallies(), 0
    forget = found.drops.forget

    def counting(before: float) -> None:
        nonlocal sweeps
        sweeps += 1
        forget(before)

    monkeypatch.setattr(found.drops, "forget", counting)
    for number in range(100):
        found.beacon(beacon(str(number).encode(), a=1), 5.0 + number / 100)
    assert sweeps == 1
    assert found.topics == {"prx.a": 1}


def test_a_sum_outlives_its_sources() -> None:
    """Peers that leave take nothing away, and what is forgotten stays counted."""
    found = Tallies()
    found.take_status({"publishers": [{"publisher": "aa", "dropped_full": 3, "over_depth": 1}]}, 0.0)
    found.take_status({"publishers": []}, 1.0)
    found.take_status({"publishers": [{"publisher": "bb", "dropped_full": 2, "dropped_absent": 4}]}, 2.0)
    found.forget(FORGET_SECONDS + 10.0)
    assert found.drops.totals == {
        "no_bus": 4,
        "publisher_queue_full": 5,
        "too_deep": 1,
        "subscriber_missed": 0,
        "hook_queue_full": 0,
    }


def test_a_status_is_counted_by_what_it_says() -> None:
    """Frames by epoch, refusals by reason, subscribers by name without its number, runs by how they ended."""
    status: dict[str, Any] = {
        "broker": {"epoch": "e1"},
        "forwarded": {"frames_in": 10, "frames_out": 20},
        "refused": {"bad_topic": 2},
        "subscribers": [
            {
                "name": "shell",
                "pid": 1,
                "received": 5,
                "missed": 1,
                "runs": {"ok": 4, "timeout": 1, "dropped": 7},
                "runs_dropped": 7,
            },
            {"name": "http-stream-12", "pid": 2, "received": 3},
            {"name": "http-stream-13", "pid": 2, "received": 4},
            {"name": "twin", "pid": 3, "received": 1},
            {"name": "twin", "pid": 3, "received": 2},
        ],
        "deciders": [
            {"name": "codex", "pid": 4, "asked": 9, "runs": {"ok": 2, "odd": 1}, "runs_dropped": 3},
            {"name": "guard", "pid": 5, "asked": 1},
        ],
    }
    found = Tallies()
    found.take_status(status, 0.0)
    found.take_status({**status, "broker": {"epoch": "e2"}}, 1.0)
    assert found.frames.totals == {"frames_in": 20, "frames_out": 40}
    assert found.refused.totals == {"bad_topic": 4}
    assert found.received.totals == {
        ("shell", "received"): 5,
        ("shell", "missed"): 1,
        ("http-stream", "received"): 7,
        ("twin", "received"): 3,
    }
    assert found.runs.totals == {
        ("shell", "ok"): 4,
        ("shell", "timeout"): 1,
        ("shell", "dropped"): 7,
        ("codex", "ok"): 2,
        ("codex", "unknown"): 1,
    }
    assert (found.drops.totals["subscriber_missed"], found.drops.totals["hook_queue_full"]) == (1, 10)
    found.no_status()
    assert found.status is None


@pytest.mark.parametrize(
    "status",
    [
        {},
        {
            "publishers": 5,
            "subscribers": [7],
            "deciders": [7],
            "broker": 1,
            "forwarded": None,
            "refused": {"x": "y"},
        },
    ],
)
def test_a_status_of_another_shape_is_survived(status: dict[str, Any]) -> None:
    """What is not as we know it counts nothing."""
    found = Tallies()
    found.take_status(status, 0.0)
    found.take_status({"subscribers": [{"name": "a", "runs": {"ok": True}, "missed": "many"}]}, 0.0)
    assert found.runs.totals == {}
    assert set(found.drops.totals.values()) == {0}


@given(st.lists(st.integers(0, 20)))
def test_a_sum_never_falls(values: list[int]) -> None:
    """Whatever a source says, the total only grows."""
    growing, before = Growing(), 0.0
    for value in values:
        growing.report("source", "label", value, 0.0)
        assert growing.totals["label"] >= before
        before = growing.totals["label"]


def test_sources_and_labels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further sources are passed over, further labels counted together."""
    monkeypatch.setattr(tallies, "SOURCES", 3)
    monkeypatch.setattr(tallies, "LABELS", 2)
    growing = Growing()
    for source in "abcd":
        growing.report(source, source, 1, 0.0)
    assert growing.totals == {"a": 1, "b": 1, FURTHER: 1}


def test_sums_beyond_the_bound_keep_what_nobody_can_invent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and events of further subscribers are told by how they ended; odd words are one."""
    monkeypatch.setattr(tallies, "LABELS", 2)
    found = Tallies()
    rows = [
        {"name": name, "pid": 1, "received": 1, "missed": 2, "runs": {"ok": 3, "odd": 4, f"x{name}": 5}}
        for name in "abc"
    ]
    found.take_status({"subscribers": rows}, 0.0)
    assert found.received.totals == {
        ("a", "received"): 1,
        ("a", "missed"): 2,
        (FURTHER, "received"): 2,
        (FURTHER, "missed"): 4,
    }
    assert found.runs.totals == {
        ("a", "ok"): 3,
        ("a", "unknown"): 9,
        (FURTHER, "ok"): 6,
        (FURTHER, "unknown"): 18,
    }
