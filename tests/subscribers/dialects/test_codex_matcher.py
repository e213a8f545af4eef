"""Matchers and the index of handlers: section 2 of the contract, in each profile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_matcher import (
    ALL,
    CACHED_ANSWERS,
    KEPT_CHARACTERS,
    LONGEST,
    Matcher,
    MatchIndex,
    compile_matcher,
)
from subscribers.dialects.codex_matcher_patterns import Patterns
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, Profile
from subscribers.dialects.codex_spec import CodexHandler


def handler(
    matcher: str | None = None,
    order: int = 0,
    *,
    event: str = "PreToolUse",
    profile: Profile = CODEX,
    command: str = "x",
    unsupported: str | None = None,
    patterns: Patterns | None = None,
) -> CodexHandler:
    """A handler with a matcher."""
    return CodexHandler(
        event=event,
        group=0,
        index=order,
        order=order,
        kind="command",
        timeout_s=1.0,
        matches=compile_matcher(matcher, profile, patterns),
        matcher=matcher,
        path="/hooks.json",
        key=f"k{order}",
        digest="",
        profile=profile.name,
        command=command,
        unsupported=unsupported,
    )


@pytest.mark.parametrize(
    "profile,text,value,expected",
    [
        (CODEX, None, "Bash", True),
        (CODEX, "", "Bash", True),
        (CODEX, "*", "Bash", True),
        (CODEX, "Bash", "BashOutput", False),
        (CODEX, "Edit|Write", "Write", True),
        (CODEX, "Edit|", "", True),
        (CODEX, "Edit|", "Edit|", False),
        (CODEX, "bash", "Bash", False),
        (CODEX, "^Bash", "BashOutput", True),
        (CODEX, "brave-search", "mcp__brave-search__go", True),
        (CODEX, "Edit, Write", "Edit", False),
        (CODEX, "a$", "a\n", False),
        (BITFUN, "Bash", "BashOutput", False),
        (BITFUN, "Bash.*", "BashOutput", True),
        (BITFUN, "^Bash", "BashOutput", False),
        (BITFUN, "Bash|Edit", "Edit", True),
        (BITFUN, "a|ab", "ab", True),
        (BITFUN, "", "Bash", True),
        (CLAUDE, "Edit, Write", "Write", True),
        (CLAUDE, "Edit , Write", "Edit", True),
        (CLAUDE, "brave-search", "mcp__brave-search__go", False),
        (CLAUDE, "mcp__brave-search__.*", "mcp__brave-search__go", True),
        (CLAUDE, "mcp__.*", "x mcp__", True),
    ],
)
def test_what_a_matcher_matches(profile: Profile, text: str | None, value: str, expected: bool) -> None:
    """Absent, empty and a star match everything; names are exact; patterns follow the profile."""
    matcher = compile_matcher(text, profile)
    assert matcher.error is None
    assert matcher.matches(value) is expected


def test_a_bracket_that_closes_the_pattern_does_not_loosen_it() -> None:
    """A text that would close the group around it is no pattern."""
    matcher = compile_matcher("Bash)|(?:Edit", BITFUN)
    assert matcher.error is not None
    assert not matcher.matches("Edit")


def test_a_literal_list_is_one_whatever_it_holds() -> None:
    """Dots are dots."""
    matcher = compile_matcher(".envrc|.env", CLAUDE, literal=True)
    assert [matcher.matches(name) for name in (".env", ".envrc", "xenv")] == [True, True, False]


@pytest.mark.parametrize("profile", [CODEX, BITFUN, CLAUDE], ids=lambda profile: profile.name)
@pytest.mark.parametrize("text", ["[", "(", "a{2,1}", "a\ud800$"])
def test_what_is_no_pattern_matches_nothing(profile: Profile, text: str) -> None:
    """It has a reason, and nobody's engine would take it."""
    matcher = compile_matcher(text, profile)
    assert matcher.error
    assert not matcher.is_upstreams
    assert not matcher.is_everything
    assert not matcher.matches("a")


def test_a_pattern_that_is_too_long_is_dead() -> None:
    """One character more than is compared; a list of names may be as long as it likes."""
    assert compile_matcher("." * LONGEST, CODEX).error is None
    assert compile_matcher("." * (LONGEST + 1), CODEX).is_upstreams
    assert compile_matcher("a" * (LONGEST + 1), CODEX).matches("a" * (LONGEST + 1))


