"""Following something by looking at it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from subscribers.sources.discover import Signature
from subscribers.sources.looking_watch import LookingWatcher
from tests.integration.waiting import until


class Thing:
    """Something that changes, and what its watcher told."""

    def __init__(self) -> None:
        self.looks: Signature = (1,)
        self.told: list[Signature] = []
        self.errors: list[Exception] = []
        self.fails = False
        self.watcher = LookingWatcher(self.look, lambda: self.told.append(self.looks), self.errors.append)

    def look(self) -> Signature:
        """Its signature now."""
        if self.fails:
            raise OSError("cannot look")
        return self.looks

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch it meanwhile."""
        self.watcher.start()
        try:
            yield
        finally:
            self.watcher.stop()


def test_a_change_is_told_once_it_rests() -> None:
    """Also one between construction and start, and one that takes the thing away."""
    thing = Thing()
    thing.looks = (2,)
    with thing.watched():
        until(lambda: thing.told == [(2,)], "the first change")
        thing.looks = None
        until(lambda: thing.told == [(2,), None], "the second change")
    assert thing.errors == []


def test_a_look_that_fails_is_told_and_watching_goes_on() -> None:
    """An error is one, and the next change is seen."""
    thing = Thing()
    with thing.watched():
        thing.fails = True
        until(lambda: thing.errors, "the error")
        thing.looks, thing.fails = (3,), False
        until(lambda: thing.told == [(3,)], "the change")


def test_stopping_without_a_start_is_nothing() -> None:
    """And stopping ends a settling too."""
    Thing().watcher.stop()
    thing = Thing()
    moves = iter(range(1_000_000))
    thing.look = lambda: (next(moves),)  # type: ignore[method-assign]
    watcher = LookingWatcher(thing.look, lambda: thing.told.append(None), thing.errors.append)
    watcher.start()
    until(lambda: next(moves) > 3, "a few looks")
    watcher.stop()
    assert "watch hooks" not in {thread.name for thread in threading.enumerate()}
