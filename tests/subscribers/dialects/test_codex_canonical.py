"""What an agent sends becomes an event of the bus, and can be had back byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.catalogue import check
from broker.protocol.projections import project
from subscribers.dialects.codex_canonical import (
    AGENT_PAYLOAD,
    LONG_CHARACTERS,
    AgentPayloadError,
    from_agent,
    original,
)

EVENTS = ["PreToolUse", "PostToolUse", "SessionStart", "Stop", "PermissionRequest", "Notification"]
NAMES = ["session_id", "session", "tool_name", "tool", "tool_input", "tool_response", "output", "cwd"]

values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
nested = values | st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=3), values, max_size=2)
keys = st.sampled_from([*NAMES, "agent_payload", "agent_context", "stop_hook_active", "new", "é"])


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Any JSON object with the name of an event, written in any usual way."""
    value = draw(st.dictionaries(keys, nested, max_size=6))
    value["hook_event_name"] = draw(st.sampled_from(EVENTS))
    ascii_only, compact = draw(st.booleans()), draw(st.booleans())
    text = json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":") if compact else None)
    return (text + draw(st.sampled_from(["", "\n"]))).encode()


@given(documents(), st.sampled_from(["claude", "codex", "bitfun"]))
def test_what_an_agent_sent_can_be_had_back(raw: bytes, dialect: str) -> None:
    """After a journey as JSON too; and the event is one that may be published."""
    found = from_agent(dialect, raw)
    check(found.topic, found.payload)
    travelled = json.loads(json.dumps(found.payload))
    assert original(travelled, dialect) == raw
    assert original(travelled, "prx") is None


def test_a_tool_call_has_our_names_and_is_seen_by_other_systems() -> None:
    """A hook of PRX sees what a real agent does."""
    found = from_agent(
        "claude",
        b'{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{},"tool_response":"x"}',
    )
    assert (found.event, found.topic, found.session_id) == ("PostToolUse", "prx.lifecycle.tool_call", "s")
    assert list(found.payload)[:5] == ["session", "hook_event_name", "tool", "arguments", "output"]
    seen = project("prx", "tool_call", found.payload)
    assert (seen["tool"], seen["success"], seen["output"]) == ("Bash", True, "x")


def test_the_text_travels_only_where_it_cannot_be_made_again() -> None:
    """A compact payload is not sent twice."""
    compact = from_agent("codex", b'{"hook_event_name":"Stop","session_id":"s"}')
    assert compact.payload[AGENT_PAYLOAD] == {"dialect": "codex", "event": "turn_complete"}
    spaced = from_agent("codex", b'{"hook_event_name": "Stop"}')
    assert spaced.payload[AGENT_PAYLOAD]["text"] == '{"hook_event_name": "Stop"}'


def test_a_long_text_does_not_travel_for_the_sake_of_its_blanks() -> None:
    """What is had back says the same in its shortest form; a text that says more always travels."""
    tool = {"tool_name": "Bash", "tool_input": {"command": "x" * LONG_CHARACTERS}}
    long = {"hook_event_name": "PreToolUse", **tool}
    payload = from_agent("claude", json.dumps(long).encode()).payload
    assert "text" not in payload[AGENT_PAYLOAD]
    assert original(payload, "claude") == json.dumps(long, separators=(",", ":")).encode()
    odd = json.dumps({**long, "agent_context": "theirs"}).encode()
    assert original(from_agent("claude", odd).payload, "claude") == odd


def test_a_value_that_is_not_allowed_costs_the_field_and_nothing_else() -> None:
    """Arguments that are no object keep the agent's name; a name that is a number is left to the text."""
    raw = b'{"hook_event_name":"PreToolUse","tool_name":5,"tool_input":"ls","session_id":7}'
    found = from_agent("claude", raw)
    assert found.payload["tool_input"] == "ls"
    assert {"tool", "tool_name", "session", "session_id"}.isdisjoint(found.payload)
    assert found.session_id is None
    assert original(found.payload, "claude") == raw


def test_a_name_of_ours_that_the_agent_has_too_is_not_overwritten() -> None:
    """Both values stay, each under the name that it came with."""
    raw = b'{"hook_event_name":"Stop","session":"ours","session_id":"theirs"}'
    found = from_agent("claude", raw)
    assert (found.payload["session"], found.payload["session_id"]) == ("ours", "theirs")
    assert (found.session_id, original(found.payload, "claude")) == ("theirs", raw)


def test_an_event_of_claude_code_alone_has_its_own_topic() -> None:
    """Its name in snake case."""
    assert from_agent("claude", b'{"hook_event_name":"TaskCreated"}').topic == "prx.lifecycle.task_created"


@pytest.mark.parametrize(
    "raw, why",
    [
        (b"", "is not JSON"),
        (b"hello", "is not JSON"),
        (b'{"hook_event_name":"Stop","x":NaN}', "is not JSON"),
        (b'{"hook_event_name":"Stop","x":1' + b"0" * 400 + b"}", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "a payload is a JSON object"),
        (b"5", "a payload is a JSON object"),
        (b"{}", "hook_event_name is 'None', which is no event of claude"),
        (b'{"hook_event_name":"pre-tool-use"}', "which is no event of claude"),
        (b'{"hook_event_name":5}', "which is no event of claude"),
        (b'{"hook_event_name":"Stop","x":' + b"[" * 250 + b"]" * 250 + b"}", "more than 200 levels deep"),
    ],
)
def test_what_is_no_payload_is_refused_with_the_reason(raw: bytes, why: str) -> None:
    """It says what is wrong, and shows no more than the beginning."""
    with pytest.raises(AgentPayloadError) as caught:
        from_agent("claude", raw)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "value, seen",
    [
        (rb'"cut \ud83d"', "cut �"),
        (rb'"\ud83d\ude00 and \ude00"', "😀 and �"),
        (b'"bad \xff byte"', "bad � byte"),
        (b"1" + b"0" * 30, 1e30),
        (rb'["\ud83d", 5, 1' + b"0" * 30 + b"]", ["�", 5, 1e30]),
    ],
)
def test_what_a_strict_parser_refuses_is_read_nevertheless(value: bytes, seen: Any) -> None:
    """Half a character, a bad byte, a number too large: the event counts, and the text is kept."""
    raw = b'{"hook_event_name":"Stop","x":' + value + b"}"
    found = from_agent("claude", raw)
    assert found.payload.get("x") == seen
    if b"\xff" not in raw:
        assert original(found.payload, "claude") == raw


@pytest.mark.parametrize("origin", [None, "claude", {"dialect": "claude"}, {"dialect": "claude", "event": 5}])
def test_a_field_that_only_looks_like_an_origin_is_none(origin: object) -> None:
    """Anybody can publish anything."""
    assert original({"agent_payload": origin, "x": 1}, "claude") is None
