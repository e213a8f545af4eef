"""Patterns that RE2 compiles together and searches for together.

RE2 keeps the patterns of a filter beside the fixed texts that each needs: one pass over a value tells which
of them could match, and those are tried. So a file's patterns are compiled once, into as few filters as may
be, and whoever asks for many of them asks the filter. It refuses to know what a pattern is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

FILTER_PATTERNS: Final = 1_024
FILTER_CHARACTERS: Final = 65_536
"""Patterns of one filter, and characters of them: a larger one could need more memory than RE2 gives it."""


class NoPattern(ValueError):
    """RE2 does not compile the text; the error's text says why, in RE2's words."""


class Filter:
    """Patterns that are searched for together. None can be added once it was searched."""

    def __init__(self) -> None:
        import re2  # only a pattern needs it

        self._filter: Any = re2.Filter()
        self._characters = 0
        self._number = 0
        self._is_compiled = False

    @property
    def is_open(self) -> bool:
        """Whether another pattern may be added."""
        has_room = self._number < FILTER_PATTERNS and self._characters < FILTER_CHARACTERS
        return has_room and not self._is_compiled

    def add(self, text: str) -> Pattern:
        """Compile a pattern. Raises ``re2.error`` and UnicodeEncodeError."""
        number = self._filter.Add(text, _options())
        self._number += 1
        self._characters += len(text)
        return Pattern(self, number)

    def compile(self) -> None:
        """Make ready for :meth:`found`, which would do it else."""
        if not self._is_compiled:
            self._is_compiled = True
            self._filter.Compile()

    def found(self, value: str) -> Sequence[int]:
        """The numbers of the patterns that are found in a value."""
        self.compile()
        found: Sequence[int] | None = self._filter.Match(value)
        return found or ()

    def holds(self, number: int, value: str) -> bool:
        """Whether one pattern is found in a value."""
        return self._filter.re(number).search(value) is not None


class Pattern:
    """One pattern of a filter."""

    __slots__ = ("filter", "number")

    def __init__(self, home: Filter, number: int) -> None:
        self.filter = home
        self.number = number

    def matches(self, value: str) -> bool:
        """Whether the pattern is found in a value."""
        return self.filter.holds(self.number, value)


class Patterns:
    """The patterns of one file; equal ones are one. For one thread."""

    def __init__(self) -> None:
        self._open: Filter | None = None
        self._known: dict[tuple[str, bool], Pattern] = {}

    def add(self, text: str, *, is_anchored: bool) -> Pattern:
        """Compile a pattern; of an anchored one the whole value has to match. Raises :class:`NoPattern`."""
        found = self._known.get((text, is_anchored))
        if found is None:
            found = self._known[(text, is_anchored)] = self._compile(text, is_anchored=is_anchored)
        return found

    def _compile(self, text: str, *, is_anchored: bool) -> Pattern:
        import re2

        try:
            if is_anchored and ")" in text:
                Filter().add(text)  # alone: a bracket too many would open what is put around it
            if self._open is None or not self._open.is_open:
                self._open = Filter()
            return self._open.add(rf"\A(?:{text})\z" if is_anchored else text)
        except re2.error:
            raise NoPattern(_reason(text)) from None
        except UnicodeEncodeError:
            raise NoPattern("it holds half a character") from None


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