def test_everything_is_everything() -> None:
    """What matches everything says so."""
    assert ALL.is_everything
    assert not compile_matcher("a", CODEX).is_everything
    assert not compile_matcher("a.", CODEX).is_everything


# ---- the index


def names(found: tuple[CodexHandler, ...]) -> list[int]:
    """The orders of handlers."""
    return [each.order for each in found]


def test_handlers_are_selected_in_their_order_and_once() -> None:
    """Whatever way each matches, and however many values do."""
    index = MatchIndex(
        [
            handler("^Ba", 3),
            handler(None, 0),
            handler("Bash|Edit", 2),
            handler("Edit", 1),
            handler("Bash", 4, event="PostToolUse"),
        ]
    )
    assert index.events == ("PreToolUse", "PostToolUse")
    assert names(index.select("PreToolUse", ("Bash",))) == [0, 2, 3]
    assert names(index.select("PreToolUse", ("Bash", "Edit", "Bash"))) == [0, 1, 2, 3]
    assert names(index.select("PostToolUse", ("Bash",))) == [4]
    assert index.select("Stop", ("",)) == ()


def test_what_cannot_run_here_is_never_selected() -> None:
    """A handler that is listed only."""
    assert MatchIndex([handler(unsupported="no")]).select("PreToolUse", ("a",)) == ()


def test_what_matches_nothing_is_never_selected() -> None:
    """A dead matcher."""
    assert MatchIndex([handler("[")]).select("PreToolUse", ("[",)) == ()


def test_an_answer_is_kept() -> None:
    """The second question gives the very same answer."""
    index = MatchIndex([handler("^a")])
    assert index.select("PreToolUse", ("ab",)) is index.select("PreToolUse", ("ab",))


def test_answers_are_bounded() -> None:
    """The oldest goes when there are too many, and long values are not kept at all."""
    index = MatchIndex([handler("^a")])
    first = index.select("PreToolUse", ("a0",))
    for number in range(1, CACHED_ANSWERS + 1):
        index.select("PreToolUse", (f"a{number}",))
    assert index.select("PreToolUse", ("a0",)) is not first
    assert index.select("PreToolUse", ("a0",)) == first
    long = ("a" * (KEPT_CHARACTERS + 1),)
    assert index.select("PreToolUse", long) is not index.select("PreToolUse", long)


def test_claude_runs_equal_handlers_once() -> None:
    """Of several that run the same the first counts; Codex runs each."""
    same = [handler("^a", order, profile=CLAUDE) for order in range(2)]
    other = handler("^a", 2, profile=CLAUDE, command="y")
    assert names(MatchIndex([*same, other]).select("PreToolUse", ("ab",))) == [0, 2]
    codex = [handler("^a", order) for order in range(2)]
    assert names(MatchIndex(codex).select("PreToolUse", ("ab",))) == [0, 1]
    mixed = [handler("^a", 0, profile=CLAUDE), handler("^a", 1), handler("^a", 2)]
    assert names(MatchIndex(mixed).select("PreToolUse", ("ab",))) == [0, 1, 2]


PIECES = st.sampled_from(["a", "b", "Bash", ".*", "^", "$", "[ab]", "(a|b)", "x?", "mcp__", "_", "é", "a{2}"])
PATTERNS = st.lists(PIECES, min_size=1, max_size=5).map("".join)
VALUES = st.text(alphabet="abBshx_mcp é", max_size=12)


@given(
    st.lists(st.tuples(PATTERNS, st.sampled_from([CODEX, BITFUN, CLAUDE])), min_size=1, max_size=60),
    st.lists(VALUES, min_size=1, max_size=3),
    st.integers(1, 9),
)
def test_an_index_finds_what_each_matcher_finds(
    patterns: list[tuple[str, Profile]], values: list[str], files: int
) -> None:
    """Looking up and searching together give what trying each handler gives, in however many files."""
    own = [Patterns() for _ in range(files)]
    handlers = [
        handler(text, order, profile=profile, command=str(order), patterns=own[order % files])
        for order, (text, profile) in enumerate(patterns)
    ]
    expected = [each.order for each in handlers if any(each.matches.matches(value) for value in values)]
    index = MatchIndex(handlers)
    assert names(index.select("PreToolUse", tuple(values))) == expected


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_a_matcher(text: str, value: str) -> None:
    """Nothing is raised, and what has an error matches nothing."""
    for profile in (CODEX, BITFUN, CLAUDE):
        matcher = compile_matcher(text, profile)
        assert isinstance(matcher, Matcher)
        assert not (matcher.error is not None and matcher.matches(value))
