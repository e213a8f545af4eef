"""A PRX ``hooks.json`` as a whole: root, events, actions, and the diagnostics with their lines.

A file is refused only where nothing in it can be used: it is too large, not JSON, or its root or ``hooks`` is
no object. Everything else is a remark about one key, one event or one action, and never removes a sibling.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.spec import HookSpec
from . import prx_rules as rules
from .base import ParsedFile
from .findings import Findings
from .json_positions import Duplicate, Lines, Path, Spot, scan
from .json_text import BYTE_ORDER_MARK, JsonRefused, read_json
from .nearest import nearest
from .prx_action import ActionPlace, read_action, unknown_keys
from .prx_values import kind, timeout_ms

_MAX_DUPLICATES = 100
"""Repeated keys that are remarked upon; a file with more has one mistake many times."""

_EVENT_DEPTH = 2
"""Steps from the root to an event's list."""


def parse(text: bytes, path: str, events: Collection[str] | None = None) -> ParsedFile:
    """Read a ``hooks.json``. Raises nothing: what is wrong becomes a diagnostic.

    ``path`` is how diagnostics name the file. ``events`` are the canonical events that may be named besides
    the page's own; None: those of the catalogue.
    """
    if len(text) > rules.MAX_FILE_BYTES:
        message = f"the file has {len(text)} bytes, more than {rules.MAX_FILE_BYTES}"
        return _refused(path, "file_too_large", None, None, message, "put what is long into scripts")
    has_mark = text.startswith(BYTE_ORDER_MARK)
    text = text.removeprefix(BYTE_ORDER_MARK)
    try:
        root = read_json(text)
    except JsonRefused as error:
        return _refused(path, "not_json", error.line, error.column, error.message, error.hint)
    reading = _Reading(path, _catalogue() if events is None else events)
    if has_mark:
        hint = "save it as UTF-8 without a byte order mark"
        reading.findings.say("byte_order_mark", (), "the byte order mark is ignored", hint)
    reading.read_root(root)
    return reading.result(text)


def _refused(
    path: str, code: str, line: int | None, column: int | None, message: str, hint: str | None
) -> ParsedFile:
    diagnostic = Diagnostic(rules.CODES[code], code, path, line, column, None, message, hint)
    return ParsedFile((), (diagnostic,), refused=True)


def _catalogue() -> Collection[str]:
    from broker.protocol.catalogue import EVENTS  # only a caller without a list of its own needs it

    return EVENTS


def _foreign(name: str) -> str | None:
    """The canonical event that another dialect calls so."""
    from broker.protocol.projections import DIALECT_EVENTS

    natives = (pair for names in DIALECT_EVENTS.values() for pair in names.items())
    return next((canonical for canonical, native in natives if native == name), None)


