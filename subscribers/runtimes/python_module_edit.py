"""What a handler of a Python module did to its input, as JSON.

Decides what is an edit: ``args`` after ``onToolBefore`` and ``system`` after ``onSystemTransform``, if they
are others than before. Pure; refuses to know how the handler was called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from broker.protocol.errors import shown

from .python_traceback import sayable

EDITED: Final = {"onToolBefore": "args", "onSystemTransform": "system"}
"""The member of its input that a handler may edit."""


class EditRefused(ValueError):
    """What a handler left behind is not what it may be."""


def before(handler: str, given: Mapping[str, Any]) -> bytes | None:
    """What may be edited, as it is before the call; None where a handler may edit nothing."""
    member = EDITED.get(handler)
    return None if member is None else orjson.dumps(given.get(member))


def edit_of(handler: str, given: Mapping[str, Any], was: bytes, returned: Any) -> bytes | None:
    """The edit as JSON; None if nothing is another one. Raises :class:`EditRefused`."""
    member = EDITED[handler]
    value = given.get(member)
    if isinstance(returned, Mapping) and member in returned:
        value = returned[member]
    elif isinstance(returned, list) and member == "system":
        value = returned
    try:
        now = orjson.dumps(value)
    except (TypeError, ValueError) as error:  # JSONEncodeError is a TypeError
        raise EditRefused(f"its {member} cannot be JSON: {shown(str(error), 200)[1:-1]}") from None
    if now == was:
        return None
    if member == "args" and not isinstance(value, Mapping):
        raise EditRefused(f"its args are {_said(value)}; they have to be an object")
    if member == "system" and not _is_texts(value):
        raise EditRefused(f"its system is {_said(value)}; it has to be a list of texts")
    return None if _sorted(now) == _sorted(was) else now


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _said(value: Any) -> str:
    return sayable(shown(value, 80))


def _sorted(text: bytes) -> bytes:
    """The same JSON whatever the order of members: ``1``, ``1.0`` and ``true`` remain three."""
    return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS)
