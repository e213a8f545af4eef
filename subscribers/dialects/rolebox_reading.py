"""What reading YAML of rolebox has in common: remarks with their places, and values of the kinds wanted.

Decides how a wrong kind is told, and what a placeholder ``{env:NAME}`` becomes. Each getter gives its value,
or None and a remark. It refuses to know which keys there are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ..hooks.diagnostics import Diagnostic, quote
from . import rolebox_rules as rules
from .nearest import nearest
from .yaml_nodes import Node

ARTICLES: Final = {
    "mapping": "a mapping",
    "list": "a list",
    "string": "a string",
    "number": "a number",
    "boolean": "a boolean",
    "null": "nothing",
    "date": "a date",
    "tagged": "a value with a tag",
}
UNPASSABLE: Final = re.compile("[\0\ud800-\udfff]")
"""What no path and no JSON in UTF-8 can hold."""

_PLACEHOLDER: Final = re.compile(r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_OTHER_PLACEHOLDER: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+")
_PLAIN_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MAX_DIGITS: Final = 400
_LOOKED_AT: Final = 20
"""Wrong names in one place that are compared with the known ones."""


class Entry(NamedTuple):
    """A key of a mapping and its value."""

    key: Node
    value: Node


class Reading:
    """One file being read: what was found so far.

    ``environ`` is what placeholders are taken from; None leaves them as they are, without a word.
    """

    def __init__(self, path: str, environ: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.environ = environ
        self.errors = 0
        self._merges = 0
        self._found: list[Diagnostic] = []
        self._left_out = 0

    def say(self, code: str, at: Node | None, field: str | None, message: str, hint: str | None) -> None:
        """Keep a remark, or count it when there are too many."""
        severity = rules.CODES[code]
        self.errors += severity == "error"
        if len(self._found) >= rules.MAX_DIAGNOSTICS:
            self._left_out += 1
            return
        line, column = (None, None) if at is None else (at.line, at.column)
        self._found.append(Diagnostic(severity, code, self.path, line, column, field, message, hint))

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything that there is to say, in the order of the text."""
        found = sorted(self._found, key=lambda remark: (remark.line or 0, remark.column or 0))
        if self._left_out:
            message = f"{self._left_out} more findings are not listed"
            hint = "correct the ones above and check the file again"
            found.append(Diagnostic("warning", "more_findings", self.path, None, None, None, message, hint))
        return tuple(found)

    def near(self, name: str, known: Sequence[str]) -> str | None:
        """The known name that was probably meant; not searched for once there are many remarks."""
        return None if len(self._found) >= rules.MAX_DIAGNOSTICS else nearest(name, known)

    def entries(self, node: Node, field: str, known: Sequence[str] = ()) -> dict[str, Entry]:
        """The keys of a mapping; what ``<<`` brings stands behind its own.

        Repeated and odd keys are remarked upon. ``known``: the keys that there are; others are left out, and
        remarked upon too.
        """
        found: dict[str, Entry] = {}
        merged: list[Node] = []
        unknown = 0
        for key, value in node.pairs():
            if _is_merge(key):
                merged.append(value)
                continue
            name = key.text
            if key.kind in ("mapping", "list"):
                self.say("unknown_key", key, field, f"{ARTICLES[key.kind]} is no key", _known(known))
            elif name in found:
                first = found[name].key
                message = f"{quote(name)} stands twice, first at {first.line}:{first.column}"
                self.say("duplicate_key", key, within(field, name), message, "keep one of them")
            elif known and name not in known:
                unknown += 1
                self.unknown(key, within(field, name), known, searches=unknown <= _LOOKED_AT)
            else:
                found[name] = Entry(key, value)
        for name, entry in self._merged(merged):
            if not known or name in known:
                found.setdefault(name, entry)
        return found

    def _merged(self, nodes: Sequence[Node]) -> Iterator[tuple[str, Entry]]:
        """The keys that ``<<`` brings, the nearest first; merges within those are not followed."""
        for node in nodes:
            for source in node.items() if node.kind == "list" else (node,):
                for key, value in source.pairs() if source.kind == "mapping" else ():
                    self._merges += 1
                    if self._merges > rules.MAX_MERGED:
                        message = f"<< brings more than {rules.MAX_MERGED:,} keys into this file"
                        self.say("too_many", node, None, message, "write fewer")
                        return
                    yield key.text, Entry(key, value)

    def unknown(self, key: Node, field: str, known: Sequence[str], *, searches: bool = True) -> None:
        """That a key is none of those that there are."""
        near = self.near(key.text, known) if searches else None
        hint = _known(known) if near is None else f"did you mean {near}?"
        self.say("unknown_key", key, field, f"unknown key {quote(key.text)} is ignored", hint)

    def mapping(self, node: Node, field: str) -> Node | None:
        """A mapping; None where there is nothing."""
        if node.kind == "mapping":
            return node
        if node.kind != "null":
            self.wrong(node, field, "a mapping", "write keys with values")
        return None

    def items(self, node: Node, field: str) -> list[Node] | None:
        """The elements of a list; None, and a remark, for anything else but nothing."""
        if node.kind == "list":
            return node.items()
        if node.kind != "null":
            name = field.rpartition(".")[2]
            is_name = node.kind in ("string", "number", "boolean") and len(node.text) <= 40
            hint = f"write {name}: [{node.text}]" if is_name else "write a list, such as [a, b]"
            self.wrong(node, field, "a list", hint)
        return None

    def text(self, node: Node, field: str, most: int) -> str | None:
        """A string of at most ``most`` characters, its placeholders replaced."""
        if node.kind != "string":
            hint = f'write "{node.text}", in quotes' if 0 < len(node.text) <= 40 else "write text"
            self.wrong(node, field, "a string", hint)
            return None
        text = self.replaced(node, node.text, field)
        if UNPASSABLE.search(text):
            message = "this holds a NUL or half of a surrogate pair, which no path and no JSON can hold"
            self.say("bad_character", node, field, message, "remove it")
            return None
        if len(text) > most:
            message = f"this has {len(text):,} characters, more than {most:,}"
            self.say("too_long", node, field, message, "shorten it")
            return None
        return text

    def flag(self, node: Node, field: str) -> bool | None:
        """A boolean; None where there is nothing, or something else and a remark."""
        if node.kind == "boolean":
            return node.text.lower() == "true"
        if node.kind != "null":
            self.wrong(node, field, "a boolean", "write true or false")
        return None

    def number(self, node: Node, field: str) -> float | None:
        """A finite number. One in quotes counts too, with a remark: rolebox takes it."""
        found = number_of(node.text) if node.kind in ("number", "string") else None
        if found is None or not math.isfinite(found):
            is_other = node.kind not in ("number", "string")
            shown = ARTICLES[node.kind] if is_other else quote(node.text)
            self.say("bad_number", node, field, f"{shown} is no number", "write a number, such as 50")
            return None
        if node.kind == "string":
            message = f"{quote(node.text)} is text; it is taken for the number"
            self.say("odd_type", node, field, message, f"write {node.text.strip()}, without quotes")
        return float(found)

    def replaced(self, node: Node, text: str, field: str) -> str:
        """The text with every ``{env:NAME}`` replaced; one that is not set stays, and is remarked upon."""
        if self.environ is None or ("{env:" not in text and "${" not in text):
            return text
        environ = self.environ
        for name in dict.fromkeys(_PLACEHOLDER.findall(text)):
            if name not in environ:
                message = f"there is no variable {name}: the placeholder stays as it is"
                self.say("no_such_variable", node, field, message, "set it where prxbus up is started")
        for name in dict.fromkeys(_OTHER_PLACEHOLDER.findall(text)):
            message = f"${{{name}}} stays as it is: only {{env:NAME}} is replaced"
            self.say("not_replaced", node, field, message, f"write {{env:{name}}} if its value is meant")
        return _PLACEHOLDER.sub(lambda match: environ.get(match[1], match[0]), text)

    def wrong(self, node: Node, field: str, wanted: str, hint: str | None) -> None:
        """That something is of another kind than it should be."""
        self.say("wrong_type", node, field, f"this is {ARTICLES[node.kind]}, not {wanted}", hint)


def within(field: str, name: str) -> str:
    """A field inside of another; odd names in quotes."""
    shown = name if _PLAIN_FIELD.fullmatch(name) else quote(name)
    return f"{field}.{shown}" if field else shown


def _is_merge(key: Node) -> bool:
    """Whether a key is YAML's ``<<``, by which a mapping takes over the keys of others."""
    return key.kind == "tagged" and key.text == "<<"


def number_of(text: str) -> int | float | None:
    """The number that a text of YAML is, or None."""
    text = text.strip()
    if len(text) > _MAX_DIGITS:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text):
        return int(text, 0)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    try:
        return float(_special(text))
    except ValueError:
        return None


def _special(text: str) -> str:
    """``.inf`` and ``.nan`` as Python has them; what only Python takes for a number is no number."""
    lowered = text.lower().lstrip("+-")
    if lowered in (".inf", ".nan"):
        return text.replace(".", "")
    return "" if "_" in text or lowered in ("inf", "infinity", "nan") else text


def _known(known: Sequence[str]) -> str | None:
    return f"the keys are {', '.join(known)}" if known else None
