"""The ``[[transform]]`` tables of a configuration explained: each with its command, its filters and its time.

The configuration's own reader is the judge of what holds; it says so in diagnostics that name a table. It
refuses to know where a program is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import Explained, Handler
from .explaining import by_place
from .python_explanation import matcher
from .toml_text import has_endless_key
from .transform_command import EVENT

KEY: Final = "transform"

_HEAD: Final = re.compile(rb"^[ \t]*\[\[[ \t]*[\"']?transform[\"']?[ \t]*\]\]", re.MULTILINE)


class Table(NamedTuple):
    """A table that holds. ``has_own_timeout``: it says it itself."""

    name: str
    command: tuple[str, ...]
    tools: tuple[str, ...]
    agents: tuple[str, ...]
    timeout_s: float


def explain(text: bytes, path: str, tables: Sequence[Table], faults: Sequence[Diagnostic]) -> Explained:
    """Explain the tables of a file. Raises nothing.

    ``tables`` are those that hold, in their order; ``faults`` what was said of the file, with its path.
    """
    written = _written(text)
    places = [f"{KEY}[{index}]" for index in range(len(written))]
    said, others = by_place(faults, places)
    lines = _lines(text, len(written))
    holding = iter(tables)
    handlers = []
    for index, (raw, place) in enumerate(zip(written, places, strict=True)):
        table = None if said[place] else next(holding, None)
        line = None if lines is None else lines[index]
        handlers.append(_handler(index, raw, table, tuple(said[place]), line, path))
    return Explained(tuple(handlers), others, refused=any(d.code == "unusable_file" for d in others))


def _written(text: bytes) -> list[Mapping[str, Any]]:
    """The tables as they stand in the file, also those with a fault."""
    try:
        document = {} if has_endless_key(text) else tomllib.loads(text.decode())
    except (ValueError, RecursionError):
        return []
    found = document.get(KEY)
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        return []
    return found


def _lines(text: bytes, count: int) -> list[int] | None:
    """The line of each table, where each has a heading of its own; the parser tells no positions."""
    heads = [text.count(b"\n", 0, match.start()) + 1 for match in _HEAD.finditer(text)]
    return heads if len(heads) == count else None


def _handler(
    index: int,
    raw: Mapping[str, Any],
    table: Table | None,
    said: tuple[Diagnostic, ...],
    line: int | None,
    path: str,
) -> Handler:
    if table is None:
        name, command = raw.get("name"), raw.get("command")
        return Handler(
            event=EVENT,
            index=index,
            name=name if isinstance(name, str) else f"{path.rpartition('/')[2]}:{KEY}[{index}]",
            runtime="transform",
            status="refused",
            topics=(LIFECYCLE + EVENT,),
            command=command if isinstance(command, str) else None,
            line=line,
            diagnostics=said,
        )
    program, *args = table.command
    return Handler(
        event=EVENT,
        index=index,
        name=table.name,
        runtime="transform",
        status="ok",
        topics=(LIFECYCLE + EVENT,),
        command=program,
        args=tuple(args),
        matcher=matcher(table.tools, table.agents),
        timeout_s=table.timeout_s,
        timeout_from="own" if "timeout" in raw else "default",
        line=line,
    )
