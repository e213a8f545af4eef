"""A LibreFang ``HOOK.yaml`` as a whole: its keys checked, its patterns written out, one hook for each event.

A file describes one hook. Where it cannot run at all the file is refused; an event that does not exist is
remarked upon and leaves the others. Every fault is found, not only the first.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.spec import HookSpec
from . import librefang_rules as rules
from .base import ParsedFile
from .librefang_events import meaning
from .nearest import nearest
from .yaml_nodes import BYTE_ORDER_MARK, Node, YamlRefused, read_yaml

_NAMES = tuple(key.name for key in rules.KEYS)
_UNPASSABLE = re.compile("[\0\ud800-\udfff]")
_SHAPES = {"string": 'write it as text, such as "..."', "list": "write a list, such as [a, b]"}
_LOOKED_AT = 20
"""Keys of a strange file that are compared with ours."""
_ARTICLES = {"mapping": "a mapping", "list": "a list", "string": "a string", "number": "a number"}
_ARTICLES |= {"boolean": "a boolean", "null": "nothing", "date": "a date", "tagged": "a value with a tag"}


def parse(text: bytes, path: str, events: Collection[str] | None = None) -> ParsedFile:
    """Read a ``HOOK.yaml``. Raises nothing: what is wrong becomes a diagnostic.

    ``path`` is how diagnostics name the file; its folder names a hook whose ``name`` is empty. ``events`` are
    the canonical events that may be named besides the page's own; None: those of the catalogue.
    """
    if len(text) > rules.MAX_FILE_BYTES:
        message = f"the file has {len(text)} bytes, more than {rules.MAX_FILE_BYTES}"
        return _refused(path, "file_too_large", None, None, message, "put what is long into the program")
    try:
        root = read_yaml(text.removeprefix(BYTE_ORDER_MARK), rules.MAX_DEPTH, rules.ONE_DOCUMENT)
    except YamlRefused as error:
        return _refused(path, error.code, error.line, error.column, error.message, error.hint)
    if root is None or root.kind == "null":
        return _refused(path, "empty_file", None, None, "the file is empty", f"write {', '.join(_NAMES)}")
    if root.kind != "mapping":
        message = f"the file holds {_ARTICLES[root.kind]}, not keys with values"
        return _refused(path, "wrong_root", root.line, root.column, message, 'begin with "name: my-hook"')
    reading = _Reading(path, _catalogue() if events is None else events)
    if text.startswith(BYTE_ORDER_MARK):
        hint = "save it as UTF-8 without a byte order mark"
        reading.say("byte_order_mark", None, None, "the byte order mark is ignored", hint)
    return reading.read(root)


def _refused(
    path: str, code: str, line: int | None, column: int | None, message: str, hint: str | None
) -> ParsedFile:
    diagnostic = Diagnostic(rules.CODES[code], code, path, line, column, None, message, hint)
    return ParsedFile((), (diagnostic,), refused=True)


def _catalogue() -> Collection[str]:
    from broker.protocol.catalogue import EVENTS  # only a caller without a list of its own needs it

    return EVENTS


class _Reading:
    """One file being read: what was found so far."""

    def __init__(self, path: str, events: Collection[str]) -> None:
        self.path = path
        self.events = events
        self.found: list[Diagnostic] = []
        self.left_out = 0
        self.errors = 0
        self.values: dict[str, Node] = {}

    def say(self, code: str, at: Node | None, field: str | None, message: str, hint: str | None) -> None:
        """Keep a remark, or count it when there are too many."""
        severity = rules.CODES[code]
        self.errors += severity == "error"
        if len(self.found) >= rules.MAX_DIAGNOSTICS:
            self.left_out += 1
            return
        line, column = (None, None) if at is None else (at.line, at.column)
        self.found.append(Diagnostic(severity, code, self.path, line, column, field, message, hint))

    @property
    def full(self) -> bool:
        """Further remarks are only counted: no need to search for a good hint."""
        return len(self.found) >= rules.MAX_DIAGNOSTICS

    def read(self, root: Node) -> ParsedFile:
        """The specs of the file and everything there is to say about it."""
        if not self.is_a_hook(root):
            return self.result(())
        self.keys(root)
        name = self.string("name")
        self.string("description")
        command = self.command()
        args = self.args()
        errors = self.errors
        chosen = self.chosen_events()
        if errors or not chosen:
            return self.result(())
        if name is not None and not name.strip():
            folder = PurePosixPath(self.path).parent.name or rules.NAME
            message = f"the name is empty: the hook is called {quote(folder)}"
            self.say("empty_name", self.values["name"], "name", message, "give it a name")
            name = folder
        return self.result(
            tuple(
                HookSpec(
                    id=f"{event}#{index}",
                    dialect=rules.NAME,
                    path=self.path,
                    line=item.line,
                    event=event,
                    command=command or "",
                    args=args or (),
                    env={},
                    cwd=None,
                    timeout_s=rules.TIMEOUT_S,
                    grace_s=rules.GRACE_S,
                    stdin=False,
                    name=name,
                    splits_command=args is None,
                    command_at=(self.values["command"].line, self.values["command"].column),
                )
                for event, (index, item) in chosen.items()
            )
        )

    def result(self, specs: tuple[HookSpec, ...]) -> ParsedFile:
        """What the file says; refused where nothing of it runs."""
        found = sorted(self.found, key=lambda remark: (remark.line or 0, remark.column or 0))
        if self.left_out:
            message = f"{self.left_out} more findings are not listed"
            hint = "correct the ones above and check the file again"
            found.append(Diagnostic("warning", "more_findings", self.path, None, None, None, message, hint))
        return ParsedFile(specs, tuple(found), refused=not specs)

    def is_a_hook(self, root: Node) -> bool:
        """Whether this is a hook file at all; a file of the same name may belong to something else."""
        names = [key.text for key, _ in root.pairs() if key.kind == "string"]
        if "events" in names or "command" in names:
            return True
        if any(_near_key(name) in ("events", "command") for name in names[:_LOOKED_AT]):
            return True  # misspelled: the remarks about its keys say more
        shown = ", ".join(map(quote, names[:5])) or "no keys"
        message = f"this is no hook of LibreFang: it has neither events nor command, but {shown}"
        hint = "if it belongs to something else, keep it elsewhere; a hook has name, events and command"
        self.say("foreign_file", root, None, message, hint)
        return False

    def keys(self, root: Node) -> None:
        """Sort the values by key; remark on what is unknown or there twice."""
        first: dict[str, Node] = {}
        for key, value in root.pairs():
            if key.kind != "string":
                shown = quote(key.text) if key.text else _ARTICLES[key.kind]
                message = f"unknown key {shown} is ignored"
                self.say("unknown_key", key, None, message, f"the keys are {', '.join(_NAMES)}")
                continue
            name = key.text
            if name in first:
                message = f"{quote(name)} stands twice, first at {first[name].line}:{first[name].column}"
                self.say("duplicate_key", key, _field(name), message, "keep one of them")
                continue
            first[name] = key
            if name in _NAMES:
                self.values[name] = value
                continue
            near = None if self.full else _near_key(name)
            hint = f"the keys are {', '.join(_NAMES)}" if near is None else f"did you mean {near}?"
            self.say("unknown_key", key, _field(name), f"unknown key {quote(name)} is ignored", hint)
        for wanted in rules.KEYS:
            if wanted.required and self.is_absent(wanted.name):
                self.say("missing_key", root, None, f"the hook has no {wanted.name}", _missing(wanted.name))

    def is_absent(self, name: str) -> bool:
        """Whether a key is missing, or there without a value."""
        return name not in self.values or self.values[name].kind == "null"

    def string(self, name: str) -> str | None:
        """The text of a key; None when there is none, or when a remark says what is wrong with it."""
        return None if self.is_absent(name) else self.text(self.values[name], name)

    def command(self) -> str | None:
        """The command; None when the hook cannot run."""
        command = self.string("command")
        if command is not None and not command.strip():
            hint = "name an executable, such as ./run.sh"
            self.say("empty_command", self.values["command"], "command", "the command is empty", hint)
        return command

    def args(self) -> tuple[str, ...] | None:
        """The arguments; None when there is no such key, which is not the same as an empty list."""
        if self.is_absent("args"):
            return None
        args = self.items("args")
        if len(args) > rules.MAX_ARGS:
            message = f"{len(args)} arguments are more than {rules.MAX_ARGS}"
            self.say("too_many", self.values["args"], "args", message, "use a script")
            return ()
        texts = [self.text(item, f"args[{index}]") for index, item in enumerate(args)]
        return tuple(text for text in texts if text is not None)

    def chosen_events(self) -> dict[str, tuple[int, Node]]:
        """The canonical events, each with the first entry of the list that names it."""
        if self.is_absent("events"):
            return {}
        items = self.items("events")
        if self.values["events"].kind == "list" and not items:
            hint = "name one, such as agent:end"
            self.say("no_events", self.values["events"], "events", "the list of events is empty", hint)
        chosen: dict[str, tuple[int, Node]] = {}
        seen: set[str] = set()
        for index, item in enumerate(items):
            field = f"events[{index}]"
            name = self.event_text(item, field)
            if name is None:
                continue
            if name in seen:
                message = f"{quote(name)} stands twice: the hook runs once for each event"
                self.say("repeated_event", item, field, message, "remove one of them")
            seen.add(name)
            found = meaning(name, self.events, searches=not self.full)
            if found.code is not None:
                self.say(found.code, item, field, found.message, found.hint)
            for event in found.events:
                chosen.setdefault(event, (index, item))
        return chosen

    def event_text(self, item: Node, field: str) -> str | None:
        """An entry of the list; ``agent: end`` is the mistake that YAML makes easy."""
        if item.kind == "mapping" and len(item.pairs()) == 1:
            key, value = item.pairs()[0]
            if key.kind == value.kind == "string":
                message = "this is a mapping: an event's name has no blank"
                self.say("wrong_type", item, field, message, f"write {key.text}:{value.text}"[:80])
                return None
        return self.text(item, field)

    def items(self, name: str) -> list[Node]:
        """The entries of a list; a remark, and none, when it is something else."""
        node = self.values[name]
        if node.kind == "list":
            return node.items()
        message = f"this is {_ARTICLES[node.kind]}, not a list"
        hint = f"write {name}: [{quote(node.text)}]" if node.kind == "string" else _SHAPES["list"]
        self.say("wrong_type", node, name, message, hint)
        return []

    def text(self, node: Node, field: str) -> str | None:
        """A string that a program can be given; None, and a remark, for anything else."""
        if node.kind != "string":
            hint = f'write "{node.text}", in quotes' if 0 < len(node.text) <= 40 else _SHAPES["string"]
            message = f"this is {_ARTICLES[node.kind]}, not a string"
            self.say("wrong_type", node, field, message, hint)
            return None
        if _UNPASSABLE.search(node.text):
            message = "this holds a NUL or half of a surrogate pair, which no program can be given"
            self.say("bad_character", node, field, message, "remove it")
            return None
        return node.text


def _near_key(name: str) -> str | None:
    return nearest(name, _NAMES)


def _field(name: str) -> str:
    return name if name.isidentifier() else quote(name)


def _missing(name: str) -> str:
    if name == "command":
        return "write command: ./run.sh (a Hermes hook, with a handler.py beside it, is none of LibreFang)"
    return "write events: [agent:end]" if name == "events" else "write name: my-hook"
