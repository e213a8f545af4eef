"""Positions: where a place stands in a JSON text, and which keys stand twice."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.json_positions import Duplicate, Lines, Path, Spot, scan

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    scalars | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=12
)


def places(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every place of a value with what stands there."""
    found: dict[Path, Any] = {path: value}
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found |= places(inner, (*path, index))
    return found


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
@given(value=values)
def test_every_place_of_any_document_is_found(value: Any, indent: int | None, ascii_only: bool) -> None:
    """At each offset stands the value of the place, and its key before it, however the text is written."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    expected = places(value)
    spots, duplicates = scan(text, expected.keys(), 10)
    assert duplicates == []
    assert spots.keys() == expected.keys()
    for path, spot in spots.items():
        if path and isinstance(path[-1], str):
            assert spot.key is not None
            assert decode_at(text, spot.key) == path[-1]
        else:
            assert spot.key is None
        assert decode_at(text, spot.value) == expected[path]


def decode_at(text: bytes, offset: int) -> Any:
    """The JSON value that begins at a byte offset."""
    return json.JSONDecoder().raw_decode(text[offset:].decode())[0]


def test_a_place_that_is_not_there_is_not_answered() -> None:
    """Asking for what the document does not have gives nothing, and asking for nothing gives nothing."""
    assert scan(b'{"a": [1]}', [("b",), ("a", 1), ("a", 0, "c")], 10) == ({}, [])
    assert scan(b'{"a": [1]}', [], 10) == ({}, [])


def test_a_repeated_key_is_found_and_the_last_one_is_the_place() -> None:
    """A key that stands twice in one object is told with both offsets; its value is the later one."""
    text = b'{"a": {"x": 1, "x": 2}, "a": {"y": 3, "y": 4}}'
    assert orjson.loads(text) == {"a": {"y": 4}}
    spots, duplicates = scan(text, [("a",), ("a", "y")], 10)
    assert duplicates == [
        Duplicate(("a", "x"), 7, 15),
        Duplicate(("a",), 1, 24),
        Duplicate(("a", "y"), 30, 38),
    ]
    assert spots == {("a",): Spot(24, 29), ("a", "y"): Spot(38, 43)}


def test_keys_are_compared_as_decoded() -> None:
    """An escaped spelling of a key is the same key."""
    _, duplicates = scan(b'{"a": 1, "\\u0061": 2}', [], 10)
    assert [duplicate.path for duplicate in duplicates] == [("a",)]


def test_equal_keys_of_different_objects_are_no_duplicates() -> None:
    """Siblings in an array may have the same keys."""
    assert scan(b'[{"a": 1}, {"a": {"a": 2}}]', [], 10) == ({}, [])


def test_the_number_of_duplicates_is_bounded() -> None:
    """No more repeated keys are kept than were asked for."""
    text = b"{" + b",".join([b'"a": 1'] * 50) + b"}"
    assert len(scan(text, [], 7)[1]) == 7


def test_a_long_string_full_of_escapes_is_one_token() -> None:
    """Half a million escapes in one string are passed over, and what follows is still found."""
    text = b'{"a": "' + b'\\"' * 500_000 + b'", "b": 1}'
    spots, _ = scan(text, [("b",)], 10)
    assert spots == {("b",): Spot(len(text) - 7, len(text) - 2)}


@pytest.mark.parametrize(
    "offset,line,column", [(0, 1, 1), (3, 1, 3), (4, 1, 4), (5, 2, 1), (6, 3, 1), (9, 3, 2), (10, 3, 3)]
)
def test_offsets_become_lines_and_columns(offset: int, line: int, column: int) -> None:
    """Lines end at a newline; columns count characters, not bytes."""
    assert Lines("aéb\n\n日b".encode()).locate(offset) == (line, column)
