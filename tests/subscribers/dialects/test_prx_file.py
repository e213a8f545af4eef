"""A hooks.json as a whole: what runs, what does not and why, and that nothing removes its siblings.

The table of bad input holds every case of which the PRX page or PRX's own program has an opinion.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.catalogue import EVENTS
from subscribers.dialects import prx_rules as rules
from subscribers.dialects.base import ParsedFile
from subscribers.dialects.prx_file import event_name, parse

SIBLING = '"error": [{"command": "/bin/sibling"}]'


def read(text: str | bytes) -> ParsedFile:
    """Parse with the catalogue's events, as the software does."""
    return parse(text.encode() if isinstance(text, str) else text, "hooks.json")


def ids(parsed: ParsedFile) -> list[str]:
    """What runs, by id."""
    return [spec.id for spec in parsed.specs]


def codes(parsed: ParsedFile) -> list[str]:
    """What was said, by code, in the order of the text."""
    return [diagnostic.code for diagnostic in parsed.diagnostics]


def test_a_file_of_the_page_s_shape_is_read() -> None:
    """Several events with several actions become specs in file order, each with its line."""
    parsed = read(
        """{
  "hooks": {
    "agent_start": [
      {"command": "/usr/local/bin/notify", "args": ["--channel", "ops"], "timeout_ms": 3000}
    ],
    "tool_call": [
      {"command": "/opt/hooks/audit.sh", "env": {"LOG_DIR": "/var/log/audit"}},
      {
        "command": "python3",
        "args": ["/opt/hooks/latency.py"],
        "stdin_json": true
      }
    ]
  }
}"""
    )
    assert not parsed.refused
    assert parsed.diagnostics == ()
    assert [(s.id, s.line, s.command, s.timeout_s, s.stdin) for s in parsed.specs] == [
        ("agent_start#0", 4, "/usr/local/bin/notify", 3.0, False),
        ("tool_call#0", 7, "/opt/hooks/audit.sh", 30.0, False),
        ("tool_call#1", 8, "python3", 30.0, True),
    ]
    assert {(s.dialect, s.path, s.grace_s) for s in parsed.specs} == {("prx", "hooks.json", 5.0)}


@pytest.mark.parametrize(
    "text,line,column,code",
    [
        (b"", 1, 1, "not_json"),
        (b" \n ", 1, 1, "not_json"),
        (b'{"hooks": {"error": [\n  {"command": "x"},', 2, 20, "not_json"),
        (b'{"hooks": {}} trailing', 1, 15, "not_json"),
        (b'{"hooks": {"error": [{"command": "\xff"}]}}', 1, 35, "not_json"),
        (b'{"hooks": {"error": [{"command": "a\0b"}]}}', 1, 36, "not_json"),
        (b"[" * 5_000, 1, 1_026, "not_json"),
        (b"[]", 1, 1, "wrong_root"),
        (b"\n null", 2, 2, "wrong_root"),
        (b'"hooks"', 1, 1, "wrong_root"),
        (b'{\n "hooks": []}', 2, 11, "wrong_hooks"),
        (b'{"hooks": "error"}', 1, 11, "wrong_hooks"),
    ],
)
def test_a_file_of_which_nothing_can_be_used_is_refused(
    text: bytes, line: int, column: int, code: str
) -> None:
    """No JSON, a root or a hooks member of another type: refused, with line and column, without hooks."""
    parsed = read(text)
    assert parsed.refused
    assert parsed.specs == ()
    assert [(d.severity, d.code, d.line, d.column) for d in parsed.diagnostics] == [
        ("error", code, line, column)
    ]


def test_a_file_may_have_one_mebibyte() -> None:
    """1,048,576 bytes are read, one more refuses the file unread."""
    text = b'{"hooks": {"error": [{"command": "x"}]}}'
    assert ids(read(text.ljust(rules.MAX_FILE_BYTES))) == ["error#0"]
    parsed = read(text.ljust(rules.MAX_FILE_BYTES + 1))
    assert (parsed.refused, parsed.specs, codes(parsed)) == (True, (), ["file_too_large"])


# What the file holds beside the sibling -> what runs of it, what is said.
BESIDE_A_SIBLING: dict[str, tuple[str, list[str], list[str]]] = {
    "unknown key of the file": ('"tiemout_ms": 5', [], ["unknown_key"]),
    "removed global switch": ('"enabled": false', [], ["unknown_key"]),
    "schema of the file": ('"$schema": "https://example.org/hooks.json"', [], []),
    "event outside of hooks": ('"tool-call": [{"command": "x"}]', [], ["misplaced_event"]),
    "file timeout null": ('"timeout_ms": null', [], []),
    "file timeout of a wrong type": ('"timeout_ms": "5s"', [], ["wrong_file_timeout"]),
    "file timeout out of range": ('"timeout_ms": 300001', [], ["wrong_file_timeout"]),
    "file timeout in seconds": ('"timeout_ms": 30', [], ["small_timeout"]),
}

