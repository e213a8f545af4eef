"""Which values a matcher of the Codex family matches, and which handlers an event starts.

It decides section 2 of the contract: what is an exact name, what a pattern, and how a pattern is compared, by
the profile's rule. Patterns are compiled once, by RE2, whose time is linear in the value's length; how it
differs from the engines upstream stands in :mod:`.codex_differences`. It refuses to know what a value is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from .codex_matcher_syntax import misread
from .codex_profiles import PROFILES, MatcherRule, Profile

if TYPE_CHECKING:
    from .codex_spec import CodexHandler

EVERYTHING: Final = frozenset({"", "*"})
"""Matchers that match every value, as an absent one does."""

_NAMES: Final = re.compile(r"[A-Za-z0-9_|]*", re.ASCII)
_LISTS: Final = re.compile(r"[A-Za-z0-9_\- ,|]*", re.ASCII)
_SEPARATORS: Final = re.compile(r"[,|]")

LONGEST: Final = 4_096
"""Characters of a pattern: comparing costs its length times that of the value."""

COMPILED: Final = 4_096
"""Compiled matchers that are kept, so that a file that is read again costs nothing."""
CACHED_ANSWERS: Final = 4_096
"""Answers that an index keeps."""
KEPT_CHARACTERS: Final = 1_024
"""Values longer than this are matched anew each time."""

FILTERED: Final = 32
"""Patterns of one event from which on they are searched for together."""
FILTER_PATTERNS: Final = 1_024
FILTER_CHARACTERS: Final = 65_536
"""Patterns, and characters of them, that are searched for together: a larger filter could need more memory
than RE2 gives it."""


class Pattern:
    """A pattern that RE2 compiled.

    It lives in a filter of its own: that costs half of what compiling it alone does.
    """

    __slots__ = ("_filter", "is_anchored", "text")

    def __init__(self, text: str, *, is_anchored: bool) -> None:
        import re2  # only a pattern needs it

        self.text = text
        self.is_anchored = is_anchored
        self._filter = re2.Filter()
        self._filter.Add(text, _options())

    @property
    def whole(self) -> str:
        """What is searched for. An anchored pattern compiles alone, so that its own groups are closed."""
        return rf"\A(?:{self.text})\z" if self.is_anchored else self.text

    def matches(self, value: str) -> bool:
        """Whether the pattern is found in a value; of an anchored one, whether it is the whole value."""
        compiled = self._filter.re(0)
        search = compiled.fullmatch if self.is_anchored else compiled.search
        return search(value) is not None


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


def compile_matcher(text: str | None, profile: Profile, *, literal: bool = False) -> Matcher:
    """The matcher that ``text`` is in a profile. Raises nothing: see ``Matcher.error``.

    ``literal``: it is a list of names whatever it holds, as Claude Code's ``FileChanged`` has.
    """
    if text is None or text in EVERYTHING:
        return Matcher(text)
    if literal:
        return Matcher(text, names=_listed(text))
    return _compiled(text, profile.matcher)


@lru_cache(maxsize=COMPILED)
def _compiled(text: str, rule: MatcherRule) -> Matcher:
    if rule == "search" and _NAMES.fullmatch(text):
        return Matcher(text, names=frozenset(text.split("|")))
    if rule == "list" and _LISTS.fullmatch(text):
        return Matcher(text, names=_listed(text))
    if len(text) > LONGEST:
        return Matcher(text, error=f"it is longer than {LONGEST:,} characters", is_upstreams=True)
    foreign = misread(text, rule)
    if foreign is not None:
        return Matcher(text, error=foreign.reason, is_upstreams=foreign.is_upstreams)
    found = regex(text, is_anchored=rule == "anchored")
    return Matcher(text, error=found) if isinstance(found, str) else Matcher(text, pattern=found)


def _listed(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in _SEPARATORS.split(text))


def regex(text: str, *, is_anchored: bool = False) -> Pattern | str:
    """A pattern compiled by RE2, or in words why it cannot be."""
    import re2  # only a pattern needs it

    try:
        return Pattern(text, is_anchored=is_anchored)
    except re2.error:
        return _reason(text)
    except UnicodeEncodeError:
        return "it holds half a character"


def _reason(text: str) -> str:
    """Why RE2 does not compile a pattern, in its words."""
    import re2

    try:
        re2.compile(text, _options())
    except re2.error as error:
        return bytes(error.args[0]).decode("utf-8", "replace")
    return "it is too large"


@lru_cache(maxsize=1)
def _options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False  # an error is a value here, and nothing for the standard error
    options.never_capture = True
    return options


class MatchIndex:
    """The handlers of a set by event, and which of them a value starts.

    Exact names are looked up, patterns of one event are searched for together. Answers are kept, at most
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
        patterns: dict[Pattern, list[int]] = {}
        for place, handler in enumerate(handlers):
            matcher = handler.matches
            if matcher.is_everything:
                self._every.append(place)
            elif matcher.pattern is not None:
                patterns.setdefault(matcher.pattern, []).append(place)
            for name in matcher.names or ():
                self._names.setdefault(name, []).append(place)
        self._patterns = patterns
        self._searchers = list(_searchers(list(patterns)))

    def select(self, values: tuple[str, ...]) -> tuple[CodexHandler, ...]:
        """The handlers that match, in order."""
        places = set(self._every)
        for value in values:
            places.update(self._names.get(value, ()))
            for searcher in self._searchers:
                for pattern in searcher.search(value):
                    places.update(self._patterns[pattern])
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


class _One:
    """Few patterns, tried one after the other."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns

    def search(self, value: str) -> Iterator[Pattern]:
        """The patterns that match."""
        return (pattern for pattern in self._patterns if pattern.matches(value))


class _Many:
    """Many patterns: those whose fixed texts the value holds are tried, by one pass over it."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        import re2

        self._filter = re2.Filter()
        self._patterns: list[Pattern] = []
        self._others: list[Pattern] = []
        for pattern in patterns:
            try:
                self._filter.Add(pattern.whole, _options())
                self._patterns.append(pattern)
            except re2.error:  # with what anchors it, it is too large
                self._others.append(pattern)
        self._filter.Compile()

    def search(self, value: str) -> Iterator[Pattern]:
        """The patterns that match."""
        for number in self._filter.Match(value) or ():
            yield self._patterns[number]
        for pattern in self._others:
            if pattern.matches(value):
                yield pattern


def _searchers(patterns: Sequence[Pattern]) -> Iterator[_One | _Many]:
    if len(patterns) < FILTERED:
        yield _One(patterns)
        return
    first = size = 0
    for number, pattern in enumerate(patterns):
        is_full = size + len(pattern.text) > FILTER_CHARACTERS or number - first >= FILTER_PATTERNS
        if is_full and number > first:
            yield _Many(patterns[first:number])
            first, size = number, 0
        size += len(pattern.text)
    yield _Many(patterns[first:])
