"""Wildcards: the quick way to match them against the plain one."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_condition_patterns import matches, may_begin, path_matches

_PATTERNS = st.text(alphabet="ab*", max_size=8)
_TEXTS = st.text(alphabet="ab", max_size=10)
_STEPS = st.lists(st.sampled_from(["**", "*", "a", "b", "a*", "?", "[a]"]), max_size=5)
_NAMES = st.lists(st.sampled_from(["a", "b", "ab", "[a]"]), min_size=1, max_size=6)


@given(_PATTERNS, _TEXTS)
def test_a_pattern_matches_what_the_standard_library_says(pattern: str, text: str) -> None:
    """``*`` is any text, however often it stands."""
    assert matches(pattern, text) is fnmatchcase(text, pattern)


@given(_PATTERNS, _TEXTS, _TEXTS)
def test_what_may_follow_is_never_overlooked(pattern: str, known: str, rest: str) -> None:
    """Where the whole text matches, its beginning may begin a match."""
    assert may_begin(pattern, known) or not matches(pattern, known + rest)


def _plainly(steps: list[str], names: list[str]) -> bool:
    """The rules of ``.gitignore``, by trying everything; what is left of the names lies below a match."""
    if not steps:
        return True
    if steps[0] == "**" and len(steps) > 1:
        return any(_plainly(steps[1:], names[place:]) for place in range(len(names) + 1))
    if not names:
        return False
    pattern = re.escape(steps[0]).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(pattern, names[0]) is not None and _plainly(steps[1:], names[1:])


@given(_STEPS, _NAMES)
def test_a_path_matches_what_trying_everything_says(steps: list[str], names: list[str]) -> None:
    """Folders are tried from the left, and none twice."""
    assert path_matches("/".join(steps), "/".join(names)) is _plainly(steps, names)


@pytest.mark.parametrize("pattern", ["*a" * 500 + "*b", "*" * 1_000 + "b"])
def test_a_pattern_of_many_wildcards_is_soon_done(pattern: str) -> None:
    """It would never end if every way to share out the text were tried."""
    assert not matches(pattern, "a" * 10_000)
    assert not path_matches(pattern + "?", "a" * 1_000)
    assert not path_matches("**/a/" * 100 + "b", "a/" * 1_000)