# What hooks holds beside the sibling -> what runs of it, what is said.
IN_HOOKS: dict[str, tuple[str, list[str], list[str]]] = {
    "unknown key of an action": (
        '"tool_call": [{"command": "x", "comand": 1}]',
        ["tool_call#0"],
        ["unknown_key"],
    ),
    "unknown event": ('"tool_cal": [{"command": "x"}]', [], ["unknown_event"]),
    "unknown event without actions": ('"tool_cal": []', [], ["unknown_event"]),
    "pattern as event": ('"*": [{"command": "x"}]', [], ["unknown_event"]),
    "topic as event": ('"prx.lifecycle.tool_call": [{"command": "x"}]', [], ["unknown_event"]),
    "event of another system": ('"PreToolUse": [{"command": "x"}]', [], ["unknown_event"]),
    "empty event name": ('"": [{"command": "x"}]', [], ["unknown_event"]),
    "NUL in an event name": ('"tool_call\\u0000": [{"command": "x"}]', [], ["unknown_event"]),
    "spelling with blanks, capitals and dashes": ('" Tool-Call ": [{"command": "x"}]', ["tool_call#0"], []),
    "canonical event beyond the page": (
        '"session_start": [{"command": "x"}]',
        ["session_start#0"],
        ["extension_event"],
    ),
    "two spellings of one event": (
        '"tool-call": [{"command": "x"}, {"command": "y"}], "tool_call": [{"command": "z"}]',
        ["tool_call#0", "tool_call#1", "tool_call#2"],
        ["two_spellings"],
    ),
    "same event twice": (
        '"tool_call": [{"command": "x"}], "tool_call": [{"command": "y"}]',
        ["tool_call#0"],
        ["duplicate_event"],
    ),
    "same key twice in an action": (
        '"tool_call": [{"command": "x", "command": "y"}]',
        ["tool_call#0"],
        ["duplicate_key"],
    ),
    "same key twice in an env": (
        '"tool_call": [{"command": "x", "env": {"A": "1", "A": "2"}}]',
        ["tool_call#0"],
        ["duplicate_key"],
    ),
    "same action twice": (
        '"tool_call": [{"command": "x"}, {"command": "x"}]',
        ["tool_call#0", "tool_call#1"],
        [],
    ),
    "no actions": ('"tool_call": []', [], []),
    "null for actions": ('"tool_call": null', [], []),
    "one action without brackets": ('"tool_call": {"command": "x"}', [], ["wrong_event_value"]),
    "a command for actions": ('"tool_call": "x"', [], ["wrong_event_value"]),
    "an action that is none": ('"tool_call": ["x", {"command": "y"}]', ["tool_call#1"], ["wrong_type"]),
    "missing command": ('"tool_call": [{}, {"command": "y"}]', ["tool_call#1"], ["missing_command"]),
    "empty command": ('"tool_call": [{"command": ""}]', [], ["empty_command"]),
    "blank command": ('"tool_call": [{"command": "  "}]', [], ["empty_command"]),
    "command of a wrong type": ('"tool_call": [{"command": ["x"]}]', [], ["wrong_type"]),
    "command with blanks around": ('"tool_call": [{"command": " x "}]', ["tool_call#0"], []),
    "metacharacter in a command": ('"tool_call": [{"command": "x && y"}]', [], ["metacharacter"]),
    "substitution in a command": ('"tool_call": [{"command": "$(x)"}]', [], ["metacharacter"]),
    "metacharacter in an argument": (
        '"tool_call": [{"command": "x", "args": ["$(y) | z"]}]',
        ["tool_call#0"],
        [],
    ),
    "NUL in a command": ('"tool_call": [{"command": "x\\u0000y"}]', [], ["nul"]),
    "NUL in an argument": ('"tool_call": [{"command": "x", "args": ["\\u0000"]}]', [], ["nul"]),
    "NUL in an env key": ('"tool_call": [{"command": "x", "env": {"A\\u0000": "1"}}]', [], ["nul"]),
    "NUL in an env value": ('"tool_call": [{"command": "x", "env": {"A": "\\u0000"}}]', [], ["nul"]),
    "NUL in a cwd": ('"tool_call": [{"command": "x", "cwd": "a\\u0000"}]', [], ["nul"]),
    "null for args": ('"tool_call": [{"command": "x", "args": null}]', ["tool_call#0"], []),
    "null for stdin_json": ('"tool_call": [{"command": "x", "stdin_json": null}]', ["tool_call#0"], []),
    "null for cwd and timeout": (
        '"tool_call": [{"command": "x", "cwd": null, "timeout_ms": null}]',
        ["tool_call#0"],
        [],
    ),
    "non-string env value": ('"tool_call": [{"command": "x", "env": {"PORT": 80}}]', [], ["wrong_type"]),
    "env key with an equals sign": (
        '"tool_call": [{"command": "x", "env": {"A=B": "1"}}]',
        [],
        ["bad_env_name"],
    ),
    "empty env key": ('"tool_call": [{"command": "x", "env": {"": "1"}}]', [], ["bad_env_name"]),
    "blocked env key": (
        '"tool_call": [{"command": "x", "env": {"Home": "/"}}]',
        ["tool_call#0"],
        ["blocked_env"],
    ),
    "loader variable": (
        '"tool_call": [{"command": "x", "env": {"NODE_OPTIONS": "-r y"}}]',
        ["tool_call#0"],
        ["blocked_env"],
    ),
    "variable of ours": (
        '"tool_call": [{"command": "x", "env": {"ZERO_HOOK_PAYLOAD": "{}"}}]',
        ["tool_call#0"],
        ["blocked_env"],
    ),
    "negative timeout": ('"tool_call": [{"command": "x", "timeout_ms": -5}]', [], ["timeout_range"]),
    "zero timeout": ('"tool_call": [{"command": "x", "timeout_ms": 0}]', [], ["timeout_range"]),
    "timeout beyond five minutes": (
        '"tool_call": [{"command": "x", "timeout_ms": 300001}]',
        [],
        ["timeout_range"],
    ),
    "fractional timeout": ('"tool_call": [{"command": "x", "timeout_ms": 2.5}]', [], ["wrong_type"]),
    "string timeout": ('"tool_call": [{"command": "x", "timeout_ms": "5000"}]', [], ["wrong_type"]),
    "timeout in seconds": (
        '"tool_call": [{"command": "x", "timeout_ms": 5}]',
        ["tool_call#0"],
        ["small_timeout"],
    ),
    "absolute cwd": ('"tool_call": [{"command": "x", "cwd": "/working/directory"}]', ["tool_call#0"], []),
    "absolute cwd with ..": ('"tool_call": [{"command": "x", "cwd": "/a/../b"}]', [], ["cwd_escapes"]),
    "relative cwd": ('"tool_call": [{"command": "x", "cwd": "a/../b"}]', ["tool_call#0"], []),
    "relative cwd that leaves": ('"tool_call": [{"command": "x", "cwd": "../b"}]', [], ["cwd_escapes"]),
    "empty cwd": ('"tool_call": [{"command": "x", "cwd": ""}]', ["tool_call#0"], ["empty_cwd"]),
    "disabled action": ('"tool_call": [{"command": "x", "enabled": false}]', [], ["disabled"]),
}


