"""What a HOOK.yaml means: every key, event and pattern, and one diagnostic for everything that is wrong."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.dialects import librefang_rules as rules
from subscribers.dialects.base import ParsedFile
from subscribers.dialects.librefang import parse
from subscribers.hooks.diagnostics import Diagnostic

PATH = "/srv/me/.librefang/hooks/notify/HOOK.yaml"
GOOD = "name: n\nevents: [agent:end]\ncommand: ./run.sh\n"


def read(text: str | bytes) -> ParsedFile:
    """The file as the dialect reads it."""
    return parse(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"), PATH)


def hook(events: str, more: str = "") -> ParsedFile:
    """A hook with these events, written as YAML."""
    return read(f"name: n\ncommand: ./run.sh\n{more}events: {events}\n")


def codes(parsed: ParsedFile) -> list[str]:
    """The codes of what there is to say."""
    return [diagnostic.code for diagnostic in parsed.diagnostics]


def only(parsed: ParsedFile) -> Diagnostic:
    """The one diagnostic."""
    (diagnostic,) = parsed.diagnostics
    return diagnostic


def fired(parsed: ParsedFile) -> list[str]:
    """The canonical events that start the hook."""
    return [spec.event for spec in parsed.specs]


# ---- what is in order ---------------------------------------------------------------------------------


def test_every_key_has_its_effect() -> None:
    """Name, events, command and args are taken; a description changes nothing; nothing is remarked upon."""
    parsed = read(
        'name: notify-on-agent-end\ndescription: "POST to a webhook"\n# a comment\n'
        'events:\n  - agent:end\ncommand: ./run.sh\nargs: ["two words", "", "$HOME"]\n'
    )
    assert parsed.diagnostics == ()
    assert not parsed.refused
    (spec,) = parsed.specs
    assert (spec.name, spec.event, spec.command) == ("notify-on-agent-end", "agent_end", "./run.sh")
    assert spec.args == ("two words", "", "$HOME")
    assert (spec.dialect, spec.path, spec.line, spec.id) == ("librefang", PATH, 5, "agent_end#0")
    assert spec.command_at == (6, 10)
    assert (spec.timeout_s, spec.grace_s, spec.stdin, spec.cwd, dict(spec.env)) == (5.0, 0.0, False, None, {})


def test_args_that_are_absent_let_the_command_hold_arguments() -> None:
    """Without args the command may be split; with args, even none of them, it is one path."""
    assert [read(GOOD + more).specs[0].splits_command for more in ("", "args: []\n", "args:\n")] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("name,event", rules.EVENTS.items())
def test_an_exact_name_is_that_event(name: str, event: str) -> None:
    """Each of the seven names fires for itself only."""
    assert fired(hook(f"[{name}]")) == [event]


@pytest.mark.parametrize(
    "pattern,expected",
    [
        ("agent:*", ["agent_start", "agent_end", "agent_step"]),
        ("session:*", ["session_start", "session_end", "session_reset"]),
        ("'*'", list(rules.EVENTS.values())),
    ],
)
def test_a_pattern_stands_for_the_events_of_the_page(pattern: str, expected: list[str]) -> None:
    """The three patterns of the page match what its table says; * is all seven and nothing of prxbus."""
    parsed = hook(f"[{pattern}]")
    assert fired(parsed) == expected
    assert parsed.diagnostics == ()
    assert {spec.id for spec in parsed.specs} == {f"{event}#0" for event in expected}


def test_several_matching_entries_fire_once() -> None:
    """A hook whose entries overlap has one spec for each event, placed at the first that matches."""
    parsed = read("name: n\nevents:\n  - agent:end\n  - agent:*\n  - '*'\ncommand: x\n")
    assert sorted(fired(parsed)) == sorted(rules.EVENTS.values())
    assert {spec.event: spec.line for spec in parsed.specs}["agent_end"] == 3
    assert {spec.event: spec.line for spec in parsed.specs}["gateway_startup"] == 5


def test_the_same_entry_twice_is_remarked_upon() -> None:
    """It runs once, and the second one is named."""
    parsed = hook("[agent:end, agent:end]")
    assert fired(parsed) == ["agent_end"]
    assert (only(parsed).code, only(parsed).field, only(parsed).column) == ("repeated_event", "events[1]", 21)


def test_a_name_of_prxbus_is_an_extension() -> None:
    """Any canonical event may be named, with a remark that LibreFang itself has none such."""
    parsed = hook("[tool_call, agent_end]")
    assert fired(parsed) == ["tool_call", "agent_end"]
    assert codes(parsed) == ["extension_event", "extension_event"]
    assert [d.hint for d in parsed.diagnostics] == [None, "LibreFang calls it agent:end"]
    assert parse(b"name: n\nevents: [custom]\ncommand: x\n", PATH, ["custom"]).specs[0].event == "custom"


# ---- events that are none -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        *("agent*", "agent:s*", "agent:?tart", "*:end", "*:*", "**", "[ab]gent:end", "{agent,session}:end"),
        *("!agent:end", "gateway:*", "command:*", "agent:**"),
    ],
)
def test_any_other_pattern_is_refused_by_name(pattern: str) -> None:
    """What looks like a glob and is none of the three never matches, and is named; its siblings fire."""
    parsed = hook(f"[agent:end, '{pattern}']")
    assert fired(parsed) == ["agent_end"]
    assert (only(parsed).code, only(parsed).severity) == ("unsupported_pattern", "error")
    assert f'"{pattern}"' in only(parsed).message
    assert "the patterns are agent:*, session:*, *" in str(only(parsed).hint)


def test_a_pattern_that_means_certain_events_names_them() -> None:
    """The hint lists what could be written instead."""
    assert str(only(hook("['gateway:*', agent:end]")).hint).startswith("write gateway:startup;")


@pytest.mark.parametrize(
    "name,hint",
    [
        ("agent:ends", "did you mean agent:end?"),
        ("Agent:End", "did you mean agent:end?"),
        ("session.reset", "LibreFang calls it session:reset"),
        ("sesion:reset", "did you mean session:reset?"),
        ("prx.lifecycle.tool_call", "did you mean tool_call?"),
        ("SessionStart", "LibreFang calls it session:start"),
        ("PreToolUse", "prxbus calls it tool_call_start"),
        ("zzz", "the events are agent:start, agent:end, agent:step"),
    ],
)
def test_an_unknown_event_is_named_with_the_nearest(name: str, hint: str) -> None:
    """It never fires; the diagnostic says what was probably meant, and the siblings fire."""
    parsed = hook(f"[session:end, '{name}']")
    assert fired(parsed) == ["session_end"]
    assert (only(parsed).code, only(parsed).line, only(parsed).field) == ("unknown_event", 3, "events[1]")
    assert str(only(parsed).hint).startswith(hint)


@pytest.mark.parametrize("name", rules.TRANSFORM_EVENTS)
def test_a_transform_is_no_event_of_a_file(name: str) -> None:
    """What rewrites a tool's result is pointed to where it belongs; * does not match it."""
    parsed = hook(f"[{name}]")
    assert (only(parsed).code, parsed.refused) == ("transform_event", True)
    assert "[[transform]]" in str(only(parsed).hint)
    assert "tool_result" not in fired(hook("['*']"))


