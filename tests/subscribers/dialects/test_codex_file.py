"""Hook files of the Codex family: what each fault costs here and upstream, and what is said of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_file import has_duplicates, read_document, read_entries
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, OWN_HANDLERS, PROFILES, Profile
from subscribers.dialects.codex_rules import CODES
from subscribers.dialects.codex_spec import CodexDocument

PATH = "/home/me/.codex/hooks.json"
GOOD = {"type": "command", "command": "ok"}


def read(document: object, profile: Profile = CODEX, path: str = PATH, **options: Any) -> CodexDocument:
    """A document, given as a value or as bytes, read."""
    content = document if isinstance(document, bytes) else json.dumps(document, indent=1).encode()
    return read_document(content, path, profile, **options)


def one(handler: object, event: str = "PreToolUse", **options: Any) -> CodexDocument:
    """A document with a good handler and another one."""
    return read({"hooks": {event: [{"hooks": [GOOD, handler]}]}}, **options)


def codes(document: CodexDocument) -> list[str]:
    """What is said of a document, sorted by code."""
    return sorted(diagnostic.code for diagnostic in document.diagnostics)


# ---- the file


@pytest.mark.parametrize("document", [{}, [], {"hooks": {}}, {"description": None}, {"hooks": {"Stop": []}}])
def test_a_file_may_hold_nothing(document: object) -> None:
    """No handlers and nothing to say."""
    found = read(document)
    assert found == CodexDocument(PATH, "codex", (), (), False, 0, (), None, {})


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize(
    "content,code",
    [
        (b"", "not_json"),
        (b" \n", "not_json"),
        (b"\xef\xbb\xbf{}", "not_json"),
        (b'{"hooks": {},}', "not_json"),
        (b'{"hooks": NaN}', "not_json"),
        (b"\xff\xfe{\x00}\x00", "not_json"),
        (b'{"hooks"', "not_json"),
        (b"7", "wrong_root"),
        (b"[1]", "wrong_root"),
        (b'{"hooks": []}', "wrong_hooks"),
    ],
)
def test_what_refuses_a_file_in_every_profile(content: bytes, code: str, profile: Profile) -> None:
    """One remark, no handler, and the agent would refuse it too, which is said."""
    found = read(content, profile)
    assert found.refused
    assert codes(found) == sorted([code, "upstream_refuses"])
    assert found.upstream_refusal
    told = next(each.message for each in found.diagnostics if each.code == "upstream_refuses")
    assert told == f"{profile.agent} would refuse this whole file: {found.upstream_refusal}"
    assert len(found.warnings) == (1 if profile.own_texts else 0)


def test_a_root_key_that_is_unknown_refuses_the_file() -> None:
    """In the profiles that say which there may be, and with Codex's own words."""
    document = {"$schema": "x", "hooks": {"Stop": [{"hooks": [GOOD]}]}}
    found = read(document)
    assert found.refused
    assert codes(found) == ["unknown_root_key", "upstream_refuses"]
    assert "Codex would refuse this whole file: unknown field `$schema`" in found.diagnostics[0].message
    assert found.warnings == (
        f"failed to parse hooks config {PATH}: unknown field `$schema`, expected `description` or `hooks`",
    )
    assert read(document, BITFUN).refused
    assert len(read(document, CLAUDE).handlers) == 1


def test_an_event_at_the_root_says_where_it_belongs() -> None:
    """It is the commonest mistake of all."""
    found = read({"Stop": []}, BITFUN)
    assert codes(found) == ["misplaced_event", "upstream_refuses"]
    assert (found.diagnostics[1].line, found.diagnostics[1].hint) == (2, 'move it into "hooks"')


def test_contents_of_another_system_are_said_once() -> None:
    """And nothing runs; what Codex itself would say is kept apart."""
    found = read({"version": 1, "hooks": {"preToolUse": [{"command": "x"}]}})
    assert found.refused
    assert codes(found) == ["other_system", "upstream_refuses"]
    assert "unknown field `version`" in str(found.upstream_refusal)
    prx = read({"hooks": {"tool_call": [{"command": "x"}]}}, CLAUDE, "/w/.claude/settings.json")
    assert prx.refused
    assert codes(prx) == ["other_system"]
    assert prx.upstream_refusal is None


