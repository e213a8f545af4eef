"""A dialect sees an event as its own page documents it, and what is complete already stays as it is."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from broker.protocol.catalogue import EVENTS, check
from broker.protocol.errors import SchemaError
from broker.protocol.projections import (
    DERIVATIONS,
    DIALECT_EVENTS,
    DIALECTS,
    PROJECTIONS,
    Constant,
    Derived,
    canonical_event,
    native_event,
    needs_projection,
    project,
    seen_by,
    view_of,
)

PRX_PAGE = {
    "agent_start": ["agent", "session"],
    "agent_end": ["success", "messages_count"],
    "llm_request": ["provider", "model", "messages_count"],
    "llm_response": ["provider", "model", "duration_ms", "success"],
    "tool_call_start": ["tool", "arguments"],
    "tool_call": ["tool", "success", "output"],
    "turn_complete": [],
    "error": ["component", "message"],
}
LIBREFANG_PAGE = {
    "agent:start": ["agent_id", "session_id", "sender", "message_preview"],
    "agent:end": [
        "agent_id",
        "session_id",
        "status",
        "tokens_used",
        "steps",
        "duration_ms",
        "response_preview",
    ],
    "agent:step": ["agent_id", "session_id", "step_index", "tool_call"],
    "session:start": ["agent_id", "session_id"],
    "session:end": ["agent_id", "session_id"],
    "session:reset": ["agent_id", "session_id", "reset_reason", "message_count_cleared"],
    "gateway:startup": ["version", "started_at"],
    "transform_tool_result": ["agent_id", "tool_name", "tool_input", "tool_output"],
}
LIBREFANG_PROGRAM = {
    "agent:start": ["agent_name"],
    "agent:end": ["agent_name", "latency_ms", "success"],
    "agent:step": ["step"],
}
"""What the program sends and its page does not have."""
CODEX_EVENTS = [
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Interrupt",
]
CODEX_PRE_TOOL_USE = {
    "session_id": "s1",
    "turn_id": "t1",
    "transcript_path": None,
    "cwd": "/w",
    "hook_event_name": "PreToolUse",
    "model": "m",
    "permission_mode": "default",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "u1",
}
CLAUDE_PRE_TOOL_USE = {
    "session_id": "s1",
    "transcript_path": "/t.jsonl",
    "cwd": "/w",
    "permission_mode": "plan",
    "hook_event_name": "PreToolUse",
    "tool_name": "Edit",
    "tool_input": {"file_path": "/w/a.py"},
    "tool_use_id": "u1",
    "new_in_a_later_version": 1,
}

# Checks and views look one level deep, so that flat values are enough; sampled names keep generation cheap.
scalars = st.sampled_from(
    [None, True, False, 0, 1, -3, 2.0, 2.5, "", "ok", "é" * 121, "PostToolUse"]
) | st.text(max_size=3)
json_values = (
    scalars
    | st.lists(scalars, max_size=2)
    | st.dictionaries(st.sampled_from(["a", "is_error", "isError"]), scalars, max_size=2)
)
other_events = st.sampled_from(["notification", "post_tool_use_failure", "message_updated", "x1", "a_b_c"])
extra_names = ["text", "type", "properties", "status", "session", "prompt", "extra", "", "ü"]
payloads = {
    event: st.dictionaries(st.sampled_from([*names, *extra_names]), json_values, max_size=6)
    for event, names in [(None, [])]
    + [(name, [field.name for field in EVENTS[name].fields]) for name in EVENTS]
}
knowledge = st.dictionaries(st.sampled_from(["session", "cwd", "agent"]), st.text(max_size=3), max_size=2)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
    """A dialect, an event, any JSON object in that event's vocabulary, and what the caller knows."""
    dialect = draw(st.sampled_from(DIALECTS))
    event = draw(st.sampled_from(list(EVENTS)) | other_events)
    payload = draw(payloads[event if event in EVENTS else None])
    return dialect, event, payload, draw(knowledge)


# ---- the tables ---------------------------------------------------------------------------------------


