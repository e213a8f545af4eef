"""The hooks of a Codex ``config.toml``: the table ``[hooks]``, its records of trust, and where things stand.

It decides which part of the file is a hook document. It refuses to know what is in it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .json_positions import Path, Spot
from .toml_text import has_endless_key

TABLE: Final = "hooks"

_STRING_OR_COMMENT: Final = re.compile(
    rb'''"""(?:\\.|[^\\])*?(?:"""|\Z)|\'{3}.*?(?:\'{3}|\Z)'''
    rb"""|"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?|#[^\n]*""",
    re.DOTALL,
)
_HEADER: Final = re.compile(
    rb"^[ \t]*(\[\[?)[ \t]*hooks[ \t]*(?:\.[ \t]*(\w+)[ \t]*(?:\.[ \t]*(hooks)[ \t]*)?)?\]", re.MULTILINE
)


class TomlRefused(ValueError):
    """The file is no TOML; ``line`` counts from 1 and is None where nobody knows."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class TomlHooks:
    """The hooks of a file. ``table`` is None where it has none; ``state`` is the table of trust records.

    ``spots`` are the places of groups and handlers that have a header of their own.
    """

    table: object
    state: object
    spots: Mapping[Path, Spot]


def read_toml(text: bytes) -> TomlHooks:
    """The hooks of a ``config.toml``. Raises :class:`TomlRefused` and nothing else."""
    if has_endless_key(text):
        raise TomlRefused("a key has too many parts", None)
    try:
        document: dict[str, Any] = tomllib.loads(text.decode())
    except (ValueError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))
        raise TomlRefused(f"not TOML: {error}", int(found[1]) if found else None) from None
    table = document.get(TABLE)
    if not isinstance(table, dict):
        return TomlHooks(table, None, {})
    events = {name: value for name, value in table.items() if name != "state"}
    return TomlHooks(events, table.get("state"), dict(_spots(text)))


def _spots(text: bytes) -> Iterator[tuple[Path, Spot]]:
    """Where the headers of groups and handlers stand."""
    blank = _STRING_OR_COMMENT.sub(lambda match: re.sub(rb"[^\n]", b" ", match[0]), text)
    groups: dict[str, int] = {}
    handlers: dict[str, int] = {}
    for match in _HEADER.finditer(blank):
        opening, name, is_handler = match[1], match[2], match[3]
        spot = Spot(match.start(1), match.start(1))
        if name is None:
            yield (TABLE,), spot
            continue
        event = name.decode()
        if opening == b"[" or is_handler is None:
            groups[event] = groups.get(event, -1) + 1
            handlers[event] = -1
            yield (TABLE, event, groups[event]), spot
        else:
            handlers[event] = handlers.get(event, -1) + 1
            yield (TABLE, event, groups.get(event, 0), "hooks", handlers[event]), spot
