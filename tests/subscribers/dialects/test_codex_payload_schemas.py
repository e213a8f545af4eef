"""Payloads and answers of the Codex family against their schemas.

The schemas are not ours to ship: they are read from the folder that $PRXBUS_SCHEMAS names. What they say is
stated here once more, so that every payload is held to the same table without them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from broker.protocol.catalogue import EVENTS as CATALOGUE
from broker.protocol.catalogue import check
from broker.protocol.errors import SchemaError
from broker.protocol.topics import LIFECYCLE
from subscribers.dialects.codex_canonical import from_agent
from subscribers.dialects.codex_events import EVENTS, snake_case
from subscribers.dialects.codex_output_rules import CODEX_OUTPUTS, OutputRule
from subscribers.dialects.codex_payload import FIELD_TYPES, payload_for
from subscribers.dialects.codex_profiles import PROFILES

_WHERE: Final = "transcript_path~ cwd hook_event_name"
_TURN: Final = f"session_id turn_id agent_id? agent_type? {_WHERE} model permission_mode"

CONTRACT: Final = {
    "PreToolUse": f"{_TURN} tool_name tool_input tool_use_id",
    "PermissionRequest": f"{_TURN} tool_name tool_input",
    "PostToolUse": f"{_TURN} tool_name tool_input tool_response tool_use_id",
    "PreCompact": f"session_id turn_id agent_id? agent_type? {_WHERE} model trigger",
    "PostCompact": f"session_id turn_id agent_id? agent_type? {_WHERE} model trigger",
    "SessionStart": f"session_id {_WHERE} model permission_mode source",
    "SessionEnd": f"session_id {_WHERE} reason",
    "UserPromptSubmit": f"{_TURN} prompt",
    "SubagentStart": f"session_id turn_id {_WHERE} model permission_mode agent_id agent_type",
    "SubagentStop": (
        "session_id turn_id transcript_path~ agent_transcript_path~ cwd hook_event_name model "
        "permission_mode stop_hook_active agent_id agent_type last_assistant_message~"
    ),
    "Stop": (f"session_id turn_id {_WHERE} model permission_mode stop_hook_active last_assistant_message~"),
    "Interrupt": f"session_id turn_id {_WHERE} model permission_mode",
}
"""Section 3 of the contract: fields in order; ``?`` may be absent, ``~`` may be null."""

VALUES: Final = {
    "permission_mode": {"default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"},
    "source": {"startup", "resume", "clear", "compact"},
    "trigger": {"manual", "auto"},
    "reason": {"other"},
}
ANYTHING: Final = {"tool_input", "tool_response"}
PROFILE_EVENTS: Final = [
    (profile, event)
    for profile in ("codex", "bitfun")
    for event in CONTRACT
    if profile in EVENTS[event].profiles
]


def faults(event: str, payload: Mapping[str, Any]) -> list[str]:
    """What is wrong with a payload by the table: order, presence, types, values."""
    words = CONTRACT[event].split()
    names = [word.rstrip("?~") for word in words]
    needed = {word.rstrip("~") for word in words if not word.endswith("?")}
    nullable = {word[:-1] for word in words if word.endswith("~")}
    found = [f"{name} is missing" for name in sorted(needed - payload.keys())]
    if list(payload) != [name for name in names if name in payload]:
        found.append(f"order or names: {list(payload)}")
    for name, value in payload.items():
        if name in ANYTHING or (value is None and name in nullable):
            continue
        fits = type(value) is (bool if name == "stop_hook_active" else str)
        if not fits or value not in VALUES.get(name, {value}):
            found.append(f"{name} is {value!r}")
    return found + ([] if payload.get("hook_event_name") == event else ["hook_event_name"])


def built(profile: str, event: str, canonical: Mapping[str, Any], **known: Any) -> dict[str, Any]:
    """The payload of an event for a handler of this profile, decoded."""
    text = payload_for(event, PROFILES[profile], canonical, **known)
    value: dict[str, Any] = json.loads(text)
    assert text == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return value


scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "plan", "fork", "é"])
anything = scalars | st.dictionaries(st.sampled_from(["command", "a"]), scalars, max_size=2)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    """A profile, an event of it, and what the catalogue lets a publisher say of it."""
    profile, event = draw(st.sampled_from(PROFILE_EVENTS))
    name = EVENTS[event].canonical
    names = [field.name for field in CATALOGUE[name].fields]
    payload: dict[str, Any] = {}
    for key, value in draw(st.dictionaries(st.sampled_from([*names, "extra"]), anything, max_size=8)).items():
        try:
            check(LIFECYCLE + name, {key: value})
        except SchemaError:
            continue
        payload[key] = value
    return profile, event, payload


def rich(event: str) -> dict[str, Any]:
    """Everything that may be known of an event."""
    return {
        "session": "s",
        "turn_id": "t",
        "cwd": "/w",
        "model": "m",
        "permission_mode": "plan",
        "transcript_path": "/t.jsonl",
        "agent_id": "a",
        "agent_type": "explorer",
        "tool": "Bash",
        "arguments": {"command": "ls"},
        "output": {"content": []},
        "tool_use_id": "u",
        "prompt": "hello",
        "trigger": "manual",
        "source": "resume",
        "reason": "other",
        "stop_hook_active": True,
        "last_assistant_message": "done",
        "agent_transcript_path": "/a.jsonl",
    }


# ---- without the schemas ---------------------------------------------------------------------------------


@given(cases())
def test_every_payload_is_what_the_contract_lists(case: tuple[str, str, dict[str, Any]]) -> None:
    """Whatever is known of an event, its payload has the fields of the table, in order, with their types."""
    profile, event, payload = case
    assert faults(event, built(profile, event, payload, session_id="s")) == []


@pytest.mark.parametrize("profile, event", PROFILE_EVENTS)
def test_what_is_known_arrives(profile: str, event: str) -> None:
    """A field of the table has the value that was published, but for what BitFun never fills."""
    found = built(profile, event, rich(event))
    given_names = {"session_id": "session", "tool_name": "tool", "tool_input": "arguments"}
    given_names["tool_response"] = "output"
    unfilled: dict[str, Any] = {
        "bitfun": {
            "transcript_path": None,
            "agent_transcript_path": None,
            "source": "startup",
            "reason": "other",
        }
    }.get(profile, {})
    if (profile, event) == ("bitfun", "SubagentStop"):
        unfilled["stop_hook_active"] = False
    for name, value in found.items():
        if name != "hook_event_name":
            assert value == unfilled.get(name, rich(event)[given_names.get(name, name)])


@pytest.mark.parametrize("event", [event for event in CONTRACT if event != "Interrupt"])
def test_what_claude_code_sends_is_a_payload_for_scripts_of_codex(event: str) -> None:
    """With the tool's own names and arguments, and without the fields that Codex does not have."""
    sent = {
        "session_id": "s",
        "transcript_path": "/t.jsonl",
        "cwd": "/w",
        "prompt_id": "p",
        "permission_mode": "auto",
        "effort": {"level": "high"},
        "hook_event_name": event,
        "tool_name": "Edit",
        "tool_input": {"file_path": "/w/a.py"},
        "tool_response": {"filePath": "/w/a.py"},
        "tool_use_id": "u",
        "source": "fork",
        "reason": "logout",
        "trigger": "manual",
        "prompt": "hello",
        "agent_id": "a",
        "agent_type": "Explore",
        "stop_hook_active": True,
    }
    payload = from_agent("claude", json.dumps(sent).encode()).payload
    found = built("codex", event, payload)
    assert faults(event, found) == []
    for name in ("tool_input", "tool_response", "tool_use_id", "trigger", "prompt", "stop_hook_active"):
        assert found.get(name, sent[name]) == sent[name]


