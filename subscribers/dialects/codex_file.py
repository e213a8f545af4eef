"""A hook file of the Codex family as a whole: root, events, groups, and what becomes of each handler.

It decides sections 1 and 2 of the contract: what refuses a file, what drops a group or a handler, and in
which order the rest stands. Left to itself it drops as little as it can; ``strict`` gives the agent's own
effect, which for Codex and Claude Code is that one wrong field voids the file. What the agent would do is
said either way. It refuses to know where files lie and whether they are trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from ..hooks.diagnostics import Diagnostic, quote
from .codex_events import EVENTS, LITERAL_EVENTS, EventRule, events_of
from .codex_findings import CodexFindings
from .codex_handler import Slot, read_handler
from .codex_matcher import ALL, EVERYTHING, Matcher, compile_matcher
from .codex_place import contradiction
from .codex_profiles import PROFILES, Profile
from .codex_rules import CODES, MANAGED_KEYS, STATE_KEY
from .codex_spec import CodexDocument, CodexHandler, TrustState
from .codex_toml import TomlRefused, read_toml
from .codex_trust import read_states
from .codex_values import RULES, invalid_type
from .json_positions import Lines, Path, Spot, scan
from .json_text import BYTE_ORDER_MARK, JsonRefused, read_json
from .nearest import nearest

_MAX_DUPLICATES: Final = 100
_GROUP_KEYS: Final = frozenset({"matcher", "hooks"})
_GROUP_DEPTH: Final = 3
"""Steps from the root to a group."""


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


class Read(NamedTuple):
    """A file read for whoever explains it: the document, and every handler that stands in it."""

    document: CodexDocument
    entries: tuple[Entry, ...]


def read_document(
    content: bytes,
    path: str,
    profile: Profile,
    *,
    strict: bool = False,
    first_order: int = 0,
    inspected_before: int = 0,
    windows: bool = False,
    lines: bool = False,
) -> CodexDocument:
    """Read a hook file. Raises nothing: what is wrong becomes a diagnostic.

    ``path`` is absolute, for trust keys hold it; one that ends in ``.toml`` is a ``config.toml``.
    ``first_order`` numbers the first handler, ``inspected_before`` says how many handlers other files had
    already, of those that a profile allows in all. ``lines``: every handler gets its line, which costs about
    as much as all else.
    """
    return read_entries(
        content,
        path,
        profile,
        strict=strict,
        first_order=first_order,
        inspected_before=inspected_before,
        windows=windows,
        lines=lines,
    ).document


def read_entries(
    content: bytes,
    path: str,
    profile: Profile,
    *,
    strict: bool = False,
    first_order: int = 0,
    inspected_before: int = 0,
    windows: bool = False,
    lines: bool = True,
) -> Read:
    """As :func:`read_document`, with everything that stands in the file."""
    findings = CodexFindings(path, profile)
    budget = max(0, profile.max_handlers - inspected_before)
    reading = Reading(findings, windows, first_order, budget)
    if len(content) > profile.max_file_bytes:
        message = f"the file has {len(content):,} bytes, more than {profile.max_file_bytes:,}"
        return _refusal(reading, "file_too_large", message, None, None, None)
    if path.endswith(".toml"):
        return _toml(reading, content, strict=strict)
    return _json(reading, content, strict=strict, lines=lines)


def _json(reading: Reading, content: bytes, *, strict: bool, lines: bool) -> Read:
    if content.startswith(BYTE_ORDER_MARK):
        hint = "save the file as UTF-8 without a byte order mark"
        return _refusal(reading, "not_json", "the file begins with a byte order mark", 1, 1, hint)
    try:
        root = read_json(content)
    except JsonRefused as error:
        return _refusal(reading, "not_json", error.message, error.line, error.column, error.hint)
    _read_root(root, reading)
    duplicates = has_duplicates(content)
    if lines or duplicates or reading.findings.kept:
        wanted = reading.findings.places() | {entry.where for entry in reading.entries}
        spots, doubles = scan(content, wanted, _MAX_DUPLICATES)
        for double in doubles:
            _say_duplicate(double.path, reading)
            spots.setdefault(double.path, Spot(double.again, double.again))
        reading.spots.update(spots)
    return _result(reading, content, strict=strict)


def _toml(reading: Reading, content: bytes, *, strict: bool) -> Read:
    findings = reading.findings
    try:
        found = read_toml(content)
    except TomlRefused as error:
        return _refusal(reading, "not_toml", error.message, error.line, None, None)
    reading.spots.update(found.spots)
    reading.states.update(read_states(found.state))
    if isinstance(found.table, dict):
        _read_hooks(found.table, reading)
    elif found.table is not None:
        reading.refused = True
        reason = invalid_type(found.table, "struct HooksToml")
        findings.void("wrong_hooks", ("hooks",), "hooks is a table of events", reason)
    return _result(reading, content, strict=strict)


def has_duplicates(text: bytes) -> bool:
    """Whether an object of a JSON document that was accepted holds a key twice."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) != len(pairs)

    try:
        json.loads(text, object_pairs_hook=look, parse_int=float)
    except RecursionError:
        return True  # the search for places will tell
    return found


def _refusal(
    reading: Reading, code: str, message: str, line: int | None, column: int | None, hint: str | None
) -> Read:
    """A file that nothing can be made of, with the one remark that says so."""
    findings = reading.findings
    said = Diagnostic(CODES[code], code, findings.path, line, column, None, message, hint)
    own = findings.profile.own_texts
    warnings = (f"failed to parse hooks config {findings.path}: {message}",) if own else ()
    document = CodexDocument(
        findings.path, findings.profile.name, (), (said,), True, warnings=warnings, upstream_refusal=message
    )
    return Read(document, ())


