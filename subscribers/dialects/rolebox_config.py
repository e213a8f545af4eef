"""A hook's config as JSON text: what YAML can say and JSON can hold, within bounds.

Decides what becomes of values that only YAML has: a date stays the text it is, ``<<`` is followed, an alias
is written out each time. It refuses to know what a config means.
"""

from __future__ import annotations

import json
from typing import Any

from ..hooks.diagnostics import quote
from . import rolebox_rules as rules
from .rolebox_reading import ARTICLES, UNPASSABLE, Reading, number_of, within
from .yaml_nodes import Node


class _NoJson(Exception):
    """A remark was made: there is no such JSON."""


def config_text(reading: Reading, node: Node, field: str) -> str | None:
    """The mapping as JSON text; None, and a remark, where that cannot be."""
    try:
        value = _Writing(reading).value(node, field, 0)
    except _NoJson:
        return None
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    if size > rules.MAX_CONFIG_BYTES:
        message = f"the config has {size:,} bytes as JSON, more than {rules.MAX_CONFIG_BYTES:,}"
        reading.say("config_too_large", node, field, message, "keep it in a file that the module reads")
        return None
    return text


class _Writing:
    """One config being written; it counts its values, which aliases can multiply."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.values = 0

    def value(self, node: Node, field: str, depth: int) -> Any:
        """The value of a node. Raises :class:`_NoJson` once a remark was made."""
        self.values += 1
        if self.values > rules.MAX_CONFIG_VALUES or depth > rules.MAX_DEPTH:
            message = f"the config has more than {rules.MAX_CONFIG_VALUES:,} values, or refers to itself"
            raise self.refused("config_too_large", node, field, message)
        if node.kind == "mapping":
            return self.mapping(node, field, depth)
        if node.kind == "list":
            items = node.items()
            return [self.value(item, f"{field}[{index}]", depth + 1) for index, item in enumerate(items)]
        return self.scalar(node, field)

    def mapping(self, node: Node, field: str, depth: int) -> dict[str, Any]:
        errors = self.reading.errors
        entries = self.reading.entries(node, field)
        if self.reading.errors > errors:
            raise _NoJson
        found = {}
        for name, (key, value) in entries.items():
            if UNPASSABLE.search(name.replace("\0", "")):
                raise self.refused("bad_character", key, field, "half of a surrogate pair is no text")
            found[name] = self.value(value, within(field, name), depth + 1)
        return found

    def scalar(self, node: Node, field: str) -> Any:
        if node.kind in ("string", "date"):
            text = self.reading.replaced(node, node.text, field)
            if UNPASSABLE.search(text.replace("\0", "")):
                raise self.refused("bad_character", node, field, "half of a surrogate pair is no text")
            return text
        if node.kind == "boolean":
            return node.text.lower() == "true"
        if node.kind == "null":
            return None
        number = number_of(node.text) if node.kind == "number" else None
        if number is None or number != number or abs(number) == float("inf"):
            what = ARTICLES[node.kind] if node.kind == "tagged" else quote(node.text)
            raise self.refused("no_json", node, field, f"JSON cannot hold {what}")
        return number

    def refused(self, code: str, node: Node, field: str, message: str) -> _NoJson:
        self.reading.say(code, node, field, message, "write strings, numbers, booleans, lists and mappings")
        return _NoJson()
