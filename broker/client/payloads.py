"""What a caller hands over as a payload, as the bytes that travel.

Decides what may be sent: one JSON object, without the numbers that JSON lacks, with catalogued
fields of their types. Knows no frame, no size limit and no socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import orjson

from ..protocol.errors import LimitExceeded, SchemaError
from .core.numbering import Stream

PLAIN: Final = frozenset({str, int, bool, type(None)})
"""Types of values that cannot hold a number that JSON lacks."""


def encode_payload(payload: object, stream: Stream) -> bytes:
    """``payload`` as the bytes of one JSON object, checked against the catalogue when it is a mapping.

    Raises :class:`SchemaError`.
    """
    if type(payload) is bytes or isinstance(payload, bytearray | memoryview):
        body = bytes(payload)  # the same object when it is bytes
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise SchemaError(f"payload is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise SchemaError(f"payload is {_kind(value)}, not an object")
        return body
    if not isinstance(payload, Mapping):
        raise SchemaError(f"payload is {_kind(payload)}; a dict or the bytes of a JSON object is expected")
    plain = dict(payload)
    if stream.check is not None:
        stream.check(plain)
    try:
        body = orjson.dumps(plain)
    except TypeError as error:
        raise SchemaError(f"payload cannot be written as JSON: {error}") from None
    refuse_lost_numbers(plain, body)
    return body


def refuse_lost_numbers(payload: object, body: bytes) -> None:
    """Raise :class:`SchemaError` if ``body`` says null where ``payload`` has a NaN or an infinity.

    Not to be asked for a dict whose values are all of :data:`PLAIN` types.
    """
    if body.find(b"null") < 0:
        return
    try:
        same = orjson.loads(body) == payload  # cheaper than a walk
    except orjson.JSONDecodeError as error:  # a fragment that the caller vouched for
        raise SchemaError(f"payload is not JSON: {error}") from None
    if not same:
        refuse_not_a_number(payload)


def refuse_not_a_number(value: object, path: str = "payload") -> None:
    """Raise :class:`SchemaError` where ``value`` holds NaN or an infinity, which JSON writes as null."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise SchemaError(f"{path} is {value}, which JSON cannot say; send null or a string", path=path)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            refuse_not_a_number(part, f"{path}.{name}")
    elif isinstance(value, Enum):
        refuse_not_a_number(value.value, path)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            refuse_not_a_number(getattr(value, name, None), f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            refuse_not_a_number(part, f"{path}[{index}]")


def _kind(value: object) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"


def check_depth(depth: object) -> int:
    """``depth`` if it is a whole number from 0 up; raises :class:`LimitExceeded` otherwise."""
    if type(depth) is not int or depth < 0:
        raise LimitExceeded(f"depth must be a whole number from 0 up, not {depth!r}")
    return depth
