"""The events of the Codex family: their names, ours, what a matcher tests, and which profile has which.

One row for each event, in the order in which Codex reads them; what Claude Code alone has follows. It refuses
to know what a handler of an event may answer: that is in :mod:`.codex_profiles`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from broker.protocol.projections import DIALECT_EVENTS

from .codex_profiles import Profile

Scope: TypeAlias = Literal["thread", "turn"]
"""What a run belongs to: the session, or one turn of it."""

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


class EventRule(NamedTuple):
    """One event of the family.

    ``name`` is what a hook file calls it, ``key`` the same in snake case, as trust keys and hashes have it.
    ``canonical`` is the event's bare name on the bus: its topic is ``prx.lifecycle.`` and this. ``matched``
    is the payload field that a matcher is compared with; None: matchers mean nothing to it. ``profiles``
    are the names of the profiles that have it.
    """

    name: str
    key: str
    canonical: str
    matched: str | None
    scope: Scope
    profiles: frozenset[str]


_EVERY: Final = frozenset({"codex", "bitfun", "claude"})
_THREAD: Final = frozenset({"SessionStart", "SessionEnd", "SubagentStart"})

_SHARED: Final = {
    "PreToolUse": "tool_name",
    "PermissionRequest": "tool_name",
    "PostToolUse": "tool_name",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "SessionStart": "source",
    "SessionEnd": "reason",
    "UserPromptSubmit": None,
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
    "Stop": None,
}
_CODEX_ONLY: Final = {"Interrupt": None}
_CLAUDE_ONLY: Final = {
    "Setup": "trigger",
    "UserPromptExpansion": "command_name",
    "PermissionDenied": "tool_name",
    "PostToolUseFailure": "tool_name",
    "PostToolBatch": None,
    "Notification": "notification_type",
    "MessageDisplay": None,
    "TaskCreated": None,
    "TaskCompleted": None,
    "TeammateIdle": None,
    "StopFailure": "error",
    "InstructionsLoaded": "load_reason",
    "ConfigChange": "source",
    "CwdChanged": None,
    "DirectoryAdded": None,
    "FileChanged": "file_path",
    "WorktreeCreate": None,
    "WorktreeRemove": None,
    "PreModelSwitch": "to_model",
    "PostModelSwitch": "to_model",
    "Elicitation": "mcp_server_name",
    "ElicitationResult": "mcp_server_name",
}
"""Matched fields of the events that only Claude Code has."""

TOOL_EVENTS: Final = frozenset(
    {"PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "PermissionDenied"}
)
"""The events that are about one tool call: a handler's ``if`` means something to them alone."""

LITERAL_EVENTS: Final = frozenset({"FileChanged"})
"""Events whose matcher is a list of names, whatever characters it holds."""


def snake_case(name: str) -> str:
    """An event's name in snake case: ``PreToolUse`` is ``pre_tool_use``."""
    return _CAPITAL.sub("_", name).lower()


def _rules() -> Mapping[str, EventRule]:
    canonical = {native: event for names in (DIALECT_EVENTS["codex"],) for event, native in names.items()}
    rows = (
        (_SHARED, _EVERY),
        (_CODEX_ONLY, frozenset({"codex"})),
        (_CLAUDE_ONLY, frozenset({"claude"})),
    )
    return MappingProxyType(
        {
            name: EventRule(
                name,
                snake_case(name),
                canonical.get(name, snake_case(name)),
                matched,
                "thread" if name in _THREAD else "turn",
                profiles,
            )
            for table, profiles in rows
            for name, matched in table.items()
        }
    )


EVENTS: Final[Mapping[str, EventRule]] = _rules()
"""Every event of the family by the name that hook files have for it, in the order in which they are read."""

BY_CANONICAL: Final[Mapping[str, EventRule]] = MappingProxyType(
    {rule.canonical: rule for rule in EVENTS.values()}
)
"""The same by our own name."""


def events_of(profile: Profile) -> tuple[EventRule, ...]:
    """The events that a profile has, in order."""
    return tuple(rule for rule in EVENTS.values() if profile.name in rule.profiles)


def matched_values(event: str, profile: Profile, payload: Mapping[str, Any]) -> tuple[str, ...]:
    """What the matchers of an event are compared with: the field's value, and a tool's further names.

    ``payload`` is the event in the profile's own terms. A field that is missing or no string is the empty
    text; of a path the last part counts. Raises KeyError for an event that the family does not have.
    """
    matched = EVENTS[event].matched
    if matched is None:
        return ("",)
    value = payload.get(matched)
    text = value if isinstance(value, str) else ""
    if matched == "file_path":
        text = text.rpartition("/")[2]
    return (text, *profile.tool_aliases.get(text, ())) if matched == "tool_name" else (text,)
