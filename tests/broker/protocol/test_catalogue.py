"""The catalogue accepts the documented fields, refuses a wrong type by its path, and lets the rest pass."""

from __future__ import annotations

import datetime
import enum
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.catalogue import ANY, CONTEXT_FIELDS, EVENTS, Field, check, json_type, types_for
from broker.protocol.errors import SchemaError
from broker.protocol.projections import DIALECTS
from broker.protocol.topics import LIFECYCLE, is_topic


class Colour(enum.Enum):
    """An enumeration whose members are encoded as strings."""

    RED = "red"


class Text(str):
    """A string by inheritance."""

    __slots__ = ()


@dataclass
class Point:
    """A value that the encoder writes as an object."""

    x: int


def test_every_event_of_the_design_is_catalogued() -> None:
    """The canonical events are exactly these, each under its topic."""
    assert set(EVENTS) == {
        "gateway_startup",
        "session_start",
        "session_end",
        "session_reset",
        "agent_start",
        "agent_step",
        "agent_end",
        "user_prompt",
        "system_transform",
        "llm_request",
        "llm_response",
        "tool_call_start",
        "permission_request",
        "tool_call",
        "tool_result",
        "pre_compact",
        "post_compact",
        "subagent_start",
        "subagent_stop",
        "turn_complete",
        "error",
        "interrupt",
    }
    assert all(spec.name == name and spec.topic == LIFECYCLE + name for name, spec in EVENTS.items())
    assert all(is_topic(spec.topic) and spec.when.endswith(".") for spec in EVENTS.values())


@pytest.mark.parametrize("spec", EVENTS.values(), ids=EVENTS)
def test_an_event_names_each_field_once(spec: Any) -> None:
    """No name occurs twice, an alias names a canonical field of its event, and documenters are dialects."""
    names = [field.name for field in spec.fields]
    canonical = {field.name for field in spec.fields if field.alias_of is None}
    assert len(names) == len(set(names))
    assert {field.alias_of for field in spec.fields} - {None} <= canonical
    assert all(set(field.documented_by) <= set(DIALECTS) for field in spec.fields)
    assert all(field.types and field.description.endswith(".") for field in spec.fields)


@pytest.mark.parametrize(
    "event,payload",
    [
        ("agent_start", {"agent": "main", "session": "s1"}),
        ("agent_end", {"success": True, "messages_count": 12}),
        ("llm_request", {"provider": "openai", "model": "gpt-4o", "messages_count": 3}),
        ("llm_response", {"provider": "openai", "model": "gpt-4o", "duration_ms": 1842, "success": True}),
        ("llm_response", {"duration_ms": 18.5}),
        ("tool_call_start", {"tool": "Bash", "arguments": {"command": "ls"}}),
        ("tool_call", {"tool": "Bash", "success": False, "output": ""}),
        ("tool_call", {"output": {"content": [1, 2]}, "tool_response": 7}),
        ("tool_call_start", {"tool_name": "x", "tool_input": "text that was no JSON", "args": [1]}),
        ("agent_end", {"steps": 4, "tokens_used": 3.0}),
        ("turn_complete", {}),
        ("error", {"component": "llm", "message": "timeout", "retryable": True}),
        ("system_transform", {"system": ["a", "b"]}),
        ("no_such_event", {"tool": 5}),
    ],
)
def test_documented_payloads_pass(event: str, payload: dict[str, Any]) -> None:
    """Fields of the documented types pass, also when others are missing or are not documented at all."""
    check(LIFECYCLE + event, payload)


@pytest.mark.parametrize(
    "event,payload,path,message",
    [
        ("tool_call", {"success": "yes"}, "payload.success", "must be boolean or null, got string 'yes'"),
        ("tool_call", {"success": 1}, "payload.success", "must be boolean or null, got integer 1"),
        ("tool_call", {"tool": 5, "success": True}, "payload.tool", "must be string or null, got integer 5"),
        (
            "tool_call_start",
            {"arguments": "ls"},
            "payload.arguments",
            "must be object or null, got string 'ls'",
        ),
        (
            "llm_response",
            {"duration_ms": True},
            "payload.duration_ms",
            "must be number or null, got boolean True",
        ),
        (
            "llm_request",
            {"messages_count": "3"},
            "payload.messages_count",
            "must be number or null, got string '3'",
        ),
        ("agent_end", {"steps": 1.5}, "payload.steps", "must be integer or null, got number 1.5"),
        ("agent_end", {"steps": False}, "payload.steps", "must be integer or null, got boolean False"),
        ("system_transform", {"system": {"a": 1}}, "payload.system", "must be array or null, got object"),
        ("error", {"message": ["a"]}, "payload.message", "must be string or null, got array"),
        ("error", {"message": b"a"}, "payload.message", "must be string or null, got Python bytes"),
        ("tool_call", {"tool_name": 1}, "payload.tool_name", "must be string or null, got integer 1"),
    ],
)
def test_a_wrong_type_is_refused_by_its_path(
    event: str, payload: dict[str, Any], path: str, message: str
) -> None:
    """A documented field of another type raises an error that names topic, path, expected type and value."""
    with pytest.raises(SchemaError) as caught:
        check(LIFECYCLE + event, payload)
    assert caught.value.path == path
    assert str(caught.value) == f"{LIFECYCLE}{event}: {path} {message}"


