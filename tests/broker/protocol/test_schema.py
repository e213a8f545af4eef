"""The JSON Schemas say what the checkers do, and the tables say what the data says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from broker.protocol.catalogue import EVENTS, check
from broker.protocol.catalogue_tables import dialect_table, events_table
from broker.protocol.errors import SchemaError
from broker.protocol.projections import PROJECTIONS
from broker.protocol.schema import all_schemas, event_schema

VALIDATORS = {name: Draft202012Validator(schema) for name, schema in all_schemas().items()}

# A check looks one level deep, so that flat values are enough.
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([0.0, -2.0, 1e300])
    | st.text(max_size=3)
)
json_values = (
    scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=3), scalars, max_size=2)
)


@st.composite
def events_and_payloads(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """An event and a payload made of its field names, and of others, with values of any type."""
    event = draw(st.sampled_from(list(EVENTS)))
    names = st.sampled_from([*(field.name for field in EVENTS[event].fields), "extra", "", "ü"])
    return event, draw(st.dictionaries(names, json_values, max_size=4))


@given(events_and_payloads())
def test_a_checker_accepts_exactly_what_its_schema_accepts(case: tuple[str, dict[str, Any]]) -> None:
    """For any JSON object the hand-made checker and the JSON Schema agree."""
    event, payload = case
    try:
        check(EVENTS[event].topic, payload)
        accepted = True
    except SchemaError:
        accepted = False
    assert accepted == VALIDATORS[event].is_valid(payload)


@pytest.mark.parametrize("name", EVENTS)
def test_every_schema_is_valid_and_has_an_identity_of_its_own(name: str) -> None:
    """Each schema is valid draft 2020-12, and its identity is a name, not an address."""
    schema = event_schema(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"prxbus:event:{name}"
    assert schema["additionalProperties"] is True
    assert list(schema["properties"]) == [field.name for field in EVENTS[name].fields]
    assert all(field["description"] for field in schema["properties"].values())


def test_a_schema_names_documented_values_without_enforcing_them() -> None:
    """An enumeration is told as examples: a value that a program invents later still passes."""
    status = event_schema("agent_end")["properties"]["status"]
    assert status["examples"] == ["ok", "error", "max_steps"]
    assert VALIDATORS["agent_end"].is_valid({"status": "paused"})


def test_an_event_is_found_by_its_topic_too() -> None:
    """The full topic names the same schema as the bare event."""
    assert event_schema("prx.lifecycle.tool_call") == event_schema("tool_call")


@pytest.mark.parametrize(
    "name,hint",
    [
        ("tool-call", "did you mean 'tool_call'?"),
        ("tool_cal", "did you mean 'tool_call'?"),
        ("zzz", "there are gateway_startup, session_start"),
    ],
)
def test_an_unknown_event_is_refused_with_a_hint(name: str, hint: str) -> None:
    """The error repeats the name and offers the nearest event, or all of them."""
    with pytest.raises(LookupError, match=re.escape(hint)) as caught:
        event_schema(name)
    assert repr(name) in str(caught.value)


def rows(table: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_the_events_table_names_every_event_and_field() -> None:
    """Each event has one row with all its fields; those of the Codex family's context are written below."""
    table = events_table()
    found = {cells[0].strip("`"): cells for cells in rows(table)}
    assert list(found) == list(EVENTS)
    assert all(len(cells) == 7 for cells in found.values())
    below = table.split("*context*:")[1]
    for name, spec in EVENTS.items():
        cell = found[name][2] + (below if "*context*" in found[name][2] else "")
        assert all(f"`{field.name}`" in cell for field in spec.fields)


def test_the_events_table_gives_the_names_of_all_systems() -> None:
    """A row ends with the event's name in PRX, LibreFang, rolebox and the Codex family."""
    found = {cells[0].strip("`"): cells[3:] for cells in rows(events_table())}
    assert found["turn_complete"] == ["`turn_complete`", "", "`event`, type `session.idle`", "`Stop`"]
    assert found["agent_step"] == ["", "`agent:step`", "", ""]
    assert found["user_prompt"] == ["", "", "`chat.message`", "`UserPromptSubmit`"]
    assert found["interrupt"] == ["", "", "", "`Interrupt` (Codex only)"]


def test_the_dialect_table_has_a_row_per_view() -> None:
    """Every projection is a row, which says where each documented field comes from."""
    found = rows(dialect_table())
    assert len(found) == len(PROJECTIONS)
    assert all(len(cells) == 5 for cells in found)
    for cells, view in zip(found, PROJECTIONS.values(), strict=True):
        assert cells[1] == f"`{view.event}`"
        assert all(f"`{field.name}`" in cells[3] for field in view.fields)


def test_the_dialect_table_can_be_narrowed() -> None:
    """The table of one dialect holds its views only, with every kind of source in words."""
    text = dialect_table(["prx", "bitfun"])
    assert {cells[0] for cells in rows(text)} == {"PRX", "BitFun"}
    assert "| PRX | `turn_complete` | `turn_complete` | (empty object) | never |" in text
    assert "`transcript_path` is `null`" in text
    assert "`tool_name` ← `tool`" in text
    assert '`permission_mode` (else `"default"`)' in text
    assert "`agent_id`, if known" in text
