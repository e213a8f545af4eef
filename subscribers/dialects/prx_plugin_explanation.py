"""A PRX plugin's manifest explained: every event pattern that stands in it, also those that match nothing.

What a manifest means is the reader's (:mod:`.prx_plugin`). A pattern is a handler of its own here, because
one that matches no event does not keep the others of the plugin from working.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from broker.protocol.catalogue import EVENTS
from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import HANDLERS, Explained, Handler, Status, TimeoutFrom
from . import prx_plugin_rules as rules
from .explaining import by_place
from .findings import Findings, field_name
from .json_positions import Path
from .json_text import BYTE_ORDER_MARK
from .prx_plugin import Manifest, parse
from .prx_plugin_patterns import EventPatterns, read_pattern

UNREADABLE: Final = frozenset({"file_too_large", "not_toml"})
"""Remarks after which there is no document."""

DEAD_PATTERNS: Final = frozenset({"unknown_event", "bad_pattern", "not_lifecycle"})
"""Remarks on a pattern that matches no event."""

_TIMEOUT: Final = next(limit for limit in rules.LIMITS if limit.name == "max_execution_time_ms")
_HEAD: Final = re.compile(rb"^[ \t]*\[\[[ \t]*[\"']?capabilities[\"']?[ \t]*\]\]", re.MULTILINE)


class _Pattern(NamedTuple):
    """A pattern as it stands in the manifest: its place, the number of its block, and its value."""

    where: Path
    block: int
    value: object


def explain(text: bytes, path: str) -> Explained:
    """Explain a ``plugin.toml``. Raises nothing; ``path`` is how diagnostics name the file."""
    parsed = parse(text, path)
    if any(diagnostic.code in UNREADABLE for diagnostic in parsed.diagnostics):
        return Explained((), parsed.diagnostics, refused=True)
    document = tomllib.loads(text.removeprefix(BYTE_ORDER_MARK).decode())
    patterns = list(islice(_patterns(document), HANDLERS))
    said, others = by_place(parsed.diagnostics, [field_name(pattern.where) for pattern in patterns])
    reading = _Explaining(document, parsed.manifest, _lines(text, document))
    handlers = tuple(
        reading.handler(index, pattern, said[field_name(pattern.where)])
        for index, pattern in enumerate(patterns)
    )
    return Explained(handlers, others, refused=parsed.manifest is None)


def _patterns(document: Mapping[str, Any]) -> Iterator[_Pattern]:
    """Every event pattern of every block that is a hook."""
    for block, content in enumerate(_blocks(document)):
        if isinstance(content, dict) and content.get("type") == "hook":
            events = content.get("events")
            for index, value in enumerate(events if isinstance(events, list) else ()):
                yield _Pattern(("capabilities", block, "events", index), block, value)


def _blocks(document: Mapping[str, Any]) -> list[Any]:
    blocks = document.get("capabilities")
    return blocks[: rules.MAX_CAPABILITIES] if isinstance(blocks, list) else []


def _lines(text: bytes, document: Mapping[str, Any]) -> list[int]:
    """The line of each block, where each has a heading of its own; the parser tells no positions."""
    heads = [text.count(b"\n", 0, match.start()) + 1 for match in _HEAD.finditer(text)]
    blocks = document.get("capabilities")
    return heads if isinstance(blocks, list) and len(heads) == len(blocks) else []


class _Explaining:
    """The patterns of one manifest, one after the other."""

    def __init__(self, document: Mapping[str, Any], manifest: Manifest | None, lines: list[int]) -> None:
        plugin = document.get("plugin")
        self._plugin: Mapping[str, Any] = plugin if isinstance(plugin, dict) else {}
        self._manifest = manifest
        self._lines = lines
        self._timeout_s, self._timeout_from = _timeout(document.get("resources"))
        self._beyond: tuple[int, Diagnostic] | None = None

    def handler(self, index: int, pattern: _Pattern, said: list[Diagnostic]) -> Handler:
        """The handler that a pattern is."""
        found = next((diagnostic for diagnostic in said if diagnostic.code == "too_many"), None)
        if found is not None:
            self._beyond = (pattern.block, found)
        elif self._beyond is not None and self._beyond[0] == pattern.block:
            said = [*said, self._beyond[1]]
        written = pattern.value.strip() if isinstance(pattern.value, str) else ""
        matches = None if said and _is_faulty(said) else _matches(written)
        name = self._plugin.get("name")
        wasm = self._plugin.get("wasm", rules.DEFAULT_WASM)
        return Handler(
            event=_shown(written, matches),
            index=index,
            name=f"plugin:{name if isinstance(name, str) else ''}",
            runtime="wasm",
            status=self._status(said),
            topics=() if matches is None else _topics(matches),
            command=wasm if isinstance(wasm, str) else None,
            matcher=written if matches is not None and matches.every else None,
            timeout_s=self._timeout_s,
            timeout_from=self._timeout_from,
            line=self._lines[pattern.block] if self._lines else None,
            diagnostics=tuple(said),
        )

    def _status(self, said: list[Diagnostic]) -> Status:
        if any(diagnostic.code in DEAD_PATTERNS for diagnostic in said):
            return "dead"
        return "refused" if self._manifest is None or _is_faulty(said) else "ok"


def _is_faulty(said: list[Diagnostic]) -> bool:
    return any(diagnostic.severity == "error" for diagnostic in said)


def _matches(written: str) -> EventPatterns | None:
    return read_pattern(written, (), EVENTS, Findings(rules.CODES))


def _topics(matches: EventPatterns) -> tuple[str, ...]:
    return (f"{LIFECYCLE}*",) if matches.every else tuple(LIFECYCLE + name for name in sorted(matches.names))


def _shown(written: str, matches: EventPatterns | None) -> str:
    """The bare name of a single event, and as it is written what is none."""
    if matches is None or matches.every:
        return written
    (name,) = matches.names
    return name


def _timeout(resources: object) -> tuple[float, TimeoutFrom]:
    """The time of a call; a number out of range leaves the default in force."""
    number = resources.get(_TIMEOUT.name) if isinstance(resources, dict) else None
    if type(number) is int and _TIMEOUT.least <= number <= _TIMEOUT.most:
        return number / 1_000, "own"
    assert _TIMEOUT.default is not None
    return _TIMEOUT.default / 1_000, "default"