def test_an_event_with_a_blank_is_a_mapping() -> None:
    """YAML makes ``agent: end`` a mapping, and the diagnostic says what to write."""
    parsed = read("name: n\ncommand: x\nevents:\n  - agent: end\n  - agent: {end: 1}\n  - session:end\n")
    assert fired(parsed) == ["session_end"]
    first, second = parsed.diagnostics
    assert (first.code, first.hint, first.line, first.column) == ("wrong_type", "write agent:end", 4, 5)
    assert second.code == "wrong_type"


# ---- keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line,hint",
    [
        ("descripton: x", "did you mean description?"),
        ("enabled: true", "the keys are name, description, events, command, args"),
        ("1: x", "the keys are name"),
        ("? [a]\n: x", "the keys are name"),
        ('"odd key": x', "the keys are name"),
        ("<<: {command: y}", "the keys are name"),
    ],
)
def test_an_unknown_key_is_ignored_and_named(line: str, hint: str) -> None:
    """The hook runs as if it were not there."""
    parsed = read(GOOD + line + "\n")
    assert fired(parsed) == ["agent_end"]
    assert (only(parsed).code, only(parsed).line) == ("unknown_key", 4)
    assert str(only(parsed).hint).startswith(hint)


@pytest.mark.parametrize("key", ["name", "events", "command"])
@pytest.mark.parametrize("how", ["absent", "null", "~"])
def test_a_required_key_that_is_missing_is_named(key: str, how: str) -> None:
    """Absent and empty are the same: the hook does not run, and one diagnostic says why."""
    lines = {"name": "n", "events": "[agent:end]", "command": "x"}
    if how == "absent":
        del lines[key]
    else:
        lines[key] = how
    parsed = read("".join(f"{name}: {value}\n" for name, value in lines.items()))
    assert parsed.refused
    assert (only(parsed).code, only(parsed).message) == ("missing_key", f"the hook has no {key}")
    assert only(parsed).hint


