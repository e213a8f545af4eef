"""Where the payload of ``pub`` comes from and what is wrong with it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli import pub
from broker.cli.exits import CommandError
from broker.cli.pub import event_topic, meant_topic, parse_object, position, raised, read_payload
from broker.client.context import Cause
from broker.protocol.errors import LimitExceeded, SchemaError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


class Input:
    """Standard input with bytes in it."""

    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_every_json_object_is_taken(value: dict[str, object]) -> None:
    """What is a JSON object passes, whatever is in it."""
    assert parse_object(orjson.dumps(value)) == value


@given(st.binary(max_size=40))
def test_anything_else_is_refused_with_its_place(data: bytes) -> None:
    """Any bytes are an object or a SchemaError."""
    try:
        value = parse_object(data)
    except SchemaError as error:
        assert "payload is" in str(error)
    else:
        assert isinstance(value, dict)


@pytest.mark.parametrize(
    "text,message",
    [
        ("", "empty; an event's payload is a JSON object, such as {}"),
        (" \n", "empty; "),
        ("{'a':1}", "not JSON at line 1, column 2: a name in double quotes is expected here"),
        ('{"a":1', "not JSON at line 1, column 7: it ends in the middle"),
        ('{"a":1,}', "not JSON at line 1, column 7: a comma with nothing after it"),
        ("{bad}", "not JSON at line 1, column 2: "),
        ('{"a":1,\n "é" "x"}', "not JSON at line 2, column 6: "),
        ('{"a": NaN}', "not JSON at line 1, column 7: NaN is no JSON; send null or a string"),
        ('{"a":\n [1, -Infinity]}', "not JSON at line 2, column 6: -Infinity is no JSON"),
        ('{"a":Infinity}', "not JSON at line 1, column 6: Infinity is no JSON"),
        ('{"a": -x}', "not JSON at line 1, column 8: "),
        ('{"a": 1e999}', "not JSON at line 1, column 7: a number too large to be kept"),
        ('{"a":"\\ud800"}', "not JSON at line 1, column 7: "),
        ("[1]", "an array; an event's payload is a JSON object"),
        ("null", "null; "),
        ("true", "true or false; "),
        ("17", "a number; "),
        ('"x"', "a string; "),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(text: str, message: str) -> None:
    """A fault in JSON has a place; a value of another kind has a name."""
    with pytest.raises(SchemaError) as caught:
        parse_object(text.encode())
    assert f"payload is {message}" in str(caught.value)


def test_bytes_that_are_no_utf8_have_a_place_too() -> None:
    """The place of the first bad byte, counted in characters."""
    with pytest.raises(SchemaError, match="payload is not UTF-8 at line 2, column 3"):
        parse_object('{"é":\n "'.encode() + b"\xff")


def test_positions_begin_at_one() -> None:
    """Lines and columns are counted as editors do."""
    assert position("") == (1, 1)
    assert position("ab") == (1, 3)
    assert position("ab\n") == (2, 1)
    assert position("a\nbc") == (2, 3)


def test_a_payload_is_an_argument_a_file_or_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """- reads standard input, @FILE a file, anything else is the payload."""
    path = tmp_path / "payload.json"
    path.write_bytes(b'{"a":1}\n')
    monkeypatch.setattr(sys, "stdin", Input(b'{"b":2}'))
    assert read_payload(f"@{path}") == b'{"a":1}\n'
    assert read_payload("-") == b'{"b":2}'
    assert read_payload("{}") == b"{}"
    assert read_payload("\udcff") == b"\xff"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The error says which file and why."""
    with pytest.raises(CommandError, match=rf"cannot read the payload from '{tmp_path}/x': No such file"):
        read_payload(f"@{tmp_path}/x")


def test_reading_stops_at_the_largest_payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless input is refused once it is too large."""
    monkeypatch.setattr(pub, "CLAIM_BYTES", 10)
    monkeypatch.setattr(sys, "stdin", Input(b"x" * 100))
    with pytest.raises(LimitExceeded, match="the payload is larger than 10 bytes"):
        read_payload("-")


@pytest.mark.parametrize("inherited,given,depth", [(0, 0, 0), (3, 1, 3), (1, 3, 3), (7, 300, 300)])
def test_the_greater_depth_holds(inherited: int, given: int, depth: int) -> None:
    """--depth can raise what the environment says and never lower it; the cause stays."""
    assert raised(Cause(inherited, "cause"), given) == Cause(depth, "cause")


@pytest.mark.parametrize(
    "topic,meant",
    [
        ("prx.lifecycle.tol_call", "prx.lifecycle.tool_call"),
        ("prx.lifecycle.tool_call", None),
        ("prx.lifecycle.my_own_event", None),
        ("tol_call", None),
    ],
)
def test_a_mistyped_event_is_told_the_catalogued_one(topic: str, meant: str | None) -> None:
    """Only below the prefix of the catalogue, and only when one is near."""
    assert meant_topic(topic) == meant


@pytest.mark.parametrize(
    "name,topic",
    [
        ("tool_call_start", "prx.lifecycle.tool_call_start"),
        ("tool_call_strat", "prx.lifecycle.tool_call_start"),
        ("my.topic", None),
        ("nothing-like-it", None),
    ],
)
def test_a_bare_name_is_near_to_the_topic_of_an_event(name: str, topic: str | None) -> None:
    """The event of this name, or the nearest; a topic of one's own is nobody's slip."""
    assert event_topic(name) == topic


@pytest.mark.parametrize("name", ["PreToolUse", "tool_call_start", "tool.execute.before"])
def test_an_event_may_be_called_as_any_system_calls_it(name: str) -> None:
    """Claude Code's word for a tool call that is about to begin leads to the same topic as ours."""
    assert event_topic(name) == "prx.lifecycle.tool_call_start"