def _read_root(root: object, reading: Reading) -> None:
    findings = reading.findings
    if root == []:  # the reader of Codex takes it for an object without fields
        return
    if not isinstance(root, dict):
        reading.refused = True
        reason = invalid_type(root, "struct HooksFile")
        findings.void("wrong_root", (), "the file holds no object", reason, 'write {"hooks": {...}}')
        return
    whose = contradiction(root, findings.profile)
    if whose is not None:
        reading.refused = True
        hint = "move it to where such files are read, or name its kind with --dialect"
        message = f"this is {whose}; nothing of it runs where hooks of {findings.profile.agent} are read"
        findings.say("other_system", (), message, hint)
        _check_root_keys(root, reading, is_said=True)
        return
    _check_root_keys(root, reading)
    if not isinstance(root.get("description"), str | None):
        reason = invalid_type(root["description"], "a string")
        findings.void("wrong_description", ("description",), "description is a string", reason)
    if root.get("disableAllHooks") is True and findings.profile.root_keys is None:
        findings.say("hooks_disabled", ("disableAllHooks",), "disableAllHooks is true: nothing of it runs")
        reading.disabled = True
    hooks = root.get("hooks")
    if isinstance(hooks, dict):
        _read_hooks(hooks, reading)
    elif "hooks" in root:
        reason = invalid_type(hooks, "struct HookEvents")
        findings.void("wrong_hooks", ("hooks",), "hooks is an object of events", reason)
        reading.refused = reading.refused or hooks is not None


def _check_root_keys(root: Mapping[str, Any], reading: Reading, *, is_said: bool = False) -> None:
    """A key that the root may not have refuses the file, in every profile that says which it may.

    ``is_said``: that nothing of the file runs, and why, has been said.
    """
    findings, allowed = reading.findings, reading.findings.profile.root_keys
    unknown = [key for key in root if allowed is not None and key not in allowed]
    for key in unknown:
        reading.refused = True
        reason = f"unknown field `{key}`, expected `description` or `hooks`"
        if is_said:
            findings.voids.append(reason)
        elif key in EVENTS:
            message = f"{quote(key)} stands outside of hooks: it refuses the whole file"
            findings.void("misplaced_event", (key,), message, reason, 'move it into "hooks"', at="key")
        else:
            message = f"the root has no key {quote(key)}: it refuses the whole file"
            hint = f"the keys are {' and '.join(sorted(allowed or ()))}"
            findings.void("unknown_root_key", (key,), message, reason, hint, at="key")


def _read_hooks(hooks: Mapping[str, Any], reading: Reading) -> None:
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
    for name in group.keys() - _GROUP_KEYS:
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
    matcher = compile_matcher(text, findings.profile, literal=rule.name in LITERAL_EVENTS)
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


def _say_duplicate(where: Path, reading: Reading) -> None:
    """A key that stands twice: the last one counts here, and the reader of Codex takes neither."""
    name, parents = str(where[-1]), where[:-1]
    message = f"{quote(name)} stands twice: only the last one counts"
    is_event = parents == ("hooks",) and name in EVENTS
    if is_event or _is_field(name, parents):
        code = "duplicate_event" if is_event else "duplicate_key"
        reading.findings.void(code, where, message, f"duplicate field `{name}`", "merge the two", at="key")
    else:
        reading.findings.say("duplicate_key", where, message, "merge the two", at="key")


def _is_field(name: str, parents: Path) -> bool:
    """Whether a key is one that a reader looks for: of the root, of a group or of a handler."""
    if parents == ():
        return name in ("description", "hooks")
    if parents[0] != "hooks" or not isinstance(parents[-1], int):
        return False
    return name in (_GROUP_KEYS if len(parents) == _GROUP_DEPTH else {"type", *RULES})


def _result(reading: Reading, content: bytes, *, strict: bool) -> Read:
    """The document, with lines where they are known."""
    findings = reading.findings
    refusal = findings.voids[0] if findings.voids else None
    reading.refused = reading.refused or (strict and refusal is not None)
    if refusal is not None:
        _say_refusal(refusal, reading, strict=strict)
    lines = Lines(content) if reading.spots or findings.kept else None
    handlers = []
    for entry in reading.entries:
        if lines is not None and entry.where in reading.spots:
            entry.line, _ = lines.locate(reading.spots[entry.where].value)
        if entry.handler is not None:
            if entry.line is not None:
                entry.handler = replace(entry.handler, line=entry.line)
            handlers.append(entry.handler)
    document = CodexDocument(
        findings.path,
        findings.profile.name,
        () if reading.refused else tuple(handlers),
        findings.diagnostics(findings.path, lines, reading.spots) if lines is not None else (),
        reading.refused,
        reading.inspected,
        _warnings(reading, refusal),
        refusal,
        reading.states,
    )
    return Read(document, tuple(reading.entries))


def _say_refusal(refusal: str, reading: Reading, *, strict: bool) -> None:
    agent = reading.findings.profile.agent
    if not reading.refused:
        message = f"{agent} would refuse this whole file: {refusal}"
        reading.findings.say("upstream_refuses", (), message, "correct it, so that both run the same")
    elif strict:
        reading.findings.say("refused", (), f"the file is refused, as {agent} refuses it: {refusal}")


def _warnings(reading: Reading, refusal: str | None) -> tuple[str, ...]:
    findings = reading.findings
    if not findings.profile.own_texts:
        return ()
    if refusal is None:
        return tuple(findings.warnings)
    is_toml = findings.path.endswith(".toml")
    return (f"failed to parse {'TOML hooks in' if is_toml else 'hooks config'} {findings.path}: {refusal}",)
