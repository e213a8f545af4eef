"""Bytes to the nodes of YAML documents, each with its place, or a refusal that names line and column.

It decides how YAML is decoded and how a mistake in it is explained. It builds no values: a repeated key and
the spelling of a number stay visible, nothing that an alias repeats is copied, and no tag makes an object. It
refuses to know what the document means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ..hooks.diagnostics import quote

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = {
    "str": "string",
    "int": "number",
    "float": "number",
    "bool": "boolean",
    "null": "null",
    "timestamp": "date",
}
_COLLECTIONS: Final = {"MappingStartEvent": ("map", "mapping"), "SequenceStartEvent": ("seq", "list")}
_PLAIN: Final = re.compile(
    r"(?P<null>~|null|Null|NULL|)"
    r"|(?P<bool>true|True|TRUE|false|False|FALSE)"
    r"|(?P<int>[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
    r"|(?P<timestamp>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt \t][0-9:.]+(?:[ \t]*(?:Z|[-+][0-9:]+))?)?)"
    r"|(?P<merge><<)"
)
"""What a scalar without quotes may be besides a string: the core of YAML 1.2, dates, and the merge key."""

_LONE_STAR: Final = 'a lone * must stand in quotes: "*"'


class YamlRefused(ValueError):
    """The bytes are not one YAML document; ``line`` and ``column`` count from 1, columns in characters."""

    def __init__(self, code: str, message: str, line: int, column: int, hint: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint


class Node(NamedTuple):
    """A value of the document.

    ``kind`` is ``mapping``, ``list``, ``string``, ``number``, ``boolean``, ``null``, ``date``, or ``tagged``
    for what has a tag of its own. ``text`` is a scalar's content, ``children`` what a list holds or, keys and
    values in turn, a mapping. What an alias stands for is the same node again, so that one may hold itself.
    """

    kind: str
    text: str
    children: Sequence[Any]
    line: int
    column: int

    def items(self) -> list[Node]:
        """The elements of a list."""
        return list(self.children)

    def pairs(self) -> list[tuple[Node, Node]]:
        """The keys and values of a mapping, repeated ones too."""
        return list(zip(self.children[::2], self.children[1::2], strict=True))


def read_yaml(text: bytes, max_depth: int, one: str = "") -> Node | None:
    """The root of the only document; None when there is nothing but comments.

    ``max_depth`` bounds lists and mappings within each other, ``one`` says why a second document is none.
    Raises :class:`YamlRefused` and nothing else. A byte order mark must be gone already.
    """
    documents = read_documents(text, max_depth, 2)
    if len(documents) > 1:
        second = documents[1]
        message = f"a second document begins here{one and ': '}{one}"
        raise YamlRefused(
            "several_documents", message, second.line, second.column, "put it into a folder of its own"
        )
    return documents[0] if documents else None


def read_documents(text: bytes, max_depth: int, at_most: int) -> list[Node]:
    """The roots of the first documents; further ones are not looked at.

    Raises :class:`YamlRefused` and nothing else. A byte order mark must be gone already.
    """
    return _documents(_decoded(text), max_depth, at_most)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line, column = _at(text[: error.start].decode(), error.start)
        message = f"byte 0x{text[error.start]:02x} is not UTF-8"
        raise YamlRefused("not_utf8", message, line, column, "save the file as UTF-8") from None


def _documents(text: str, max_depth: int, at_most: int) -> list[Node]:
    import yaml  # 25 ms of imports that only a machine with such files pays

    # The parser in C, where PyYAML was built with it: fifty times as fast, and a file may be a megabyte.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    composition = _Composition(max_depth)
    try:
        for event in yaml.parse(text, Loader=loader):
            name = type(event).__name__
            composition.take(name, event)
            if name == "DocumentEndEvent" and len(composition.documents) == at_most:
                break
    except yaml.YAMLError as error:
        raise _refusal(error, text) from None
    except YamlRefused:
        raise
    except Exception as error:  # text that no YAML is trips the library in ways that it has no error for
        kind = type(error).__name__
        message = f"not YAML: it cannot be read at all ({kind})"
        raise YamlRefused("not_yaml", message, 1, 1, "remove what is not plain YAML") from None
    return composition.documents


class _Composition:
    """The documents that the parser's events amount to."""

    def __init__(self, max_depth: int) -> None:
        self.documents: list[Node] = []
        self._max_depth = max_depth
        self._open: list[list[Node]] = []
        self._anchors: dict[str, Node] = {}

    def take(self, name: str, event: Any) -> None:
        """Take the next event. Raises :class:`YamlRefused`."""
        if name == "ScalarEvent":
            self._put(event, Node(_kind(event), event.value, (), *_place(event.start_mark)))
        elif name in _COLLECTIONS:
            self._begin(name, event)
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            self._open.pop()
        elif name == "AliasEvent":
            self._repeat(event)
        elif name == "DocumentStartEvent":
            self._anchors.clear()

    def _begin(self, name: str, event: Any) -> None:
        line, column = _place(event.start_mark)
        if len(self._open) == self._max_depth:
            message = f"lists and mappings stand more than {self._max_depth} deep in each other"
            raise YamlRefused("too_deep", message, line, column, "nothing needs so many")
        standard, kind = _COLLECTIONS[name]
        is_plain = event.tag in (None, "!", _TAG + standard)
        children: list[Node] = []
        self._put(event, Node(kind if is_plain else "tagged", "", children, line, column))
        self._open.append(children)

    def _repeat(self, event: Any) -> None:
        node = self._anchors.get(event.anchor)
        if node is None:
            message = f"there is no anchor &{quote(event.anchor)[1:-1]} before this alias"
            raise YamlRefused("not_yaml", message, *_place(event.start_mark), "text with a * needs quotes")
        self._put(None, node)

    def _put(self, event: Any, node: Node) -> None:
        if event is not None and event.anchor is not None:
            self._anchors[event.anchor] = node
        (self._open[-1] if self._open else self.documents).append(node)


