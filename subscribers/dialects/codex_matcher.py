"""Which values a matcher of the Codex family matches, and which handlers an event starts.

It decides section 2 of the contract: what is an exact name, what a pattern, and how a pattern is compared, by
the profile's rule. Patterns are compiled once, by RE2, whose time is linear in the value's length; how it
differs from the engines upstream stands in :mod:`.codex_differences`. It refuses to know what a value is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .codex_matcher_patterns import Filter, NoPattern, Pattern, Patterns
from .codex_matcher_syntax import misread
from .codex_profiles import PROFILES, Profile

if TYPE_CHECKING:
    from .codex_spec import CodexHandler

EVERYTHING: Final = frozenset({"", "*"})
"""Matchers that match every value, as an absent one does."""

_NAMES: Final = re.compile(r"[A-Za-z0-9_|]*", re.ASCII)
_LISTS: Final = re.compile(r"[A-Za-z0-9_\- ,|]*", re.ASCII)
_SEPARATORS: Final = re.compile(r"[,|]")

LONGEST: Final = 4_096
"""Characters of a pattern: comparing costs its length times that of the value."""

CACHED_ANSWERS: Final = 4_096
"""Answers that an index keeps."""
KEPT_CHARACTERS: Final = 1_024
"""Values longer than this are matched anew each time."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """A compiled matcher.

    ``text`` is as written. One of three holds: ``names`` are the exact values that match; ``pattern`` is
    what is searched for; with none of both, everything matches. ``error`` is why it matches nothing;
    ``is_upstreams``: the agent's own engine would take it.
    """

    text: str | None
    names: frozenset[str] | None = None
    pattern: Pattern | None = None
    error: str | None = None
    is_upstreams: bool = False

    @property
    def is_everything(self) -> bool:
        """Whether every value matches."""
        return self.names is None and self.pattern is None and self.error is None

    def matches(self, value: str) -> bool:
        """Whether this value matches. Linear in its length."""
        if self.names is not None:
            return value in self.names
        if self.pattern is not None:
            return self.pattern.matches(value)
        return self.error is None


ALL: Final = Matcher(None)
"""What matches everything."""


def compile_matcher(
    text: str | None, profile: Profile, patterns: Patterns | None = None, *, literal: bool = False
) -> Matcher:
    """The matcher that ``text`` is in a profile. Raises nothing: see ``Matcher.error``.

    ``patterns`` are those of its file, which are compiled together. ``literal``: it is a list of names
    whatever it holds, as Claude Code's ``FileChanged`` has.
    """
    rule = profile.matcher
    if text is None or text in EVERYTHING:
        return Matcher(text)
    if rule == "search" and _NAMES.fullmatch(text):
        return Matcher(text, names=frozenset(text.split("|")))
    if literal or (rule == "list" and _LISTS.fullmatch(text)):
        return Matcher(text, names=frozenset(name.strip() for name in _SEPARATORS.split(text)))
    if len(text) > LONGEST:
        return Matcher(text, error=f"it is longer than {LONGEST:,} characters", is_upstreams=True)
    foreign = misread(text, rule)
    if foreign is not None:
        return Matcher(text, error=foreign.reason, is_upstreams=foreign.is_upstreams)
    patterns = Patterns() if patterns is None else patterns
    try:
        return Matcher(text, pattern=patterns.add(text, is_anchored=rule == "anchored"))
    except NoPattern as error:
        return Matcher(text, error=str(error))


class MatchIndex:
    """The handlers of a set by event, and which of them a value starts.

    Exact names are looked up, patterns of one file are searched for together. Answers are kept, at most
    :data:`CACHED_ANSWERS`, the oldest goes first. For one thread.
    """

    def __init__(self, handlers: Iterable[CodexHandler]) -> None:
        lists: dict[str, list[CodexHandler]] = {}
        able = (handler for handler in handlers if handler.unsupported is None)
        for handler in sorted(able, key=lambda handler: handler.order):
            lists.setdefault(handler.event, []).append(handler)
        self._events = {event: _EventIndex(found) for event, found in lists.items()}
        self._answers: dict[tuple[str, tuple[str, ...]], tuple[CodexHandler, ...]] = {}

    @property
    def events(self) -> tuple[str, ...]:
        """The events that have handlers."""
        return tuple(self._events)

    def select(self, event: str, values: tuple[str, ...]) -> tuple[CodexHandler, ...]:
        """The handlers of an event that match one of ``values``, each once, in their order."""
        key = (event, values)
        found = self._answers.get(key)
        if found is None:
            index = self._events.get(event)
            found = () if index is None else index.select(values)
            if sum(map(len, values)) <= KEPT_CHARACTERS:
                if len(self._answers) >= CACHED_ANSWERS:
                    del self._answers[next(iter(self._answers))]
                self._answers[key] = found
        return found


class _EventIndex:
    """The handlers of one event."""

    def __init__(self, handlers: Sequence[CodexHandler]) -> None:
        self._handlers = handlers
        self._dedupes = any(PROFILES[handler.profile].dedupes for handler in handlers)
        self._every: list[int] = []
        self._names: dict[str, list[int]] = {}
        self._filters: dict[Filter, dict[int, list[int]]] = {}
        for place, handler in enumerate(handlers):
            matcher = handler.matches
            if matcher.is_everything:
                self._every.append(place)
            elif matcher.pattern is not None:
                numbers = self._filters.setdefault(matcher.pattern.filter, {})
                numbers.setdefault(matcher.pattern.number, []).append(place)
            for name in matcher.names or ():
                self._names.setdefault(name, []).append(place)
        for each in self._filters:
            each.compile()

    def select(self, values: tuple[str, ...]) -> tuple[CodexHandler, ...]:
        """The handlers that match, in order."""
        places = set(self._every)
        for value in values:
            places.update(self._names.get(value, ()))
            for each, numbers in self._filters.items():
                for number in each.found(value):
                    places.update(numbers.get(number, ()))
        found = [self._handlers[place] for place in sorted(places)]
        return tuple(_once(found) if self._dedupes else found)


def _once(handlers: Iterable[CodexHandler]) -> Iterator[CodexHandler]:
    """The handlers without those that an earlier one is equal to, where their profile runs such once."""
    seen = set()
    for handler in handlers:
        if not PROFILES[handler.profile].dedupes:
            yield handler
        elif handler.identity not in seen:
            seen.add(handler.identity)
            yield handler
