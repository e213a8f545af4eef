"""Edits of a hooks.json: what a person wrote stays, and what the runtime would refuse is refused."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import prx_rules as rules
from subscribers.dialects.prx_edit import (
    EMPTY,
    MAX_LISTED,
    Action,
    At,
    EditRefused,
    FileRefused,
    add_action,
    check_action,
    check_file,
    check_room,
    read_actions,
    remove_action,
    replace_action,
    set_fields,
    spec_of,
)
from subscribers.dialects.prx_file import parse

HAND_WRITTEN = b"""\xef\xbb\xbf{
    "note": 1e3,
    "timeout_ms" : 9000,
    "hooks": {
        "tool-call": [
            {"command": "a", "args": ["x", "y"], "comment": "\\u00e9"},
            {
                "command": "b",
                "timeout_ms": 5,
                "extra": {"k": 1}
            }
        ],
        "nonsense": [{"command": "c"}],
        "error": null,
        "agent_end": "b"
    }
}
"""

fields = st.fixed_dictionaries(
    {"command": st.sampled_from(["true", "/bin/ls", "a/b", " padded "])},
    optional={
        "args": st.lists(st.text(max_size=3).filter(lambda text: "\0" not in text), max_size=3),
        "env": st.dictionaries(st.sampled_from(["A", "B"]), st.text("xyz", max_size=3), max_size=2),
        "cwd": st.sampled_from([".", "sub", "/tmp"]),
        "timeout_ms": st.integers(1, 300_000),
        "stdin_json": st.booleans(),
    },
)
events = st.sampled_from(rules.PAGE_EVENTS)
kept = st.fixed_dictionaries({}, optional={"comment": st.text(max_size=3), "enabled": st.booleans()})
files = st.dictionaries(
    events, st.lists(st.builds(lambda a, k: {**a, **k}, fields, kept), max_size=3), max_size=4
)
indents = st.sampled_from([None, 2, "\t"])


def refused(edit: Any, *arguments: Any) -> list[tuple[str, str]]:
    """The fields and codes of an edit's refusal."""
    with pytest.raises(EditRefused) as caught:
        edit(*arguments)
    assert str(caught.value) == caught.value.faults[0].message
    return [(fault.field, fault.code) for fault in caught.value.faults]


def test_actions_are_read_as_they_stand() -> None:
    """Every object in every list is an action, also one that never runs; nothing is filled in."""
    actions = read_actions(HAND_WRITTEN)
    assert [(action.at, action.event) for action in actions] == [
        (At("tool-call", 0), "tool_call"),
        (At("tool-call", 1), "tool_call"),
        (At("nonsense", 0), "nonsense"),
    ]
    assert actions[0].documented == {"command": "a", "args": ["x", "y"]}
    assert actions[0].enabled
    assert not Action(At("error", 0), "error", {"enabled": False}).enabled
    assert Action(At("error", 0), "error", {"command": "x", "cwd": None}).documented == {"command": "x"}
    assert read_actions(b"{}") == read_actions(EMPTY) == read_actions(b'{"hooks": null}') == []


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b'{"hooks": []}', b"\xff", b" " * (rules.MAX_FILE_BYTES + 1)]
)
def test_a_file_that_the_runtime_refuses_cannot_be_edited(text: bytes) -> None:
    """A broken file is told with the runtime's own diagnostics."""
    with pytest.raises(FileRefused) as caught:
        read_actions(text)
    assert parse(text, rules.FILE_NAME).refused
    assert caught.value.diagnostics == parse(text, rules.FILE_NAME).diagnostics


@pytest.mark.parametrize(
    "events,code,field",
    [
        ({"error": [{"command": "a"}] * (MAX_LISTED + 1)}, "too_many_actions", "hooks"),
        ({"error": [1] * (MAX_LISTED + 1)}, "too_many_actions", "hooks"),
        ({"error" + " " * number: [] for number in range(MAX_LISTED + 1)}, "too_many_events", "hooks"),
        (
            {"error": [{"command": "a"}, {"command": "a", "mine": json.loads("[" * 250 + "]" * 250)}]},
            "too_deep",
            "hooks.error[1]",
        ),
    ],
)
def test_a_file_with_more_than_can_be_edited_is_refused(events: Any, code: str, field: str) -> None:
    """The runtime may read it, yet no edit begins; such a file is not written in place of another either."""
    text = json.dumps({"hooks": events}).encode()
    with pytest.raises(FileRefused) as caught:
        read_actions(text)
    (found,) = caught.value.diagnostics
    assert (found.code, found.field) == (code, field)
    with pytest.raises(EditRefused):
        check_file(text)


