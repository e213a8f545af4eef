"""One entry of ``hooks.custom``: its keys checked, each fault told, and the hook if there is one.

Decides which faults keep a hook from running and which only leave a part of it out. It refuses to know the
other entries, and where a module lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.protocol.projections import DIALECT_EVENTS

from ..hooks.diagnostics import quote
from ..hooks.module_hook import HANDLER_OF
from . import rolebox_rules as rules
from .rolebox_config import config_text
from .rolebox_reading import ARTICLES, Entry, Reading, within
from .rolebox_spec import Phase, RoleHook
from .yaml_nodes import Node

_NATIVE: Final = DIALECT_EVENTS[rules.NAME]
_TYPES: Final = tuple(name for name in _NATIVE.values() if name not in rules.EVENTS)
"""Types of ``event`` that the catalogue has a name of rolebox for."""
_OF_HANDLER: Final[dict[str, str]] = {handler: event for event, handler in HANDLER_OF.items()}
_FOREIGN: Final = {
    name: _NATIVE.get(event, event) for names in DIALECT_EVENTS.values() for event, name in names.items()
}
"""The event or type of rolebox for each name in any dialect."""


def read_hook(reading: Reading, node: Node, index: int, field: str) -> RoleHook | None:
    """The hook of an entry; None, and at least one remark, where it cannot run."""
    if node.kind != "mapping":
        hint = "write a mapping with name, events and module"
        reading.say("wrong_type", node, field, f"this is {ARTICLES[node.kind]}, not a hook", hint)
        return None
    return _Hook(reading, node, index, field).read()


class _Hook:
    """One entry being read."""

    def __init__(self, reading: Reading, node: Node, index: int, field: str) -> None:
        self.reading = reading
        self.node = node
        self.index = index
        self.field = field
        self.errors = reading.errors
        self.entries: dict[str, Entry] = reading.entries(node, field, rules.HOOK_KEYS)

    def read(self) -> RoleHook | None:
        missing = [key for key in _EXAMPLES if self.value(key) is None]
        if missing:
            message = f"the hook has no {' and no '.join(missing)}"
            hint = f"write {', '.join(_EXAMPLES[key].removeprefix('write ') for key in missing)}"
            self.reading.say("missing_key", self.node, self.field, message, hint)
        name = self.required("name", rules.MAX_NAME)
        module = self.required("module", rules.MAX_MODULE)
        description = self.description()
        config = self.config()
        priority = self.priority()
        phase = self.phase()
        errors = self.reading.errors
        events = self.events()
        tools, types = self.filter(events)
        if name is None or module is None or errors > self.errors:
            return None
        if not events or tools == () or types == ():
            return None
        return RoleHook(
            self.index,
            name,
            description,
            events,
            module,
            config,
            tools,
            types,
            priority,
            phase,
            self.node.line,
            self.node.column,
            (self.entries["module"].value.line, self.entries["module"].value.column),
        )

    def value(self, name: str) -> Node | None:
        """The value of a key; None where it is missing or nothing."""
        entry = self.entries.get(name)
        return None if entry is None or entry.value.kind == "null" else entry.value

    def at(self, name: str) -> str:
        return within(self.field, name)

    def required(self, name: str, most: int) -> str | None:
        """A text that must not be blank."""
        node = self.value(name)
        if node is None:
            return None
        text = self.reading.text(node, self.at(name), most)
        if text is not None and not text.strip():
            self.reading.say("empty_name", node, self.at(name), f"the {name} is blank", _EXAMPLES[name])
        return text

    def description(self) -> str:
        """A note; whatever it is, the hook runs."""
        node = self.value("description")
        if node is None:
            return ""
        if node.kind != "string":
            message = f"this is {ARTICLES[node.kind]}, not a string: it is left out"
            self.reading.say("odd_type", node, self.at("description"), message, "write text")
            return ""
        return node.text[: rules.MAX_DESCRIPTION]

    def config(self) -> str | None:
        node = self.value("config")
        found = None if node is None else self.reading.mapping(node, self.at("config"))
        return None if found is None else config_text(self.reading, found, self.at("config"))

    def priority(self) -> float:
        node = self.value("priority")
        found = None if node is None else self.reading.number(node, self.at("priority"))
        return rules.PRIORITY if found is None else found

    def phase(self) -> Phase:
        node = self.value("phase")
        if node is None:
            return rules.PHASE
        text = self.reading.text(node, self.at("phase"), rules.MAX_NAME)
        for phase in rules.PHASES:
            if text == phase:
                return phase
        if text is not None:
            near = self.reading.near(text, rules.PHASES)
            hint = "write before or after" if near is None else f"did you mean {near}?"
            self.reading.say(
                "unknown_phase", node, self.at("phase"), f"there is no phase {quote(text)}", hint
            )
        return rules.PHASE

    def events(self) -> tuple[str, ...]:
        """The events that there are; one that there is not leaves the others."""
        node = self.value("events")
        items = None if node is None else self.reading.items(node, self.at("events"))
        if node is None or items is None:
            return ()
        if not items:
            hint = _EXAMPLES["events"]
            self.reading.say("no_events", node, self.at("events"), "the list of events is empty", hint)
        if len(items) > rules.MAX_EVENTS:
            message = f"{len(items):,} events are more than {rules.MAX_EVENTS}"
            self.reading.say("too_many", node, self.at("events"), message, "name each once")
            return ()
        found: dict[str, None] = {}
        for index, item in enumerate(items):
            field = f"{self.at('events')}[{index}]"
            name = self.reading.text(item, field, rules.MAX_NAME)
            if name is None:
                continue
            if name not in rules.EVENTS:
                hint = _instead_of(self.reading, name)
                self.reading.say("unknown_event", item, field, f"there is no event {quote(name)}", hint)
            elif name in found:
                message = f"{quote(name)} stands twice: the hook runs once for each event"
                self.reading.say("repeated_event", item, field, message, "remove one of them")
            else:
                found[name] = None
        return tuple(found)

    def filter(self, events: Sequence[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
        """The lists of the filter; one that is empty was remarked upon: the hook could never fire."""
        node = self.value("filter")
        field = self.at("filter")
        found = None if node is None else self.reading.mapping(node, field)
        if found is None:
            return (None if node is None else ()), None
        errors = self.reading.errors
        entries = self.reading.entries(found, field, rules.FILTER_KEYS)
        if self.reading.errors > errors:
            return (), None
        tools = self.names(entries, field, "tools")
        types = self.names(entries, field, "eventTypes")
        if tools and events and not set(events).intersection(rules.TOOL_EVENTS):
            self.unused(entries["tools"], within(field, "tools"), "none of its events is of a tool")
        if types and events and "event" not in events:
            self.unused(entries["eventTypes"], within(field, "eventTypes"), "event is none of its events")
        for index, name in enumerate(types or ()):
            self.look_at_type(entries["eventTypes"].value, f"{within(field, 'eventTypes')}[{index}]", name)
        return tools, types

    def names(self, entries: dict[str, Entry], field: str, name: str) -> tuple[str, ...] | None:
        """A list of exact names; empty, and a remark, where it is none."""
        entry = entries.get(name)
        if entry is None or entry.value.kind == "null":
            return None
        field = within(field, name)
        items = self.reading.items(entry.value, field)
        if items is None:
            return ()
        if not items:
            message = "the list is empty: the hook would never fire"
            self.reading.say("empty_filter", entry.value, field, message, "name something, or remove it")
            return ()
        if len(items) > rules.MAX_FILTER:
            message = f"{len(items)} names are more than {rules.MAX_FILTER}"
            self.reading.say("too_many", entry.value, field, message, "filter in the module")
            return ()
        texts = [
            self.reading.text(item, f"{field}[{index}]", rules.MAX_FILTER) for index, item in enumerate(items)
        ]
        return tuple(dict.fromkeys(text for text in texts if text is not None))

    def unused(self, entry: Entry, field: str, why: str) -> None:
        message = f"this filter has no effect: {why}"
        self.reading.say("unused_filter", entry.key, field, message, "remove it, or add the event")

    def look_at_type(self, node: Node, field: str, name: str) -> None:
        """A type that never comes, or is nearly one that is known; any other may be an agent's own."""
        if name in _TYPES:
            return
        native = name if name in rules.EVENTS else _NATIVE.get(name)
        if native in rules.EVENTS:
            message = f"{quote(name)} never comes as event: it has a handler of its own"
            self.reading.say("unknown_type", node, field, message, f"write events: [{native}]")
            return
        near = native or self.reading.near(name, _TYPES)
        if near is not None:
            message = f"no event of type {quote(name)} is known"
            self.reading.say("unknown_type", node, field, message, f"did you mean {near}?")


def _instead_of(reading: Reading, name: str) -> str:
    """What to write instead of an event that there is not."""
    found = _OF_HANDLER.get(name) or _FOREIGN.get(name) or _NATIVE.get(name)
    if found in rules.EVENTS:
        return f"rolebox calls it {found}"
    if found is not None or "session." in name:
        return f"write event, with filter: {{eventTypes: [{found or name}]}}"[:120]
    near = reading.near(name, rules.EVENTS)
    return f"the events are {', '.join(rules.EVENTS)}" if near is None else f"did you mean {near}?"


_EXAMPLES: Final = {
    "name": "write name: my-checker",
    "events": "write events: [tool.execute.after]",
    "module": "write module: hooks/my-checker.js",
}
