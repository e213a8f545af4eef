"""Part B: which values a matcher matches, and which handlers an event starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from subscribers.dialects.codex_events import EVENTS, matched_values
from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_matcher import MatchIndex, compile_matcher
from subscribers.dialects.codex_profiles import CODEX
from tests.conformance.codex.conformance import Case

Matchers = list[str | None]


def matching(text: str | None, answers: Mapping[str, bool]) -> None:
    """A valid matcher, and what it says of each value."""
    matcher = compile_matcher(text, CODEX)
    assert matcher.error is None
    assert {value: matcher.matches(value) for value in answers} == answers


def selected(event: str, matchers: Matchers, *values: str) -> list[int]:
    """The numbers of the handlers that an event with one of these values starts; each has its own group."""
    hook = {"type": "command", "command": "echo same"}
    groups = [{"hooks": [hook]} if text is None else {"matcher": text, "hooks": [hook]} for text in matchers]
    content = json.dumps({"hooks": {event: groups}}).encode()
    document = read_document(content, "/tmp/hooks.json", CODEX, strict=True)
    return [handler.order for handler in MatchIndex(document.handlers).select(event, values)]


# ---- B1: matchers ----------------------------------------------------------------------------------------


def b1_9() -> None:
    """An invalid pattern is said, and never matches."""
    matcher = compile_matcher("[", CODEX)
    assert matcher.error is not None
    assert not matcher.matches("[")


def keeps(event: str) -> bool:
    """Whether a matcher of an event means anything."""
    return EVENTS[event].matched is not None


# ---- B2: selection ---------------------------------------------------------------------------------------


def b2_1() -> None:
    """Two equal handlers both run."""
    assert selected("Stop", [None, None], "") == [0, 1]


def b2_2() -> None:
    """Matchers that overlap both match."""
    assert selected("SessionStart", ["start.*", "^startup$"], "startup") == [0, 1]


def b2_3() -> None:
    """What started a compaction."""
    assert selected("PreCompact", ["manual", "auto"], "manual") == [0]


def b2_6() -> None:
    """A star, beside another tool."""
    assert selected("PreToolUse", ["*", "^Edit$"], "Bash") == [0]


def b2_7() -> None:
    """Each name of a list."""
    for name, found in (("Edit", [0]), ("Write", [0]), ("Bash", [])):
        assert selected("PreToolUse", ["Edit|Write"], name) == found


def b2_8() -> None:
    """A tool with further names starts each handler once."""
    matchers: Matchers = ["apply_patch", "Write", "Edit", "apply_patch|Write|Edit"]
    values = matched_values("PreToolUse", CODEX, {"tool_name": "apply_patch"})
    assert values == ("apply_patch", "Write", "Edit")
    assert selected("PreToolUse", matchers, *values) == [0, 1, 2, 3]


def b2_9() -> None:
    """Matchers of a prompt mean nothing, not even invalid ones."""
    values = matched_values("UserPromptSubmit", CODEX, {"prompt": "goodbye"})
    assert selected("UserPromptSubmit", ["^hello", "["], *values) == [0, 1]


def b2_10() -> None:
    """The order is that of the file."""
    assert selected("PreToolUse", ["B.*", None, "Bash", "^Bash$"], "Bash") == [0, 1, 2, 3]


def b2_11() -> None:
    """The end of a session has one reason."""
    values = matched_values("SessionEnd", CODEX, {"reason": "other"})
    assert selected("SessionEnd", ["clear", "other", None], *values) == [1, 2]


def holds(condition: bool) -> None:
    """What was asked is so."""
    assert condition


_WRITE: Final = {"mcp__filesystem__write_file": True, "mcp__filesystem__read_file": False}
_MEMORY: Final = {"mcp__memory__create_entities": True}
_ALL: Final = {"Bash": True, "Write": True}


def b1_7() -> None:
    """Patterns for the tools of servers."""
    matching("mcp__memory__.*", _MEMORY)
    matching("mcp__.*__write.*", _WRITE)


def b1_5() -> None:
    """A plain word is a whole name."""
    matching("Bash", {"BashOutput": False})
    matching("mcp__memory", dict.fromkeys(_MEMORY, False))
    matching("mcp__memory__create_entities", _MEMORY)


CASES: Final = (
    Case("B1.1", "no matcher", lambda: matching(None, _ALL)),
    Case("B1.2", "a star", lambda: matching("*", _ALL)),
    Case("B1.3", "an empty matcher", lambda: matching("", _ALL)),
    Case(
        "B1.4",
        "a list of names",
        lambda: matching("Edit|Write", {"Edit": True, "Write": True, "Bash": False}),
    ),
    Case("B1.5", "a plain word is a whole name", b1_5),
    Case("B1.6", "anything else is searched for", lambda: matching("^Bash", {"BashOutput": True})),
    Case("B1.7", "patterns for the tools of servers", b1_7),
    Case("B1.8", "anchors", lambda: matching("^Bash$", {"Bash": True, "BashOutput": False})),
    Case("B1.9", "an invalid pattern", b1_9),
    Case(
        "B1.10",
        "events that ignore matchers",
        lambda: holds(not any(keeps(event) for event in ("UserPromptSubmit", "Stop"))),
    ),
    Case(
        "B1.11",
        "events that keep matchers",
        lambda: holds(
            all(
                keeps(event)
                for event in (
                    "PreToolUse",
                    "PostToolUse",
                    "SessionStart",
                    "SessionEnd",
                    "PreCompact",
                    "PostCompact",
                )
            )
        ),
    ),
    Case("B2.1", "equal Stop handlers both run", b2_1),
    Case("B2.2", "matchers that overlap", b2_2),
    Case("B2.3", "what started a compaction", b2_3),
    Case(
        "B2.4",
        "PreToolUse: the tool",
        lambda: holds(selected("PreToolUse", ["^Bash$", "^Edit$"], "Bash") == [0]),
    ),
    Case(
        "B2.5",
        "PostToolUse: the tool",
        lambda: holds(selected("PostToolUse", ["^Bash$", "^Edit$"], "Bash") == [0]),
    ),
    Case("B2.6", "a star beside another tool", b2_6),
    Case("B2.7", "each name of a list", b2_7),
    Case("B2.8", "further names of a tool, each handler once", b2_8),
    Case("B2.9", "matchers of a prompt", b2_9),
    Case("B2.10", "the order of the file", b2_10),
    Case("B2.11", "the end of a session", b2_11),
)
