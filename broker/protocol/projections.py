"""How each dialect sees a canonical event: its name, and its payload as the dialect's page documents it.

Decides what a view contains, from the tables in ``catalogue_views``; every documented field is present,
null when unknown. It refuses to know how a hook receives the view, and it never reads a clock or a file:
what the caller knows beside the payload (the envelope's session id, a working directory) comes in as
``known``.

A payload that is already complete in a dialect's own terms is that dialect's view: ``needs_projection``
says no, and its bytes may be passed on unread. Otherwise the view is built, and what becomes of the other
fields is the view's ``extras``:

* ``keep`` (PRX, LibreFang): they follow the documented fields, except those that were only renamed.
* ``native`` (Codex family, whose schemas forbid them): they are left out.
* ``drop``: as ``native``, and even a complete payload loses them. rolebox documents the exact arguments
  of each handler, and PRX says "empty object" for ``turn_complete``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from .catalogue import EVENTS
from .catalogue_derivations import DERIVATIONS, Derivation
from .catalogue_events import FAMILY
from .catalogue_views import (
    DIALECT_EVENTS,
    DIALECTS,
    PROJECTIONS,
    Constant,
    Derived,
    Named,
    View,
    ViewField,
    rolebox_event_view,
    spellings,
)

__all__ = [
    "DERIVATIONS",
    "DIALECTS",
    "DIALECT_EVENTS",
    "PROJECTIONS",
    "Constant",
    "Derivation",
    "Derived",
    "Named",
    "View",
    "ViewField",
    "canonical_event",
    "native_event",
    "needs_projection",
    "project",
    "seen_by",
    "view_of",
]

_NOTHING: Final[Mapping[str, Any]] = {}
_PASCAL_CASE = re.compile(r"(?:[A-Z][a-z0-9]*)+", re.ASCII)
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*", re.ASCII)
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])", re.ASCII)


def seen_by(
    dialect: str, event: str, payload: Mapping[str, Any], *, known: Mapping[str, Any] = _NOTHING
) -> Mapping[str, Any]:
    """The payload of ``event`` as ``dialect`` documents it; ``payload`` itself when it is that already.

    ``event`` is the bare canonical name, catalogued or not; ``known`` gives values by canonical field
    name for what the payload itself does not say, such as ``{"session": "s1", "cwd": "/w"}``. Any dict
    has a view. An event that the dialect's page does not have is passed as it is (rolebox wraps it: type
    and properties). Raises ``ValueError`` for an unknown dialect.
    """
    view = view_of(dialect, event)
    if view is None:
        return payload
    out, renamed = _documented(view, payload, known)
    exact = view.extras != "drop" or len(out) == len(payload)
    if exact and all(name in payload and _same(payload[name], value) for name, value in out.items()):
        return payload
    if view.extras == "keep":
        for name, value in payload.items():
            if name not in renamed:
                out.setdefault(name, value)
    return out


def project(
    dialect: str, event: str, payload: Mapping[str, Any], *, known: Mapping[str, Any] = _NOTHING
) -> dict[str, Any]:
    """As ``seen_by``, but always a new dict; it shares the values of ``payload``."""
    return dict(seen_by(dialect, event, payload, known=known))


def needs_projection(
    dialect: str, event: str, payload: Mapping[str, Any], *, known: Mapping[str, Any] = _NOTHING
) -> bool:
    """Whether the payload is not yet the dialect's own view; if False, its bytes may pass unchanged."""
    return seen_by(dialect, event, payload, known=known) is not payload


def view_of(dialect: str, event: str) -> View | None:
    """The dialect's view of an event, or None when its page does not have the event.

    rolebox has a handler for every event, so that there is always a view. Raises ``ValueError`` for an
    unknown dialect.
    """
    _require_dialect(dialect)
    view = PROJECTIONS.get((dialect, event))
    if view is None and dialect == "rolebox":
        return rolebox_event_view(event)
    return view


def native_event(dialect: str, event: str) -> str:
    """The dialect's own name of a canonical event, which is the canonical name where its page has none.

    In the Codex family an event outside the catalogue has its name in Pascal case:
    ``prx.lifecycle.notification`` is Claude Code's ``Notification``. In rolebox the name of an event
    without a handler of its own is the ``type`` that ``onEvent`` gets. Raises ``ValueError`` for an
    unknown dialect.
    """
    _require_dialect(dialect)
    name = DIALECT_EVENTS[dialect].get(event)
    if name is not None:
        return name
    if dialect in FAMILY and event not in EVENTS and _SNAKE_CASE.fullmatch(event):
        return "".join(word.capitalize() for word in event.split("_"))
    return event


