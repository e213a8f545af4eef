"""The quick reader and writer of control messages say what the careful ones say."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.protocol import control, messages
from broker.protocol.control import FIELDS, Message
from broker.protocol.errors import DecodeError
from broker.protocol.limits import CONTROL_BYTES

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MADE: dict[str, object] = {
    "frame": b"0prx.a\0", "timeout_ms": 5, "left_ms": 5, "answers": b"\x90", "error": None, "heard": [["a"]],
}  # fmt: skip


def read(decode: Any, data: bytes) -> Message | tuple[type, str]:
    """The message in ``data``, or what is said of it."""
    try:
        message: Message = decode(data)
    except DecodeError as error:
        return type(error), str(error)
    return message


@given(st.sampled_from(sorted(FIELDS)), st.integers(0, 2**63 - 1), st.dictionaries(st.text(), VALUES))
def test_the_writers_write_the_same(kind: str, request: int, body: dict[str, Any]) -> None:
    """Byte for byte, whatever the body says."""
    body.pop("self", None)
    assert messages.encode_message(kind, request, **body) == control.encode_message(kind, request, **body)


@given(
    st.sampled_from(sorted(FIELDS)),
    st.integers(-1, 2**63) | VALUES,
    st.dictionaries(st.sampled_from([*MADE, "more"]), VALUES, max_size=2),
    st.lists(st.tuples(st.integers(), st.integers(0, 255)), max_size=2),
    st.sampled_from([0, 1, 1, 1, 2, None, True, 1.0]),
)
@example("ask", 1, {}, [], 1)
@example("answer", 1, {"answers": [1, b"", "x", b""]}, [], 1)
@example("answer", 1, {"answers": "no"}, [], 1)
def test_the_readers_read_the_same(
    kind: str, request: Any, changes: dict[str, Any], damage: list[tuple[int, int]], version: Any
) -> None:
    """Of messages of every kind, whole, odd or damaged: the same message, or the same words of refusal."""
    data = bytearray(msgpack.packb([version, kind, request, {**MADE, **changes}]))
    for position, byte in damage:
        data[position % len(data)] = byte
    assert read(messages.decode_message, bytes(data)) == read(control.decode_message, bytes(data))


@pytest.mark.parametrize("data", [b"", b"\x90", b"\x94\x01\xa3ask\x01\x80", b"\x94\x01\xa3ask\x01\x80\x00"])
def test_what_is_cut_off_or_too_long_is_refused_in_the_same_words(data: bytes) -> None:
    """An empty message, one that lacks its fields, and one with something behind it."""
    assert read(messages.decode_message, data) == read(control.decode_message, data)


def test_a_message_has_the_limit_of_all() -> None:
    """One byte more than a control message may have is refused, whoever reads it."""
    frame = b"x" * (CONTROL_BYTES - len(control.encode_message("ask", 1, frame=b"", timeout_ms=1)) - 3)
    largest = messages.encode_message("ask", 1, frame=frame, timeout_ms=1)
    assert len(largest) == CONTROL_BYTES
    assert messages.decode_message(largest).body["frame"] == frame
    one_more = messages.encode_message("ask", 1, frame=frame + b"x", timeout_ms=1)
    with pytest.raises(DecodeError, match="at most"):
        messages.decode_message(one_more)
