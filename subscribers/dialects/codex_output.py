"""What a handler has written to stdout: nothing, a document, a broken document, or other text.

Decides whether the text is the JSON object that its event's handlers may answer with: no key too many, no
value of the wrong type (section 4.1 of the contract). It refuses to know what the document leads to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import orjson

from .codex_output_rules import Keys, Kind, OutputRule
from .json_depth import is_too_deep

MAX_DEPTH: Final = 127
"""The parser that Codex uses refuses a value that is nested deeper."""

_BLANK: Final = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_TYPES: Final[Mapping[str, type]] = {"text": str, "object": dict, "list": list}

Shape: TypeAlias = Literal["open", "closed"]
"""What looks like JSON: text that begins like an object or array, or only what also ends like an object."""


@dataclass(frozen=True, slots=True)
class Document:
    """An answer that fits: ``top`` is the whole of it, ``specific`` its ``hookSpecificOutput``."""

    top: Mapping[str, Any]
    specific: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A text of the document itself, trimmed; None where it is absent or blank."""
        return stated(self.top.get(name))


@dataclass(frozen=True, slots=True)
class Broken:
    """Text that looks like a document and is none; ``why`` in a few words."""

    why: str


@dataclass(frozen=True, slots=True)
class Plain:
    """Any other text, trimmed."""

    text: str


def trimmed(text: str) -> str:
    """The text without white space around it, as Unicode (and so Codex) counts white space."""
    return text.strip(_BLANK)


def stated(text: str | None) -> str | None:
    """The trimmed text, or None when nothing of it is left."""
    return (trimmed(text) or None) if text is not None else None


def read(text: str, rule: OutputRule, shape: Shape = "open") -> Document | Broken | Plain | None:
    """What a handler wrote, under its event's ``rule``; None: nothing but white space."""
    text = trimmed(text)
    if not text:
        return None
    looks = text.startswith(("{", "[")) if shape == "open" else text.startswith("{") and text.endswith("}")
    try:
        value = orjson.loads(text)
    except ValueError as error:
        return Broken(str(error)) if looks else Plain(text)
    if type(value) is dict:
        why = fault(value, rule)
        return Broken(why) if why is not None else _document(value)
    return Broken("an array is no object") if looks else Plain(text)


def fault(value: Mapping[str, Any], rule: OutputRule) -> str | None:
    """Why an object is no answer of this event, or None."""
    if is_too_deep(value, MAX_DEPTH):
        return f"nested more than {MAX_DEPTH} levels deep"
    rest = dict(value)
    specific = rest.pop("hookSpecificOutput", None) if rule.specific is not None else None
    found = _misfit(rest, rule.keys, "")
    if found is None and specific is not None and rule.specific is not None:
        found = _specific_misfit(specific, rule, rule.specific)
    return found


def _specific_misfit(specific: Any, rule: OutputRule, keys: Keys) -> str | None:
    where = "hookSpecificOutput"
    if type(specific) is not dict:
        return f"{where} is no object"
    name = specific.get("hookEventName")
    if type(name) is not str or name not in rule.names:
        return f"{where}.hookEventName is not the name of an event"
    found = _misfit(
        {key: each for key, each in specific.items() if key != "hookEventName"}, keys, f"{where}."
    )
    request = specific.get("decision")
    if found is not None or rule.request is None or request is None:
        return found
    if request.get("behavior") is None:
        return f"{where}.decision has no behavior"
    return _misfit(request, rule.request, f"{where}.decision.")


def _misfit(values: Mapping[str, Any], keys: Keys, where: str) -> str | None:
    for name, value in values.items():
        kind = keys.get(name)
        if kind is None:
            return f"unknown key {where}{name}"
        if not _fits(value, kind):
            return f"{where}{name} has the wrong type or value"
    return None


def _fits(value: Any, kind: Kind) -> bool:
    if kind == "any":
        return True
    if kind == "flag":
        return type(value) is bool
    if isinstance(kind, tuple):
        return value is None or value in kind
    return value is None or type(value) is _TYPES[kind]


def _document(value: dict[str, Any]) -> Document:
    return Document(value, value.get("hookSpecificOutput") or {})