def canonical_event(dialect: str, name: str) -> str | None:
    """The canonical event that a dialect calls ``name``, or None when the dialect has no such event.

    PRX names are normalised first (surrounding blanks, case, dashes); all others are taken to the letter.
    An event of the Codex family or of rolebox that the catalogue does not list is its own name in snake
    case. Whether a hook file may name canonical events directly is the dialect's decision. Raises
    ``ValueError`` for an unknown dialect.
    """
    _require_dialect(dialect)
    if dialect == "prx":
        name = name.strip().lower().replace("-", "_")
    found = _CANONICAL[dialect].get(name)
    if found is not None or dialect in ("prx", "librefang"):
        return found
    if dialect == "rolebox":
        other = name.replace(".", "_").replace("-", "_")
        return other if _is_other_event(other) and name != "event" else None
    if not _PASCAL_CASE.fullmatch(name):
        return None
    other = _CAPITAL.sub("_", name).lower()
    return other if _is_other_event(other) else None


_CANONICAL: Final = {
    dialect: {name: event for event, name in names.items()} for dialect, names in DIALECT_EVENTS.items()
}


def _is_other_event(name: str) -> bool:
    return name not in EVENTS and _SNAKE_CASE.fullmatch(name) is not None


def _require_dialect(dialect: str) -> None:
    if dialect not in DIALECT_EVENTS:
        raise ValueError(f"no dialect {dialect!r}; there are {', '.join(DIALECTS)}")


# A compiled field: its name in the view, whether it is optional, and a function that gives its value and the
# payload's names that this value stands for.
_Source = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Any, tuple[str, ...]]]
_Plan = tuple[tuple[str, bool, _Source], ...]
_plans: dict[tuple[str, str], _Plan] = {}  # bounded by PROJECTIONS


def _documented(
    view: View, payload: Mapping[str, Any], known: Mapping[str, Any]
) -> tuple[dict[str, Any], set[str]]:
    """The documented fields in the page's order, and the payload's names that they only renamed."""
    out: dict[str, Any] = {}
    renamed: set[str] = set()
    for name, optional, source in _plan(view):
        value, used = source(payload, known)
        if value is None and optional:
            continue
        out[name] = value
        if value is not payload.get(name):
            renamed.update(used)
    return out, renamed


def _plan(view: View) -> _Plan:
    key = view.dialect, view.event
    plan = _plans.get(key)
    if plan is None:
        plan = tuple((field.name, field.optional, _source(view.event, field)) for field in view.fields)
        if key in PROJECTIONS:
            _plans[key] = plan
    return plan


def _source(event: str, field: ViewField) -> _Source:
    rule = field.rule
    if isinstance(rule, Constant):
        constant = rule.value, ()
        return lambda _payload, _known: constant
    if isinstance(rule, Named):
        return _by_name(event, rule.source, field.name, rule.default)
    return _by_derivation(event, rule, field.name)


def _by_name(event: str, source: str, own_name: str, default: Any) -> _Source:
    """The value of a canonical field under any of its spellings, the dialect's own first."""
    names = spellings(event, source)
    if own_name in names:
        names = (own_name, *(name for name in names if name != own_name))

    def read(payload: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
        for name in names:
            value = payload.get(name)
            if value is not None:
                return value, (name,)
        value = known.get(source)
        return (default if value is None else value), (source,)

    return read


def _by_derivation(event: str, rule: Derived, own_name: str) -> _Source:
    derivation = DERIVATIONS[rule.derivation]
    reads = [_by_name(event, source, own_name, None) for source in derivation.reads]
    stands_for = [source in derivation.consumes for source in derivation.reads]

    def derive(payload: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
        read = [by_name(payload, known) for by_name in reads]
        values = [value for value, _ in read]
        value = derivation.function(payload, *values) if derivation.whole else derivation.function(*values)
        used = tuple(names[0] for (_, names), consumed in zip(read, stands_for, strict=True) if consumed)
        return (rule.default if value is None else value), used

    return derive


def _same(given: Any, wanted: Any) -> bool:
    # True == 1 in Python and not in JSON; a large value is recognised by identity before it is compared.
    return given is wanted or (type(given) is type(wanted) and given == wanted)
