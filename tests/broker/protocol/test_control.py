"""Control messages: each kind round-trips, and a missing or mistyped field is refused by name."""

import re
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.control import (
    FIELDS,
    ROLES,
    Message,
    decode_message,
    encode_message,
)
from broker.protocol.envelope import VERSION
from broker.protocol.errors import DecodeError, VersionMismatch
from broker.protocol.limits import CONTROL_BYTES

VALUES: dict[type, object] = {
    str: "x",
    int: 1,
    bool: True,
    bytes: b"x",
    list: ["x"],
    dict: {"x": 1},
    type(None): None,
}
"""A value of each type that a field can have."""


def types_of(kind: str, field: str) -> tuple[type, ...]:
    """The types that ``field`` of ``kind`` may have."""
    types = FIELDS[kind][field]
    return types if isinstance(types, tuple) else (types,)


def body_of(kind: str) -> dict[str, Any]:
    """A body of ``kind`` with the first admitted type in each field."""
    return {field: VALUES[types_of(kind, field)[0]] for field in FIELDS[kind]}


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("request_number", [0, 1, 2**63 - 1])
def test_each_kind_survives_the_wire(kind: str, request_number: int) -> None:
    """What is encoded is decoded, with its request number."""
    body = body_of(kind)
    assert decode_message(encode_message(kind, request_number, **body)) == Message(kind, request_number, body)


@pytest.mark.parametrize("kind, field", [(kind, field) for kind in FIELDS for field in FIELDS[kind]])
def test_each_field_is_required_and_typed(kind: str, field: str) -> None:
    """Every admitted type passes, every other is refused by name, and so is the field's absence."""
    body = body_of(kind)
    for type_, value in VALUES.items():
        data = encode_message(kind, 1, **{**body, field: value})
        if type_ in types_of(kind, field):
            assert decode_message(data).body[field] == value
        else:
            with pytest.raises(DecodeError, match=f"field '{field}' of '{kind}' is a {type_.__name__}"):
                decode_message(data)
    del body[field]
    with pytest.raises(DecodeError, match=f"'{kind}' lacks its field '{field}'"):
        decode_message(encode_message(kind, 1, **body))


@given(st.sampled_from(sorted(FIELDS)), st.dictionaries(st.text(), st.integers() | st.text()))
def test_unknown_fields_pass(kind: str, extra: dict[str, object]) -> None:
    """A newer peer may say more, and an older one hands it on."""
    extra = {field: 1 if isinstance(value, int) else value for field, value in extra.items()}
    body = {**extra, **body_of(kind)}
    assert decode_message(encode_message(kind, **body)).body == body


NO_REQUESTS: list[object] = [-1, 2**63, None, True, 1.0, "1", []]
"""What is not the number of a request."""


@pytest.mark.parametrize(
    "data, reason, message",
    [
        (b"", "msgpack", "not one msgpack value"),
        (b"\x80", "control", "a control message is a msgpack array"),
        (b"\x90", "control", "a control message is a msgpack array"),
        (b"\x91\x01", "control", "a control message is [version, kind, request, body]"),
        (msgpack.packb([VERSION, "status", 0, {}, 0]), "control", "a control message is [version"),
        (msgpack.packb([VERSION, "shout", 0, {}]), "kind", "'shout' is not a kind of control message"),
        (msgpack.packb([VERSION, 1, 0, {}]), "kind", "1 is not a kind"),
        (msgpack.packb([VERSION, [], 0, {}]), "kind", "a list of 0 is not a kind"),
        (msgpack.packb([VERSION, "k" * 999, 0, {}]), "kind", "... is not a kind"),
        *(
            (msgpack.packb([VERSION, "status", number, {}]), "control", "request number")
            for number in NO_REQUESTS
        ),
        (msgpack.packb([VERSION, "status", 0, []]), "control", "the body of 'status' is not a map"),
        (msgpack.packb([VERSION, "status", 0, {1: 1}]), "msgpack", "not one msgpack value"),
        (bytes(CONTROL_BYTES + 1), "size", "1,048,577 bytes; at most 1,048,576"),
    ],
)
def test_a_malformed_message_is_refused_with_its_reason(data: bytes, reason: str, message: str) -> None:
    """The error says which rule broke, in a bounded text."""
    with pytest.raises(DecodeError, match=re.escape(message)) as caught:
        decode_message(data)
    assert caught.value.reason == reason
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("version", [0, 2, None, True, 1.0, "1"])
def test_a_message_of_another_version_is_a_version_mismatch(version: object) -> None:
    """The version stands first, so that any release can tell another apart."""
    with pytest.raises(VersionMismatch):
        decode_message(bytes(msgpack.packb([version, "status", 0, {}])))


def test_a_message_may_be_as_large_as_the_limit() -> None:
    """The limit is inclusive."""
    overhead = len(encode_message("probe", inbox="x" * 70_000)) - 70_000
    data = encode_message("probe", inbox="x" * (CONTROL_BYTES - overhead))
    assert len(data) == CONTROL_BYTES
    assert decode_message(data).kind == "probe"


@given(st.binary(max_size=40), st.data())
def test_any_bytes_are_a_message_or_refused(data: bytes, draw: st.DataObject) -> None:
    """Neither noise nor a damaged message raises anything but the documented error."""
    damaged = bytearray(encode_message("published", 1, matching=3))
    at = draw.draw(st.integers(0, len(damaged)))
    damaged[at : at + draw.draw(st.integers(0, 3))] = draw.draw(st.binary(max_size=3))
    for message in (data, bytes(damaged)):
        try:
            assert decode_message(message).kind in FIELDS
        except DecodeError:
            continue


@pytest.mark.parametrize("place", range(4))
def test_a_message_nested_without_end_is_refused(place: int) -> None:
    """A value nested deeper than Python's own recursion limit is refused like any other."""
    fields: list[object] = [VERSION, "status", 0, {}]
    fields[place] = "here"
    head, tail = bytes(msgpack.packb(fields)).split(msgpack.packb("here"))
    with pytest.raises(DecodeError):
        decode_message(head + b"\x91" * 1_010 + b"\xc0" + tail)


def test_the_roles_are_those_of_the_document() -> None:
    """A peer publishes, subscribes, or only asks."""
    assert ROLES == ("publisher", "subscriber", "decider", "tool")
