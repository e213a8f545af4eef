"""Patterns that are compiled and searched for together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import codex_matcher_patterns
from subscribers.dialects.codex_matcher_patterns import Filter, NoPattern, Pattern, Patterns


def test_a_pattern_is_found_or_not() -> None:
    """Alone, and with the others of its filter."""
    patterns = Patterns()
    first, second = patterns.add("a.c", is_anchored=False), patterns.add("^b", is_anchored=False)
    assert (first.matches("xabc"), second.matches("xabc")) == (True, False)
    assert first.filter is second.filter
    assert list(first.filter.found("xabc")) == [first.number]
    assert list(first.filter.found("")) == []
    assert sorted(first.filter.found("babc")) == [first.number, second.number]


def test_an_anchored_pattern_is_the_whole_value() -> None:
    """Whatever stands in it."""
    pattern = Patterns().add("a|ab|(c)", is_anchored=True)
    assert [pattern.matches(value) for value in ("a", "ab", "c", "abc", "xa")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_equal_patterns_are_one() -> None:
    """Anchored or not makes a difference."""
    patterns = Patterns()
    assert patterns.add("a.", is_anchored=False) is patterns.add("a.", is_anchored=False)
    assert patterns.add("a.", is_anchored=False) is not patterns.add("a.", is_anchored=True)


def test_nothing_is_added_to_what_was_searched() -> None:
    """Another filter begins."""
    patterns = Patterns()
    first = patterns.add("a.", is_anchored=False)
    assert list(first.filter.found("ab")) == [0]
    second = patterns.add("b.", is_anchored=False)
    assert second.filter is not first.filter
    assert second.matches("bc")
    assert first.matches("ab")


@pytest.mark.parametrize("text", ["[", "(", ")", "a{2,1}", "a)|(?:b"])
@pytest.mark.parametrize("is_anchored", [False, True])
def test_what_is_no_pattern_has_a_reason(text: str, is_anchored: bool) -> None:
    """Anchors put around it make no difference, and its neighbours do not notice."""
    patterns = Patterns()
    before = patterns.add("a.", is_anchored=False)
    with pytest.raises(NoPattern, match=r"\S"):
        patterns.add(text, is_anchored=is_anchored)
    after = patterns.add("b.", is_anchored=False)
    assert sorted(before.filter.found("ab b.")) == [before.number, after.number]


def test_half_a_character_is_no_pattern() -> None:
    """It cannot be written in UTF-8."""
    with pytest.raises(NoPattern, match="half a character"):
        Patterns().add("a\ud800.", is_anchored=False)


def test_a_pattern_that_needs_too_much_memory_is_none() -> None:
    """RE2 says so, and does not try."""
    with pytest.raises(NoPattern, match="too large"):
        Patterns().add(r"\pL{1000}", is_anchored=False)


def test_a_refusal_without_a_reason_has_one_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that a filter does not take and the compiler does is said to be too large."""
    import re2

    def refuse(*_arguments: object) -> Pattern:
        raise re2.error("no")

    monkeypatch.setattr(Filter, "add", refuse)
    with pytest.raises(NoPattern, match="it is too large"):
        Patterns().add("a.", is_anchored=False)


@pytest.mark.parametrize("limit", ["FILTER_PATTERNS", "FILTER_CHARACTERS"])
def test_a_filter_is_bounded(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next pattern goes into another one, and both are searched."""
    monkeypatch.setattr(codex_matcher_patterns, limit, 4)
    patterns = Patterns()
    made = [patterns.add(f"{number}.", is_anchored=False) for number in range(9)]
    homes = {pattern.filter for pattern in made}
    assert len(homes) == (3 if limit == "FILTER_PATTERNS" else 5)
    assert [pattern.matches(f"{number}x") for number, pattern in enumerate(made)] == [True] * 9
    assert sum(len(home.found("0x 8x")) for home in homes) == 2


PIECES = st.sampled_from(["a", "b", "Bash", ".*", "^", "$", "[ab]", "(a|b)", "x?", "mcp__", "_", "é", "a{2}"])
TEXTS = st.lists(PIECES, min_size=1, max_size=5).map("".join)


@given(
    st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=60), st.text("abBshx_mcp é", max_size=12)
)
def test_together_is_as_alone(texts: list[tuple[str, bool]], value: str) -> None:
    """A filter finds exactly those that match one by one."""
    patterns = Patterns()
    made = {patterns.add(text, is_anchored=is_anchored) for text, is_anchored in texts}
    together = {(home, number) for home in {each.filter for each in made} for number in home.found(value)}
    assert together == {(each.filter, each.number) for each in made if each.matches(value)}