def test_what_is_deep_beside_the_actions_does_not_matter() -> None:
    """Nobody writes it again."""
    text = b'{"mine": ' + b"[" * 300 + b"]" * 300 + b', "hooks": {"error": [{"command": "a"}]}}'
    (action,) = read_actions(text)
    check_file(text)
    assert set_fields(text, {action.at: {"enabled": False}}).startswith(b'{"mine": [[[')


@given(st.text(max_size=30) | st.builds(json.dumps, st.dictionaries(st.text(max_size=5), st.integers())))
def test_what_can_be_read_is_what_the_runtime_does_not_refuse(text: str) -> None:
    """Reader and editor agree, whatever the text, on whether a file is broken."""
    try:
        read_actions(text.encode("utf-8", "surrogatepass"))
    except FileRefused:
        is_broken = True
    else:
        is_broken = False
    assert is_broken == parse(text.encode("utf-8", "surrogatepass"), rules.FILE_NAME).refused


def test_setting_fields_changes_nothing_else() -> None:
    """Ids go where they belong; mark, numbers, escapes, spacing and unknown keys keep their bytes."""
    after = set_fields(HAND_WRITTEN, {At("tool-call", 0): {"id": "i1"}, At("tool-call", 1): {"id": "i2"}})
    expected = HAND_WRITTEN.replace(b'"\\u00e9"}', b'"\\u00e9", "id": "i1"}').replace(
        b'"extra": {"k": 1}\n', b'"extra": {"k": 1},\n                "id": "i2"\n'
    )
    assert after == expected
    assert set_fields(HAND_WRITTEN, {}) is HAND_WRITTEN


def test_an_action_is_added_where_its_event_stands() -> None:
    """To the event's list however it is spelled; null is an empty list; else a new event, or new hooks."""
    text = add_action(HAND_WRITTEN, "tool_call", {"command": "n"})
    assert [a.at for a in read_actions(text) if a.event == "tool_call"][-1] == At("tool-call", 2)
    text = add_action(HAND_WRITTEN, "error", {"command": "n"})
    assert orjson.loads(text[3:])["hooks"]["error"] == [{"command": "n"}]
    text = add_action(HAND_WRITTEN, "turn_complete", {"command": "n"})
    assert orjson.loads(text[3:])["hooks"]["turn_complete"] == [{"command": "n"}]
    for empty in (b"{}", EMPTY, b'{"hooks": null}'):
        assert orjson.loads(add_action(empty, "error", {"command": "n"})) == {
            "hooks": {"error": [{"command": "n"}]}
        }
    assert refused(add_action, HAND_WRITTEN, "agent_end", {"command": "n"}) == [
        ("event", "wrong_event_value")
    ]


@given(files, indents, events, fields, st.data())
def test_edits_do_to_the_text_what_they_say(
    hooks: dict[str, Any], indent: Any, event: str, action: dict[str, Any], data: st.DataObject
) -> None:
    """Add, replace, move and remove give what the same change of the value gives; unknown keys stay."""
    text = json.dumps({"hooks": hooks}, indent=indent).encode()
    added = orjson.loads(add_action(text, event, action))["hooks"]
    assert added == {**hooks, event: [*hooks.get(event, []), action]}
    actions = read_actions(text)
    if not actions:
        return
    chosen = data.draw(st.sampled_from(actions))
    rest = [content for index, content in enumerate(hooks[chosen.at.key]) if index != chosen.at.index]
    removed = orjson.loads(remove_action(text, chosen.at))["hooks"]
    assert removed == {**hooks, chosen.at.key: rest}
    replaced = read_actions(replace_action(text, chosen, event, action, {"updated_at": "now"}))
    unknown = {name: value for name, value in chosen.content.items() if name in ("comment", "enabled")}
    expected = {**unknown, **action, "updated_at": "now"}
    moved = [found for found in replaced if found.content.get("updated_at") == "now"]
    assert [(found.event, found.content) for found in moved] == [(event, expected)]
    assert len(replaced) == len(actions)
    if event == chosen.event:
        assert moved[0].at == chosen.at


