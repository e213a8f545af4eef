"""When bytes are a JSON object: by the grammar (RFC 8259), in UTF-8, however large its numbers are.

orjson reads such an object and says what is wrong with anything else, but it refuses numbers beyond a double,
which are no fault of grammar. Those are read as Python reads them. Knows no event and no error of the bus.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec


class _Object(msgspec.Struct, gc=False):
    """A JSON object of which nothing is wanted."""


look_at_object: Final = msgspec.json.Decoder(_Object).decode
"""Raises an exception unless bytes that are ASCII are a JSON object.

It makes nothing of what it reads, and so takes a third of the time of reading it. Other bytes it may take
without their being UTF-8.
"""


def is_object(data: bytes) -> bool:
    """Whether ``data`` is a JSON object; also of what orjson refuses for its numbers."""
    try:
        data.decode()
        look_at_object(data)
    except Exception:  # of several kinds: no UTF-8, no JSON, another value, or nested too deeply
        return False
    return True


def read_far_numbers(data: bytes) -> dict[str, Any] | None:
    """What a JSON object says that orjson does not read; None when it is none.

    A whole number beyond 64 bits is an int, another one beyond a double an infinity, and so is one of more
    digits than Python reads as an int.
    """
    import json  # hardly ever needed

    return json.loads(data, parse_int=_whole) if is_object(data) else None


def _whole(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # more of them than sys.get_int_max_str_digits()
        return float(digits)
