"""One event is one round, whoever brings it first."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest

from broker.protocol.decisions import Answer
from broker.protocol.envelope import Claim
from broker.protocol.events import Event
from subscribers.hooks.role_chain import NO_SUBJECT, Happening, Walk
from subscribers.runner.roles_rounds import ANSWERED_BYTES, Result, Rounds
from tests.subscribers.runner.fake_ask import FakeAsk

ANSWER = Answer("h")


def event(number: int = 1) -> Event:
    return Event.of("prx.lifecycle.tool_call", 0, b"p" * 16, number, 1, "s", "agent", None, b"{}")


class Broken(FakeAsk):
    """An ask that cannot be answered."""

    def reply(self, answers: Iterable[Answer], /) -> bool:
        """There is no room."""
        raise ValueError("no room")


@pytest.mark.parametrize(
    "order", ["ask copy land", "copy ask land", "copy land ask", "ask land copy", "ask land ask"]
)
def test_an_ask_is_answered_whenever_it_comes(order: str) -> None:
    """Before the event's copy, behind it, and when all is over; and the event is handled by one."""
    rounds, asks, mine = Rounds(), [], []
    for step in order.split():
        if step == "ask":
            asks.append(FakeAsk(event(), 30.0))
            mine.append(rounds.begin(event(), 0.0, asks[-1]))
        elif step == "copy":
            mine.append(rounds.begin(event(), 0.0))
        else:
            (found,) = [each for each in mine if each is not None]
            reached = rounds.land(found, Result([ANSWER]))
            assert reached is (order.index("ask") < order.index("land"))
    assert sum(each is not None for each in mine) == 1
    assert [ask.answers for ask in asks] == [[ANSWER]] * len(asks)


def test_an_ask_that_comes_later_brings_its_deadline_along() -> None:
    """A round that was begun for nobody hurries from then on; the longest deadline counts."""
    rounds = Rounds()
    found = rounds.begin(event(), 0.0)
    assert found is not None
    assert not found.is_wanted(time.monotonic())
    found.walk = walk = Walk((), Happening("x"), None, NO_SUBJECT, None)
    late, early = FakeAsk(event(), 30.0), FakeAsk(event(), 10.0)
    for ask in (late, early):
        rounds.begin(event(), 0.0, ask)
    assert walk.deadline == found.deadline == late.deadline
    assert found.is_wanted(early.deadline)
    late.cancelled = early.cancelled = True
    assert not found.is_wanted(early.deadline)
    assert not rounds.land(found, Result([ANSWER]))
    assert (late.answers, early.answers) == (None, None)


def test_what_cannot_be_answered_fails_and_what_failed_is_said() -> None:
    """An asker hears in any case."""
    results: list[Any] = []
    for kind, result in ((Broken, Result([ANSWER])), (FakeAsk, Result(error="no room"))):
        rounds, ask = Rounds(), kind(event(), 30.0)
        found = rounds.begin(event(), 0.0, ask)
        assert found is not None
        assert not rounds.land(found, result)
        results.append(ask.error)
    assert results == ["the answer could not be sent: ValueError", "no room"]


def test_rounds_are_bounded() -> None:
    """The oldest are forgotten, and would be handled again."""
    rounds = Rounds(remembered=2)
    assert all(rounds.begin(event(number), 0.0) for number in (1, 2, 3))
    assert [rounds.begin(event(number), 0.0) is None for number in (3, 2, 1)] == [True, True, False]


def test_of_what_is_over_only_the_latest_answers_are_kept() -> None:
    """An ask that comes later still hears, with nothing to say; and whoever has to tell of it is told."""
    rounds, kept = Rounds(answered=2), []
    claim = Claim(ANSWERED_BYTES + 1, bytes(32), "x", b"{")
    large = Event.of("prx.lifecycle.tool_call", 0, b"p" * 16, 4, 1, "s", "agent", None, claim)
    events = [event(1), event(2), event(3)]
    for each in events:
        found = rounds.begin(each, 0.0)
        assert found is not None
        rounds.land(found, Result([ANSWER]))
        kept.append(found)
    late = [FakeAsk(each, 30.0) for each in events]
    assert [rounds.begin(ask.event, 0.0, ask) for ask in late] == [None] * 3
    assert [ask.answers for ask in late] == [[], [ANSWER], [ANSWER]]
    assert all(found.claimed for found in kept)
    found = rounds.begin(large, 0.0)
    assert found is not None
    rounds.land(found, Result([ANSWER]))
    late = [FakeAsk(each, 30.0) for each in (*events, large)]
    assert [rounds.begin(ask.event, 0.0, ask) for ask in late] == [None] * 4
    assert [ask.answers for ask in late] == [[]] * 4
