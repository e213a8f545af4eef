"""Who is asked what on behalf of hooks, with deciders that are asked nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from broker.client.decider import Ask
from broker.protocol.decisions import Failure
from subscribers.runner.codex_deciders import GUARDS, IDLE, LEAVING, STAY_SECONDS, Deciders
from subscribers.runner.codex_service import NAME

A, B, C = "prx.lifecycle.a", "prx.lifecycle.b", "prx.lifecycle.c"


class FakeDecider:
    """A decider that is held when it is told to, and never asked."""

    def __init__(self, failure: Failure, name: str, topics: tuple[str, ...], *, reports: bool) -> None:
        self.what = (failure, name, topics)
        self.reports = reports
        self.descriptor, self._other = os.pipe()
        self.held = False
        self.closed = False
        self.told_to_hold = False
        self.stats = {"waiting": 0}

    def batch(self, max_asks: int = 64, timeout: float | None = None) -> list[Ask]:
        """Nothing."""
        assert not self.closed
        return []

    def hold(self) -> None:
        """It is to be asked nothing more."""
        self.told_to_hold = True

    def close(self) -> None:
        """It has left."""
        self.closed = True
        os.close(self.descriptor)
        os.close(self._other)


class Scene:
    """Deciders, and every one that was opened."""

    def __init__(self, *, was_guarding: bool = False) -> None:
        self.opened: list[FakeDecider] = []
        self.at_opening: list[int] = []
        self.deciders = Deciders((A, B, C), self._open, lambda _: None, was_guarding=was_guarding)

    def _open(self, failure: Failure, name: str, topics: tuple[str, ...], reports: bool) -> FakeDecider:
        self.opened.append(FakeDecider(failure, name, topics, reports=reports))
        self.at_opening.append(sum(each.told_to_hold for each in self.opened))
        return self.opened[-1]

    def follow(self, now: float, *guarded: str, handlers: bool = True, busy: bool = False) -> None:
        """There are handlers, and these topics fail closed."""
        self.deciders.follow(now, frozenset(guarded), has_handlers=handlers, is_busy=busy)

    def asked(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """What those are asked about that are to be asked."""
        return sorted(each.what for each in self.opened if not each.told_to_hold)


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Nobody is asked yet."""
    made = Scene()
    yield made
    for each in made.opened:
        if not each.closed:
            each.close()


def test_each_event_is_asked_about_by_one(scene: Scene) -> None:
    """What a guard fails closed on is asked about by another decider than the rest, under another name."""
    scene.follow(10.0)
    assert scene.asked() == [("open", NAME, (A, B, C))]
    scene.follow(11.0, B)
    assert scene.asked() == [("closed", GUARDS, (B,)), ("open", NAME, (A, C))]
    assert scene.at_opening == [0, 0, 0], "the new ones are there before the old one is told to leave"
    scene.follow(12.0, A, B, C)
    assert scene.asked() == [("closed", GUARDS, (A, B, C))]
    assert scene.opened[-1].reports, "the one that is left tells the counters"


def test_one_that_leaves_answers_first(scene: Scene) -> None:
    """It is closed when it is asked no more and all that it was asked is answered."""
    scene.follow(10.0)
    (first,) = scene.opened
    first.stats["waiting"] = 1
    scene.follow(11.0, B)
    assert not first.closed
    first.held = True
    scene.follow(12.0, B)
    assert not first.closed
    first.stats["waiting"] = 0
    scene.follow(13.0, B)
    assert first.closed
    scene.deciders.batch(0.0)


def test_an_event_stays_guarded_for_a_while(scene: Scene) -> None:
    """A guard that is put back in time changes nothing; later its event is as any other, and all end."""
    scene.follow(10.0, B)
    scene.follow(10.0 + STAY_SECONDS / 2, handlers=False)
    scene.follow(11.0 + STAY_SECONDS / 2, B)
    assert len(scene.opened) == 2
    scene.follow(12.0 + 2 * STAY_SECONDS)
    assert scene.asked() == [("open", NAME, (A, B, C))]
    scene.follow(13.0 + 3 * STAY_SECONDS, handlers=False, busy=True)
    assert scene.deciders.is_open
    scene.follow(14.0 + 5 * STAY_SECONDS, handlers=False)
    assert not scene.deciders.is_open
    assert scene.asked() == []


def test_guards_of_before_are_back_though_there_is_nothing_to_guard() -> None:
    """What a process before has guarded is denied until its name is back: it comes, and leaves in order."""
    scene = Scene(was_guarding=True)
    scene.follow(10.0, handlers=False)
    assert scene.asked() == [("closed", GUARDS, (IDLE,))]
    scene.follow(11.0 + STAY_SECONDS, handlers=False)
    assert scene.asked() == []
    scene.opened[0].held = True
    scene.follow(12.0 + STAY_SECONDS, handlers=False)
    assert scene.opened[0].closed


def test_those_that_leave_are_bounded(scene: Scene) -> None:
    """Whoever changes guards all the time has to wait for those that still have asks to answer."""
    for number in range(3 * LEAVING):
        scene.follow(10.0 + 2 * STAY_SECONDS * number, *((A,) if number % 2 else (B,)))
    assert sum(each.told_to_hold for each in scene.opened) <= LEAVING
    for each in scene.opened:
        each.held = True
    scene.deciders.hold()
    assert scene.asked() == []
    scene.deciders.close()
    assert all(each.closed for each in scene.opened)
