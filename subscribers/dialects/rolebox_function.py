"""One function of a role: a Markdown file with keys between two lines of dashes, then its instructions.

Decides what of it counts here: the instructions, the placeholders and their defaults, what has to be active
before, the place in the prompt, and whether it asks to be activated and to stay so. What the documents of
rolebox say is told in :mod:`.rolebox_rules`. It refuses to know where the file lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..hooks.diagnostics import Diagnostic
from . import rolebox_rules as rules
from .rolebox_reading import Entry, Reading
from .rolebox_spec import Role, RoleFunction
from .yaml_nodes import BYTE_ORDER_MARK, Node, YamlRefused, read_yaml

_HEAD: Final = re.compile(rb"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def read_function(
    content: bytes, path: str, name: str, environ: Mapping[str, str] | None = None
) -> tuple[RoleFunction | None, tuple[Diagnostic, ...]]:
    """The function of a file, None where it has no instructions. Raises nothing.

    ``path`` is how diagnostics name the file, ``name`` what activates the function.
    """
    reading = Reading(path, environ)
    content = content.removeprefix(BYTE_ORDER_MARK)
    head = _HEAD.match(content)
    entries: dict[str, Entry] = {}
    if head is not None:
        entries = _entries(reading, head[1])
        content = content[head.end() :]
    text = content.decode(errors="replace").strip()
    if not text:
        hint = "write them below the second line of dashes"
        reading.say("no_instructions", None, None, f"the function {name} has no instructions", hint)
        return None, reading.diagnostics()
    text = reading.replaced(Node("string", text, (), 1, 1), text, "text")
    function = RoleFunction(
        name,
        _text(entries.get("description")),
        text,
        _params(reading, entries.get("params")),
        _names(reading, entries.get("requires")),
        _priority(reading, entries.get("priority")),
        bool(_flag(reading, entries, "auto_activate")),
        bool(_flag(reading, entries, "locked")),
        path,
    )
    return function, reading.diagnostics()


def automatic(role: Role, functions: Iterable[RoleFunction]) -> tuple[str, ...]:
    """The names of the functions that the first message of a session activates.

    Those of the role's list; with ``hooks.builtin.auto_activate`` also those that are marked; none where that
    switch is off.
    """
    if role.builtin_auto_activate is False:
        return ()
    marked = (
        [function.name for function in functions if function.marked] if role.builtin_auto_activate else []
    )
    return tuple(dict.fromkeys((*role.auto_activate, *marked)))


def locked(role: Role, functions: Iterable[RoleFunction]) -> tuple[str, ...]:
    """Those of them that stay active whatever is asked for."""
    of_their_own = {function.name for function in functions if function.locked}
    return tuple(name for name in automatic(role, functions) if role.locked or name in of_their_own)


def _entries(reading: Reading, head: bytes) -> dict[str, Entry]:
    """The keys of the head; lines count from that of the dashes."""
    try:
        root = read_yaml(b"\n" + head, rules.MAX_DEPTH)
    except YamlRefused as error:
        at = Node("null", "", (), error.line, error.column)
        reading.say(error.code, at, None, error.message, error.hint)
        return {}
    if root is None or reading.mapping(root, "") is None:
        return {}
    return reading.entries(root, "")


def _text(entry: Entry | None) -> str:
    is_text = entry is not None and entry.value.kind == "string"
    return entry.value.text[: rules.MAX_DESCRIPTION] if entry is not None and is_text else ""


def _params(reading: Reading, entry: Entry | None) -> dict[str, str]:
    """The placeholders and their defaults; a number or a boolean is the text it is written as."""
    found = None if entry is None else reading.mapping(entry.value, "params")
    if found is None:
        return {}
    entries = reading.entries(found, "params")
    for name in [name for name, entry in entries.items() if entry.value.kind in ("mapping", "list")]:
        reading.wrong(entries.pop(name).value, f"params.{name}", "a text", "write its default")
    return {name: "" if entry.value.kind == "null" else entry.value.text for name, entry in entries.items()}


def _names(reading: Reading, entry: Entry | None) -> tuple[str, ...]:
    items = None if entry is None else reading.items(entry.value, "requires")
    texts = [
        reading.text(item, f"requires[{index}]", rules.MAX_NAME)
        for index, item in enumerate((items or [])[: rules.MAX_FUNCTIONS])
    ]
    return tuple(text for text in texts if text is not None)


def _priority(reading: Reading, entry: Entry | None) -> float:
    if entry is None or entry.value.kind == "null":
        return rules.FUNCTION_PRIORITY
    found = reading.number(entry.value, "priority")
    return rules.FUNCTION_PRIORITY if found is None else found


def _flag(reading: Reading, entries: Mapping[str, Entry], name: str) -> bool | None:
    entry = entries.get(name)
    return None if entry is None else reading.flag(entry.value, name)
