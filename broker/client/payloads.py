"""What a caller hands over as a payload, as the bytes that travel.

Decides what may be sent: one JSON object, without the numbers that JSON lacks, with catalogued
fields of their types, and what is too large for an event or to travel in its frame. Knows no spool and no
socket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import msgpack
from orjson import JSONDecodeError, dumps, loads

from ..protocol.catalogue import check_field
from ..protocol.envelope import Claim, payload_header
from ..protocol.errors import LimitExceeded, SchemaError
from ..protocol.limits import CLAIM_BYTES, PAYLOAD_BYTES
from .core.numbering import Stream
from .options import Oversize


def encode_payload(payload: object, stream: Stream) -> bytes:
    """``payload`` as the bytes of one JSON object, checked against the catalogue when it is a mapping.

    Raises :class:`SchemaError`.
    """
    if type(payload) is bytes:
        try:
            value = loads(payload)
        except JSONDecodeError as error:
            from ..protocol.json_object import is_object  # loads msgspec, which most commands do without

            if is_object(payload):
                return payload
            raise SchemaError(f"payload is not JSON: {error}") from None
        if type(value) is not dict:
            raise SchemaError(f"payload is {_kind(value)}, not an object")
        return payload
    if type(payload) is dict:
        return encode_dict(payload, stream)
    if isinstance(payload, bytes | bytearray | memoryview):
        return encode_payload(bytes(payload), stream)
    if not isinstance(payload, Mapping):
        raise SchemaError(f"payload is {_kind(payload)}; a dict or the bytes of a JSON object is expected")
    return encode_dict(dict(payload), stream)


def encode_dict(plain: dict[str, Any], stream: Stream) -> bytes:
    """The same of what is a dict for certain."""
    types_of = stream.types_of
    if types_of is not None:  # what catalogue.check does; a call takes as long as two of the fields
        for name in plain:  # noqa: PLC0206 - unpacking pairs takes a third longer
            types = types_of(name)
            if types is not None and type(plain[name]) not in types:
                check_field(stream.topic, name, plain[name])
    try:
        body = dumps(plain)
    except TypeError as error:
        raise SchemaError(f"payload cannot be written as JSON: {error}") from None
    if body.rfind(b"null") >= 0:  # or what JSON has no word for: a NaN. `in` takes twice as long.
        refuse_lost_numbers(plain, body)
    return body


def refuse_lost_numbers(payload: Mapping[str, Any], body: bytes) -> None:
    """Raise :class:`SchemaError` if ``body`` says null where ``payload`` has a NaN or an infinity.

    Not to be asked for a ``body`` without ``null``.
    """
    if body.count(b"null") == [*payload.values()].count(None):
        return  # each of them is a None that stands in plain sight
    try:
        same = loads(body) == payload  # cheaper than a walk
    except JSONDecodeError as error:  # a fragment that the caller vouched for
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


def content_of(body: bytes, oversize: Oversize, store: Callable[[bytes], Claim]) -> bytes:
    """The payload ``body`` as it stands in a frame: with its header, or as the claim that ``store`` gives.

    Raises :class:`LimitExceeded` when it may not travel by claim check, and what ``store`` raises.
    """
    size = len(body)
    if size <= PAYLOAD_BYTES:
        return payload_header(size) + body
    _check_claimed(size, oversize)
    return bytes(msgpack.packb(store(body).fields()))


def _check_claimed(size: int, oversize: Oversize) -> None:
    if oversize == "reject":
        raise LimitExceeded(
            f"payload of {size:,} bytes of JSON is larger than {PAYLOAD_BYTES:,}; shorten it, "
            "or let it travel by claim check with oversize='claim'"
        )
    if size > CLAIM_BYTES:
        raise LimitExceeded(f"payload of {size:,} bytes of JSON is larger than {CLAIM_BYTES:,}; shorten it")


def _kind(value: object) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"


def check_depth(depth: object) -> int:
    """``depth`` if it is a whole number from 0 up; raises :class:`LimitExceeded` otherwise."""
    if type(depth) is not int or depth < 0:
        raise LimitExceeded(f"depth must be a whole number from 0 up, not {depth!r}")
    return depth
