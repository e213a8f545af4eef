"""One run for one event, whoever asks first, and one version while two are in service."""

from __future__ import annotations

import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.decisions import Answer
from subscribers.runner.python_claims import Claims
from subscribers.runner.python_flights import Flights, Result

YES = Result(Answer("h", "deny"))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.booleans()), max_size=30))
def test_each_pair_has_one_run_and_everybody_hears_it_once(steps: list[tuple[str, int, bool]]) -> None:
    """Whatever the order of beginnings, claims and landings: one runner for each event and handler."""
    flights = Flights()
    runs: dict[tuple[str, int], int] = {}
    claims = heard = 0

    def hear(result: Result) -> None:
        nonlocal heard
        assert result is YES
        heard += 1

    landed = {}
    for event, number, lands in steps:
        flight, is_new = flights.begin(event, number)
        runs[event, number] = runs.get((event, number), 0) + is_new
        flights.claim(flight, hear, lambda now: True)
        claims += 1
        if lands:
            flights.land(flight, YES)
        landed[event, number] = flight
    for flight in landed.values():
        flights.land(flight, YES)
    assert set(runs.values()) <= {1}
    assert heard == claims
    assert all(flight.claimed and flight.result is YES for flight in landed.values())


def test_a_run_is_given_up_only_when_nobody_wants_it() -> None:
    """Not while one of its asks waits, and not for observers; whoever asks later hears why there is none."""
    flights = Flights()
    observed, _ = flights.begin("o", 0)
    asked, _ = flights.begin("a", 0)
    heard: list[Result] = []
    flights.claim(asked, heard.append, lambda now: now < 1)
    flights.claim(asked, heard.append, lambda now: now < 2)
    late = Result(None, "late")
    assert not flights.give_up(observed, late, 9)
    assert not flights.give_up(asked, late, 1)
    assert heard == []
    assert flights.give_up(asked, late, 2)
    flights.claim(asked, heard.append, lambda now: True)
    assert heard == [late] * 3


def test_the_oldest_are_forgotten_beyond_the_bound() -> None:
    """So many are remembered, and no more."""
    flights = Flights(remembered=3)
    for number in range(5):
        flights.begin("e", number)
    assert [flights.knows("e", number) for number in range(5)] == [False, False, True, True, True]


def test_of_two_versions_exactly_one_gets_an_event(tmp_path: Path) -> None:
    """From many threads at once, each event and role is taken by one of them, and it stays so."""
    versions = [Claims(str(tmp_path)), Claims(str(tmp_path))]
    taken: list[list[bool]] = [[], []]

    def take(which: int) -> None:
        for number in range(200):
            first = versions[which].take("decide", f"e{number}")
            assert versions[which].take("decide", f"e{number}") is first
            taken[which].append(first)

    threads = [threading.Thread(target=take, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a + b for a, b in zip(*taken, strict=True)] == [1] * 200
    assert versions[0].take("on", "e1") or versions[1].take("on", "e1")


def test_where_claims_cannot_be_made_events_are_handled(tmp_path: Path) -> None:
    """A folder that is gone makes nobody lose an event."""
    assert Claims(str(tmp_path / "gone")).take("on", "e")
