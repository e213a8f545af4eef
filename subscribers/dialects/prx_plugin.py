"""A PRX plugin's manifest, ``plugin.toml``: what it says, and what is wrong with it.

A manifest is refused where nothing can be run from it: it is too large, no TOML, has no usable name or
component, or no hook with an event. Everything else is a remark about one key and never takes another one
along; a number out of range leaves its default in force. It refuses to know whether the component exists and
what the operator allows: sources and the runner decide that.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ..hooks.diagnostics import Diagnostic, quote
from . import prx_plugin_rules as rules
from .findings import Findings
from .json_positions import Lines, Path
from .json_text import BYTE_ORDER_MARK
from .nearest import nearest
from .prx_plugin_patterns import EventPatterns, read_pattern
from .toml_text import MAX_KEY_PARTS, has_endless_key

T = TypeVar("T", str, bool, int, list[Any], dict[str, Any])

_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{rules.NAME_CHARACTERS - 1}}}")
_PLACE: Final = re.compile(r"(?:\s*\(at (?:line (\d+), column (\d+)|end of document)\))?$")

_KINDS: Final = {str: "a string", bool: "a boolean", int: "a whole number", list: "an array", dict: "a table"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A plugin as its manifest describes it.

    ``wasm`` is a relative path with plain segments. ``folders`` are paths relative to the workspace. Times
    are in milliseconds, sizes in MiB; ``max_fuel`` None: unlimited. ``required`` and ``optional`` are
    permissions beyond those that every plugin has.
    """

    name: str
    version: str
    description: str
    wasm: str
    events: EventPatterns
    max_memory_mb: int
    max_execution_time_ms: int
    max_fuel: int | None
    max_kv_storage_mb: int
    required: tuple[str, ...]
    optional: tuple[str, ...]
    folders: tuple[str, ...]
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ParsedManifest:
    """What a manifest says; ``manifest`` None: nothing can be run from it, and the diagnostics say why."""

    manifest: Manifest | None
    diagnostics: tuple[Diagnostic, ...]


def parse(text: bytes, path: str, events: Collection[str] | None = None) -> ParsedManifest:
    """Read a ``plugin.toml``. Raises nothing: what is wrong becomes a diagnostic.

    ``path`` is how diagnostics name the file. ``events`` are the canonical events that may be named besides
    the page's own; None: those of the catalogue.
    """
    if len(text) > rules.MAX_FILE_BYTES:
        message = f"the file has {len(text)} bytes, more than {rules.MAX_FILE_BYTES}"
        return _refused(path, "file_too_large", message, "keep data in files of its own")
    findings = Findings(rules.CODES)
    if text.startswith(BYTE_ORDER_MARK):
        text = text.removeprefix(BYTE_ORDER_MARK)
        findings.say("byte_order_mark", (), "the byte order mark is ignored", "save it without one")
    if has_endless_key(text):
        message = f"a key of it has more than {MAX_KEY_PARTS} parts"
        return _refused(path, "not_toml", message, "write tables that are not nested so deeply")
    try:
        document = tomllib.loads(text.decode())
    except UnicodeDecodeError as error:
        return _refused(path, "not_toml", f"byte {error.start} is no UTF-8", "save the file as UTF-8")
    except tomllib.TOMLDecodeError as error:
        return _refused_toml(path, str(error))
    except (RecursionError, ValueError):  # tomllib recurses, and converts numbers of any length
        return _refused(path, "not_toml", "it is nested too deeply, or holds an endless number", None)
    reading = _Reading(findings, _catalogue() if events is None else events)
    manifest = reading.read(document)
    return ParsedManifest(manifest, findings.diagnostics(path, Lines(b""), {}))


def _catalogue() -> Collection[str]:
    from broker.protocol.catalogue import EVENTS  # only a caller without a list of its own needs it

    return EVENTS


