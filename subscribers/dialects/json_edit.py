"""Edits of a JSON text that leave alone every byte that they do not mean.

A text is outlined once: where each value begins and ends. An edit is a list of splices against that outline,
so indentation, key order, number forms and whatever a person wrote stay as they are; only what is put in is
written by us, in the style that the text around it has. It trusts that the text is valid JSON and refuses to
know what the values mean.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

INLINE_CHARACTERS: Final = 80
"""Longest array of plain values that is written on one line in an indented text."""

# Possessive, so a long string costs no backtracking memory. Colons and blanks say nothing that is not known.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],]|[^\s{}\[\],:"]++')
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY, _COMMA, _QUOTE = b'{}[],"'


class Node:
    """A value in a text: its byte offsets, and what it holds.

    ``keys`` are an object's names with the offset of each, in order, repeated ones included; None for
    anything else. ``children`` are an object's or array's values, in order.
    """

    __slots__ = ("children", "end", "keys", "start")

    def __init__(self, start: int, end: int, keys: list[tuple[str, int]] | None) -> None:
        self.start = start
        self.end = end
        self.keys = keys
        self.children: list[Node] = []

    def member(self, name: str) -> Node | None:
        """The value of an object's key, the last one of equal keys as it is for a parser; None without it."""
        found = None
        for (key, _), child in zip(self.keys or (), self.children, strict=False):
            if key == name:
                found = child
        return found


class Splice(NamedTuple):
    """Bytes that take the place of ``text[start:end]``."""

    start: int
    end: int
    put: bytes


class Style(NamedTuple):
    """How a text is written: ``unit`` is one step of indentation, None when all of it stands on one line."""

    unit: str | None
    newline: str
    colon: str
    comma: str


class Verbatim(NamedTuple):
    """A value that is put in as it stands elsewhere; ``indent`` begins the line on which it stands there."""

    text: str
    indent: str


def verbatim(text: bytes, node: Node) -> Verbatim:
    """A value of a text, to be put in elsewhere."""
    return Verbatim(text[node.start : node.end].decode(), _line_indent(text, node.start))


def outline(text: bytes) -> Node:
    """The root of a valid JSON text."""
    top = Node(0, 0, None)
    stack = [top]
    expects_key = False
    for match in _TOKEN.finditer(text):
        start, kind = match.start(), text[match.start()]
        holder = stack[-1]
        if kind in (_CLOSE_OBJECT, _CLOSE_ARRAY):
            stack.pop().end = match.end()
            expects_key = False
        elif kind == _COMMA:
            expects_key = holder.keys is not None
        elif expects_key:
            assert holder.keys is not None
            holder.keys.append((orjson.loads(match[0]), start))
            expects_key = False
        else:
            node = Node(start, match.end(), [] if kind == _OPEN_OBJECT else None)
            holder.children.append(node)
            if kind in (_OPEN_OBJECT, _OPEN_ARRAY):
                stack.append(node)
                expects_key = kind == _OPEN_OBJECT
    return top.children[0]


def style_of(text: bytes, root: Node) -> Style:
    """The style of a text whose root is an object, judged by its first key; two spaces where it has none."""
    newline = "\r\n" if b"\r\n" in text else "\n"
    if not root.keys:
        return Style("  ", newline, ": ", ", ")
    key_at = root.keys[0][1]
    indent = _indent(text, key_at)
    value_at = root.children[0].start
    colon = ":" if text[value_at - 1 : value_at] == b":" else ": "
    if indent is None:
        return Style(None, newline, colon, "," if colon == ":" else ", ")
    return Style(indent or "  ", newline, colon, ", ")


def spliced(text: bytes, splices: Iterable[Splice]) -> bytes:
    """The text after all splices, which must not overlap; insertions at one place keep their order."""
    parts = []
    done = 0
    for splice in sorted(splices, key=lambda splice: splice[:2]):
        parts += [text[done : splice.start], splice.put]
        done = splice.end
    return b"".join((*parts, text[done:]))