def test_prx_sees_exactly_the_fields_of_its_page() -> None:
    """The PRX views are the eight events of the page with its fields in its order."""
    assert list(DIALECT_EVENTS["prx"]) == list(PRX_PAGE)
    assert {event: list(project("prx", event, {})) for event in PRX_PAGE} == PRX_PAGE


def test_librefang_sees_the_fields_of_its_page_and_then_what_its_program_sends() -> None:
    """The LibreFang views are the page's events with its fields in its order, and the program's own names."""
    for event, native in DIALECT_EVENTS["librefang"].items():
        view = project("librefang", event, {})
        assert list(view) == [*LIBREFANG_PAGE[native], *LIBREFANG_PROGRAM.get(native, ())]
        assert set(view.values()) == {None}


def test_codex_has_twelve_events_and_its_siblings_eleven() -> None:
    """BitFun and Claude Code have every event of Codex but Interrupt."""
    assert sorted(DIALECT_EVENTS["codex"].values()) == sorted(CODEX_EVENTS)
    for sibling in ("bitfun", "claude"):
        assert sorted(DIALECT_EVENTS[sibling].values()) == sorted(CODEX_EVENTS[:-1])


@pytest.mark.parametrize("view", PROJECTIONS.values(), ids=lambda view: f"{view.dialect}-{view.event}")
def test_a_view_names_only_fields_that_exist(view: Any) -> None:
    """Each source and each argument of a derivation is a canonical field of the event."""
    canonical = {field.name for field in EVENTS[view.event].fields if field.alias_of is None}
    for field in view.fields:
        if isinstance(field.rule, Derived):
            derivation = DERIVATIONS[field.rule.derivation]
            assert set(derivation.consumes) <= set(derivation.reads)
            if not derivation.whole:
                assert set(derivation.reads) <= canonical
        elif not isinstance(field.rule, Constant):
            assert field.rule.source in canonical


@pytest.mark.parametrize("view", PROJECTIONS.values(), ids=lambda view: f"{view.dialect}-{view.event}")
def test_a_view_and_the_catalogue_agree_on_who_documents_a_field(view: Any) -> None:
    """A field of a view is catalogued as documented by that dialect (rolebox's event wrapper has its own)."""
    catalogued = {field.name: field.documented_by for field in EVENTS[view.event].fields}
    undocumented = LIBREFANG_PROGRAM.get(view.native, ()) if view.dialect == "librefang" else ()
    names = {field.name for field in view.fields if field.name not in ("type", "properties", *undocumented)}
    for name in names:
        assert view.dialect in catalogued[name], name
    if view.dialect in ("prx", "librefang"):
        assert names == {name for name, by in catalogued.items() if view.dialect in by}


def test_every_derivation_is_used() -> None:
    """No derivation is left over."""
    rules = [field.rule for view in PROJECTIONS.values() for field in view.fields]
    other = view_of("rolebox", "anything")
    assert other is not None
    rules += [field.rule for field in other.fields]
    assert {rule.derivation for rule in rules if isinstance(rule, Derived)} == set(DERIVATIONS)


# ---- laws ---------------------------------------------------------------------------------------------


@given(cases())
def test_every_dict_has_a_view_with_every_documented_field(
    case: tuple[str, str, dict[str, Any], dict[str, Any]],
) -> None:
    """Any JSON object projects, its view has each field that is not optional, and it stays unchanged."""
    dialect, event, payload, known = case
    before = copy.deepcopy(payload)
    out = project(dialect, event, payload, known=known)
    view = view_of(dialect, event)
    assert payload == before
    assert out is not payload
    assert view is None or {field.name for field in view.fields if not field.optional} <= set(out)


@given(cases())
def test_a_view_is_its_own_view(case: tuple[str, str, dict[str, Any], dict[str, Any]]) -> None:
    """Projecting twice changes nothing more, and says so."""
    dialect, event, payload, known = case
    out = project(dialect, event, payload, known=known)
    assert not needs_projection(dialect, event, out, known=known)
    assert project(dialect, event, out, known=known) == out


