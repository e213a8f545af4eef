"""Bytes to the nodes of YAML documents, each with its place, or a refusal that names line and column.

It decides how YAML is decoded and how a mistake in it is explained. It builds no values: a repeated key and
the spelling of a number stay visible, nothing that an alias repeats is copied, and no tag makes an object. It
refuses to know what the document means.
"""

from __future__ import annotations

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
    for what has a tag of its own. ``text`` is a scalar's content, ``children`` what a list or, as keys and
    values in turn, a mapping holds.
    """

    kind: str
    text: str
    children: Sequence[Any]
    line: int
    column: int

    def items(self) -> list[Node]:
        """The elements of a list."""
        return [_node(child) for child in self.children]

    def pairs(self) -> list[tuple[Node, Node]]:
        """The keys and values of a mapping, repeated ones too."""
        return [(_node(key), _node(value)) for key, value in self.children]


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
    return [_node(document) for document in _documents(_decoded(text), max_depth, at_most)]


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line, column = _at(text[: error.start].decode(), None)
        message = f"byte 0x{text[error.start]:02x} is not UTF-8"
        raise YamlRefused("not_utf8", message, line, column, "save the file as UTF-8") from None


def _documents(text: str, max_depth: int, at_most: int) -> list[Any]:
    from ruamel.yaml import YAML  # 40 ms of imports that only a machine with such files pays
    from ruamel.yaml.composer import MaxDepthExceededError
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = max_depth
    yaml.composer.warn_double_anchors = False  # an anchor may be set again: YAML allows it
    found: list[Any] = []
    try:
        for document in yaml.compose_all(text):
            found.append(document)
            if len(found) == at_most:
                break
    except MaxDepthExceededError as error:
        line, column = _place(error.problem_mark)
        message = f"lists and mappings stand more than {max_depth} deep in each other"
        raise YamlRefused("too_deep", message, line, column, "nothing needs so many") from None
    except YAMLError as error:
        raise _refusal(error, text) from None
    except Exception as error:  # text that no YAML is trips the library in ways that it has no error for
        kind = type(error).__name__
        message = f"not YAML: it cannot be read at all ({kind})"
        raise YamlRefused("not_yaml", message, 1, 1, "remove what is not plain YAML") from None
    return found


def _refusal(error: Exception, text: str) -> YamlRefused:
    character, position = getattr(error, "character", None), getattr(error, "position", None)
    if character is not None and position is not None:  # the reader's error, which has no mark
        line, column = _at(text, position)
        message = f"not YAML: {quote(text[position : position + 1])} is a character that it does not allow"
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


def _node(found: Any) -> Node:
    line, column = _place(found.start_mark)
    value = found.value
    tag = str(found.tag).removeprefix(_TAG)
    if isinstance(value, str):
        return Node(_SCALARS.get(tag, "tagged"), value, (), line, column)
    kind = {"map": "mapping", "seq": "list"}.get(tag, "tagged")
    return Node(kind, "", value, line, column)


def _place(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _at(text: str, position: int | None) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, len(before) - before.rfind("\n")