@pytest.mark.parametrize("topic", [LIFECYCLE + "tool_call", LIFECYCLE + "mine", "prx.metrics.llm"])
@pytest.mark.parametrize("payload", [[], "text", 5, None, b"{}"])
def test_what_is_not_an_object_is_refused(topic: str, payload: Any) -> None:
    """A payload that is not a dict is refused on every topic, catalogued or not."""
    with pytest.raises(SchemaError, match="must be a JSON object") as caught:
        check(topic, payload)
    assert caught.value.path == "payload"


@pytest.mark.parametrize("spec", EVENTS.values(), ids=EVENTS)
def test_null_is_allowed_in_every_field(spec: Any) -> None:
    """Null says "unknown" wherever a field may be absent."""
    check(spec.topic, {field.name: None for field in spec.fields})


def test_an_error_repeats_only_the_start_of_a_long_value() -> None:
    """A large or secret value does not end up in a log through an error."""
    with pytest.raises(SchemaError) as caught:
        check(LIFECYCLE + "tool_call", {"success": "x" * 10_000})
    assert str(caught.value).endswith("xxx...")
    assert len(str(caught.value)) < 160


def test_the_types_are_kept_per_topic() -> None:
    """Asking twice what a topic is asked for gives the same answer, so that a publisher may keep it."""
    assert types_for(LIFECYCLE + "tool_call") is types_for(LIFECYCLE + "tool_call")


@pytest.mark.parametrize(
    "topic", ["tool_call", "prx.lifecycle.", "prx.lifecycle.mine", "prx.metrics.tool_call"]
)
def test_other_topics_are_asked_for_nothing(topic: str) -> None:
    """A topic outside the catalogue has nothing to be checked against."""
    assert types_for(topic) is None


@pytest.mark.parametrize(
    "value,expected",
    [
        (None, "null"),
        (True, "boolean"),
        (3, "integer"),
        (3.0, "integer"),
        (3.5, "number"),
        (float("inf"), "number"),
        ("a", "string"),
        (Text("a"), "string"),
        (Colour.RED, "string"),
        ({}, "object"),
        ([], "array"),
        ((1,), "array"),
        (Point(1), "object"),
        (uuid.UUID(int=1), "string"),
        (datetime.datetime(2026, 3, 21, tzinfo=datetime.UTC), "string"),
        (datetime.date(2026, 3, 21), "string"),
        (datetime.time(8, 15), "string"),
        (1j, "Python complex"),
        ({1}, "Python set"),
    ],
)
def test_a_value_has_the_type_that_it_is_encoded_as(value: object, expected: str) -> None:
    """A Python value counts as what the JSON encoder makes of it."""
    assert json_type(value) == expected


@pytest.mark.parametrize(
    "event,payload",
    [
        ("gateway_startup", {"started_at": datetime.datetime(2026, 3, 21, tzinfo=datetime.UTC)}),
        ("tool_call", {"tool": Text("Bash")}),
        ("tool_call", {"tool": Colour.RED}),
        ("tool_call_start", {"arguments": Point(1)}),
        ("system_transform", {"system": ("a", "b")}),
        ("agent_start", {"session": uuid.UUID(int=1)}),
    ],
)
def test_values_that_become_the_right_type_pass(event: str, payload: dict[str, Any]) -> None:
    """What the encoder turns into the documented type is accepted as it stands in Python."""
    check(LIFECYCLE + event, payload)


@pytest.mark.parametrize(
    "types,text",
    [(("string",), "string"), (("string", "array"), "string or array"), (ANY, "any")],
)
def test_a_type_reads_well(types: tuple[str, ...], text: str) -> None:
    """A union of types is written for people."""
    assert Field("x", types, "An x.").type_text == text


def test_context_fields_accompany_every_event_of_the_codex_family() -> None:
    """An event has all of the shared fields or none of them."""
    shared = set(CONTEXT_FIELDS)
    assert all(shared <= set(spec.fields) or not shared & set(spec.fields) for spec in EVENTS.values())


@given(
    st.sampled_from(list(EVENTS)), st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.none()))
)
def test_a_check_changes_nothing_and_raises_only_its_own_error(event: str, payload: dict[str, Any]) -> None:
    """Any dict either passes unchanged or raises SchemaError with a path into it."""
    before = dict(payload)
    try:
        check(LIFECYCLE + event, payload)
    except SchemaError as error:
        assert error.path.removeprefix("payload.") in payload
    assert payload == before