def _refused(
    path: str, code: str, message: str, hint: str | None, line: int | None = None, column: int | None = None
) -> ParsedManifest:
    diagnostic = Diagnostic(rules.CODES[code], code, path, line, column, None, message, hint)
    return ParsedManifest(None, (diagnostic,))


def _refused_toml(path: str, words: str) -> ParsedManifest:
    place = _PLACE.search(words)
    assert place is not None  # at least the end matches
    message = f"this is no TOML: {words[: place.start()]}"
    line, column = (None, None) if place[1] is None else (int(place[1]), int(place[2]))
    return _refused(path, "not_toml", message, "correct the file; it may be half written", line, column)


class _Reading:
    """One manifest being read: what was found so far."""

    def __init__(self, findings: Findings, events: Collection[str]) -> None:
        self.findings = findings
        self.events = events
        self.patterns = 0

    def read(self, document: dict[str, Any]) -> Manifest | None:
        self.check_keys(document, (), rules.TABLES)
        plugin = self.table(document, "plugin")
        name, wasm = self.name(plugin), self.wasm(plugin)
        self.check_keys(plugin, ("plugin",), rules.PLUGIN_KEYS, rules.KEPT_PLUGIN_KEYS)
        self.check_api_version(plugin)
        version = self.text(plugin, "version")
        if not version:
            self.findings.say("missing_version", ("plugin",), "version is missing", 'write version = "0.1.0"')
        events = self.capabilities(document.get("capabilities"))
        limits = self.limits(self.table(document, "resources"))
        permissions = self.table(document, "permissions")
        self.check_keys(permissions, ("permissions",), rules.PERMISSION_KEYS)
        required, optional = (
            self.permissions(permissions, "required"),
            self.permissions(permissions, "optional"),
        )
        if permissions.get("http_allowlist"):
            message = "prxbus does not look at addresses: the permission network opens all of them"
            self.findings.say("not_enforced", ("permissions", "http_allowlist"), message, None)
        folders = self.folders(permissions)
        config = self.config(self.table(document, "config"))
        description = self.text(plugin, "description")
        if name is None or wasm is None or not events or required is None:
            return None
        return Manifest(
            name,
            version,
            description,
            wasm,
            events,
            limits["max_memory_mb"] or 0,
            limits["max_execution_time_ms"] or 0,
            limits["max_fuel"],
            limits["max_kv_storage_mb"] or 0,
            required,
            optional or (),
            folders,
            config,
        )

    # -- values -------------------------------------------------------------------------------

    def typed(self, value: object, wanted: type[T], where: Path, hint: str | None = None) -> T | None:
        """The value when it has the wanted type; else None, and a finding says so."""
        if type(value) is wanted:
            return value
        found = _KINDS.get(type(value), "a number" if isinstance(value, float) else "a date or time")
        self.findings.say("wrong_type", where, f"this is {_KINDS[wanted]}, not {found}", hint)
        return None

    def table(self, document: Mapping[str, Any], name: str) -> dict[str, Any]:
        value = document.get(name)
        if value is None:
            return {}
        return self.typed(value, dict, (name,), f"write [{name}]") or {}

    def text(self, table: Mapping[str, Any], name: str) -> str:
        value = table.get(name)
        return "" if value is None else self.typed(value, str, ("plugin", name)) or ""

    def strings(self, value: object, where: Path) -> Iterable[tuple[str, Path]]:
        """The strings of an array with their places; other elements are remarked upon."""
        for index, element in enumerate(self.typed(value, list, where, 'write ["...", "..."]') or ()):
            text = self.typed(element, str, (*where, index), "write a string")
            if text is not None:
                yield text, (*where, index)

    def check_keys(
        self, table: Mapping[str, Any], where: Path, known: Collection[str], kept: Collection[str] = ()
    ) -> None:
        for key in table:
            if key not in known and key not in kept:
                hint = self.hint(key, (*known, *kept), f"there are {', '.join(known)}")
                self.findings.say("unknown_key", (*where, key), "there is no such key", hint)

    def hint(self, written: str, known: Iterable[str], otherwise: str | None) -> str | None:
        """What was probably meant; not searched for when there are so many findings that none is kept."""
        near = None if self.findings.full else nearest(written, known)
        return otherwise if near is None or near == written else f"did you mean {near}?"

    # -- [plugin] -----------------------------------------------------------------------------

    def name(self, plugin: Mapping[str, Any]) -> str | None:
        where = ("plugin", "name")
        if "name" not in plugin:
            self.findings.say("missing_name", ("plugin",), "name is missing", 'write name = "audit-logger"')
            return None
        name = self.typed(plugin["name"], str, where)
        if name is None or _NAME.fullmatch(name):
            return name
        hint = f"1 to {rules.NAME_CHARACTERS} of A-Z a-z 0-9 . _ -, the first a letter or digit"
        self.findings.say("bad_name", where, f"{quote(name)} cannot be the name of a plugin", hint)
        return None

    def wasm(self, plugin: Mapping[str, Any]) -> str | None:
        where = ("plugin", "wasm")
        wasm = self.typed(plugin.get("wasm", rules.DEFAULT_WASM), str, where)
        if wasm is None or _is_plain(wasm):
            return wasm
        message = f"{quote(wasm)} is no path below the plugin's folder"
        self.findings.say("bad_wasm_path", where, message, "write it relative, without . and ..")
        return None

    def check_api_version(self, plugin: Mapping[str, Any]) -> None:
        version = plugin.get("api_version", "1")
        if version not in ("1", 1):
            written = _as_text(version)
            wanted = "another version" if written is None else f"version {quote(written)}"
            message = f"the plugin wants {wanted} of the interface"
            self.findings.say(
                "api_version", ("plugin", "api_version"), message, 'prxbus has "1"; it is tried'
            )

    # -- [[capabilities]] ---------------------------------------------------------------------

    def capabilities(self, value: object) -> EventPatterns:
        """The union of the events of every block that is a hook."""
        where: Path = ("capabilities",)
        hint = 'write [[capabilities]], type = "hook" and events = ["tool_call"]'
        blocks = [] if value is None else self.typed(value, list, where, hint) or []
        found = EventPatterns(False, frozenset())
        for index, block in enumerate(blocks[: rules.MAX_CAPABILITIES]):
            place = (*where, index)
            content = self.typed(block, dict, place, hint)
            if content is not None:
                found = self.capability(content, place, found)
        if len(blocks) > rules.MAX_CAPABILITIES:
            message = f"{len(blocks)} blocks; the first {rules.MAX_CAPABILITIES} count"
            self.findings.say("too_many", where, message, "one block may name many events")
        if not found:
            self.findings.say("no_hook", where, "no hook names an event: there is nothing to run", hint)
        return found

    def capability(self, block: Mapping[str, Any], where: Path, found: EventPatterns) -> EventPatterns:
        if "type" not in block:
            self.findings.say("missing_type", where, "type is missing", 'write type = "hook"')
            return found
        kind = self.typed(block["type"], str, (*where, "type"))
        if kind is None:
            return found
        if kind != "hook":
            hint = self.hint(kind, rules.CAPABILITY_TYPES, None)
            message = f"{quote(kind)} is ignored: prxbus runs hooks"
            self.findings.say("other_capability", (*where, "type"), message, hint)
            return found
        self.check_keys(block, where, rules.CAPABILITY_KEYS)
        if "events" not in block:
            hint = 'write events = ["tool_call"]'
            self.findings.say("missing_events", where, "events is missing", hint)
            return found
        every, names = found.every, set(found.names)
        for text, place in self.strings(block["events"], (*where, "events")):
            self.patterns += 1
            if self.patterns > rules.MAX_PATTERNS:
                message = f"patterns from here on do not count: there may be {rules.MAX_PATTERNS}"
                self.findings.say("too_many", place, message, f'"{rules.EVERY_PATTERN}" is every event')
                break
            pattern = read_pattern(text, place, self.events, self.findings)
            if pattern is not None:
                every, names = every or pattern.every, names | pattern.names
        return EventPatterns(every, frozenset(names))

    # -- [resources], [permissions], [config] -------------------------------------------------

    def limits(self, resources: Mapping[str, Any]) -> dict[str, int | None]:
        names = [limit.name for limit in rules.LIMITS]
        self.check_keys(resources, ("resources",), names, rules.KEPT_RESOURCE_KEYS)
        return {limit.name: self.limit(limit, resources) for limit in rules.LIMITS}

    def limit(self, limit: rules.Limit, resources: Mapping[str, Any]) -> int | None:
        if limit.name not in resources:
            return limit.default
        where = ("resources", limit.name)
        number = self.typed(resources[limit.name], int, where, f"write a whole number of {limit.unit}")
        if number is None or limit.least <= number <= limit.most:
            return limit.default if number is None else number
        stays = "it stays unlimited" if limit.default is None else f"{limit.default} {limit.unit} count"
        message = f"{_as_text(number) or 'the number'} is not within {limit.least} to {limit.most}: {stays}"
        self.findings.say("out_of_range", where, message, f"write {limit.unit} in that range")
        return limit.default

    def permissions(self, table: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
        """The permissions that are not everybody's; None when one that is required does not exist."""
        known = (*rules.WASI, *rules.GRANTED)
        found: dict[str, None] = {}
        missing = False
        for text, where in self.strings(table.get(name, []), ("permissions", name)):
            if text in rules.WASI:
                found[text] = None
            elif text not in rules.GRANTED:
                hint = self.hint(text, known, f"there are {', '.join(known)}")
                self.findings.say("unknown_permission", where, f"there is no permission {quote(text)}", hint)
                missing = missing or name == "required"
        return None if missing else tuple(found)

    def folders(self, table: Mapping[str, Any]) -> tuple[str, ...]:
        where: Path = ("permissions", "filesystem_allowlist")
        found: dict[str, None] = {}
        for text, place in self.strings(table.get("filesystem_allowlist", []), where):
            if len(found) == rules.MAX_FOLDERS:
                self.findings.say("too_many", place, f"there may be {rules.MAX_FOLDERS} folders", None)
                break
            if _is_plain(text):
                found[text] = None
            else:
                message = f"{quote(text)} is no folder below the workspace"
                self.findings.say("bad_folder", place, message, "write it relative, without . and ..")
        return tuple(found)

    def config(self, table: Mapping[str, Any]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for key, value in table.items():
            where = ("config", key)
            if len(found) == rules.MAX_CONFIG:
                message = f"entries from here on do not count: there may be {rules.MAX_CONFIG}"
                self.findings.say("too_many", where, message, None)
                break
            text = _as_text(value)
            if text is None:
                message = "a value is text, a boolean, or a number, which has 64 bits if it is whole"
                self.findings.say("wrong_type", where, message, None)
            elif len(text.encode()) > rules.MAX_CONFIG_BYTES:
                message = f"a value has at most {rules.MAX_CONFIG_BYTES} bytes"
                self.findings.say("too_long", where, message, None)
            else:
                found[key] = text
        return found


def _as_text(value: object) -> str | None:
    """A string, number or boolean as text; None for all else, and for a whole number beyond 64 bits.

    TOML has no such numbers. The parser reads them, at any length in base 16, 8 and 2, and Python refuses to
    write the longest ones in base 10.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return str(value) if isinstance(value, str | int | float) else None


def _is_plain(path: str) -> bool:
    """Whether it is a relative path whose segments are names: none empty, ``.`` or ``..``, and no NUL."""
    return "\0" not in path and all(segment not in ("", ".", "..") for segment in path.split("/"))
