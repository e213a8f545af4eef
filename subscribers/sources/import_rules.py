"""What a source's profile, and its agent's own switches, say about its hooks.

Decides which handlers an agent was told not to run: Claude Code by ``disableAllHooks``, Codex by its feature
switch and by the record of single handlers. How one handler reads is the profile's business, asked here one
at a time, so that none voids another. It refuses to know which files a handler names.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from ..dialects.codex_events import EVENTS, events_of
from ..dialects.codex_file import read_document
from ..dialects.codex_profiles import PROFILES, Profile
from ..dialects.codex_trust import read_states
from ..hooks.import_draft import Checked, Rules
from .attach_plan import is_ours
from .import_sources import Source

_PLACE: Final = "/hooks.json"
"""Path under which a single handler is read: nobody sees it."""


def rules_for(source: Source, document: Mapping[str, Any], outer: Sequence[Mapping[str, Any]]) -> Rules:
    """The rules for a source; ``outer`` are the settings around it, the widest first."""
    profile = PROFILES[source.profile]
    settings = [*outer, document]
    is_claude = source.agent == "claude-code"
    records = settings if source.scope == "user" else outer  # Codex believes no project's record
    return Rules(
        events=frozenset(rule.name for rule in events_of(profile)),
        types=profile.types,
        keys=_keys(profile),
        check=lambda event, group, handler: check(event, group, handler, profile),
        is_own=is_own,
        disabled=frozenset() if is_claude else _disabled(source.path, records),
        all_disabled=_all_disabled_claude(settings) if is_claude else _all_disabled_codex(settings),
    )


def check(event: str, group: Mapping[str, Any], handler: Mapping[str, Any], profile: Profile) -> Checked:
    """What a profile makes of one handler by itself."""
    matcher = {"matcher": group["matcher"]} if "matcher" in group else {}
    known = {key: value for key, value in handler.items() if key in _keys(profile)}
    content = orjson.dumps({"hooks": {event: [{**matcher, "hooks": [known]}]}})
    document = read_document(content, _PLACE, profile)
    if not document.handlers:
        said = [each for each in document.diagnostics if each.code != "upstream_refuses"]
        said.sort(key=lambda each: ("error", "warning", "info").index(each.severity))
        return Checked(0.0, said[0].message if said else "it is not read as a handler")
    (found,) = document.handlers
    return Checked(found.timeout_s, found.unsupported)


def _keys(profile: Profile) -> frozenset[str]:
    return profile.handler_keys["command"] | {"type", "command"}


def is_own(handler: Mapping[str, Any]) -> bool:
    """Whether a handler is our own entry in an attached agent, in any of its forms."""
    if is_ours(handler):
        return True
    command = handler.get("command")
    if not isinstance(command, str) or "prxbus" not in command:
        return False
    args = handler.get("args")
    try:
        words = shlex.split(command) if not isinstance(args, list) else [command, *map(str, args)]
    except ValueError:
        return False
    names = [word.rpartition("/")[2] for word in words]
    return any(pair == ("prxbus", "hook") for pair in itertools.pairwise(names))


def warnings_about(source: Source, text: bytes) -> tuple[str, ...]:
    """What is to be said about a source as a whole."""
    refusal = read_document(text, source.path, PROFILES[source.profile]).upstream_refusal
    if refusal is None:
        return ()
    return (f"{source.title} itself uses nothing of this file: {refusal}",)


def _all_disabled_claude(settings: Sequence[Mapping[str, Any]]) -> str | None:
    """The narrowest settings that say so count."""
    said = [each["disableAllHooks"] for each in settings if isinstance(each.get("disableAllHooks"), bool)]
    return "`disableAllHooks` is set: Claude Code runs no hooks" if said and said[-1] else None


def _all_disabled_codex(settings: Sequence[Mapping[str, Any]]) -> str | None:
    said: list[bool] = []
    for each in settings:
        features = each.get("features")
        known = features if isinstance(features, Mapping) else {}
        # The old name, and the one that counts where both are there.
        said += [known[name] for name in ("codex_hooks", "hooks") if isinstance(known.get(name), bool)]
    return "`features.hooks` is false: Codex runs no hooks" if said and not said[-1] else None


def _disabled(path: str, settings: Sequence[Mapping[str, Any]]) -> frozenset[tuple[str, int, int]]:
    """The handlers of ``path`` that Codex's own record switches off."""
    names = {rule.key: name for name, rule in EVENTS.items()}
    found: set[tuple[str, int, int]] = set()
    for each in settings:
        hooks = each.get("hooks")
        states = read_states(hooks.get("state")) if isinstance(hooks, Mapping) else {}
        for key, state in states.items():
            place = key.removeprefix(f"{path}:").split(":")
            if not key.startswith(f"{path}:") or len(place) != 3 or place[0] not in names:
                continue
            if place[1].isdecimal() and place[2].isdecimal():
                slot = (names[place[0]], int(place[1]), int(place[2]))
                (found.discard if state.enabled is not False else found.add)(slot)
    return frozenset(found)