@pytest.mark.parametrize(
    "old,new,field,where,words",
    [
        ("name: n", "name: 123", "name", (1, 7), 'not a string; write "123", in quotes'),
        ("name: n", "name: true", "name", (1, 7), "a boolean, not a string"),
        ("name: n", "name: 2026-01-01", "name", (1, 7), "a date, not a string"),
        ("name: n", "name: [a]", "name", (1, 7), "a list, not a string"),
        ("name: n", "name: !x a", "name", (1, 7), "a value with a tag, not a string"),
        ("name: n", "name: !!set {a}", "name", (1, 7), "a value with a tag, not a string"),
        ("[agent:end]", "agent:end", "events", (2, 9), 'not a list; write events: ["agent:end"]'),
        ("[agent:end]", "{agent: end}", "events", (2, 9), "a mapping, not a list"),
        ("[agent:end]", "[1]", "events[0]", (2, 10), "a number, not a string"),
        ("[agent:end]", "[~]", "events[0]", (2, 10), "nothing, not a string"),
        ("./run.sh", "1.5", "command", (3, 10), "a number, not a string"),
        ("./run.sh", "x\ndescription: 1", "description", (4, 14), "a number, not a string"),
        ("./run.sh", "x\nargs: a b", "args", (4, 7), "a string, not a list"),
        ("./run.sh", "x\nargs: [a, 8080]", "args[1]", (4, 11), 'write "8080", in quotes'),
        ("./run.sh", 'x\nargs: ["\\0"]', "args[0]", (4, 8), "holds a NUL"),
        ("./run.sh", "''", "command", (3, 10), "the command is empty"),
        ("./run.sh", "'  '", "command", (3, 10), "the command is empty"),
        ("[agent:end]", "[]", "events", (2, 9), "the list of events is empty"),
    ],
)
def test_a_wrong_value_is_one_diagnostic_with_its_place(
    old: str, new: str, field: str, where: tuple[int, int], words: str
) -> None:
    """The hook does not run; field, line and column are named and what to write instead."""
    parsed = read(GOOD.replace(old, new))
    assert parsed.refused
    found = only(parsed)
    assert (found.severity, found.field, (found.line, found.column)) == ("error", field, where)
    assert words in found.render()


def test_an_empty_name_is_the_folders() -> None:
    """The program accepts it; the log then shows the folder's name."""
    parsed = read(GOOD.replace("name: n", 'name: ""'))
    assert (parsed.specs[0].name, only(parsed).code) == ("notify", "empty_name")
    assert parse(GOOD.replace("name: n", 'name: " "').encode(), "HOOK.yaml").specs[0].name == "librefang"


@pytest.mark.parametrize("key", ["name: m", "command: y", "events: []", "other: 1\nother: 2"])
def test_a_repeated_key_is_refused(key: str) -> None:
    """Which of the two was meant is not guessed: the hook does not run, and both places are named."""
    parsed = read(GOOD + key + "\n")
    (found,) = [d for d in parsed.diagnostics if d.code == "duplicate_key"]
    assert parsed.refused
    assert "stands twice, first at" in found.message


def test_too_many_arguments_are_refused() -> None:
    """128 are accepted."""
    most, more = (
        read(f"{GOOD}args: [{', '.join(['a'] * count)}]\n") for count in (rules.MAX_ARGS, rules.MAX_ARGS + 1)
    )
    assert (most.refused, len(most.specs[0].args)) == (False, rules.MAX_ARGS)
    assert (more.refused, only(more).code) == (True, "too_many")


# ---- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text,code,where",
    [
        ("", "empty_file", (None, None)),
        ("# nothing\n", "empty_file", (None, None)),
        ("~\n", "empty_file", (None, None)),
        ("- a\n- b\n", "wrong_root", (1, 1)),
        ("just words\n", "wrong_root", (1, 1)),
        (GOOD + "---\n" + GOOD, "several_documents", (5, 1)),
        ("---\n---\n", "several_documents", (3, 1)),
        ("name: [\n", "not_yaml", (2, 1)),
        ("a: b: c\n", "not_yaml", (1, 5)),
        ("\tname: n\n", "not_yaml", (1, 1)),
        ("name: *x\n", "not_yaml", (1, 7)),
        ("name: n\nevents:\n  - *\n", "not_yaml", (3, 6)),
        ("name: n\nevents: [*]\n", "not_yaml", (2, 11)),
        ("name: a\x01b\n", "not_yaml", (1, 8)),
        ("a: " + "[" * 40, "too_deep", (1, 19)),
        (b"name: \xff\n", "not_utf8", (1, 7)),
        (b"\xff\xfen\0", "not_utf8", (1, 1)),
        ("handler: handler.py\nname: n\n", "foreign_file", (1, 1)),
        ("kind: Hook\nspec: {}\n", "foreign_file", (1, 1)),
        ("{}\n", "foreign_file", (1, 1)),
        ("1: 2\n", "foreign_file", (1, 1)),
        ("x" * (rules.MAX_FILE_BYTES + 1), "file_too_large", (None, None)),
    ],
)
def test_a_file_that_cannot_be_used_is_one_diagnostic(
    text: str | bytes, code: str, where: tuple[int | None, int | None]
) -> None:
    """It is refused as a whole, with its place, and a hint that says what to do."""
    parsed = read(text)
    assert parsed.refused
    assert parsed.specs == ()
    found = only(parsed)
    assert (found.code, (found.line, found.column), found.severity) == (code, where, "error")