def test_a_file_that_is_too_large_is_not_looked_at() -> None:
    """One byte more than the page allows."""
    content = b"{}".ljust(1_048_576)
    assert read(content, BITFUN).diagnostics == ()
    assert codes(read(content + b" ", BITFUN)) == ["file_too_large", "upstream_refuses"]


def test_a_bound_of_ours_is_none_of_the_agents() -> None:
    """Nobody says that Codex would refuse a file that only we find too large."""
    found = read(b"{}".ljust(CODEX.max_file_bytes + 1))
    assert (codes(found), found.upstream_refusal) == (["file_too_large"], None)


def test_a_description_is_text_or_nothing() -> None:
    """Anything else is no reason to run nothing, except for Codex."""
    found = read({"description": 7, "hooks": {"Stop": [{"hooks": [GOOD]}]}})
    assert (len(found.handlers), codes(found)) == (1, ["upstream_refuses", "wrong_description"])
    assert "invalid type: integer `7`" in str(found.upstream_refusal)


def test_claude_may_switch_hooks_off_in_the_file() -> None:
    """Then its handlers are known and do not run; other profiles have no such key."""
    document = {"disableAllHooks": True, "hooks": {"Stop": [{"hooks": [GOOD]}]}}
    found = read(document, CLAUDE)
    assert (found.handlers, codes(found), found.inspected) == ((), ["hooks_disabled"], 1)
    assert len(read({**document, "disableAllHooks": False}, CLAUDE).handlers) == 1


# ---- events and groups


def test_handlers_are_numbered_by_event_then_group_then_place() -> None:
    """In the order of the family, not of the file; what is left out still takes up its place."""
    document = {
        "hooks": {
            "Stop": [{"hooks": [GOOD]}],
            "PreToolUse": [
                {"hooks": [{"type": "prompt"}, GOOD]},
                {"matcher": "[", "hooks": [GOOD]},
                {"hooks": [GOOD]},
            ],
        }
    }
    found = read(document, first_order=5)
    assert [(each.id, each.order) for each in found.handlers] == [
        ("PreToolUse#0.1", 5),
        ("PreToolUse#2.0", 6),
        ("Stop#0.0", 7),
    ]
    assert found.inspected == 5


@pytest.mark.parametrize(
    "name,profile,code",
    [
        ("preToolUse", CODEX, "unknown_event"),
        ("Bogus", BITFUN, "unknown_event"),
        ("Interrupt", BITFUN, "other_event"),
        ("Notification", CODEX, "other_event"),
        ("managed_dir", CODEX, "managed_key"),
    ],
)
def test_an_event_that_the_profile_does_not_have_never_runs(name: str, profile: Profile, code: str) -> None:
    """It is said, although Codex is silent."""
    found = read({"hooks": {name: [{"hooks": [GOOD]}, 7, {}], "Stop": [{"hooks": [GOOD]}]}}, profile)
    assert ([each.event for each in found.handlers], codes(found)) == (["Stop"], [code])
    assert found.warnings == ()


def test_the_table_of_records_is_no_event() -> None:
    """Nothing is said of it."""
    assert read({"hooks": {"state": {"x": {}}}}).diagnostics == ()
    assert read({"hooks": {"Bogus": 7}}).diagnostics[0].code == "unknown_event"


@pytest.mark.parametrize(
    "event,code",
    [
        ({}, "wrong_event_value"),
        ("x", "wrong_event_value"),
        ([7], "wrong_group"),
        ([{"hooks": None}], "wrong_group"),
        ([{"matcher": 7, "hooks": [GOOD]}], "invalid_matcher"),
    ],
)
def test_a_wrong_shape_costs_a_piece_here_and_the_file_upstream(event: object, code: str) -> None:
    """The sibling runs unless reading is strict; BitFun drops as little as we do."""
    document = {"hooks": {"PreToolUse": event, "Stop": [{"hooks": [GOOD]}]}}
    for profile in (CODEX, CLAUDE):
        found = read(document, profile)
        assert [each.event for each in found.handlers] == ["Stop"]
        assert codes(found) == sorted([code, "upstream_refuses"])
        strict = read(document, profile, strict=True)
        assert strict.refused
        assert strict.handlers == ()
        assert codes(strict) == sorted([code, "refused"])
    bitfun = read(document, BITFUN, strict=True)
    assert (len(bitfun.handlers), codes(bitfun), bitfun.upstream_refusal) == (1, [code], None)


