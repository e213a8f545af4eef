"""The profiles are data, and the table that is printed is that data."""

from __future__ import annotations

from dataclasses import fields

import pytest

from subscribers.dialects.codex_events import EVENTS
from subscribers.dialects.codex_profiles import (
    BITFUN,
    CLAUDE,
    CODEX,
    PROFILES,
    Profile,
    TextLimit,
    profile_rows,
)

ROWS = {row.about: row.values for row in profile_rows()}


def test_there_are_three_by_name() -> None:
    """Each under its own name, in the order of the table."""
    assert list(PROFILES.values()) == [CODEX, BITFUN, CLAUDE]
    assert [profile.name for profile in PROFILES.values()] == list(PROFILES)
    assert [profile.agent for profile in PROFILES.values()] == ["Codex", "BitFun", "Claude Code"]


def test_every_field_but_the_name_is_in_the_table() -> None:
    """Nothing in which profiles differ is left out of what is printed."""
    silent = {part.name for part in fields(Profile) if "about" not in part.metadata}
    assert silent == {"name", "outputs"}  # the shape of answers is a table of its own
    assert len(ROWS) == len(fields(Profile)) - len(silent)


@pytest.mark.parametrize("about", ROWS)
def test_a_row_says_something_of_each_profile(about: str) -> None:
    """Three cells, and none is empty."""
    assert len(ROWS[about]) == len(PROFILES)
    assert all(ROWS[about])


def test_what_the_page_of_bitfun_says_is_what_its_profile_has() -> None:
    """Its numbers, its anchored matchers, and where stopping works."""
    assert (BITFUN.max_file_bytes, BITFUN.max_handlers) == (1_048_576, 2_048)
    assert BITFUN.text == TextLimit(10_000, "bytes", spills=False)
    assert BITFUN.matcher == "anchored"
    assert {event for event, effect in BITFUN.continue_false.items() if effect == "block"} == {
        "PreToolUse",
        "UserPromptSubmit",
    }
    assert BITFUN.plain_context == CODEX.plain_context


def test_cells_read_well() -> None:
    """Times, limits, sets and nothing at all have a form of their own."""
    assert ROWS["`timeout`, seconds: default, most"] == ("600", "600", "600")
    assert ROWS["`timeout` of single events"][0] == "SessionEnd: 1, 3; Interrupt: 1, 3"
    assert ROWS["model-visible text"] == (
        "2,500 tokens, the rest in a file",
        "10,000 bytes, cut",
        "10,000 characters, the rest in a file, 2,000 of it shown",
    )
    assert ROWS["keys of the root; any other one refuses the file"] == (
        "description, hooks",
        "description, hooks",
        "–",
    )
    assert ROWS["`onFailure` of a handler: a failure may block"] == ("no", "no", "yes")
    assert ROWS["largest file, bytes"][1] == "1,048,576"
    own = "shell of a command; `$SHELL` is the session's own, which its environment names"
    assert (ROWS[own][0], ROWS["shell where that one is not known or not there"][0]) == (
        "$SHELL -c",
        "sh -lc",
    )
    assert ROWS["variables that a handler does not inherit"][1] == "–"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_profile_speaks_of_its_own_events_alone(profile: Profile) -> None:
    """Every event that a set or table of a profile names is one that it has."""
    named = {
        *profile.timeouts,
        *profile.sync_events,
        *profile.no_mcp_events,
        *profile.no_http_events,
        *profile.env_file_events,
        *profile.on_failure_ignored,
        *profile.plain_context,
        *profile.plain_fails,
        *profile.context_events,
        *profile.continue_false,
        *profile.suppress_output_fails,
        *profile.exit_two,
        *profile.block_events,
    }
    assert [name for name in named if profile.name not in EVENTS[name].profiles] == []
    assert profile.runs <= profile.types
    assert profile.upstream_runs <= profile.types
