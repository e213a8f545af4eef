"""The catalogue and the projections as Markdown tables, for the README.

Decides how rows read. It refuses to say anything that the data does not.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final

from .catalogue import CONTEXT_FIELDS, EVENTS, EventSpec, Field
from .catalogue_derivations import DERIVATIONS
from .catalogue_events import FAMILY
from .catalogue_views import (
    DIALECT_EVENTS,
    DIALECTS,
    PROJECTIONS,
    ROLEBOX_EVENT,
    Constant,
    Derived,
    ViewField,
)

_EXTRAS: Final = {"keep": "follow", "native": "left out", "drop": "never"}
_TITLES: Final = {
    "prx": "PRX",
    "librefang": "LibreFang",
    "rolebox": "rolebox",
    "codex": "Codex",
    "bitfun": "BitFun",
    "claude": "Claude Code",
}


def events_table() -> str:
    """Every canonical event: when it is published, its fields with their types, and its name in each system.

    The fields that accompany every event of the Codex family are written once, below the table.
    """
    rows = [
        (
            f"`{spec.name}`",
            spec.when,
            _fields_cell(spec),
            *(_name_cell(dialect, spec.name) for dialect in ("prx", "librefang", "rolebox")),
            _family_cell(spec.name),
        )
        for spec in EVENTS.values()
    ]
    heads = ("Event", "Published", "Fields", "PRX", "LibreFang", "rolebox", "Codex, BitFun, Claude Code")
    context = ", ".join(_field_text(field, ()) for field in CONTEXT_FIELDS)
    return f"{_table(heads, rows)}\n\n*context*: {context}.\n"


def dialect_table(dialects: Collection[str] = DIALECTS) -> str:
    """Every view of ``dialects``: its native name, where each documented field comes from, what extras do."""
    rows = [
        (
            _TITLES[view.dialect],
            f"`{view.event}`",
            _name_cell(view.dialect, view.event),
            ", ".join(map(_source_text, view.fields)) or "(empty object)",
            _EXTRAS[view.extras],
        )
        for view in PROJECTIONS.values()
        if view.dialect in dialects
    ]
    return (
        _table(("Dialect", "Event", "Its name", "Fields, and where they come from", "Other fields"), rows)
        + "\n"
    )


def _fields_cell(spec: EventSpec) -> str:
    aliases: dict[str, list[str]] = {}
    for field in spec.fields:
        if field.alias_of is not None:
            aliases.setdefault(field.alias_of, []).append(field.name)
    own = [field for field in spec.fields if field.alias_of is None and field not in CONTEXT_FIELDS]
    texts = [_field_text(field, aliases.get(field.name, ())) for field in own]
    if CONTEXT_FIELDS[0] in spec.fields:
        texts.append("*context*")
    return ", ".join(texts)


def _field_text(field: Field, aliases: Iterable[str]) -> str:
    also = "".join(f", or `{name}`" for name in aliases)
    values = f": {', '.join(field.values)}" if field.values else ""
    return f"`{field.name}` ({field.type_text}{also}{values})"


def _name_cell(dialect: str, event: str) -> str:
    name = DIALECT_EVENTS[dialect].get(event)
    if name is None:
        return ""
    if dialect == "rolebox" and name.startswith("session."):
        return f"`{ROLEBOX_EVENT}`, type `{name}`"
    return f"`{name}`"


def _family_cell(event: str) -> str:
    having = [dialect for dialect in FAMILY if event in DIALECT_EVENTS[dialect]]
    if not having:
        return ""
    only = (
        "" if len(having) == len(FAMILY) else f" ({', '.join(_TITLES[dialect] for dialect in having)} only)"
    )
    return _name_cell(having[0], event) + only


def _source_text(field: ViewField) -> str:
    rule = field.rule
    if isinstance(rule, Constant):
        return f"`{field.name}` is `{json.dumps(rule.value)}`"
    if isinstance(rule, Derived):
        text = f"`{field.name}` ← {DERIVATIONS[rule.derivation].text}"
    else:
        text = f"`{field.name}`" if rule.source == field.name else f"`{field.name}` ← `{rule.source}`"
    if rule.default is not None:
        text += f" (else `{json.dumps(rule.default)}`)"
    return f"{text}, if known" if field.optional else text


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (heads, ("---",) * len(heads), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