def test_every_field_of_the_contract_has_a_type() -> None:
    """The table of types names every field, and none twice meaning."""
    named = {word.rstrip("?~") for row in CONTRACT.values() for word in row.split()}
    assert named == set(FIELD_TYPES)
    nullable = {word[:-1] for row in CONTRACT.values() for word in row.split() if word.endswith("~")}
    assert nullable == {name for name, kind in FIELD_TYPES.items() if kind == "text or null"}
    assert {name for name, kind in FIELD_TYPES.items() if kind == "any"} == ANYTHING
    assert {name for name, kind in FIELD_TYPES.items() if kind == "flag"} == {"stop_hook_active"}


# ---- with the schemas ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    """Every schema by ``<event in kebab case>.command.<input|output>``."""
    named = os.environ.get("PRXBUS_SCHEMAS")
    if not named:
        pytest.skip("PRXBUS_SCHEMAS names no folder of schemas")
    if not Path(named).is_dir():
        pytest.fail(f"PRXBUS_SCHEMAS={named} is not a directory", pytrace=False)
    return {
        path.name.removesuffix(".schema.json"): json.loads(path.read_text())
        for path in sorted(Path(named).glob("*.schema.json"))
    }


def schema_name(event: str, side: str) -> str:
    """The name of an event's schema."""
    return f"{snake_case(event).replace('_', '-')}.command.{side}"