@given(cases())
def test_what_needs_no_projection_passes_as_the_same_object(
    case: tuple[str, str, dict[str, Any], dict[str, Any]],
) -> None:
    """Either the payload itself is the view, or the view differs from it."""
    dialect, event, payload, known = case
    found = seen_by(dialect, event, payload, known=known)
    if needs_projection(dialect, event, payload, known=known):
        assert json.dumps(found, sort_keys=True) != json.dumps(payload, sort_keys=True)
    else:
        assert found is payload


@given(cases())
def test_a_view_of_a_valid_event_is_a_valid_event(
    case: tuple[str, str, dict[str, Any], dict[str, Any]],
) -> None:
    """What a hook is given may be published again: null fields and renamed ones are in the catalogue."""
    dialect, event, payload, known = case
    topic = f"prx.lifecycle.{event}"
    try:
        check(topic, payload)
    except SchemaError:
        return
    check(topic, project(dialect, event, payload, known=known))


# ---- PRX ----------------------------------------------------------------------------------------------


def test_prx_fills_with_null_and_keeps_what_else_there_is() -> None:
    """Missing documented fields are null, in the page's order, and extra fields follow."""
    assert list(project("prx", "tool_call", {"extra": 1, "output": "x", "tool": "Bash"}).items()) == [
        ("tool", "Bash"),
        ("success", None),
        ("output", "x"),
        ("extra", 1),
    ]


def test_prx_sees_turn_complete_as_an_empty_object() -> None:
    """Where the page says "empty object" nothing follows."""
    assert project("prx", "turn_complete", {"last_assistant_message": "done"}) == {}
    assert needs_projection("prx", "turn_complete", {"mode": "agent"})
    assert not needs_projection("prx", "turn_complete", {})


def test_a_complete_prx_payload_passes_untouched() -> None:
    """A payload with every documented field is its own view, whatever else it carries and in any order."""
    payload = {"draft_id": 7, "output": "", "success": True, "tool": "Bash", "session_id": "s1"}
    assert seen_by("prx", "tool_call", payload) is payload
    assert not needs_projection("prx", "tool_call", payload)


def test_prx_sees_what_claude_code_did() -> None:
    """A payload of the Codex family is renamed for PRX, without repeating the renamed fields."""
    out = project("prx", "tool_call_start", CLAUDE_PRE_TOOL_USE)
    assert (out["tool"], out["arguments"]) == ("Edit", {"file_path": "/w/a.py"})
    assert "tool_name" not in out
    assert "tool_input" not in out
    assert out["new_in_a_later_version"] == 1


@pytest.mark.parametrize(
    "arguments,expected",
    [({"a": 1}, {"a": 1}), ("not json", {"value": "not json"}), ([1], {"value": [1]}), (None, None)],
)
def test_prx_arguments_are_an_object(arguments: Any, expected: Any) -> None:
    """Tool input that is no object is wrapped, because the page promises an object."""
    assert project("prx", "tool_call_start", {"tool_input": arguments})["arguments"] == expected


@pytest.mark.parametrize(
    "output,expected",
    [
        ("text", "text"),
        ("", ""),
        (None, None),
        ({"a": [1, True, None], "ü": "é"}, '{"a":[1,true,null],"ü":"é"}'),
        (3, "3"),
        (False, "false"),
    ],
)
def test_prx_output_is_text(output: Any, expected: Any) -> None:
    """Output that is no string becomes compact JSON with its characters as they are."""
    assert project("prx", "tool_call", {"output": output})["output"] == expected
    assert project("librefang", "tool_result", {"output": output})["tool_output"] == expected


def test_output_that_cannot_be_written_says_so() -> None:
    """Output nested beyond what can be written as JSON becomes a note, never an error."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert (
        project("prx", "tool_call", {"output": nested})["output"] == "[list that cannot be written as JSON]"
    )
    while nested:  # taken apart by hand: comparing or freeing it would recurse as well
        nested = nested.pop()


@pytest.mark.parametrize(
    "payload,expected",
    [
        ({"success": False, "tool_response": {"is_error": False}}, False),
        ({"tool_response": {"result": "x", "is_error": True}}, False),
        ({"tool_response": {"content": [], "isError": False}}, True),
        ({"tool_response": {"isError": "?"}, "hook_event_name": "PostToolUse"}, True),
        ({"tool_response": "text", "hook_event_name": "PostToolUse"}, True),
        ({"output": "text"}, None),
    ],
)
def test_prx_success_of_a_tool_call(payload: dict[str, Any], expected: Any) -> None:
    """Success is as given, else from the tool's error flag, else from an event sent after success only."""
    assert project("prx", "tool_call", payload)["success"] is expected


