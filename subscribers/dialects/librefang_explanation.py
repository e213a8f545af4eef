"""A LibreFang ``HOOK.yaml`` explained: every entry of its events, also those that start nothing, and why.

What a file means is the reader's (:mod:`.librefang_file`): a hook runs for an event exactly when the reader
made a spec of it. An entry is a handler of its own here, because one that is no event leaves the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Final

from broker.protocol.catalogue import EVENTS
from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic
from ..hooks.explanation import HANDLERS, Explained, Handler, Status
from ..hooks.spec import HookSpec
from . import librefang_rules as rules
from .explaining import by_place
from .librefang_events import meaning
from .librefang_file import parse
from .yaml_nodes import BYTE_ORDER_MARK, Node, YamlRefused, read_yaml

DEAD_ENTRIES: Final = frozenset({"unknown_event", "unsupported_pattern", "transform_event"})
"""Remarks on an entry that is no event."""


def explain(text: bytes, path: str) -> Explained:
    """Explain a ``HOOK.yaml``. Raises nothing; ``path`` is how diagnostics name the file."""
    parsed = parse(text, path)
    root = _root(text)
    if root is None:
        return Explained((), parsed.diagnostics, refused=True)
    values = _values(root)
    entries = list(islice(_items(values.get("events")), HANDLERS))
    said, others = by_place(parsed.diagnostics, [f"events[{index}]" for index in range(len(entries))])
    spec = parsed.specs[0] if parsed.specs else None
    handlers = tuple(
        _handler(index, entry, tuple(said[f"events[{index}]"]), values, spec, path)
        for index, entry in enumerate(entries)
    )
    return Explained(handlers, others, refused=parsed.refused)


def _root(text: bytes) -> Node | None:
    """The keys of the file; None where it has none that the reader would look at."""
    if len(text) > rules.MAX_FILE_BYTES:
        return None
    try:
        root = read_yaml(text.removeprefix(BYTE_ORDER_MARK), rules.MAX_DEPTH, rules.ONE_DOCUMENT)
    except YamlRefused:
        return None
    return root if root is not None and root.kind == "mapping" else None


def _values(root: Node) -> dict[str, Node]:
    """The values of the keys, of repeated ones the first, as the reader takes them."""
    found: dict[str, Node] = {}
    for key, value in root.pairs():
        if key.kind == "string":
            found.setdefault(key.text, value)
    return found


def _items(node: Node | None) -> Sequence[Node]:
    return node.items() if node is not None and node.kind == "list" else ()


def _text(node: Node | None) -> str | None:
    return node.text if node is not None and node.kind == "string" else None


def _handler(
    index: int,
    entry: Node,
    said: tuple[Diagnostic, ...],
    values: dict[str, Node],
    spec: HookSpec | None,
    path: str,
) -> Handler:
    written = _text(entry) or ""
    events = meaning(written, EVENTS, searches=False).events
    name = (_text(values.get("name")) or "").strip() or PurePosixPath(path).parent.name
    status = _status(said, spec)
    args = [_text(item) for item in _items(values.get("args"))]
    return Handler(
        event=written,
        index=index,
        name=name if spec is None or spec.name is None else spec.name,
        runtime="shell",
        status=status,
        topics=tuple(LIFECYCLE + event for event in events),
        command=_text(values.get("command")),
        args=tuple(arg for arg in args if arg is not None),
        matcher=written if written in rules.PATTERNS else None,
        timeout_s=rules.TIMEOUT_S,
        timeout_from="default",
        line=entry.line,
        diagnostics=said,
        spec=spec if status == "ok" else None,
    )


def _status(said: tuple[Diagnostic, ...], spec: HookSpec | None) -> Status:
    if any(diagnostic.code in DEAD_ENTRIES for diagnostic in said):
        return "dead"
    is_faulty = any(diagnostic.severity == "error" for diagnostic in said)
    return "refused" if spec is None or is_faulty else "ok"
