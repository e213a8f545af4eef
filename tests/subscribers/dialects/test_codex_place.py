"""Whose file a file is, by its place and by what it holds."""

from __future__ import annotations

from typing import Any

import pytest

from subscribers.dialects.codex_place import contradiction, is_of_family, placed
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, Profile

GROUPS = [{"hooks": [{"type": "command", "command": "x"}]}]


@pytest.mark.parametrize(
    "path,profile",
    [
        ("/w/.claude/settings.json", CLAUDE),
        ("/w/.claude/settings.local.json", CLAUDE),
        ("/w/.codex/hooks.json", CODEX),
        ("/w/.codex/config.toml", CODEX),
        ("/w/.bitfun/config/hooks.json", BITFUN),
        ("/h/.config/bitfun/config/hooks.json", BITFUN),
        ("/w/.prxbus/hooks.json", CODEX),
        ("/h/.config/prxbus/hooks.json", CODEX),
        ("/elsewhere/settings.json", CLAUDE),
    ],
)
def test_a_place_says_whose_file_it_is(path: str, profile: Profile) -> None:
    """And why that is so."""
    found = placed(path)
    assert found is not None
    assert found.profile is profile
    assert found.because


@pytest.mark.parametrize(
    "path", ["/w/hooks.json", "hooks.json", "/w/config.toml", "", "/w/x.claude/other.json"]
)
def test_other_places_say_nothing(path: str) -> None:
    """A workspace's own hooks.json is another system's."""
    assert placed(path) is None


@pytest.mark.parametrize(
    "document,profile,whose",
    [
        ({"hooks": {"PreToolUse": GROUPS}}, CODEX, None),
        ({"hooks": {"Misspelt": GROUPS}}, CODEX, None),
        ({"hooks": {}}, CODEX, None),
        ({}, CODEX, None),
        ({"hooks": 7}, CODEX, None),
        ({"permissions": {}, "hooks": {"Stop": GROUPS}}, CODEX, "Claude Code"),
        ({"permissions": {}, "hooks": {"Stop": GROUPS}}, CLAUDE, None),
        ({"version": 1, "hooks": {"preToolUse": [{"command": "x"}]}}, BITFUN, "Cursor"),
        ({"hooks": {"tool_call_start": [{"command": "x"}]}}, CODEX, "PRX"),
        ({"hooks": {"tool-call": [{"command": "x"}]}}, CLAUDE, "PRX"),
        ({"hooks": {"tool_call": [7]}}, CODEX, None),
        ({"hooks": {"tool_call": [{"command": "x"}], "Stop": GROUPS}}, CODEX, None),
    ],
)
def test_contents_that_contradict_the_place(
    document: dict[str, Any], profile: Profile, whose: str | None
) -> None:
    """A file that is plainly another system's is said to be that; one that is merely wrong is not."""
    found = contradiction(document, profile)
    assert (found is None) if whose is None else whose in str(found)


@pytest.mark.parametrize(
    "document,expected",
    [
        ({"hooks": {"PreToolUse": GROUPS}}, True),
        ({"hooks": {"Notification": GROUPS, "x": 1}}, True),
        ({"hooks": {"PreToolUse": [{"command": "x"}]}}, False),
        ({"hooks": {"tool_call": GROUPS}}, False),
        ({"hooks": {"PreToolUse": 7}}, False),
        ({"hooks": []}, False),
    ],
)
def test_a_document_of_the_family_is_known(document: dict[str, Any], expected: bool) -> None:
    """By an event of the family with groups of handlers."""
    assert is_of_family(document) is expected