def test_a_move_keeps_what_a_person_wrote() -> None:
    """Under another event, at its indentation, with every byte that the edit does not mean."""
    text = b"""{
    "hooks": {
        "error": [
            {
                "command": "caf\\u00e9",
                "big": 123456789012345678901234567890,   "weight": 1.50,
                "timeout_ms": 5
            },
            {"command": "b"}
        ],
        "agent_end": [
          {"command": "c"}
        ]
    }
}
"""
    action = read_actions(text)[0]
    moved = replace_action(text, action, "agent_end", {"command": "café"}, {"updated_at": "now"})
    assert (
        moved
        == b"""{
    "hooks": {
        "error": [
            {"command": "b"}
        ],
        "agent_end": [
          {"command": "c"},
          {
              "command": "caf\\u00e9",
              "big": 123456789012345678901234567890,   "weight": 1.50, "updated_at": "now"
          }
        ]
    }
}
"""
    )
    (only,) = read_actions(b'{"hooks":{"error":[{"command":"a", "n":1.50}]}}')
    inline = replace_action(
        b'{"hooks":{"error":[{"command":"a", "n":1.50}]}}', only, "agent_end", {"command": "b"}, {}
    )
    assert inline == b'{"hooks":{"error":[],"agent_end":[{"command":"b", "n":1.50}]}}'


@pytest.mark.parametrize("value", ["true", "1234", "1e10", '"ab"', '{"command": "a"}'])
def test_what_is_no_list_is_not_overwritten(value: str) -> None:
    """Only null counts as nothing, also where something else is as short; a move is refused too."""
    text = f'{{"hooks": {{"error": {value}, "agent_end": [{{"command": "a"}}]}}}}'.encode()
    fault = [("event", "wrong_event_value")]
    assert refused(add_action, text, "error", {"command": "n"}) == fault
    assert refused(replace_action, text, read_actions(text)[0], "error", {"command": "n"}, {}) == fault


def test_replacing_by_the_same_changes_no_byte() -> None:
    """An action that already says all of it keeps its text; 1 and true are not the same."""
    first = read_actions(HAND_WRITTEN)[0]
    assert replace_action(HAND_WRITTEN, first, "tool_call", first.documented, {}) == HAND_WRITTEN
    text = b'{"hooks": {"error": [{"command": "a", "timeout_ms": 1}]}}'
    (action,) = read_actions(text)
    changed = replace_action(text, action, "error", {"command": "a", "timeout_ms": 1.0}, {})
    assert changed == text.replace(b"1}", b"1.0}")