@pytest.mark.parametrize("case", [*BESIDE_A_SIBLING, *IN_HOOKS])
@pytest.mark.parametrize("sibling_first", [True, False])
def test_bad_input_is_said_and_never_removes_a_sibling(case: str, sibling_first: bool) -> None:
    """Each case gives exactly its hooks and its codes, and a sound action before or after it runs."""
    if case in IN_HOOKS:
        part, runs, said = IN_HOOKS[case]
        inner = [SIBLING, part] if sibling_first else [part, SIBLING]
        members = [f'"hooks": {{{", ".join(inner)}}}']
    else:
        part, runs, said = BESIDE_A_SIBLING[case]
        hooks = f'"hooks": {{{SIBLING}}}'
        members = [hooks, part] if sibling_first else [part, hooks]
    parsed = read("{" + ",\n".join(members) + "}")
    assert not parsed.refused
    assert sorted(ids(parsed)) == sorted(["error#0", *runs])
    assert codes(parsed) == said
    assert all(
        diagnostic.line and diagnostic.column and diagnostic.field for diagnostic in parsed.diagnostics
    )


def test_the_last_of_two_equal_events_counts_as_in_json() -> None:
    """The diagnostic says where the list stands that does not count."""
    parsed = read('{"hooks": {\n"error": [{"command": "x"}],\n "error": [{"command": "y"}]}}')
    assert [(spec.command, spec.line) for spec in parsed.specs] == [("y", 3)]
    (said,) = parsed.diagnostics
    assert (said.severity, said.line, said.column) == ("error", 3, 2)
    assert "2:1 does not count" in said.message


