"""Names of events, and what their matchers are compared with."""

from __future__ import annotations

import pytest

from broker.protocol.projections import canonical_event, native_event
from subscribers.dialects.codex_events import (
    BY_CANONICAL,
    EVENTS,
    TOOL_EVENTS,
    events_of,
    matched_values,
    snake_case,
)
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, PROFILES


@pytest.mark.parametrize("rule", EVENTS.values(), ids=EVENTS)
def test_an_event_has_one_name_of_ours_everywhere(rule: tuple[object, ...]) -> None:
    """The bus's own tables translate it to and fro, in each profile that has it."""
    event = EVENTS[str(rule[0])]
    assert BY_CANONICAL[event.canonical] is event
    for name in event.profiles:
        assert canonical_event(name, event.name) == event.canonical
        assert native_event(name, event.canonical) == event.name


def test_the_events_are_read_in_the_order_of_codex() -> None:
    """The fixed order in which Codex numbers its handlers."""
    assert [rule.name for rule in events_of(CODEX)] == [
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PreCompact",
        "PostCompact",
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "Interrupt",
    ]


def test_who_has_which_events() -> None:
    """BitFun has Codex's without Interrupt, Claude Code those and twenty-two more."""
    assert [len(events_of(profile)) for profile in PROFILES.values()] == [12, 11, 33]
    assert {rule.name for rule in events_of(CODEX)} - {rule.name for rule in events_of(BITFUN)} == {
        "Interrupt"
    }
    assert EVENTS.keys() >= TOOL_EVENTS


def test_keys_are_in_snake_case() -> None:
    """As trust keys have them."""
    assert snake_case("PreToolUse") == "pre_tool_use"
    assert EVENTS["Stop"].key == "stop"


def test_scopes() -> None:
    """Three events belong to the session, the others to a turn."""
    assert {name for name, rule in EVENTS.items() if rule.scope == "thread"} == {
        "SessionStart",
        "SessionEnd",
        "SubagentStart",
    }


@pytest.mark.parametrize(
    "event,profile,payload,values",
    [
        ("PreToolUse", CODEX, {"tool_name": "Bash"}, ("Bash",)),
        ("PreToolUse", CODEX, {"tool_name": "apply_patch"}, ("apply_patch", "Write", "Edit")),
        ("PreToolUse", BITFUN, {"tool_name": "apply_patch"}, ("apply_patch",)),
        ("PreToolUse", CODEX, {}, ("",)),
        ("PreToolUse", CODEX, {"tool_name": 7}, ("",)),
        ("SessionStart", CODEX, {"source": "compact"}, ("compact",)),
        ("SessionStart", CODEX, {"source": "apply_patch"}, ("apply_patch",)),
        ("Stop", CODEX, {"tool_name": "Bash"}, ("",)),
        ("FileChanged", CLAUDE, {"file_path": "/a/b/.envrc"}, (".envrc",)),
    ],
)
def test_what_a_matcher_is_compared_with(
    event: str, profile: object, payload: dict[str, object], values: tuple[str, ...]
) -> None:
    """The event's own field; further names of a tool; the last part of a path."""
    assert profile in (CODEX, BITFUN, CLAUDE)
    assert matched_values(event, profile, payload) == values