@pytest.mark.parametrize(
    "event,action,faults",
    [
        ("eror", {"command": "a"}, [("event", "unknown_event")]),
        ("*", {"command": "a"}, [("event", "unknown_event")]),
        ("error", {}, [("action", "missing_command")]),
        ("error", {"command": "a;b"}, [("action.command", "metacharacter")]),
        ("error", {"command": "a\0"}, [("action.command", "nul")]),
        ("error", {"command": "a", "timeout_ms": 300_001}, [("action.timeout_ms", "timeout_range")]),
        ("error", {"command": "a", "timeout_ms": "5"}, [("action.timeout_ms", "wrong_type")]),
        ("error", {"command": "a", "args": ["x", 1]}, [("action.args[1]", "wrong_type")]),
        ("error", {"command": "a", "args": ["x"] * 129}, [("action.args", "too_many")]),
        ("error", {"command": "a", "env": {"HOME": "x"}}, [("action.env.HOME", "blocked_env")]),
        ("error", {"command": "a", "env": {"A=B": "x"}}, [('action.env["A=B"]', "bad_env_name")]),
        ("error", {"command": "a", "cwd": "../x"}, [("action.cwd", "cwd_escapes")]),
        ("error", {"command": "a", "timeout": 5}, [("action.timeout", "unknown_key")]),
        ("error", {"command": "a", "xyzzy": 5}, [("action.xyzzy", "unknown_key")]),
        ("error", {"command": "a", "enabled": True}, [("action", "unknown_key")]),
        ("error", {"command": "a", "id": "x"}, [("action", "unknown_key")]),
        ("error", {"command": "a", "args": ["x" * 100_000] * 11}, [("hooks.json", "file_too_large")]),
        (
            "error",
            {"command": "", "env": {"LD_PRELOAD": "x"}, "stdin_json": 1},
            [
                ("action.command", "empty_command"),
                ("action.env.LD_PRELOAD", "blocked_env"),
                ("action.stdin_json", "wrong_type"),
            ],
        ),
    ],
)
def test_every_fault_is_told_with_its_field(
    event: str, action: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    """What the runtime would refuse or leave out is refused, all of it at once, by the field's name."""
    assert refused(check_action, event, action) == faults


@pytest.mark.parametrize(
    "beside,action",
    [
        ({}, {"command": "a"}),
        ({"timeout_ms": 1_500}, {"command": "a"}),
        ({"timeout_ms": 1_500}, {"command": "a", "timeout_ms": 20}),
        ({"timeout_ms": "soon"}, {"command": "a", "mine": 1}),
        ({"timeout_ms": -1}, {"command": "a", "env": {"PATH": "x", "A": "1"}}),
    ],
)
def test_a_hook_of_a_file_is_what_the_runtime_makes_of_it(
    beside: dict[str, Any], action: dict[str, Any]
) -> None:
    """With the file's own timeout and without what is only remarked upon; also where it is disabled."""
    text = json.dumps({**beside, "hooks": {"error": [action]}}).encode()
    (expected,) = parse(text, rules.FILE_NAME).specs
    for enabled in ({}, {"enabled": True}, {"enabled": False}, {"enabled": None}):
        text = json.dumps({**beside, "hooks": {"error": [{**action, **enabled}]}}).encode()
        (found,) = read_actions(text)
        assert spec_of(text, found) == expected


@pytest.mark.parametrize(
    "event,action,fault",
    [
        ("error", {"command": "a|b"}, ("action.command", "metacharacter")),
        ("error", {"command": "a", "enabled": "yes"}, ("action.enabled", "wrong_type")),
        ("eror", {"command": "a"}, ("event", "unknown_event")),
    ],
)
def test_a_hook_that_does_not_run_is_refused(
    event: str, action: dict[str, Any], fault: tuple[str, str]
) -> None:
    """With the runtime's reasons."""
    text = json.dumps({"hooks": {event: [action]}}).encode()
    assert refused(spec_of, text, read_actions(text)[0]) == [fault]


def test_a_good_action_is_what_the_runtime_makes_of_it() -> None:
    """The spec is the runtime's own; spelling of the event and odd but legal values pass."""
    spec = check_action(" Tool-Call ", {"command": "true", "timeout_ms": 5, "cwd": ""})
    assert (spec.event, spec.command, spec.timeout_s) == ("tool_call", "true", 0.005)
    assert check_action("user_prompt", {"command": "true"}).event == "user_prompt"


@given(events, fields)
def test_what_is_accepted_runs(event: str, action: dict[str, Any]) -> None:
    """An action that passes the check is one that the runtime takes from the edited file."""
    check_action(event, action)
    parsed = parse(add_action(EMPTY, event, action), rules.FILE_NAME)
    assert [spec.event for spec in parsed.specs] == [event]


def test_a_whole_file_is_judged_with_places() -> None:
    """Errors of a file are told with line and column; warnings pass."""
    check_file(b'{"hooks": {"error": [{"command": "a", "comment": 1, "enabled": false}]}}')
    with pytest.raises(EditRefused, match="line 1, column 22: the action has no command"):
        check_file(b'{"hooks": {"error": [{}]}}')
    assert refused(check_file, b"{") == [("hooks.json", "not_json")]
    assert refused(check_file, b" " * (rules.MAX_FILE_BYTES + 1)) == [("hooks.json", "file_too_large")]


def test_a_file_does_not_outgrow_the_runtime() -> None:
    """The 257th action and the byte above 1 MiB are refused; lists under no known event do not count."""
    action = {"command": "a"}
    full = json.dumps({"hooks": {"error": [action] * rules.MAX_ACTIONS}}).encode()
    check_room(full)
    assert refused(check_room, add_action(full, "error", action)) == [("action", "too_many_actions")]
    check_room(add_action(full, "nonsense", action))
    large = json.dumps({"hooks": {}, "note": "x" * rules.MAX_FILE_BYTES}).encode()
    assert refused(check_room, large) == [("action", "file_too_large")]