def test_every_schema_is_one_of_an_event(schemas: dict[str, Any]) -> None:
    """There is an input schema for every event and an output schema for all but the end of a session."""
    inputs = {schema_name(event, "input") for event in CONTRACT}
    outputs = {schema_name(event, "output") for event in CONTRACT if event != "SessionEnd"}
    assert set(schemas) == inputs | outputs
    for schema in schemas.values():
        Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("event", CONTRACT)
def test_the_table_of_fields_is_the_schemas(schemas: dict[str, Any], event: str) -> None:
    """Names, which may be absent, which may be null, and the values of enumerations."""
    schema = schemas[schema_name(event, "input")]
    words = CONTRACT[event].split()
    assert set(schema["properties"]) == {word.rstrip("?~") for word in words}
    assert set(schema["required"]) == {word.rstrip("~") for word in words if not word.endswith("?")}
    assert schema["additionalProperties"] is False
    for word in words:
        name = word.rstrip("?~")
        about = schema["properties"][name]
        kind = "any" if about is True else about.get("type", "nullable")
        expected = {"stop_hook_active": "boolean", **dict.fromkeys(ANYTHING, "any")}
        assert kind == expected.get(name, "nullable" if word.endswith("~") else "string")
        if name in VALUES:
            assert set(about.get("enum", [about.get("const")])) == VALUES[name]


@given(case=cases())
def test_every_payload_validates(schemas: dict[str, Any], case: tuple[str, str, dict[str, Any]]) -> None:
    """Whatever is known of an event, its payload is what the schema wants."""
    profile, event, payload = case
    validator = Draft7Validator(schemas[schema_name(event, "input")])
    for value in (payload, rich(event)):
        validator.validate(built(profile, event, value, session_id="s"))


def answer_keys(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any]]:
    """Keys of the document, of ``hookSpecificOutput`` and of its ``decision``, with their schemas."""
    parts: dict[str, Any] = schema.get("definitions", {})
    top = dict(schema["properties"])
    specific = top.pop("hookSpecificOutput", None)
    found = next((part for name, part in parts.items() if "HookSpecificOutput" in name), None)
    request: dict[str, Any] = parts.get("PermissionRequestDecisionWire", {}).get("properties", {})
    return top, None if specific is None or found is None else found["properties"], request


def kind_of(about: Mapping[str, Any], parts: Mapping[str, Any]) -> Any:
    """What a key may hold, in the words of our own table."""
    if "allOf" in about or "$ref" in about:
        name = (about.get("$ref") or about["allOf"][0]["$ref"]).rpartition("/")[2]
        return tuple(parts[name]["enum"]) if "enum" in parts[name] else "object"
    return {"string": "text", "boolean": "flag"}.get(about.get("type", ""), "any")


@pytest.mark.parametrize("event", [event for event in CONTRACT if event != "SessionEnd"])
def test_the_table_of_answers_is_the_schemas(schemas: dict[str, Any], event: str) -> None:
    """The keys that handlers may write, with their types, are those of the output schema."""
    schema = schemas[schema_name(event, "output")]
    parts = schema.get("definitions", {})
    top, specific, request = answer_keys(schema)
    rule: OutputRule = CODEX_OUTPUTS[event]
    assert {name: kind_of(about, parts) for name, about in top.items()} == dict(rule.keys)
    assert schema["additionalProperties"] is False
    if specific is None:
        assert rule.specific is None
        return
    named = {name: kind_of(about, parts) for name, about in specific.items() if name != "hookEventName"}
    assert rule.specific is not None
    assert named == dict(rule.specific)
    assert {name: kind_of(about, parts) for name, about in request.items()} == dict(rule.request or {})


def test_six_output_schemas_name_their_event(schemas: dict[str, Any]) -> None:
    """Where a schema has a ``hookEventName`` it is its own event's name."""
    found = set()
    for event in CONTRACT:
        text = json.dumps(schemas.get(schema_name(event, "output"), {}))
        names = re.findall(r'"hookEventName": \{"const": "(\w+)"', text)
        assert names in ([], [event])
        found.update(names)
    assert found == {
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "SessionStart",
        "UserPromptSubmit",
        "SubagentStart",
    }