def test_hooks_that_stand_twice_are_an_error() -> None:
    """A second hooks member hides the first, and this is said as an error."""
    parsed = read('{"hooks": {"error": [{"command": "x"}]}, "hooks": {}}')
    assert parsed.specs == ()
    assert [(d.severity, d.code) for d in parsed.diagnostics] == [("error", "duplicate_event")]


def test_two_spellings_count_on() -> None:
    """Lists of one event are joined in file order; ids count over both, refused entries included."""
    parsed = read('{"hooks": {"error": [{}, {"command": "a"}], "ERROR": [{"command": "b"}]}}')
    assert [(spec.id, spec.command) for spec in parsed.specs] == [("error#1", "a"), ("error#2", "b")]


@pytest.mark.parametrize(
    "event,hint",
    [
        ("tool_cal", "did you mean tool_call?"),
        ("llm-respond", "did you mean llm_response?"),
        ("prx.lifecycle.agent_end", "did you mean agent_end?"),
        ("PreToolUse", "PRX and prxbus call it tool_call_start"),
        ("session:start", "PRX and prxbus call it session_start"),
        ("*", "hooks.json has no patterns: name each event"),
        ("prx.lifecycle.*", "hooks.json has no patterns: name each event"),
        ("zzzz", f"the events are {', '.join(rules.PAGE_EVENTS)}"),
    ],
)
def test_an_unknown_event_gets_the_name_that_was_meant(event: str, hint: str) -> None:
    """Misspelt, foreign and pattern-like names are answered with what to write."""
    (said,) = read(json.dumps({"hooks": {event: []}})).diagnostics
    assert said.hint == hint
    assert (said.line, said.column) == (1, 12)


def test_a_caller_may_say_which_events_there_are() -> None:
    """Besides the page's own events only the given ones can be named."""
    text = json.dumps({"hooks": {e: [{"command": "x"}] for e in ("tool_call", "session_start", "own_event")}})
    parsed = parse(text.encode(), "hooks.json", {"own_event"})
    assert ids(parsed) == ["tool_call#0", "own_event#0"]
    assert codes(parsed) == ["unknown_event", "extension_event"]


@pytest.mark.parametrize("event", EVENTS)
def test_every_canonical_event_can_be_named(event: str) -> None:
    """An event of the catalogue runs its hooks; one that the page lacks is marked as an extension."""
    parsed = read(json.dumps({"hooks": {event: [{"command": "x"}]}}))
    assert ids(parsed) == [f"{event}#0"]
    assert codes(parsed) == ([] if event in rules.PAGE_EVENTS else ["extension_event"])


@pytest.mark.parametrize("text", ["{}", '{"hooks": null}'])
def test_a_file_without_hooks_is_no_error(text: str) -> None:
    """No hooks member means no hooks, and a warning says so."""
    parsed = read(text)
    assert (parsed.refused, parsed.specs, codes(parsed)) == (False, (), ["no_hooks"])


def test_a_file_with_empty_hooks_says_nothing() -> None:
    """Somebody who writes an empty object means it."""
    assert read('{"hooks": {}}') == ParsedFile((), (), refused=False)


def test_the_timeout_of_the_file_is_the_default_of_its_actions() -> None:
    """An action's own timeout wins over the file's, the file's over the page's."""
    text = '{"hooks": {"error": [{"command": "x"}, {"command": "y", "timeout_ms": 700}]}, "timeout_ms": 1200}'
    assert [spec.timeout_s for spec in read(text).specs] == [1.2, 0.7]


def test_a_wrong_timeout_of_the_file_leaves_the_page_s_default() -> None:
    """Actions run with 30,000 ms when the file's own default cannot be used."""
    assert read('{"timeout_ms": -1, "hooks": {"error": [{"command": "x"}]}}').specs[0].timeout_s == 30.0


def test_a_byte_order_mark_is_ignored_and_remarked_upon() -> None:
    """An editor's byte order mark costs a warning, not the hooks, and shifts no position."""
    parsed = read(b"\xef\xbb\xbf" + b'{"hooks": {"eror": [], "error": [{"command": "x"}]}}')
    assert ids(parsed) == ["error#0"]
    assert [(d.code, d.line, d.column) for d in parsed.diagnostics] == [
        ("byte_order_mark", 1, 1),
        ("unknown_event", 1, 12),
    ]


