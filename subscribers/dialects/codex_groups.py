"""The events and groups of a hook file of the Codex family, and the handlers in them, in order.

It decides what drops an event, a group or a handler and what that leaves, section 2 of the contract included.
It refuses to know what a file is made of beyond its events: that is :mod:`.codex_file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..hooks.diagnostics import quote
from .codex_events import EVENTS, LITERAL_EVENTS, EventRule, events_of
from .codex_findings import CodexFindings
from .codex_handler import Slot, read_handler
from .codex_matcher import ALL, EVERYTHING, Matcher, compile_matcher
from .codex_matcher_patterns import Patterns
from .codex_profiles import PROFILES
from .codex_rules import MANAGED_KEYS, STATE_KEY
from .codex_spec import CodexHandler, TrustState
from .codex_values import invalid_type
from .json_positions import Path, Spot
from .nearest import nearest

GROUP_KEYS: Final = frozenset({"matcher", "hooks"})
"""What a group may hold."""


@dataclass(slots=True)
class Entry:
    """A handler as it stands in a file, also one that will never run: its place, and what was made of it."""

    event: str
    rule: EventRule | None
    group: int
    index: int
    where: Path
    value: Any
    matcher: Any = None
    handler: CodexHandler | None = None
    line: int | None = None


@dataclass(slots=True)
class Reading:
    """A file being read: what was found so far. ``spots`` are the places that are known without a search."""

    findings: CodexFindings
    windows: bool
    order: int
    budget: int
    entries: list[Entry] = field(default_factory=list)
    states: dict[str, TrustState] = field(default_factory=dict)
    refused: bool = False
    disabled: bool = False
    is_full: bool = False
    inspected: int = 0
    spots: dict[Path, Spot] = field(default_factory=dict)
    patterns: Patterns = field(default_factory=Patterns)


def read_hooks(hooks: Mapping[str, Any], reading: Reading) -> None:
    """The events in the order of the family, whatever order the file has them in."""
    profile = reading.findings.profile
    known = events_of(profile)
    names = {rule.name for rule in known}
    for rule in known:
        if rule.name in hooks:
            _read_event(rule, hooks[rule.name], reading)
    for name, value in hooks.items():
        if name not in names:
            _say_unknown(name, value, reading)


def _say_unknown(name: str, value: Any, reading: Reading) -> None:
    """An event that the profile does not have: its handlers are listed, and will never run."""
    findings, where = reading.findings, ("hooks", name)
    if name == STATE_KEY:
        return
    if name in MANAGED_KEYS:
        message = f"{name} is a key of an administrator's requirements, which are not read"
        findings.say("managed_key", where, message, at="key")
        return
    agent = findings.profile.agent
    other = EVENTS.get(name)
    if other is not None:
        owners = " and ".join(p.agent for p in PROFILES.values() if p.name in other.profiles)
        message = f"{agent} has no event {name} (it is one of {owners}): its handlers never run"
        findings.say("other_event", where, message, at="key")
    else:
        known = [rule.name for rule in events_of(findings.profile)]
        near = None if findings.full else nearest(name, known)
        hint = f"did you mean {near}? Case counts" if near else f"the events are {', '.join(known)}"
        message = f"there is no event {quote(name)}: its handlers never run, and {agent} says nothing"
        if findings.profile.reports_unknown_events:
            message = f"there is no event {quote(name)}: its handlers never run"
        findings.say("unknown_event", where, message, hint, at="key")
    for group, found in enumerate(value if isinstance(value, list) else ()):
        handlers = found.get("hooks") if isinstance(found, dict) else None
        for index, handler in enumerate(handlers if isinstance(handlers, list) else ()):
            place = (*where, group, "hooks", index)
            if _has_room(reading, place):
                reading.entries.append(Entry(name, None, group, index, place, handler))


def _read_event(rule: EventRule, groups: Any, reading: Reading) -> None:
    findings, where = reading.findings, ("hooks", rule.name)
    if not isinstance(groups, list):
        reason = invalid_type(groups, "a sequence")
        hint = "put [ and ] around it" if isinstance(groups, dict) else None
        findings.void("wrong_event_value", where, f"{rule.name} is an array of groups", reason, hint)
        return
    for number, group in enumerate(groups):
        _read_group(rule, number, group, (*where, number), reading)


def _read_group(rule: EventRule, number: int, group: Any, where: Path, reading: Reading) -> None:
    findings = reading.findings
    if not isinstance(group, dict):
        findings.void(
            "wrong_group", where, "a group is an object", invalid_type(group, "struct MatcherGroup")
        )
        return
    text, matcher, may_match = _matcher(rule, group, where, reading)
    for name in group.keys() - GROUP_KEYS:
        message = f"{findings.profile.agent} ignores {quote(name)} of a group"
        hint = "it belongs into a handler" if name in findings.profile.handler_keys["command"] else None
        findings.say("ignored_group_key", (*where, name), message, hint, at="key")
    handlers = group.get("hooks", [])
    if not isinstance(handlers, list):
        reason = invalid_type(handlers, "a sequence")
        findings.void("wrong_group", (*where, "hooks"), "hooks of a group is an array of handlers", reason)
        return
    for index, value in enumerate(handlers):
        place = (*where, "hooks", index)
        if not _has_room(reading, place):
            return
        entry = Entry(rule.name, rule, number, index, place, value, group.get("matcher"))
        reading.entries.append(entry)
        slot = Slot(findings.path, place, rule, number, index, reading.order, text, matcher, reading.windows)
        said = len(findings.warnings)
        handler = read_handler(value, slot, findings)
        if not may_match:  # what is wrong in it may void the file; else nobody looks at it
            del findings.warnings[said:]
        elif handler is not None and not reading.disabled:
            reading.order += 1
            if not _is_switched_off(handler, reading):
                entry.handler = handler


def _is_switched_off(handler: CodexHandler, reading: Reading) -> bool:
    """Whether a person has switched a handler off, in the records that its own file carries."""
    state = reading.states.get(handler.key)
    if state is None or state.enabled is not False:
        return False
    where = ("hooks", handler.event, handler.group, "hooks", handler.index)
    reading.findings.say("switched_off", where, f"it is switched off: hooks.state has {quote(handler.key)}")
    return True


def _matcher(
    rule: EventRule, group: Mapping[str, Any], where: Path, reading: Reading
) -> tuple[str | None, Matcher, bool]:
    """The text of a group's matcher where it counts, what it compiles to, and whether it can match at all."""
    findings, text = reading.findings, group.get("matcher")
    where = (*where, "matcher")
    if not isinstance(text, str | None):
        findings.void("invalid_matcher", where, "a matcher is a string", invalid_type(text, "a string"))
        return None, ALL, False
    if rule.matched is None:
        if text is not None and text not in EVERYTHING:
            message = f"{rule.name} ignores matchers: the handlers run every time"
            findings.say("ignored_matcher", where, message, at="key")
        return None, ALL, True
    is_literal = rule.name in LITERAL_EVENTS
    matcher = compile_matcher(text, findings.profile, reading.patterns, literal=is_literal)
    if matcher.error is None:
        return text, matcher, True
    if matcher.is_upstreams:
        message = f"{findings.profile.agent} takes {quote(text or '')}, RE2 does not: {matcher.error}"
        hint = "write it without look-around, back-references and escapes of its own"
        findings.say("dead_matcher", where, f"{message}; the handlers never run", hint)
    else:
        warning = f'invalid matcher "{text}" in {findings.path}: {matcher.error}'
        message = f"{quote(text or '')} is no pattern: {matcher.error}; the handlers never run"
        findings.warn("invalid_matcher", where, message, warning)
    return text, matcher, False


def _has_room(reading: Reading, where: Path) -> bool:
    """Whether one more handler may be looked at; the first that may not is said."""
    if reading.inspected < reading.budget:
        reading.inspected += 1
        return True
    if not reading.is_full:
        reading.is_full = True
        most = reading.findings.profile.max_handlers
        message = f"handlers from here on are not looked at: there may be {most:,} over all files"
        reading.findings.say("too_many_handlers", where, message, "do several things in one script")
    return False
