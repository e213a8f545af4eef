"""What a caller hands over as a payload, as the bytes that travel.

Decides what may be sent: one JSON object, without the numbers that JSON lacks, with catalogued
fields of their types. Knows no frame, no size limit and no socket.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from ..protocol.errors import SchemaError
from .core.numbering import Stream


def encode_payload(payload: object, stream: Stream) -> bytes:
    """``payload`` as the bytes of one JSON object, checked against the catalogue when it is a mapping.

    Raises :class:`SchemaError`.
    """
    if isinstance(payload, bytes | bytearray | memoryview):
        body = bytes(payload)
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
    if b"null" in body:
        refuse_not_a_number(plain)
    return body


def refuse_not_a_number(value: object, path: str = "payload") -> None:
    """Raise :class:`SchemaError` where ``value`` holds NaN or an infinity, which JSON writes as null."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise SchemaError(f"{path} is {value}, which JSON cannot say; send null or a string", path=path)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            refuse_not_a_number(part, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            refuse_not_a_number(part, f"{path}[{index}]")


def _kind(value: object) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"