@pytest.mark.parametrize(
    "payload,success,status",
    [
        ({"success": True}, True, "ok"),
        ({"success": False}, False, "error"),
        ({"status": "max_steps"}, False, "max_steps"),
        ({"status": "ok"}, True, "ok"),
        ({"success": True, "status": "error"}, True, "error"),
        ({}, None, None),
    ],
)
def test_success_and_status_of_a_run(payload: dict[str, Any], success: Any, status: Any) -> None:
    """PRX's success and LibreFang's status are derived from each other where only one is given."""
    assert project("prx", "agent_end", payload)["success"] is success
    assert project("librefang", "agent_end", payload)["status"] == status


def test_the_envelope_says_what_the_payload_does_not() -> None:
    """Values that the caller knows fill documented fields; the payload's own value comes first."""
    known = {"session": "from-envelope", "agent": "main"}
    assert project("prx", "agent_start", {}, known=known) == {"agent": "main", "session": "from-envelope"}
    assert project("prx", "agent_start", {"session": None}, known=known)["session"] == "from-envelope"
    assert project("prx", "agent_start", {"session_id": "own", "agent_id": "a"}, known=known) == {
        "agent": "main",
        "session": "own",
        "agent_id": "a",
    }
    assert project("codex", "session_end", {}, known={**known, "cwd": "/w"})["cwd"] == "/w"


def test_an_event_outside_the_page_passes_as_it_is() -> None:
    """A hook file may name any canonical event; without a documented view its payload is unchanged."""
    payload = {"prompt": "hello"}
    assert seen_by("prx", "user_prompt", payload) is payload
    assert seen_by("claude", "notification", payload) is payload


# ---- LibreFang ----------------------------------------------------------------------------------------


def test_librefang_sees_a_prx_run() -> None:
    """A PRX agent's event has LibreFang's names, and the agent's name stands in for its id."""
    out = project("librefang", "agent_start", {"agent": "main", "session": "s1"})
    assert out == {
        "agent_id": "main",
        "session_id": "s1",
        "sender": None,
        "message_preview": None,
        "agent_name": "main",
    }


def test_librefang_sees_both_names_of_what_its_page_and_its_program_call_differently() -> None:
    """Whichever of the two is published, a hook finds both; tokens are added up where no sum is given."""
    page: dict[str, Any] = {"agent_id": "a", "status": "ok", "tokens_used": 7, "duration_ms": 12}
    sent: dict[str, Any] = {"agent_id": "a", "agent_name": "n", "success": True, "latency_ms": 12}
    sent |= {"input_tokens": 3, "output_tokens": 4}
    for payload in (page, sent):
        out = project("librefang", "agent_end", payload)
        both = ("status", "success", "tokens_used", "duration_ms", "latency_ms")
        assert [out[name] for name in both] == ["ok", True, 7, 12, 12]
    for payload in ({"step_index": 3}, {"step": 3}):
        out = project("librefang", "agent_step", payload)
        assert (out["step_index"], out["step"]) == (3, 3)
    start = project("librefang", "agent_start", {"agent_name": "n", "agent_id": "i"})
    assert (start["agent_id"], start["agent_name"]) == ("i", "n")
    assert project("prx", "agent_start", {"agent_name": "n"})["agent"] == "n"


@pytest.mark.parametrize(
    "payload,total",
    [({}, None), ({"input_tokens": 3}, 3), ({"input_tokens": True, "output_tokens": "4"}, None)],
)
def test_tokens_are_only_counted_where_they_are_numbers(payload: dict[str, Any], total: int | None) -> None:
    """A part that is known counts; what is no number is not."""
    assert project("librefang", "agent_end", payload)["tokens_used"] == total


