"""Which profile a hook file of the Codex family belongs to, by its place, and whose file its contents are.

A file is read as its place says; contents that are plainly another system's are said to be that, once, and
nothing of them runs. It refuses to know whether a file exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from broker.protocol.catalogue import EVENTS as CATALOGUE

from .codex_events import EVENTS
from .codex_profiles import BITFUN, CLAUDE, CODEX, Profile
from .codex_rules import CLAUDE_SETTINGS


class Placed(NamedTuple):
    """The profile of a place, and why."""

    profile: Profile
    because: str


PLACES: Final = (
    (".claude/settings.json", CLAUDE),
    (".claude/settings.local.json", CLAUDE),
    (".codex/hooks.json", CODEX),
    (".codex/config.toml", CODEX),
    (".bitfun/config/hooks.json", BITFUN),
    ("bitfun/config/hooks.json", BITFUN),
    (".prxbus/hooks.json", CODEX),
    ("prxbus/hooks.json", CODEX),
)
"""Ends of paths, and whose they are; the first that fits counts."""

NAMES: Final = ((("settings.json", "settings.local.json"), CLAUDE),)
"""Names of files that no other profile has."""


def placed(path: str) -> Placed | None:
    """The profile of a file by its place and name; None where they say nothing."""
    parts = PurePosixPath(path).parts
    for end, profile in PLACES:
        steps = tuple(end.split("/"))
        if parts[-len(steps) :] == steps:
            return Placed(profile, f"it is {end}")
    name = parts[-1] if parts else ""
    return next((Placed(profile, f"its name is {name}") for names, profile in NAMES if name in names), None)


def is_of_family(document: Mapping[str, Any]) -> bool:
    """Whether a decoded document is of this family: its ``hooks`` has an event with groups of handlers."""
    return any(name in EVENTS and _has_groups(value) for name, value in _hooks_of(document).items())


def contradiction(document: Mapping[str, Any], profile: Profile) -> str | None:
    """Whose file a document is, where that is plainly not the profile's; None where it may be."""
    hooks = _hooks_of(document)
    foreign = sorted(CLAUDE_SETTINGS & document.keys())
    if foreign and profile.root_keys is not None:
        return f"a settings file of Claude Code: it has {foreign[0]}"
    lists = {name: value for name, value in hooks.items() if isinstance(value, list)}
    if not lists or any(name in EVENTS for name in lists):
        return None
    if "version" in document:
        return "a hook file of Cursor or Copilot: it has a version"
    actions = [name for name, value in lists.items() if _prx_event(name) and _has_commands(value)]
    return f"a PRX hooks.json: {actions[0]} has actions, not groups" if actions else None


def _hooks_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    hooks = document.get("hooks")
    return hooks if isinstance(hooks, dict) else {}


def _prx_event(name: str) -> bool:
    return name.strip().lower().replace("-", "_") in CATALOGUE


def _has_groups(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(g, dict) and "hooks" in g for g in value)


def _has_commands(value: list[object]) -> bool:
    return any(isinstance(action, dict) and "command" in action for action in value)