def _kind(event: Any) -> str:
    """What a scalar is: by its tag, or by how it looks, as YAML 1.2 has it; one in quotes is a string."""
    if event.tag is not None and event.tag != "!":
        return _SCALARS.get(event.tag.removeprefix(_TAG), "tagged")
    if event.tag is not None or not event.implicit[0]:
        return "string"
    found = _PLAIN.fullmatch(event.value)
    return "string" if found is None else _SCALARS.get(str(found.lastgroup), "tagged")


def _refusal(error: Exception, text: str) -> YamlRefused:
    character = getattr(error, "character", None)
    if character is not None:  # the reader's error, which has no mark: it stops at the first of them
        line, column = _at(text, text.find(chr(character)))
        message = f"not YAML: {quote(chr(character))} is a character that it does not allow"
        return YamlRefused("not_yaml", message, line, column, "remove it")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (1, 1) if mark is None else _place(mark)
    problem = str(getattr(error, "problem", None) or error).strip().partition("\n")[0]
    message = f"not YAML: {quote(problem)[1:-1]}"
    return YamlRefused("not_yaml", message, line, column, _hint(text, line, column))


def _hint(text: str, line: int, column: int) -> str | None:
    """What is usually meant by what stands at the mistake."""
    lines = text.splitlines()
    written = lines[line - 1] if line <= len(lines) else ""
    if written[max(0, column - 2) : column].startswith("*") or written.strip() in ("- *", "*"):
        return _LONE_STAR
    if "\t" in written[: len(written) - len(written.lstrip())] or written[column - 1 : column] == "\t":
        return "YAML wants blanks here, not a tab"
    if ": " in written[column - 1 :]:
        return "text with a colon and a blank must stand in quotes"
    return None


def _place(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _at(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