def change_members(
    text: bytes, node: Node, values: Mapping[str, Any], style: Style, without: Collection[str] = ()
) -> list[Splice]:
    """Give an object's keys these values, new ones last, and take the keys ``without`` out of it."""
    assert node.keys is not None
    names = [name for name, _ in node.keys]
    kept = [index for index, name in enumerate(names) if name not in without]
    if not kept:
        whole = _render(dict(values), style, _line_indent(text, node.start))
        return [Splice(node.start, node.end, whole.encode())]
    last = {name: index for index, name in enumerate(names)}
    splices = []
    for name, value in values.items():
        index = last.get(name)
        if index is not None:
            child = node.children[index]
            shown = _render(value, style, _line_indent(text, node.keys[index][1]))
            splices.append(Splice(child.start, child.end, shown.encode()))
    splices += _cuts([at for _, at in node.keys], node.children, kept)
    at = node.children[kept[-1]].end
    beside = node.keys[kept[-1]][1]
    for name, value in values.items():
        if name not in last:
            splices.append(Splice(at, at, _beside(text, beside, value, style, name)))
    return splices


def append_item(text: bytes, node: Node, value: Any, style: Style) -> list[Splice]:
    """Put a value at the end of an array."""
    if not node.children:
        whole = _render_array([value], style, _line_indent(text, node.start))
        return [Splice(node.start, node.end, whole.encode())]
    before = node.children[-1]
    return [Splice(before.end, before.end, _beside(text, before.start, value, style))]


def remove_item(node: Node, index: int) -> list[Splice]:
    """Take one value out of an array; what stays keeps its bytes."""
    kept = [other for other in range(len(node.children)) if other != index]
    if not kept:
        return [Splice(node.start + 1, node.end - 1, b"")]
    return _cuts([child.start for child in node.children], node.children, kept)


def _cuts(starts: list[int], children: list[Node], kept: list[int]) -> list[Splice]:
    """The splices that leave the ``kept`` ones; ``starts`` are where each entry begins."""
    staying = set(kept)
    cuts = [
        Splice(starts[index], starts[index + 1], b"") for index in range(kept[-1]) if index not in staying
    ]
    if kept[-1] < len(children) - 1:
        cuts.append(Splice(children[kept[-1]].end, children[-1].end, b""))
    return cuts


def _beside(text: bytes, neighbour: int, value: Any, style: Style, name: str | None = None) -> bytes:
    """A further entry after the one that begins at ``neighbour``: on its own line if that one has one."""
    indent = None if style.unit is None else _indent(text, neighbour)
    key = "" if name is None else _dumps(name) + style.colon
    if indent is None:
        inline = style._replace(unit=None)
        return f"{style.comma}{key}{_render(value, inline, '')}".encode()
    return f",{style.newline}{indent}{key}{_render(value, style, indent)}".encode()


def _render(value: Any, style: Style, indent: str) -> str:
    """A value as text whose following lines begin with ``indent``."""
    if isinstance(value, Verbatim):
        # A line end stands between tokens: within a string it is escaped.
        return value.text if style.unit is None else value.text.replace(f"\n{value.indent}", f"\n{indent}")
    if isinstance(value, dict):
        members = [
            f"{_dumps(name)}{style.colon}{_render(content, style, indent + (style.unit or ''))}"
            for name, content in value.items()
        ]
        return _bracketed("{", members, "}", style, indent)
    if isinstance(value, list):
        return _render_array(value, style, indent)
    return _dumps(value)


def _render_array(value: list[Any], style: Style, indent: str) -> str:
    if not any(isinstance(item, dict | list | Verbatim) for item in value):
        flat = "[" + style.comma.join(map(_dumps, value)) + "]"
        if style.unit is None or len(flat) <= INLINE_CHARACTERS:
            return flat
    items = [_render(item, style, indent + (style.unit or "")) for item in value]
    return _bracketed("[", items, "]", style, indent)


def _bracketed(opening: str, entries: list[str], closing: str, style: Style, indent: str) -> str:
    if not entries:
        return opening + closing
    if style.unit is None:
        return opening + style.comma.join(entries) + closing
    between = f"{style.newline}{indent}{style.unit}"
    return f"{opening}{between}{f',{between}'.join(entries)}{style.newline}{indent}{closing}"


def _dumps(value: Any) -> str:
    return orjson.dumps(value).decode()


def _indent(text: bytes, offset: int) -> str | None:
    """The blanks before ``offset`` when it is the first on its line, and not on the first line; else None."""
    line = text.rfind(b"\n", 0, offset)
    before = text[line + 1 : offset]
    return before.decode() if line >= 0 and not before.strip(b" \t") else None


def _line_indent(text: bytes, offset: int) -> str:
    """The blanks at the beginning of the line on which ``offset`` stands."""
    line = text[text.rfind(b"\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(b" \t"))].decode()