def test_the_limit_of_actions_counts_over_all_events() -> None:
    """256 actions run; those beyond are named once for each event, and unknown events do not count."""
    many = [{"command": "x"}] * 255
    hooks: dict[str, Any] = {"unknown": [{"command": "x"}] * 300, "tool_call": many}
    hooks |= {"error": [{"command": "y"}] * 3, "llm_request": [{"command": "z"}], "agent_end": []}
    parsed = read(json.dumps({"hooks": hooks}))
    assert len(parsed.specs) == 256
    assert parsed.specs[-1].id == "error#0"
    said = [(d.code, d.field, d.message.split()[0]) for d in parsed.diagnostics[1:]]
    assert said == [
        ("too_many_actions", "hooks.error[1]", "2"),
        ("too_many_actions", "hooks.llm_request[0]", "1"),
    ]


def test_a_flood_of_mistakes_is_bounded() -> None:
    """Whatever is wrong how often, the diagnostics of a file have a limit, and the last one says so."""
    parsed = read(
        json.dumps({"hooks": {**{f"tool_cal{i}": [] for i in range(3_000)}, "error": [{"command": "x"}]}})
    )
    assert ids(parsed) == ["error#0"]
    assert len(parsed.diagnostics) == 1_001
    assert parsed.diagnostics[-1].message.startswith("2000 more")


def test_a_flood_of_duplicates_is_bounded() -> None:
    """A key that stands a thousand times is remarked upon a hundred times."""
    text = '{"hooks": {' + ", ".join(['"error": [{"command": "x"}]'] * 1_000) + "}}"
    parsed = read(text)
    assert ids(parsed) == ["error#0"]
    assert codes(parsed) == ["duplicate_event"] * 100


@pytest.mark.parametrize(
    "key,event",
    [("tool_call", "tool_call"), ("tool-call", "tool_call"), ("  LLM-Request\t", "llm_request"), ("", "")],
)
def test_an_event_has_one_canonical_spelling(key: str, event: str) -> None:
    """Blanks around, capitals and dashes do not count."""
    assert event_name(key) == event


@given(st.binary())
def test_any_bytes_are_read_without_an_exception(text: bytes) -> None:
    """Arbitrary bytes give a parsed file; one that is refused has no hooks and an error."""
    parsed = read(text)
    if parsed.refused:
        assert parsed.specs == ()
        assert any(diagnostic.severity == "error" for diagnostic in parsed.diagnostics)


names = st.sampled_from(
    ["hooks", "timeout_ms", "tool_call", "tool-call", "error", *rules.ACTION_KEYS]
) | st.text(max_size=3)
members = (
    st.none()
    | st.booleans()
    | st.integers(-5, 400_000)
    | st.text(max_size=3)
    | st.sampled_from(["x", "..", "a;b"])
)
files = st.recursive(
    members,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=25,
)


@given(files)
def test_any_document_is_read_without_an_exception(document: Any) -> None:
    """Arbitrary JSON in the words of a hooks.json gives specs that keep the rules, and documented codes."""
    parsed = read(json.dumps(document))
    assert all(diagnostic.code in rules.CODES for diagnostic in parsed.diagnostics)
    assert all(diagnostic.severity == rules.CODES[diagnostic.code] for diagnostic in parsed.diagnostics)
    assert len({spec.id for spec in parsed.specs}) == len(parsed.specs)
    for spec in parsed.specs:
        assert spec.line == 1
        assert spec.event in EVENTS


actions = st.fixed_dictionaries(
    {"command": st.sampled_from(["x", "", "a;b", None])}, optional={"cwd": st.sampled_from(["a", ".."])}
)


@given(st.lists(actions, max_size=6), st.integers(0, 6))
def test_an_action_runs_whatever_stands_beside_it(others: list[dict[str, Any]], index: int) -> None:
    """Law: inserting a sound action among others adds exactly this action and changes no other."""
    index = min(index, len(others))
    new = {"command": "/bin/new", "args": ["only here"]}
    before = read(json.dumps({"hooks": {"error": others}}))
    after = read(json.dumps({"hooks": {"error": [*others[:index], new, *others[index:]]}}))
    kept = [(spec.command, spec.cwd) for spec in after.specs if spec.id != f"error#{index}"]
    assert kept == [(spec.command, spec.cwd) for spec in before.specs]
    assert next(spec for spec in after.specs if spec.id == f"error#{index}").args == ("only here",)