@pytest.mark.parametrize(
    "text,hint",
    [
        ("events:\n  - *\n", 'a lone * must stand in quotes: "*"'),
        ("events: [*]\n", 'a lone * must stand in quotes: "*"'),
        ("\tname: n\n", "YAML wants blanks here, not a tab"),
        ("description: see: this\n", "text with a colon and a blank must stand in quotes"),
        ("name: a\x01b\n", "remove it"),
        ("name: {\n", None),
    ],
)
def test_a_mistake_in_yaml_has_a_hint_where_it_is_a_usual_one(text: str, hint: str | None) -> None:
    """A lone star, a tab, a colon in text, a control character."""
    assert only(read(text)).hint == hint


def test_a_misspelled_file_is_told_by_its_keys() -> None:
    """A hook whose keys are misspelled is not taken for a foreign file."""
    parsed = read("nmae: n\nevent: [agent:end]\ncomand: x\n")
    assert codes(parsed).count("unknown_key") == 3
    assert codes(parsed).count("missing_key") == 3


def test_a_byte_order_mark_is_remarked_upon() -> None:
    """The rest counts."""
    parsed = read(b"\xef\xbb\xbf" + GOOD.encode())
    assert (fired(parsed), codes(parsed)) == (["agent_end"], ["byte_order_mark"])


def test_yaml_that_is_odd_and_right_is_read() -> None:
    """Document marks, anchors set twice, aliases, block scalars, flow style and YAML 1.1 are all YAML."""
    text = (
        "%YAML 1.1\n---\nname: &a hook\ndescription: &a |\n  two\n  lines\n"
        "events: [&e 'agent:end', *e]\ncommand: x\n...\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fired(read(text)) == ["agent_end"]


def test_remarks_are_bounded_and_counted() -> None:
    """However much is wrong, the list ends, and says how many are not on it."""
    parsed = read(GOOD + "".join(f"k{number}: 1\n" for number in range(1_000)))
    assert len(parsed.diagnostics) == rules.MAX_DIAGNOSTICS + 1
    assert (parsed.diagnostics[-1].code, parsed.diagnostics[-1].message) == (
        "more_findings",
        f"{1_000 - rules.MAX_DIAGNOSTICS} more findings are not listed",
    )
    assert fired(parsed) == ["agent_end"]


def test_a_library_that_fails_is_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the parser raises, the file is refused and nobody else notices."""
    import yaml

    def fail(*_: object, **__: object) -> None:
        raise IndexError("pop from empty list")

    monkeypatch.setattr(yaml, "parse", fail)
    assert "cannot be read at all (IndexError)" in only(read(GOOD)).message


PIECES = st.sampled_from(
    [
        *(
            "name: n\n",
            "events:",
            " - agent:end\n",
            "- '*'\n",
            "[agent:*, ",
            "]\n",
            "command: x\n",
            "args: [a]\n",
        ),
        *(
            "---\n",
            "...\n",
            "&a ",
            "*a",
            "? ",
            ": ",
            "- ",
            "{",
            "}",
            "[",
            "|\n  a\n",
            ">-\n",
            "!t ",
            "!!int ",
            "%YAML 9\n",
        ),
        *(
            "\t",
            "\n",
            "'",
            '"',
            "\\u",
            "\\x41",
            "#",
            "<<: ",
            "~",
            "\x85",
            "\u2028",
            "\r",
            "\0",
            "\ufeff",
            "é",
            "1e3",
        ),
    ]
)


@given(
    st.binary(max_size=200)
    | st.text(max_size=100).map(str.encode)
    | st.lists(PIECES, max_size=25).map(lambda pieces: "".join(pieces).encode())
)
@example(b"%YAML 1.1\n---\na: yes\n")
@example(b"%TAG ! x\n---\na")
@example(b"? ? ? a")
@example(b"\xef\xbb\xbf\xef\xbb\xbf")
@example(GOOD.encode())
def test_any_bytes_give_specs_or_diagnostics_and_never_an_exception(text: bytes) -> None:
    """A file without specs is refused and says why; every code is in the table with its severity."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parsed = parse(text, PATH)
    assert parsed.refused == (not parsed.specs)
    assert parsed.specs or parsed.diagnostics
    for diagnostic in parsed.diagnostics:
        assert rules.CODES[diagnostic.code] == diagnostic.severity
        assert diagnostic.render().isprintable()
        assert (diagnostic.line is None) == (diagnostic.column is None)
    lines = text.decode("utf-8", "replace")
    assert all(d.line is None or d.line <= len(lines) + 1 for d in parsed.diagnostics)
