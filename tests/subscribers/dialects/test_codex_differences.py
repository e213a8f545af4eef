"""The tables of differences say what the code does."""

from __future__ import annotations

import json
import re

import pytest

from broker.protocol.projections import project
from subscribers.dialects.codex_differences import (
    LENIENCIES,
    PAGE_DIFFERENCES,
    PATTERN_DIFFERENCES,
    Leniency,
    PageDifference,
    PatternDifference,
)
from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_matcher import compile_matcher
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX

PAGE = {row.number: row for row in PAGE_DIFFERENCES}


@pytest.mark.parametrize("row", LENIENCIES, ids=lambda row: row.number)
def test_what_is_left_out_here_and_refused_by_the_agent(row: Leniency) -> None:
    """The rest of the file runs; strict reading refuses it, for Codex and for Claude Code."""
    text = (
        row.example
        if '"hooks":{' in row.example or '"hooks":null' in row.example
        else f'{{"hooks":{row.example}}}'
    )
    for profile in (CODEX, CLAUDE):
        found = read_document(text.encode(), "/hooks.json", profile)
        assert not found.refused
        assert [each.command for each in found.handlers] == ([] if "null" in row.example else ["ok"])
        assert found.upstream_refusal
        assert read_document(text.encode(), "/hooks.json", profile, strict=True).refused
    bitfun = read_document(text.encode(), "/hooks.json", BITFUN, strict=True)
    assert bitfun.refused is ("null" in row.example)


@pytest.mark.parametrize("row", PATTERN_DIFFERENCES, ids=lambda row: row.number)
def test_what_a_pattern_does_here(row: PatternDifference) -> None:
    """It matches, it does not, or its handlers never run: and upstream it is something else."""
    profile = CODEX if row.engine == "Rust" else CLAUDE
    matcher = compile_matcher(row.pattern, profile)
    if matcher.error is not None:
        here = "its handlers never run" if matcher.is_upstreams else "is no pattern"
    else:
        here = "matches" if matcher.matches(row.value) else "does not match"
    assert here == row.here
    assert row.here != row.upstream


def test_the_rows_of_the_page_say_what_the_profile_has() -> None:
    """Wherever a cell of BitFun's page is a number or a word of the profile."""
    assert compile_matcher("Bash", BITFUN).matches("Bash")
    assert not compile_matcher("^Bash", BITFUN).matches("BashOutput")
    assert re.findall(r"`(\w+)`", PAGE["B2"].page) == [
        event for event, effect in BITFUN.continue_false.items() if effect == "block"
    ]
    assert BITFUN.allow_alone == "allow"
    assert BITFUN.suppress_output_fails == frozenset()
    assert set(re.findall(r"`(\w+)`", PAGE["B4"].codex)) == CODEX.suppress_output_fails
    assert (BITFUN.post_on_error, CODEX.post_on_error) == (True, False)
    assert f"{BITFUN.text.limit:,} {BITFUN.text.unit}" in PAGE["B6"].page
    assert f"{CODEX.text.limit:,} {CODEX.text.unit}" in PAGE["B6"].codex
    assert f"{BITFUN.max_file_bytes:,}" in PAGE["B7"].page
    assert f"{BITFUN.max_handlers:,}" in PAGE["B7"].page
    assert BITFUN.upstream_runs == {"command"}
    assert BITFUN.rewrite_needs_allow


def test_the_rows_of_fields_that_are_not_filled() -> None:
    """Whatever an event holds, BitFun's own handlers get the page's value."""
    found = project("bitfun", "subagent_stop", {"transcript_path": "/t", "stop_hook_active": True})
    assert (found["transcript_path"], found["agent_transcript_path"]) == (None, None)
    start = project("bitfun", "session_start", {"source": "resume"})
    end = project("bitfun", "session_end", {"reason": "logout"})
    values = (start["source"], end["reason"], json.dumps(found["stop_hook_active"]))
    assert ", ".join(values) == PAGE["B18"].page
    assert (BITFUN.reads_toml, CODEX.reads_toml) == (False, True)


def test_the_rows_where_bitfun_is_as_codex() -> None:
    """A handler that says ``async``, no time, and another spelling."""
    fields = b'"type":"command","command":"x","async":true,"timeout":0,"command_windows":"y"'
    text = b'{"hooks":{"Stop":[{"hooks":[{' + fields + b"}]}]}}"
    for profile in (BITFUN, CODEX):
        (handler,) = read_document(text, "/hooks.json", profile).handlers
        assert (handler.is_async, handler.timeout_s, handler.command_windows) == (True, 1.0, "y")


ROWS: list[Leniency | PatternDifference | PageDifference] = [
    *LENIENCIES,
    *PATTERN_DIFFERENCES,
    *PAGE_DIFFERENCES,
]


@pytest.mark.parametrize("row", ROWS, ids=[row.number for row in ROWS])
def test_every_row_says_something_in_each_cell(row: tuple[str, ...]) -> None:
    """Nothing is left open."""
    assert all(row)


def test_no_number_is_given_twice() -> None:
    """A row can be named."""
    assert len({row.number for row in ROWS}) == len(ROWS)
