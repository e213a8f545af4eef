"""Where things stand in a JSON document that a fast parser has accepted: the second pass.

Two questions are answered: the byte offset of each wanted place, and the keys that an object holds twice. The
pass trusts that the text is valid JSON; it refuses to judge it and builds no values. Memory is bounded by
what is asked, not by the size of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

Path: TypeAlias = tuple[str | int, ...]
"""A place in a document: keys and indexes from the root, which is the empty path."""

# Possessive, so a long string costs no backtracking memory. Colons and blanks say nothing that is not known.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],]|[^\s{}\[\],:"]++')

_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY, _COMMA, _QUOTE = b'{}[],"'


@dataclass(frozen=True, slots=True)
class Spot:
    """Byte offsets of a place: of its key (None for an array element and the root) and of its value."""

    key: int | None
    value: int


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that stands twice in one object: its place, and the offsets of the earlier and the later key."""

    path: Path
    first: int
    again: int


def scan(
    text: bytes, wanted: Collection[Path], max_duplicates: int
) -> tuple[dict[Path, Spot], list[Duplicate]]:
    """Find the wanted places and the first ``max_duplicates`` repeated keys of a valid JSON document.

    Of a repeated key the last occurrence is the place, as it is the value. A place that does not exist is
    missing from the answer.
    """
    wanted = frozenset(wanted)
    deepest = max(map(len, wanted), default=-1)
    spots: dict[Path, Spot] = {}
    duplicates: list[Duplicate] = []
    path: list[str | int] = []  # one entry for each open container: the key or index within it
    open_keys: list[dict[str, int] | None] = []  # the keys seen in each open object; None for an array
    key_at: int | None = None
    expects_key = False
    for match in _TOKEN.finditer(text):
        start = match.start()
        kind = text[start]
        if expects_key and kind == _QUOTE:
            key: str = orjson.loads(match[0])
            seen = open_keys[-1]
            assert seen is not None  # only an open object expects a key
            if key in seen and len(duplicates) < max_duplicates:
                duplicates.append(Duplicate((*path[:-1], key), seen[key], start))
            seen[key] = key_at = start
            path[-1] = key
            expects_key = False
        elif kind == _COMMA:
            index = path[-1]
            if isinstance(index, int):
                path[-1] = index + 1
            else:
                expects_key = True
        elif kind in (_CLOSE_OBJECT, _CLOSE_ARRAY):
            open_keys.pop()
            path.pop()
            expects_key = False
        else:
            if len(path) <= deepest and (here := tuple(path)) in wanted:
                spots[here] = Spot(key_at if here and isinstance(here[-1], str) else None, start)
            if kind == _OPEN_OBJECT:
                open_keys.append({})
                path.append("")
                expects_key = True
            elif kind == _OPEN_ARRAY:
                open_keys.append(None)
                path.append(0)
    return spots, duplicates


class Lines:
    """Turns byte offsets of one UTF-8 text into lines and columns."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", text))]

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte offset, both from 1, the column in characters."""
        line = bisect_right(self._starts, offset)
        before = self._text[self._starts[line - 1] : offset]
        return line, len(before.decode()) + 1
