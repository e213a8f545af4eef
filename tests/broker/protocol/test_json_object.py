"""What passes for a JSON object, and that the quick look is no laxer than reading it."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.protocol.json_object import is_object, look_at_object, read_far_numbers

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def looks_like_one(data: bytes) -> bool:
    """What the quick look says of ASCII bytes."""
    try:
        look_at_object(data)
    except Exception:
        return False
    return True


def reads_as_one(data: bytes) -> bool:
    """What orjson says."""
    try:
        return type(orjson.loads(data)) is dict
    except orjson.JSONDecodeError:
        return False


@given(st.dictionaries(st.text(), VALUES), st.booleans())
def test_an_object_is_one(value: dict[str, Any], ascii_only: bool) -> None:
    """Whatever Python's own writer makes of a dict, with or without escapes for what is not ASCII."""
    data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert is_object(data) is (reads_as_one(data) or read_far_numbers(data) == value)


@given(
    st.dictionaries(st.text("abc"), VALUES),
    st.lists(st.tuples(st.integers(), st.integers(0, 127)), max_size=3),
)
@example({"a": 1}, [(0, 91)])
def test_the_quick_look_is_no_laxer_than_reading(
    value: dict[str, Any], changes: list[tuple[int, int]]
) -> None:
    """Of ASCII bytes, damaged or not, it takes what orjson takes, and only far numbers besides."""
    data = bytearray(json.dumps(value).encode())
    for position, byte in changes:
        data[position % len(data)] = byte
    damaged = bytes(data)
    if looks_like_one(damaged) != reads_as_one(damaged):
        assert looks_like_one(damaged)
        with pytest.raises(orjson.JSONDecodeError, match="number"):
            orjson.loads(damaged)


@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"null", b"[1]", b'"a"', b"1",
        b'{"a":1,}', b"{'a':1}", b'{"a":NaN}', b'{"a":-Infinity}', b"{}{}",
        b'{"a":"\\ud800"}', b'{"a":"\n"}', b'{"a":01}', b'{"a":"\xff"}', b'{"\xc3":1}', b"\xef\xbb\xbf{}",
        b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
)  # fmt: skip
def test_anything_else_is_none(data: bytes) -> None:
    """Other values, other grammar, other encodings, and what is nested too deeply to be read."""
    assert not is_object(data)
    assert read_far_numbers(data) is None


def test_numbers_beyond_a_double_are_read_as_python_reads_them() -> None:
    """Whole ones exactly, others as infinities."""
    data = b'{"a": 1e999, "b": -1e999, "c": ' + b"9" * 400 + b"}"
    assert is_object(data)
    assert read_far_numbers(data) == {"a": math.inf, "b": -math.inf, "c": 10**400 - 1}


def test_more_digits_than_python_reads_are_a_number_all_the_same() -> None:
    """A whole number of 5,000 digits is an infinity, as a double would be, and no error of another kind."""
    digits = "9" * 5_000
    assert read_far_numbers(f'{{"n": {digits}, "m": -{digits}, "k": 12}}'.encode()) == {
        "n": float("inf"),
        "m": float("-inf"),
        "k": 12,
    }
