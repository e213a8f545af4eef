"""Edits of a JSON text change what they mean and no other byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.json_edit import (
    INLINE_CHARACTERS,
    Splice,
    Style,
    append_item,
    change_members,
    outline,
    remove_item,
    spliced,
    style_of,
)

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=5)
WRITERS: list[Callable[[Any], str]] = [
    json.dumps,
    lambda value: json.dumps(value, separators=(",", ":")),
    lambda value: json.dumps(value, indent=2),
    lambda value: json.dumps(value, indent="\t", ensure_ascii=False),
    lambda value: json.dumps(value, indent=4).replace("\n", "\r\n"),
    lambda value: "\n" + json.dumps(value, indent=1) + "\n",
    lambda value: json.dumps(value, indent=0, separators=(",", " : ")),
]
TEXTS = st.builds(lambda value, write: (value, write(value).encode()), OBJECTS, st.sampled_from(WRITERS))


@given(TEXTS, st.dictionaries(st.text(max_size=4), VALUES, max_size=3), st.data())
def test_members_are_set_and_removed_and_the_rest_stays(
    written: tuple[dict[str, Any], bytes], values: dict[str, Any], data: st.DataObject
) -> None:
    """After an edit the text holds exactly the object that the same edit makes of the value, in its order."""
    before, text = written
    removable = [name for name in before if name not in values]
    without = data.draw(st.sets(st.sampled_from(removable)) if removable else st.just(set()))
    root = outline(text)
    after = spliced(text, change_members(text, root, values, style_of(text, root), without))
    expected = {**{name: value for name, value in before.items() if name not in without}, **values}
    assert list(orjson.loads(after).items()) == list(expected.items())
    for name, child in zip(before, root.children, strict=True):
        if name not in values and name not in without:
            assert text[child.start : child.end] in after


@given(TEXTS, st.lists(VALUES, max_size=4), VALUES, st.sampled_from(WRITERS))
def test_items_are_appended_and_removed(
    written: tuple[dict[str, Any], bytes], items: list[Any], value: Any, write: Callable[[Any], str]
) -> None:
    """An item goes to the end of an array; taking one out leaves the others."""
    text = write({**written[0], "list": items}).encode()
    root = outline(text)
    array = root.member("list")
    assert array is not None
    longer = spliced(text, append_item(text, array, value, style_of(text, root)))
    assert orjson.loads(longer)["list"] == [*items, value]
    for index in range(len(items)):
        shorter = spliced(text, remove_item(array, index))
        assert orjson.loads(shorter)["list"] == items[:index] + items[index + 1 :]


def test_nothing_else_moves() -> None:
    """Odd spacing, number forms, escapes and repeated keys of what is not meant stay byte for byte."""
    text = b'{ "a" : 1e3,\n   "b":"\\u00e9", "a": 2.0 ,\n "list" :[ 1 ,2,  3 ] }'
    root = outline(text)
    style = style_of(text, root)
    assert spliced(text, change_members(text, root, {"b": True}, style)) == text.replace(
        b'"\\u00e9"', b"true"
    )
    assert spliced(text, change_members(text, root, {"a": 7}, style)) == text.replace(b"2.0", b"7")
    array = root.member("list")
    assert array is not None
    assert spliced(text, remove_item(array, 1)) == text.replace(b"2,  3", b"3")
    assert spliced(text, remove_item(array, 2)) == text.replace(b"2,  3 ", b"2 ")


@pytest.mark.parametrize(
    "before,after",
    [
        ('{\n  "a": 1\n}', '{\n  "a": 1,\n  "n": {\n    "x": ["y"]\n  }\n}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"n": {\n\t\t"x": ["y"]\n\t}\n}'),
        ('{\r\n "a":1\r\n}', '{\r\n "a":1,\r\n "n":{\r\n  "x":["y"]\r\n }\r\n}'),
        ('{"a": 1}', '{"a": 1, "n": {"x": ["y"]}}'),
        ('{"a":1}', '{"a":1,"n":{"x":["y"]}}'),
        ("{}", '{\n  "n": {\n    "x": ["y"]\n  }\n}'),
    ],
)
def test_what_is_put_in_looks_like_its_neighbours(before: str, after: str) -> None:
    """Indentation, line ends and the blank after a colon are those of the text."""
    text = before.encode()
    root = outline(text)
    edit = change_members(text, root, {"n": {"x": ["y"]}}, style_of(text, root))
    assert spliced(text, edit).decode() == after


def test_a_long_array_stands_on_several_lines() -> None:
    """Plain values stand on one line while it is short."""
    style = Style("  ", "\n", ": ", ", ")
    text = b'{\n  "a": 1\n}'
    long = ["x" * 30, "y" * 30, "z" * 30]
    assert len(json.dumps(long)) > INLINE_CHARACTERS
    after = spliced(text, change_members(text, outline(text), {"long": long, "none": []}, style))
    assert orjson.loads(after) == {"a": 1, "long": long, "none": []}
    assert b'"long": [\n    "xxx' in after
    assert b'"none": []' in after


def test_an_object_emptied_by_an_edit_is_written_anew() -> None:
    """Where no key stays, braces and new keys are ours."""
    text = b'{\n  "a": 1, "b": 2\n}'
    root = outline(text)
    style = style_of(text, root)
    assert spliced(text, change_members(text, root, {}, style, ("a", "b"))) == b"{}"
    assert orjson.loads(spliced(text, change_members(text, root, {"c": 3}, style, ("a", "b")))) == {"c": 3}


def test_a_value_without_keys_has_no_member() -> None:
    """Asking an array or a missing key gives nothing."""
    assert outline(b"[1]").member("a") is None
    assert outline(b'{"b": 1}').member("a") is None


def test_splices_at_one_place_keep_their_order() -> None:
    """Two insertions at one offset stand in the order in which they were given."""
    assert spliced(b"ab", [Splice(1, 1, b"1"), Splice(1, 1, b"2"), Splice(0, 1, b"")]) == b"12b"