@pytest.mark.parametrize("text", ["", "é" * 120, "\U0001f600" * 121, "x" * 10_000])
def test_previews_are_the_first_120_code_points(text: str) -> None:
    """A preview is cut by code points, whichever field it comes from, and the whole text is not sent."""
    for payload in ({"message_preview": text}, {"prompt": text}):
        out = project("librefang", "agent_start", payload)
        assert out["message_preview"] == text[:120]
        assert "prompt" not in out
    end = project("librefang", "agent_end", {"last_assistant_message": text})
    assert end["response_preview"] == text[:120]


def test_a_preview_of_what_is_no_text_is_its_json() -> None:
    """An unchecked payload does not break the preview."""
    assert project("librefang", "agent_start", {"prompt": [1]})["message_preview"] == "[1]"


# ---- rolebox ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event,payload,expected",
    [
        ("user_prompt", {"prompt": "hi", "session": "s"}, {"text": "hi"}),
        ("tool_call_start", {"tool": "edit", "arguments": {"a": 1}}, {"tool": "edit", "args": {"a": 1}}),
        (
            "tool_call",
            {"tool": "x", "output": [1], "success": True},
            {"tool": "x", "args": None, "output": [1]},
        ),
        ("system_transform", {"system": ["a"], "x": 1}, {"system": ["a"]}),
        ("turn_complete", {"a": 1}, {"type": "session.idle", "properties": {"a": 1}}),
        ("error", {"message": "m"}, {"type": "session.error", "properties": {"message": "m"}}),
        ("llm_request", {"model": "m"}, {"type": "llm_request", "properties": {"model": "m"}}),
        (
            "message_updated",
            {"type": "message.updated", "properties": {"id": 1}},
            {"type": "message.updated", "properties": {"id": 1}},
        ),
        ("mine", {"type": 3}, {"type": "mine", "properties": {"type": 3}}),
    ],
)
def test_rolebox_handlers_get_exactly_their_documented_input(
    event: str, payload: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A handler's input has its documented keys and no others; any other event has type and properties."""
    assert project("rolebox", event, payload) == expected


# ---- the Codex family ---------------------------------------------------------------------------------


def test_codex_sees_a_prx_tool_call_in_its_own_words() -> None:
    """The view has the contract's fields in its order, defaults where it states one, and nothing else."""
    payload = {"tool": "Bash", "success": True, "output": "ok"}
    assert list(project("codex", "tool_call", payload, known={"session": "s1", "cwd": "/w"}).items()) == [
        ("session_id", "s1"),
        ("turn_id", None),
        ("transcript_path", None),
        ("cwd", "/w"),
        ("hook_event_name", "PostToolUse"),
        ("model", None),
        ("permission_mode", "default"),
        ("tool_name", "Bash"),
        ("tool_input", {}),
        ("tool_response", "ok"),
        ("tool_use_id", None),
    ]


@pytest.mark.parametrize(
    "dialect,payload",
    [("codex", CODEX_PRE_TOOL_USE), ("claude", CLAUDE_PRE_TOOL_USE), ("bitfun", CODEX_PRE_TOOL_USE)],
)
def test_a_real_agents_payload_passes_to_its_own_dialect(dialect: str, payload: dict[str, Any]) -> None:
    """A payload that is complete in the dialect's own terms is passed on as it is."""
    assert seen_by(dialect, "tool_call_start", payload) is payload
    assert seen_by(dialect, "tool_call_start", payload, known={"session": "other", "cwd": "/x"}) is payload


def test_a_subagent_is_named_only_where_there_is_one() -> None:
    """Optional fields are absent when unknown and present when known."""
    assert "agent_id" not in project("codex", "tool_call_start", {})
    out = project("codex", "tool_call_start", {"agent_id": "a1", "agent_type": "explorer"})
    assert (out["agent_id"], out["agent_type"]) == ("a1", "explorer")
    assert project("codex", "subagent_start", {})["agent_id"] is None


def test_claude_code_has_no_turn_and_names_the_model_at_session_start_only() -> None:
    """Codex's extensions are not in Claude Code's views."""
    full = {"turn_id": "t", "model": "m"}
    assert not {"turn_id", "model"} & set(project("claude", "turn_complete", full))
    assert project("claude", "session_start", full)["model"] == "m"
    assert "permission_mode" not in project("claude", "session_start", {})


def test_bitfun_leaves_unfilled_what_its_page_says() -> None:
    """The page's table of fields that are not filled yet holds, whatever the payload says."""
    full = {
        "transcript_path": "/t",
        "agent_transcript_path": "/u",
        "stop_hook_active": True,
        "reason": "clear",
        "source": "resume",
    }
    stop = project("bitfun", "subagent_stop", full)
    assert (stop["transcript_path"], stop["agent_transcript_path"], stop["stop_hook_active"]) == (
        None,
        None,
        False,
    )
    assert project("bitfun", "session_end", full)["reason"] == "other"
    assert project("bitfun", "session_start", full)["source"] == "startup"
    assert project("bitfun", "turn_complete", full)["stop_hook_active"] is True
    assert project("codex", "session_end", {})["reason"] == "other"


# ---- names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_documented_names_translate_both_ways(dialect: str) -> None:
    """A documented event has one name in its dialect, and that name means this event."""
    for event, native in DIALECT_EVENTS[dialect].items():
        assert native_event(dialect, event) == native
        assert canonical_event(dialect, native) == event


@given(
    st.sampled_from(["codex", "bitfun", "claude"]),
    st.lists(st.sampled_from(["tool", "x1", "b", "use2"]), min_size=1, max_size=4).map("_".join),
)
def test_events_outside_the_catalogue_translate_both_ways_in_the_codex_family(
    dialect: str, event: str
) -> None:
    """Snake case and Pascal case are each other's inverse."""
    assume(event not in EVENTS)
    assert canonical_event(dialect, native_event(dialect, event)) == event


@pytest.mark.parametrize(
    "dialect,name,expected",
    [
        ("prx", "tool_call", "tool_call"),
        ("prx", " Tool-Call ", "tool_call"),
        ("prx", "user_prompt", None),
        ("prx", "agent_stop", None),
        ("librefang", "agent:start", "agent_start"),
        ("librefang", "Agent:Start", None),
        ("librefang", "agent_start", None),
        ("librefang", "transform_tool_result", "tool_result"),
        ("rolebox", "tool.execute.before", "tool_call_start"),
        ("rolebox", "session.idle", "turn_complete"),
        ("rolebox", "message.part-updated", "message_part_updated"),
        ("rolebox", "event", None),
        ("rolebox", "tool.call", None),
        ("rolebox", "Message", None),
        ("codex", "PreToolUse", "tool_call_start"),
        ("codex", "pretooluse", None),
        ("codex", "Interrupt", "interrupt"),
        ("claude", "Interrupt", None),
        ("claude", "Notification", "notification"),
        ("claude", "PostToolUseFailure", "post_tool_use_failure"),
        ("claude", "ToolCall", None),
        ("claude", "", None),
    ],
)
def test_a_dialects_name_means_one_canonical_event(dialect: str, name: str, expected: str | None) -> None:
    """Only PRX names are normalised; a name that the dialect does not have means nothing."""
    assert canonical_event(dialect, name) == expected


@pytest.mark.parametrize(
    "dialect,event,expected",
    [
        ("prx", "user_prompt", "user_prompt"),
        ("librefang", "user_prompt", "user_prompt"),
        ("claude", "post_tool_use_failure", "PostToolUseFailure"),
        ("claude", "llm_request", "llm_request"),
        ("claude", "Odd", "Odd"),
        ("rolebox", "llm_request", "llm_request"),
    ],
)
def test_an_event_without_a_documented_name_keeps_its_own(dialect: str, event: str, expected: str) -> None:
    """Outside the pages an event is called what the bus calls it, in the Codex family in Pascal case."""
    assert native_event(dialect, event) == expected


def test_an_unknown_dialect_is_refused_by_name() -> None:
    """Every function that takes a dialect says which there are."""
    with pytest.raises(ValueError, match="no dialect 'gemini'; there are prx, librefang"):
        view_of("gemini", "tool_call")
    with pytest.raises(ValueError, match="no dialect"):
        native_event("gemini", "tool_call")
    with pytest.raises(ValueError, match="no dialect"):
        canonical_event("gemini", "tool_call")
