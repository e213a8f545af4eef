"""Being asked on behalf of hooks: one decider for each thing that our silence may mean.

    events that a hook fails closed on  -> "codex guards", failure closed: while we are dead the answer is no
    every other event of the family     -> "codex", failure open

Each event is asked about by one of them. Where that changes, the new deciders are there before the old ones
leave, so that nothing passes in between; what both are asked is one round (:mod:`.codex_round`). An event
stays where it is for a while after its last guard has gone: one that is put back misses nothing.
Decides who is asked what, and when. Refuses to know what a hook is and who answers.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol

from broker.client.decider import Ask
from broker.protocol.decisions import Failure

from .codex_service import NAME

GUARDS: Final = f"{NAME} guards"
"""The decider that fails closed. Never the other one's name: one that is back counts for its whole name."""

STAY_SECONDS: Final = 5.0
"""How long an event is asked about without a handler, and fails closed without a guard."""

HOLD_SECONDS: Final = 1.0
"""How long the broker may take to cease asking."""

LEAVING: Final = 8
"""Deciders that may still have asks to answer when the next one is opened."""

IDLE: Final = "prx.hooks.result.none"
"""A topic that nobody asks about, for guards that are back only to say that there is nothing to guard."""


class Decides(Protocol):
    """As much of :class:`broker.client.Decider` as is needed here."""

    @property
    def descriptor(self) -> int:
        """Readable while there is something to take."""

    @property
    def held(self) -> bool:
        """Whether no more asks come."""

    @property
    def stats(self) -> dict[str, int]:
        """Its counters."""

    def batch(self, max_asks: int = ..., timeout: float | None = None) -> list[Ask]:
        """What was asked."""

    def hold(self) -> None:
        """Be asked nothing more."""

    def close(self) -> None:
        """Leave."""


Open = Callable[[Failure, str, tuple[str, ...], bool], Decides]
"""Opens a decider: its failure policy, name, topics, and whether its status has the process's counters."""


class _Current(NamedTuple):
    """A decider that is asked, and about what."""

    decider: Decides
    topics: frozenset[str]


class Deciders:
    """The deciders of the process. For one thread. ``topics`` are all that there is to be asked about.

    ``take`` is given every ask. ``was_guarding``: guards of a process before may be missed by the broker,
    which denies what they guarded until they are back.
    """

    def __init__(
        self, topics: Iterable[str], open_one: Open, take: Callable[[Ask], None], *, was_guarding: bool
    ) -> None:
        self._topics = frozenset(topics)
        self._open = open_one
        self._take = take
        self._was_guarding = was_guarding
        self._current: dict[Failure, _Current] = {}
        self._leaving: list[Decides] = []
        self._needed = 0.0  # when there was a handler last
        self._guarded: dict[str, float] = {}  # topic -> when a guard was there last

    @property
    def is_open(self) -> bool:
        """Whether events are asked about."""
        return "open" in self._current or bool(self._guarded)

    @property
    def guards(self) -> bool:
        """Whether there is a decider that fails closed."""
        return "closed" in self._current

    def follow(self, now: float, guarded: frozenset[str], *, has_handlers: bool, is_busy: bool) -> None:
        """Be asked about everything while there are handlers; ``guarded`` are the topics that fail closed.

        Raises what opening a decider raises; what was asked before goes on to be.
        """
        if has_handlers or (self.is_open and is_busy):
            self._needed = now
        self._guarded |= dict.fromkeys(guarded, now)
        if self._was_guarding:
            self._guarded.setdefault(IDLE, now)
            self._was_guarding = False
        self._guarded = {each: at for each, at in self._guarded.items() if now - at < STAY_SECONDS}
        closed = frozenset(self._guarded)
        is_needed = self._needed > 0 and now - self._needed < STAY_SECONDS
        self._be_asked(self._topics - closed if is_needed else frozenset(), closed)
        self._part()

    def _be_asked(self, opened: frozenset[str], closed: frozenset[str]) -> None:
        wanted: dict[Failure, frozenset[str]] = {"closed": closed, "open": opened}
        changed = {
            failure: topics
            for failure, topics in wanted.items()
            if topics != (self._current[failure].topics if failure in self._current else frozenset())
        }
        if not changed or len(self._leaving) + len(changed) > LEAVING:
            return
        before = [self._current[failure].decider for failure in changed if failure in self._current]
        fresh = {
            failure: _Current(
                self._open(
                    failure,
                    GUARDS if failure == "closed" else NAME,
                    tuple(sorted(topics)),
                    failure == "open" or not opened,
                ),
                topics,
            )
            for failure, topics in changed.items()
            if topics
        }
        for failure in changed:
            self._current.pop(failure, None)
        self._current |= fresh
        for decider in before:
            decider.hold()
        self._leaving += before

    def _part(self) -> None:
        """Close those whose last ask was answered, or is of no use any more."""
        for decider in [each for each in self._leaving if each.held and not each.stats["waiting"]]:
            self._leaving.remove(decider)
            decider.close()

    def batch(self, timeout: float) -> bool:
        """Hand on what was asked; waits for ``timeout`` seconds at most. Whether anything was."""
        deciders = [*(each.decider for each in self._current.values()), *self._leaving]
        if self._hand_on(deciders):
            return True
        found = select.poll()
        for decider in deciders:
            found.register(decider.descriptor, select.POLLIN)
        found.poll(timeout * 1_000)
        return self._hand_on(deciders)

    def _hand_on(self, deciders: Iterable[Decides]) -> bool:
        asks = [ask for decider in deciders for ask in decider.batch(timeout=0.0)]
        for ask in asks:
            self._take(ask)
        return bool(asks)

    def hold(self) -> None:
        """Be asked nothing more, and take what was asked before."""
        every = [*(each.decider for each in self._current.values()), *self._leaving]
        for current in self._current.values():
            current.decider.hold()
        self._current, self._leaving = {}, every
        until = time.monotonic() + HOLD_SECONDS
        while not all(decider.held for decider in every) and time.monotonic() < until:
            self.batch(0.05)

    def close(self) -> None:
        """Leave."""
        leaving, self._leaving = self._leaving, []
        for decider in leaving:
            decider.close()
