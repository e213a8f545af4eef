"""A hook file of the Codex family as a whole: its root, what refuses it, and what comes of the rest.

It decides section 1 of the contract; :mod:`.codex_groups` reads the events. Left to itself it drops as
little as it can; ``strict`` gives the agent's own effect, which for Codex and Claude Code is that one wrong
field voids the file. What the agent would do is said either way. It refuses to know where files lie and
whether they are trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from ..hooks.diagnostics import Diagnostic, quote
from .codex_events import EVENTS
from .codex_findings import CodexFindings
from .codex_groups import GROUP_KEYS, Entry, Reading, read_hooks
from .codex_place import contradiction
from .codex_profiles import OWN_FILE_BYTES, Profile
from .codex_rules import CODES
from .codex_spec import CodexDocument
from .codex_toml import TomlRefused, read_toml
from .codex_trust import read_states
from .codex_values import RULES, invalid_type
from .json_positions import Lines, Path, Spot, scan
from .json_text import BYTE_ORDER_MARK, JsonRefused, read_json

_MAX_DUPLICATES: Final = 100
_GROUP_DEPTH: Final = 3
"""Steps from the root to a group."""


class Read(NamedTuple):
    """A file read for whoever explains it: the document, and every handler that stands in it."""

    document: CodexDocument
    entries: tuple[Entry, ...]


class How(TypedDict, total=False):
    """How a file is read beside its own words; what is left out holds as in :func:`read_entries`."""

    strict: bool
    first_order: int
    inspected_before: int
    windows: bool
    lines: bool


def read_document(content: bytes, path: str, profile: Profile, **how: Unpack[How]) -> CodexDocument:
    """Read a hook file for those who run it: as :func:`read_entries`, and without lines unless asked for."""
    how.setdefault("lines", False)
    return read_entries(content, path, profile, **how).document


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
    """Read a hook file, with everything that stands in it. Raises nothing: what is wrong is a diagnostic.

    ``path`` is absolute, for trust keys hold it; one that ends in ``.toml`` is a ``config.toml``.
    ``first_order`` numbers the first handler, ``inspected_before`` says how many handlers other files had
    already, of those that a profile allows in all. ``lines``: every handler gets its line, which costs about
    as much as all else.
    """
    findings = CodexFindings(path, profile)
    budget = max(0, profile.max_handlers - inspected_before)
    reading = Reading(findings, windows, first_order, budget)
    if len(content) > profile.max_file_bytes:
        message = f"the file has {len(content):,} bytes, more than {profile.max_file_bytes:,}"
        return _refusal(reading, "file_too_large", message, None, None, None)
    if path.endswith(".toml"):
        if not profile.reads_toml:
            message = f"{profile.agent} reads no hooks from a TOML file"
            return _refusal(reading, "not_read", message, None, None, "write them as JSON")
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
        read_hooks(found.table, reading)
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
    """A file that nothing can be made of, with what says so, and what the agent would do with it."""
    findings = reading.findings
    is_ours = code == "file_too_large" and findings.profile.max_file_bytes == OWN_FILE_BYTES
    refusal = None if is_ours else message
    said = [Diagnostic(CODES[code], code, findings.path, line, column, None, message, hint)]
    if refusal is not None and code != "not_read":
        said.append(_would_refuse(refusal, findings, None))
    own = findings.profile.own_texts
    warnings = (f"failed to parse hooks config {findings.path}: {message}",) if own else ()
    document = CodexDocument(
        findings.path,
        findings.profile.name,
        (),
        tuple(said),
        True,
        warnings=warnings,
        upstream_refusal=refusal,
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
        read_hooks(hooks, reading)
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
            findings.refuse(reason)
        elif key in EVENTS:
            message = f"{quote(key)} stands outside of hooks: it refuses the whole file"
            findings.void("misplaced_event", (key,), message, reason, 'move it into "hooks"', at="key")
        else:
            message = f"the root has no key {quote(key)}: it refuses the whole file"
            hint = f"the keys are {' and '.join(sorted(allowed or ()))}"
            findings.void("unknown_root_key", (key,), message, reason, hint, at="key")


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
    return name in (GROUP_KEYS if len(parents) == _GROUP_DEPTH else {"type", *RULES})


def _result(reading: Reading, content: bytes, *, strict: bool) -> Read:
    """The document, with lines where they are known."""
    findings = reading.findings
    refusal = findings.voids[0] if findings.voids else None
    reading.refused = reading.refused or (strict and refusal is not None)
    lines = Lines(content) if reading.spots or findings.kept else None
    handlers = []
    for entry in reading.entries:
        if lines is not None and entry.where in reading.spots:
            entry.line, _ = lines.locate(reading.spots[entry.where].value)
        if entry.handler is not None:
            if entry.line is not None:
                entry.handler = replace(entry.handler, line=entry.line)
            handlers.append(entry.handler)
    said = () if lines is None else findings.diagnostics(findings.path, lines, reading.spots)
    document = CodexDocument(
        findings.path,
        findings.profile.name,
        () if reading.refused else tuple(handlers),
        (*_about_refusal(refusal, reading, strict=strict), *said),
        reading.refused,
        reading.inspected,
        _warnings(reading, refusal),
        refusal,
        reading.states,
    )
    return Read(document, tuple(reading.entries))


def _about_refusal(refusal: str | None, reading: Reading, *, strict: bool) -> tuple[Diagnostic, ...]:
    """What the agent does with the file, however much else there is to say."""
    agent = reading.findings.profile.agent
    if refusal is None:
        return ()
    if reading.refused and strict:
        code, message = "refused", f"the file is refused, as {agent} refuses it: {refusal}"
        return (Diagnostic(CODES[code], code, reading.findings.path, None, None, None, message, None),)
    hint = None if reading.refused else "correct it, so that both run the same"
    return (_would_refuse(refusal, reading.findings, hint),)


def _would_refuse(refusal: str, findings: CodexFindings, hint: str | None) -> Diagnostic:
    code, message = "upstream_refuses", f"{findings.profile.agent} would refuse this whole file: {refusal}"
    return Diagnostic(CODES[code], code, findings.path, None, None, None, message, hint)


def _warnings(reading: Reading, refusal: str | None) -> tuple[str, ...]:
    findings = reading.findings
    if not findings.profile.own_texts:
        return ()
    if refusal is None:
        return tuple(findings.warnings)
    is_toml = findings.path.endswith(".toml")
    return (f"failed to parse {'TOML hooks in' if is_toml else 'hooks config'} {findings.path}: {refusal}",)