class _Reading:
    """One file being read: what was found so far."""

    def __init__(self, path: str, events: Collection[str]) -> None:
        self.path = path
        self.events = events
        self.findings = Findings(rules.CODES)
        self.specs: dict[Path, HookSpec] = {}
        self.default_timeout_ms = rules.DEFAULT_TIMEOUT_MS
        self.actions = 0
        self.refused = False

    def read_root(self, root: object) -> None:
        if not isinstance(root, dict):
            self.refused = True
            message = f"the file holds {kind(root)}, not an object"
            self.findings.say("wrong_root", (), message, 'write {"hooks": {...}}')
            return
        misplaced = {key for key in root if event_name(key) in rules.PAGE_EVENTS}
        for key in misplaced:
            message = f"{quote(key)} stands outside of hooks: nothing of it runs"
            self.findings.say("misplaced_event", (key,), message, 'move it into "hooks"', at="key")
        others = {key: value for key, value in root.items() if key not in misplaced}
        unknown_keys(others, (), rules.FILE_KEYS, self.findings)
        self.read_file_timeout(root.get("timeout_ms"))
        hooks = root.get("hooks")
        if hooks is None:
            self.findings.say("no_hooks", (), "the file names no hooks", 'put events into {"hooks": {...}}')
        elif isinstance(hooks, dict):
            self.read_hooks(hooks)
        else:
            self.refused = True
            message = f"hooks is an object of events, not {kind(hooks)}"
            self.findings.say("wrong_hooks", ("hooks",), message, 'write {"tool_call": [...]}')

    def read_file_timeout(self, value: object) -> None:
        if value is not None:
            otherwise = f"; actions without their own get {rules.DEFAULT_TIMEOUT_MS} ms"
            found = timeout_ms(value, ("timeout_ms",), self.findings, otherwise=otherwise)
            self.default_timeout_ms = rules.DEFAULT_TIMEOUT_MS if found is None else found

    def read_hooks(self, hooks: Mapping[str, object]) -> None:
        counts: dict[str, int] = {}
        for key, actions in hooks.items():
            event = event_name(key)
            where: Path = ("hooks", key)
            if not self.is_event(event, key, where):
                continue
            if event in counts:
                message = f"{quote(key)} is another spelling of {event}: both lists run"
                self.findings.say("two_spellings", where, message, "merge them into one list", at="key")
            first = counts.get(event, 0)
            if isinstance(actions, list):
                counts[event] = first + len(actions)
                self.read_actions(actions, where, event, first)
            elif actions is not None:
                hint = "put [ and ] around it" if isinstance(actions, dict) else 'write [{"command": "..."}]'
                message = f"an event has an array of actions, not {kind(actions)}"
                self.findings.say("wrong_event_value", where, message, hint)

    def read_actions(self, actions: list[object], where: Path, event: str, first: int) -> None:
        for index, action in enumerate(actions):
            here = (*where, index)
            if self.actions >= rules.MAX_ACTIONS:
                message = f"{len(actions) - index} actions from here on do not run: a file has at most"
                hint = "do several things in one script"
                self.findings.say("too_many_actions", here, f"{message} {rules.MAX_ACTIONS}", hint)
                return
            self.actions += 1
            place = ActionPlace(self.path, here, event, first + index, self.default_timeout_ms)
            spec = read_action(action, place, self.findings)
            if spec is not None:
                self.specs[here] = spec

    def is_event(self, event: str, key: str, where: Path) -> bool:
        """Whether there is an event of this name; remarks on one that is unknown, or unknown to the page."""
        if event in rules.PAGE_EVENTS:
            return True
        if event in self.events:
            message = (
                f"{event} is not an event of PRX (prxbus extension): PRX itself never runs these actions"
            )
            self.findings.say("extension_event", where, message, at="key")
            return True
        message = f"there is no event {quote(key)}: its actions never run"
        self.findings.say("unknown_event", where, message, self.event_hint(key, event), at="key")
        return False

    def event_hint(self, key: str, event: str) -> str:
        if "*" in event:
            return "hooks.json has no patterns: name each event"
        known = (*rules.PAGE_EVENTS, *self.events)
        foreign = _foreign(key)
        if foreign in known:
            return f"PRX and prxbus call it {foreign}"
        near = None if self.findings.full else nearest(event.removeprefix(LIFECYCLE), known)
        if near is not None:
            return f"did you mean {near}?"
        return f"the events are {', '.join(rules.PAGE_EVENTS)}"

    def result(self, text: bytes) -> ParsedFile:
        """Specs with their lines, findings as diagnostics; one pass over the text finds the places."""
        spots, duplicates = scan(text, self.findings.places() | self.specs.keys(), _MAX_DUPLICATES)
        lines = Lines(text)
        for duplicate in duplicates:
            spots.setdefault(duplicate.path, Spot(duplicate.again, duplicate.again))
            self.say_duplicate(duplicate, lines)
        specs = tuple(
            replace(spec, line=lines.locate(spots[where].value)[0]) for where, spec in self.specs.items()
        )
        return ParsedFile(specs, self.findings.diagnostics(self.path, lines, spots), self.refused)

    def say_duplicate(self, duplicate: Duplicate, lines: Lines) -> None:
        loses_actions = duplicate.path[0] == "hooks" and len(duplicate.path) <= _EVENT_DEPTH
        line, column = lines.locate(duplicate.first)
        self.findings.say(
            "duplicate_event" if loses_actions else "duplicate_key",
            duplicate.path,
            f"{quote(str(duplicate.path[-1]))} stands twice: the one at {line}:{column} does not count",
            "merge the two",
            at="key",
        )


def event_name(key: str) -> str:
    """The canonical spelling of an event's name: trimmed, lower case, underscores for dashes."""
    return key.strip().lower().replace("-", "_")
