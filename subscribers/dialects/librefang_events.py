"""What an entry of a ``HOOK.yaml``'s ``events`` means: the canonical events, and what to say about it.

It decides which names and patterns count, and what somebody meant who wrote another. The page says that
wildcards are supported and lists three patterns; its program knows no more of them that match anything, so
every other is refused by name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from broker.protocol.projections import DIALECT_EVENTS
from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import quote
from . import librefang_rules as rules
from .nearest import nearest


class Meaning(NamedTuple):
    """The canonical ``events`` of an entry, and a remark: ``code`` None where there is nothing to say."""

    events: tuple[str, ...]
    code: str | None = None
    message: str = ""
    hint: str | None = None


def meaning(name: str, extensions: Collection[str], *, searches: bool = True) -> Meaning:
    """What ``name`` stands for. ``extensions`` are canonical events that may be named besides the page's own.

    ``searches`` False: no time is spent on finding the nearest name.
    """
    if name in rules.EVENTS:
        return Meaning((rules.EVENTS[name],))
    if name in rules.PATTERNS:
        return Meaning(rules.PATTERNS[name])
    if name in rules.TRANSFORM_EVENTS:
        message = f"{name} rewrites a tool's result, which a HOOK.yaml cannot do: it never fires here"
        hint = "write a [[transform]] command or a @transform function instead"
        return Meaning((), "transform_event", message, hint)
    if rules.PATTERN_CHARACTERS.intersection(name):
        return Meaning(
            (), "unsupported_pattern", f"{quote(name)} is no pattern of LibreFang", _instead_of(name)
        )
    if name in extensions:
        native = rules.native(name)
        message = f"{name} is a name of prxbus (prxbus extension): LibreFang itself never runs this hook"
        own = None if native is None else f"LibreFang calls it {native}"
        return Meaning((name,), "extension_event", message, own)
    return Meaning(
        (), "unknown_event", f"there is no event {quote(name)}", _meant(name, extensions, searches=searches)
    )


def _instead_of(pattern: str) -> str:
    """What to write instead of another pattern."""
    start = pattern[:-1]
    meant = [name for name in rules.EVENTS if pattern.endswith("*") and name.startswith(start)]
    known = f"the patterns are {', '.join(rules.PATTERNS)}"
    return f"write {', '.join(meant)}; {known}" if meant else f"{known}; name each event otherwise"


def _meant(name: str, extensions: Collection[str], *, searches: bool) -> str:
    """The name that was probably meant."""
    foreign = _FOREIGN.get(name)
    if foreign is not None and (native := rules.native(foreign)) is not None:
        return f"LibreFang calls it {native}"
    if foreign in extensions:
        return f"prxbus calls it {foreign}"
    others = set(extensions).difference(rules.EVENTS.values(), rules.TRANSFORM_EVENTS)
    known = (*sorted(others), *rules.EVENTS)
    near = nearest(name.removeprefix(LIFECYCLE), known) if searches else None
    return f"the events are {', '.join(rules.EVENTS)}" if near is None else f"did you mean {near}?"


_FOREIGN = {native: event for names in DIALECT_EVENTS.values() for event, native in names.items()}
"""The canonical event of each name in any dialect."""
