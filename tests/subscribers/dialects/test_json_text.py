"""JSON text: the value, or a refusal with line and column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.json_text import JsonRefused, read_json


def test_a_document_is_decoded() -> None:
    """A sound document gives its value; of equal keys the last one counts."""
    assert read_json(b' {"a": [1, 2.5, null, true, "\xc3\xa9"], "a": {}} ') == {"a": {}}


@pytest.mark.parametrize(
    "text,line,column,said",
    [
        (b"", 1, 1, "empty"),
        (b" \n\t\r\n", 1, 1, "empty"),
        (b'{"a":\n  1,}', 2, 4, "not JSON"),
        ('{"é":\n "日本" x}'.encode(), 2, 7, "not JSON"),
        (b"{} x", 1, 4, "not JSON"),
        (b'{"a": "b', 1, 9, "not JSON"),
        (b'{"a": NaN}', 1, 7, "not JSON"),
        (b"{'a': 1}", 1, 2, "not JSON"),
        (b'{"a": "x\0y"}', 1, 9, "not JSON"),
        (b'{"a": "\\ud800"}', 1, 8, "not JSON"),
        (b"[" * 2_000, 1, 1_026, "not JSON"),
        (b'{\n "a": "\xc3\xa9\xff"}', 2, 9, "byte 0xff is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), 1, 1, "UTF-16"),
        ('{"a": 1}'.encode("utf-16-be"), 1, 1, "not JSON"),
    ],
)
def test_a_refusal_names_line_and_column(text: bytes, line: int, column: int, said: str) -> None:
    """What is not JSON is refused at the character at fault, counted in characters."""
    with pytest.raises(JsonRefused, match=said) as caught:
        read_json(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text,hint",
    [
        (b'{"a": 1', "half written"),
        (b'{"a": 1 // one\n}', "no comments"),
        (b"# hooks\n{}", "no comments"),
        (b"{'a': 1}", "double quotes"),
        (b'{"a": NaN}', "no NaN"),
        (b'{"a": True}', "true"),
        (b'{"a": False}', "false"),
        (b"", "{}"),
        (b"\xff\xfe{\x00", "UTF-8"),
    ],
)
def test_usual_mistakes_get_a_hint(text: bytes, hint: str) -> None:
    """The mistakes that people make in JSON are explained."""
    with pytest.raises(JsonRefused) as caught:
        read_json(text)
    assert hint in str(caught.value.hint)


def test_a_rare_mistake_has_no_hint() -> None:
    """Where the character at fault says nothing, no guess is made."""
    with pytest.raises(JsonRefused) as caught:
        read_json(b"{} x")
    assert caught.value.hint is None


@given(st.binary())
def test_any_bytes_give_a_value_or_a_refusal(text: bytes) -> None:
    """No bytes raise anything but the documented refusal, whose place lies within reach of the text."""
    try:
        read_json(text)
    except JsonRefused as error:
        assert 1 <= error.line <= text.count(b"\n") + 1
        assert 1 <= error.column <= len(text) + 1