def test_null_hooks_are_none() -> None:
    """The file has no hooks here, and is refused upstream."""
    found = read({"hooks": None})
    assert (found.refused, codes(found)) == (False, ["upstream_refuses", "wrong_hooks"])
    assert read({"hooks": None}, strict=True).refused


def test_an_invalid_matcher_drops_its_group_with_codex_own_words() -> None:
    """What is wrong in the group's handlers is said and warned of no more, but may void the file."""
    document = {"hooks": {"PreToolUse": [{"matcher": "[", "hooks": [{"type": "prompt"}, GOOD]}]}}
    found = read(document, strict=True)
    assert found.handlers == ()
    assert found.warnings == (f'invalid matcher "[" in {PATH}: missing ]: [',)
    assert not found.refused
    document["hooks"]["PreToolUse"][0]["hooks"] = [{"type": "bogus"}]
    assert read(document, strict=True).refused


def test_a_matcher_that_re2_does_not_take_is_dead() -> None:
    """With the agent's name and what to do."""
    document = {"hooks": {"PreToolUse": [{"matcher": "^(?!Bash)", "hooks": [GOOD]}]}}
    (said,) = read(document, CLAUDE).diagnostics
    assert (said.code, said.severity) == ("dead_matcher", "error")
    assert said.message.startswith('Claude Code takes "^(?!Bash)", RE2 does not: RE2 has no look-around')
    assert codes(read(document, CODEX)) == ["invalid_matcher"]


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "Interrupt"])
def test_events_that_ignore_matchers_say_so(event: str) -> None:
    """Even an invalid one; the handler runs every time."""
    found = read({"hooks": {event: [{"matcher": "[", "hooks": [GOOD]}, {"matcher": "*", "hooks": [GOOD]}]}})
    assert [each.matcher for each in found.handlers] == [None, None]
    assert all(each.matches.is_everything for each in found.handlers)
    assert codes(found) == ["ignored_matcher"]
    assert found.warnings == ()


def test_unknown_keys_of_a_group_are_said() -> None:
    """With where they belong, when that is a handler."""
    found = read({"hooks": {"Stop": [{"timeout": 5, "x": 1, "hooks": [GOOD]}]}})
    hints = {d.field: d.hint for d in found.diagnostics}
    assert hints == {"hooks.Stop[0].timeout": "it belongs into a handler", "hooks.Stop[0].x": None}
    assert codes(found) == ["ignored_group_key"] * 2


def test_handlers_are_bounded_over_all_files() -> None:
    """Wrong ones count; the first that is too many is said, and only that one."""
    groups = [{"hooks": [GOOD, {"type": "bogus"}, GOOD]}, {"hooks": [GOOD]}]
    document = {"hooks": {"PreToolUse": groups, "Stop": groups, "Bogus": groups}}
    found = read(document, BITFUN, inspected_before=BITFUN.max_handlers - 2)
    assert (len(found.handlers), found.inspected) == (1, 2)
    assert codes(found).count("too_many_handlers") == 1
    assert len(read(document, CODEX, inspected_before=OWN_HANDLERS + 1).handlers) == 0


# ---- keys that stand twice


