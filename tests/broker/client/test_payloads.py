"""What a caller may hand over as a payload, and what is said of anything else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from broker.client.core.numbering import Numbering
from broker.client.payloads import encode_payload
from broker.protocol.errors import SchemaError
from broker.protocol.events import Event

STREAM = Numbering(bytes(16), "me", 0.0).open("my.topic", 0)


@pytest.mark.parametrize(
    "payload, body",
    [
        (b' {"a" : 1} ', b' {"a" : 1} '),
        (bytearray(b'{"a":1}'), b'{"a":1}'),
        (memoryview(b'{"a":1}'), b'{"a":1}'),
        ({"a": None}, b'{"a":null}'),
        (MappingProxyType({"a": 1}), b'{"a":1}'),
        ('{"é":1}'.encode(), '{"é":1}'.encode()),
        (b'{"a":1e999}', b'{"a":1e999}'),
    ],
)
def test_an_object_travels_as_it_is(payload: Mapping[str, object] | bytes, body: bytes) -> None:
    """Bytes are not touched, and mappings become the shortest JSON."""
    assert encode_payload(payload, STREAM) == body


@pytest.mark.parametrize(
    "payload, words",
    [
        (b"{", "payload is not JSON: unexpected end of data"),
        (b'{"a":"\xff"}', "payload is not JSON: "),
        (b"[1]", "payload is of type list, not an object"),
        (b"null", "payload is null, not an object"),
        ("{}", "payload is of type str; a dict or the bytes of a JSON object is expected"),
        ({"a": object()}, "payload cannot be written as JSON: "),
        ({"a": [math.nan]}, r"payload.a\[0\] is nan, which JSON cannot say; send null or a string"),
    ],
)
def test_anything_else_is_refused(payload: object, words: str) -> None:
    """Each with what it is and what is expected instead."""
    with pytest.raises(SchemaError, match=words):
        encode_payload(payload, STREAM)


def test_a_number_beyond_a_double_arrives() -> None:
    """It is JSON, so it is taken; Python reads it as an infinity, or as a long whole number."""
    body = encode_payload(b'{"a": -1e400, "b": ' + b"7" * 30 + b"}", STREAM)
    event = Event.of("my.topic", 0, bytes(16), 1, 0, None, "me", None, body)
    assert event.payload == {"a": -math.inf, "b": int("7" * 30)}
