"""How deep a JSON value is nested."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from subscribers.dialects.json_depth import MAX_DEPTH, is_too_deep


def nested(levels: int) -> Any:
    """An array in an array, so many of them."""
    return orjson.loads(b"[" * levels + b"]" * levels)


@pytest.mark.parametrize("value,depth", [(1, 0), ("[[", 0), ([], 1), ({}, 1), ({"a": [1, {"b": 2}]}, 3)])
def test_levels_are_objects_and_arrays(value: Any, depth: int) -> None:
    """A plain value has none; the deepest branch counts."""
    assert not is_too_deep(value, depth)
    assert not is_too_deep(value, depth + 1)
    assert depth == 0 or is_too_deep(value, depth - 1)


def test_what_is_not_too_deep_can_be_written() -> None:
    """With fifty levels of ours around it; everything that the parser takes is judged."""
    value = nested(MAX_DEPTH)
    assert not is_too_deep(value)
    for _ in range(50):
        value = {"a": value}
    assert orjson.dumps(value)
    assert is_too_deep(nested(MAX_DEPTH + 1))
    assert is_too_deep(nested(1_023))
