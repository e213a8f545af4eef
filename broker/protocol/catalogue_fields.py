"""What a catalogued field is: a name, JSON types, and who documents it.

Decides how a Python value maps to a JSON type (``json_type``) and what it means for a value to fit a field.
It refuses to know which events there are (``catalogue_events``) and how fast a check must be (``catalogue``).

Two rules hold for every field and are therefore written nowhere else: a field may be absent, and ``null``
says the same as absent, namely "unknown". A view fills what it does not know with null, so an event has to be
allowed to carry whatever a view carries.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple

from .topics import LIFECYCLE

STRING: Final = ("string",)
NUMBER: Final = ("number",)  # int or float, never bool
INTEGER: Final = ("integer",)  # int, or a float without a fraction: JSON has one kind of number
BOOLEAN: Final = ("boolean",)
OBJECT: Final = ("object",)
ARRAY: Final = ("array",)
ANY: Final = ("string", "number", "boolean", "object", "array")

EXACT_TYPES: Final[dict[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "number": frozenset({int, float}),
    "integer": frozenset({int}),
    "boolean": frozenset({bool}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
}
"""The Python types a JSON decoder returns; what a subclass or a float like ``3.0`` is, ``json_type`` says."""


# By name: a publisher that sends none of them need not import their modules.
_ENCODED_AS_TEXT: Final = frozenset({"datetime.date", "datetime.datetime", "datetime.time", "uuid.UUID"})


class Field(NamedTuple):
    """One field of an event's payload.

    ``types`` are JSON type names, null being allowed beside them everywhere. ``documented_by`` names the
    dialects whose page has a field of this name; a field without any is our own. ``alias_of`` is the
    canonical name when this is only another dialect's spelling of it, so that the payload of a real agent
    can be published as it is. ``values`` are the documented values of an enumeration: told to readers,
    not enforced, because programs grow new ones.
    """

    name: str
    types: tuple[str, ...]
    description: str
    documented_by: tuple[str, ...] = ()
    alias_of: str | None = None
    values: tuple[str, ...] = ()

    @property
    def type_text(self) -> str:
        """The types for people: ``string``, ``integer``, or ``any``."""
        return "any" if self.types == ANY else " or ".join(self.types)


class EventSpec(NamedTuple):
    """One canonical event: its bare name, when an agent publishes it, and its documented fields."""

    name: str
    when: str
    fields: tuple[Field, ...]

    @property
    def topic(self) -> str:
        """The topic that the event is published on."""
        return LIFECYCLE + self.name


def json_type(value: object) -> str:
    """The JSON type that ``value`` has once it is encoded; ``Python <name>`` when it has none.

    A float without a fraction is an ``integer``, as in JSON Schema. Values that the encoder writes as
    strings (dates, times, UUIDs) or as objects (dataclasses) count as what they are written as; an enum
    member counts as its value.
    """
    if isinstance(value, Enum):
        return json_type(value.value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    for kind, name in ((str, "string"), (int, "integer"), (dict, "object"), ((list, tuple), "array")):
        if isinstance(value, kind):
            return name
    return _encoded_as(value)


def _encoded_as(value: object) -> str:
    kind = type(value)
    if f"{kind.__module__}.{kind.__qualname__}" in _ENCODED_AS_TEXT:
        return "string"
    if hasattr(kind, "__dataclass_fields__"):
        return "object"
    return f"Python {kind.__name__}"


def fits(types: tuple[str, ...], value: Any) -> bool:
    """Whether ``value`` is null or has one of the JSON ``types``."""
    found = json_type(value)
    return found == "null" or found in types or (found == "integer" and "number" in types)