@pytest.mark.parametrize(
    "content,code,voids",
    [
        (b'{"hooks":{},"hooks":{}}', "duplicate_key", True),
        (b'{"hooks":{"Stop":[],"Stop":[]}}', "duplicate_event", True),
        (b'{"hooks":{"Stop":[{"matcher":"a","matcher":"b"}]}}', "duplicate_key", True),
        (
            b'{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a","command":"b"}]}]}}',
            "duplicate_key",
            True,
        ),
        (b'{"hooks":{"Stop":[{"x":1,"x":2}]}}', "duplicate_key", False),
        (b'{"hooks":{"state":{"a":1,"a":2}}}', "duplicate_key", False),
    ],
)
def test_a_key_that_stands_twice(content: bytes, code: str, voids: bool) -> None:
    """The last one counts; Codex refuses the file where it is a field that it looks for."""
    found = read(content)
    assert code in codes(found)
    assert (found.upstream_refusal is not None) is voids
    assert read(content, strict=True).refused is voids
    assert has_duplicates(content)


def test_a_document_of_great_depth_is_searched_for_doubles() -> None:
    """Where the quick look gives up, the slow one tells."""
    deep = b'{"hooks":{"state":' + b"[" * 1_000 + b"]" * 1_000 + b"}}"
    assert read(deep).diagnostics == ()


def test_numbers_of_any_length_are_looked_over() -> None:
    """A number that Python would not convert is none of our business there."""
    assert not has_duplicates(b'{"a":' + b"9" * 5_000 + b"}")


# ---- lines


def test_lines_are_found_on_demand_and_whenever_there_is_something_to_say() -> None:
    """The line where a handler begins."""
    document = {"hooks": {"Stop": [{"hooks": [GOOD]}]}}
    assert read(document).handlers[0].line is None
    assert read(document, lines=True).handlers[0].line == 6
    assert one({"type": "prompt"}).handlers[0].line == 6


def test_entries_are_all_that_stands_in_the_file() -> None:
    """Also what never runs."""
    content = json.dumps({"hooks": {"Stop": [{"hooks": [GOOD, 7]}], "Bogus": [{"hooks": [GOOD]}]}}).encode()
    entries = read_entries(content, PATH, CODEX).entries
    assert [(entry.event, entry.group, entry.index, entry.handler is None) for entry in entries] == [
        ("Stop", 0, 0, False),
        ("Stop", 0, 1, True),
        ("Bogus", 0, 0, True),
    ]


# ---- config.toml

TOML = """
model = "x"   # [[hooks.Stop]]

[[hooks.PreToolUse]]
matcher = "Bash"

[[hooks.PreToolUse.hooks]]
type = "command"
command = "a"
statusMessage = '''
[[hooks.PreToolUse.hooks]]'''

[[ hooks . PreToolUse . hooks ]]
type = "command"
command = "b"

[[hooks.PreToolUse]]
hooks = [{ type = "command", command = "c" }]

[hooks.state."/x:stop:0:0"]
enabled = false
trusted_hash = "sha256:1"

[hooks.state.bad]
enabled = "no"
"""
CONFIG = "/home/me/.codex/config.toml"


def test_a_toml_file_gives_what_json_would() -> None:
    """With the lines of headers, and the records of trust beside the events."""
    found = read(TOML.encode(), path=CONFIG)
    assert [(each.command, each.line, each.group, each.index) for each in found.handlers] == [
        ("a", 7, 0, 0),
        ("b", 13, 0, 1),
        ("c", None, 1, 0),
    ]
    assert found.states is not None
    assert {key: state.enabled for key, state in found.states.items()} == {"/x:stop:0:0": False}
    assert found.diagnostics == ()


def test_a_handler_that_a_person_switched_off_does_not_run() -> None:
    """It keeps its number, and the record is named; one that only says its hash runs."""
    records = f'[hooks.state."{CONFIG}:pre_tool_use:0:0"]\nenabled = false\n'
    records += f'[hooks.state."{CONFIG}:pre_tool_use:0:1"]\ntrusted_hash = "sha256:0"\n'
    found = read((TOML + records).encode(), path=CONFIG)
    assert [(each.command, each.order) for each in found.handlers] == [("b", 1), ("c", 2)]
    assert codes(found) == ["switched_off"]


