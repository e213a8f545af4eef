"""Patterns that mean something else to RE2 are found, and no others.

What Rust's ``regex`` 1.x and JavaScript do with each pattern was tried with both.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import codex_matcher_syntax
from subscribers.dialects.codex_matcher_syntax import misread
from subscribers.dialects.codex_profiles import MatcherRule

SAME_IN_RUST = [
    "^Bash",
    "mcp__.*__write.*",
    r"\bBash\b",
    r"a\.b\-c\/d\_",
    "[a-z]+",
    "[]a]",
    "[^]a]",
    "[[:alpha:]_]",
    "a{2,3}b{4}c{5,}",
    "a+?b*?c??",
    "(?i)bash",
    "(?i-s:bash)",
    "(?:a|b)",
    "(?P<name>a)",
    "(?<name>a)",
    r"\A\z\a\f\v\t\x41\x{1F600}",
    r"\pL\p{Greek}\P{Lu}",
    r"\[a\]\{b\}",
    "[&~-]",
    "a--b&&c~~d{2}",
]
ONLY_RUST = [
    "(?x) a b",
    "(?u)a",
    "(?-u:a)",
    "(?R)a",
    r"\u{41}",
    r"\u0041",
    r"\U00000041",
    "[a&&b]",
    "[[a]b]",
    "[a--b]",
    "[a~~b]",
    r"\b{start}a",
    r"\<a",
    r"a\>",
    "a{1001}",
    "a{1,99999999999}",
    "a++",
    "a**",
    r"\p{Script=Greek}",
    r"\p{sc:Greek}",
]
NO_RUST = [r"\Q*\E", r"\C", r"\1", r"\0", r"\123", "{", "a{", "a{,3}", "foo{bar}", "(?y)a", "(?#c)a", "(?"]
SAME_IN_JAVASCRIPT = [
    "^Bash",
    r"\bBash\b\d\D\s\S\w\W",
    r"a\.b\-c",
    "(?:a|b)",
    "(?<name>a)",
    "foo{bar}",
    "a{",
    "a{,3}",
    "[a&&b]",
    "[[a]b]",
    r"\<a",
    r"\t\n\r\f\v\x41",
]
ONLY_JAVASCRIPT = [
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!a)",
    r"(a)\1",
    r"(?<n>a)\k<n>",
    r"\u0041",
    r"\cA",
    r"\A",
    r"\z",
    r"\p{L}",
    r"\Q",
    r"\e",
    "[[:alpha:]]",
    "[]a]",
    "[^]",
    "a{1001}",
]
NO_JAVASCRIPT = ["(?i)a", "(?x)a", "(?y)a", "(?P<n>a)", "a++", "a**"]


@pytest.mark.parametrize("text", SAME_IN_RUST)
def test_what_means_the_same_in_rust_passes(text: str) -> None:
    """Ordinary patterns, with whatever RE2 and Rust have in common."""
    assert misread(text, "search") is None
    assert misread(text, "anchored") is None


@pytest.mark.parametrize("text", SAME_IN_JAVASCRIPT)
def test_what_means_the_same_in_javascript_passes(text: str) -> None:
    """Braces and brackets that are ordinary characters there are so in RE2."""
    assert misread(text, "list") is None


@pytest.mark.parametrize("text", ONLY_RUST)
def test_what_rust_alone_reads_so_is_dead(text: str) -> None:
    """Codex takes it: its handlers would run there."""
    found = misread(text, "search")
    assert found is not None
    assert found.is_upstreams
    assert found.reason


@pytest.mark.parametrize("text", ONLY_JAVASCRIPT)
def test_what_javascript_alone_reads_so_is_dead(text: str) -> None:
    """Claude Code takes it."""
    found = misread(text, "list")
    assert found is not None
    assert found.is_upstreams


@pytest.mark.parametrize("text", NO_RUST)
def test_what_rust_refuses_is_refused(text: str) -> None:
    """RE2 would take some of it."""
    found = misread(text, "search")
    assert found is not None
    assert not found.is_upstreams


@pytest.mark.parametrize("text", NO_JAVASCRIPT)
def test_what_javascript_refuses_is_refused(text: str) -> None:
    """RE2 would take some of it."""
    found = misread(text, "list")
    assert found is not None
    assert not found.is_upstreams


PLAIN = st.lists(
    st.sampled_from(
        [
            "a",
            "Z9_",
            ".",
            "*",
            "+",
            "?",
            "(",
            ")",
            "|",
            "^",
            "$",
            r"\d",
            r"\.",
            r"\b",
            r"\[",
            "[a-z]",
            "[^a_]",
            "-",
            "<",
            "&",
        ]
    )
).map("".join)


@given(PLAIN, st.sampled_from(["search", "list"]))
def test_what_is_plain_has_nothing_to_find(text: str, rule: MatcherRule) -> None:
    """The quick look and the careful one agree."""
    with pytest.MonkeyPatch.context() as patch:
        quick = misread(text, rule)
        patch.setattr(codex_matcher_syntax, "_PLAIN", re.compile(r"(?!)"))
        assert misread(text, rule) == quick


@given(st.text(alphabet=r"ab\[]{}()?*+<>=!:^$-&~PpQ019,k", max_size=30))
def test_any_text_can_be_looked_at(text: str) -> None:
    """Nothing is raised, whatever the text."""
    for rule in ("search", "anchored", "list"):
        found = misread(text, rule)
        assert found is None or found.reason
