"""An event by any of its names: the canonical one, its topic, or what one of the systems calls it.

It decides which event a name means. It refuses to know which files listen for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from broker.protocol.catalogue import EVENTS
from broker.protocol.errors import TopicError
from broker.protocol.projections import DIALECT_EVENTS, DIALECTS, canonical_event
from broker.protocol.topics import LIFECYCLE, check_topic, is_topic

from ..hooks.diagnostics import quote
from .nearest import nearest
from .prx_file import event_name


class UnknownEvent(ValueError):
    """A name that no event has; the text says which ones come near."""


class Named(NamedTuple):
    """The topic that a name means.

    ``meant`` is another name that was perhaps meant, where this one is no catalogued event's.
    """

    topic: str
    meant: str | None = None


def named(text: str, dialect: str | None = None) -> Named:
    """The event that somebody calls ``text``. Raises :class:`UnknownEvent`.

    ``dialect`` is whose names are looked at first; one that is none of :data:`DIALECTS` makes no difference.
    """
    name = text.strip()
    canonical = event_name(name.removeprefix(LIFECYCLE))
    if canonical in EVENTS:
        return Named(LIFECYCLE + canonical)
    found = _foreign(name, dialect)
    if found is not None:
        return Named(LIFECYCLE + found)
    near = nearest(name.removeprefix(LIFECYCLE), sorted({*EVENTS, *_foreign_names()}))
    if "." in name and is_topic(name):
        return Named(name, near)
    if "." in name or "*" in name:
        try:
            check_topic(name)
        except TopicError as error:
            raise UnknownEvent(f"{error}; an event is one name or topic") from None
    hint = f"did you mean {near}?" if near else f"there are {', '.join(EVENTS)}"
    raise UnknownEvent(f"there is no event {quote(text)}; {hint}")


def _foreign(name: str, dialect: str | None) -> str | None:
    """The canonical event that a dialect calls so; the one that was named may have names of its own."""
    if dialect in DIALECTS:
        found = canonical_event(dialect, name)
        if found is not None:
            return found
    pairs = (pair for names in DIALECT_EVENTS.values() for pair in names.items())
    return next((canonical for canonical, native in pairs if native == name), None)


def _foreign_names() -> Iterator[str]:
    for names in DIALECT_EVENTS.values():
        yield from names.values()