@pytest.mark.parametrize(
    "text,code,line",
    [
        ("[hooks", "not_toml", None),
        ("a = 1\n[[hooks.Stop]]\nx = \n", "not_toml", 3),
        ("a" + ".a" * 40 + " = 1", "not_toml", None),
        ("hooks = 7", "wrong_hooks", None),
    ],
)
def test_a_toml_file_that_is_refused(text: str, code: str, line: int | None) -> None:
    """With the line, where the parser knows it."""
    found = read(text.encode(), path=CONFIG)
    assert found.refused
    assert {(d.code, d.line) for d in found.diagnostics} == {(code, line), ("upstream_refuses", None)}


@pytest.mark.parametrize("profile", [BITFUN, CLAUDE], ids=lambda profile: profile.name)
def test_codex_alone_reads_toml(profile: Profile) -> None:
    """BitFun's page says so, and Claude Code has no such file."""
    assert codes(read(TOML.encode(), profile, CONFIG)) == ["not_read"]


def test_bytes_that_are_no_text_are_no_toml() -> None:
    """Nothing is raised."""
    assert codes(read(b"\xff", path=CONFIG)) == ["not_toml", "upstream_refuses"]


def test_a_bad_table_is_warned_of_in_codex_own_words() -> None:
    """As for a hooks.json, with another beginning."""
    found = read(b"[hooks]\nStop = 7\n", path=CONFIG)
    assert found.warnings == (
        f"failed to parse TOML hooks in {CONFIG}: invalid type: integer `7`, expected a sequence",
    )
    assert codes(found) == ["upstream_refuses", "wrong_event_value"]


@pytest.mark.parametrize("text", ["", "model = 1", "[hooks]", "[hooks.state]"])
def test_a_toml_file_without_hooks_has_none(text: str) -> None:
    """Nothing to say."""
    found = read(text.encode(), path=CONFIG)
    assert (found.handlers, found.diagnostics, found.refused) == ((), (), False)


# ---- laws

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 700) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
HANDLERS: Any = st.fixed_dictionaries(
    {"type": st.sampled_from(["command", "http", "mcp_tool", "prompt", "agent", "bogus", 7])},
    optional={
        name: st.sampled_from(["x", " ", "http://a"])
        | st.sampled_from([0, 1, True, {}, ["a"], None])
        | VALUES
        for name in (
            "command",
            "command_windows",
            "commandWindows",
            "timeout",
            "async",
            "statusMessage",
            "additionalContextLimit",
            "server",
            "tool",
            "input",
            "if",
            "args",
            "shell",
            "once",
            "onFailure",
            "asyncRewake",
            "url",
            "headers",
            "allowedEnvVars",
            "bogus",
        )
    },
)
GROUPS: Any = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(HANDLERS | VALUES, max_size=3)}, optional={"matcher": st.text(max_size=6) | VALUES}
    )
    | VALUES,
    max_size=3,
)
DOCUMENTS: Any = st.dictionaries(
    st.sampled_from(["PreToolUse", "SessionStart", "SessionEnd", "Stop", "Notification", "state", "x"]),
    GROUPS | VALUES,
    max_size=4,
)


@given(DOCUMENTS, st.sampled_from(list(PROFILES.values())))
def test_any_document_is_read(hooks: object, profile: Profile) -> None:
    """Nothing is raised; strict reading gives the same handlers or none; what is said has a known code."""
    found = read({"hooks": hooks}, profile)
    strictly = read({"hooks": hooks}, profile, strict=True)
    assert strictly.handlers == (() if found.upstream_refusal is not None else found.handlers)
    assert [each.order for each in found.handlers] == list(range(len(found.handlers)))
    assert {d.code for d in (*found.diagnostics, *strictly.diagnostics)} <= CODES.keys()
    assert len({each.key for each in found.handlers}) == len(found.handlers)
    for each in found.handlers:
        assert each.timeout_s > 0
        assert each.matches.error is None
    assert not (found.refused and found.handlers)


@given(st.binary(max_size=80), st.sampled_from([PATH, CONFIG]))
def test_any_bytes_are_read(content: bytes, path: str) -> None:
    """Nothing is raised."""
    for profile in PROFILES.values():
        found = read(content, profile, path)
        assert not (found.refused and found.handlers)
