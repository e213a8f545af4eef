"""A long text reaches the model shortened, as its agent would shorten it, and nothing of it is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.decisions import NOTHING
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, PROFILES, TextLimit
from subscribers.dialects.codex_result_values import Context, Effects
from subscribers.dialects.codex_spill import CUT_MARK, is_long, shortened, within_limits

FOOTER = "\n\nFull hook output saved to: /tmp/x.txt"  # 40 bytes: 10 tokens


def header(tokens: int, lines: int = 1) -> str:
    """What stands before the ends of a text."""
    return f"Warning: truncated output (original token count: {tokens})\nTotal output lines: {lines}\n\n"


class Saved(list[str]):
    """What was saved, and where that is said to be."""

    def __call__(self, text: str) -> str | None:
        """Keep it."""
        self.append(text)
        return "/tmp/x.txt"


def nowhere(_text: str) -> str | None:
    """A disk that is full."""
    return None


@pytest.mark.parametrize(
    "rule, fits",
    [(CODEX.text, "x" * 10_000), (BITFUN.text, "x" * 10_000), (CLAUDE.text, "é" * 10_000)],
)
def test_a_text_within_the_limit_is_left_alone(rule: TextLimit, fits: str) -> None:
    """Nothing is saved; one unit more is too long."""
    saved = Saved()
    assert shortened(fits, rule, saved) == fits
    assert (saved, is_long(fits, rule), is_long(fits + "x", rule)) == ([], False, True)


def test_codex_keeps_head_and_tail_and_names_the_file() -> None:
    """About as many tokens as the limit, four bytes each, around a marker."""
    text = "a" * 8_000 + "b" * 8_000
    saved = Saved()
    found = shortened(text, CODEX.text, saved)
    assert saved == [text]
    assert found == header(4_000) + "a" * 4_980 + "…1510 tokens truncated…" + "b" * 4_980 + FOOTER


def test_claude_code_keeps_a_short_preview() -> None:
    """Counted in characters, from the beginning."""
    text = "é" * 10_001
    found = shortened(text, CLAUDE.text, Saved())
    assert found == "é" * 2_000 + "\n…8001 characters truncated…" + FOOTER


def test_bitfun_cuts_at_a_character_and_says_so() -> None:
    """At most 10,000 bytes; no file."""
    saved = Saved()
    found = shortened("x" + "é" * 6_000, BITFUN.text, saved)
    assert found == "x" + "é" * 4_999 + CUT_MARK
    assert saved == []


def test_a_handlers_own_limit_counts() -> None:
    """In its context; 0 is no limit at all."""
    assert shortened("abc\nefghijkl\n", CODEX.text, Saved(), 1) == (
        header(4, 2) + "…4 tokens truncated…" + FOOTER
    )
    assert shortened("abcdefghijkl" * 9, CODEX.text, Saved(), 11) == (
        header(27) + "ab…26 tokens truncated…kl" + FOOTER
    )
    assert shortened("x" * 50_000, CODEX.text, Saved(), 0) == "x" * 50_000
    assert shortened("x" * 50_000, CODEX.text, Saved(), 20_000) == "x" * 50_000


def test_a_text_that_cannot_be_saved_is_shortened_nevertheless() -> None:
    """And names no file."""
    found = shortened("é" * 10_000, CODEX.text, nowhere)
    assert found == header(5_000) + "é" * 2_500 + "…2500 tokens truncated…" + "é" * 2_500


def test_every_text_of_a_run_is_held_to_its_limit() -> None:
    """Contexts to the handler's; reason, feedback and output to the profile's, and saved once."""
    long = "x" * 12_000
    saved = Saved()
    effects = Effects(
        "deny",
        long,
        feedback=long,
        output=long,
        contexts=(Context(long, 1), Context(long, 0), Context("short")),
    )
    found = within_limits(effects, CODEX, saved)
    assert [len(each.text) < 400 for each in found.contexts] == [True, False, True]
    assert found.reason == found.feedback == found.output != long
    assert saved == [long, long]


def test_an_output_that_is_no_feedback_is_not_touched() -> None:
    """It is a tool's, and has other limits; texts that differ are shortened each."""
    long = "x" * 12_000
    effects = Effects(stop=True, feedback=long, output={"a": long})
    found = within_limits(effects, CODEX, nowhere)
    assert (found.output, found.reason) == ({"a": long}, None)
    assert found.feedback is not None
    assert len(found.feedback) < len(long)
    assert within_limits(Effects(), CODEX, nowhere).output is NOTHING


@given(st.text(max_size=300), st.integers(1, 40), st.sampled_from(list(PROFILES)))
def test_what_is_kept_is_about_as_long_as_it_may_be(text: str, limit: int, name: str) -> None:
    """Head and tail are the text's own, whatever characters it has."""
    rule = PROFILES[name].text._replace(limit=limit, preview=10 if name == "claude" else None)
    found = shortened(text, rule, nowhere)
    if found == text:
        return
    tokens = -(-len(text.encode()) // 4)
    lines = len(text.split("\n")) - text.endswith("\n")
    shown = found.removeprefix(header(tokens, lines)).removesuffix(CUT_MARK)
    match = re.search("\n?…[0-9]+ [a-z]+ truncated…", shown)
    head, tail = (shown[: match.start()], shown[match.end() :]) if match else (shown, "")
    assert text.startswith(head)
    assert text.endswith(tail)
    units = {"tokens": 4 * limit, "bytes": limit, "characters": 40}[rule.unit]
    assert len((head + tail).encode()) <= units
