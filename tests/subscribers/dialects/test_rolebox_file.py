"""What a role.yaml means: every key with its default, and one diagnostic for everything that is wrong."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import rolebox_rules as rules
from subscribers.dialects.rolebox_file import read_role
from subscribers.dialects.rolebox_spec import Role, RoleHook
from subscribers.hooks.diagnostics import Diagnostic

PATH = "/srv/roles/coder/role.yaml"
SIBLING = "    - {name: sibling, events: [event], module: hooks/sibling.js}\n"


def read(text: str | bytes, environ: Mapping[str, str] | None = None) -> Role:
    """The role as the dialect reads it."""
    return read_role(text if isinstance(text, bytes) else text.encode(), PATH, environ)


def role_of(*entries: str) -> str:
    """A role with these hooks, each in flow style without its braces."""
    hooks = "".join(f"    - {{{entry}}}\n" for entry in entries)
    return f"name: Coder\nhooks:\n  custom:\n{hooks}"


def entry(**changed: str) -> str:
    """A good hook in flow style; a key that is changed to nothing is left out."""
    keys = {"name": "check", "events": "[tool.execute.before]", "module": "hooks/check.js"} | changed
    return ", ".join(f"{key}: {value}" for key, value in keys.items() if value)


def one(text: str) -> RoleHook:
    """The only hook of a role about which nothing is said."""
    role = read(text)
    assert role.diagnostics == ()
    (hook,) = role.hooks
    return hook


def said(role: Role) -> list[str]:
    """The codes of what there is to say."""
    return [diagnostic.code for diagnostic in role.diagnostics]


def only(role: Role) -> Diagnostic:
    """The one diagnostic."""
    (diagnostic,) = role.diagnostics
    return diagnostic


# ---- what is in order ---------------------------------------------------------------------------------


def test_every_key_of_a_hook_has_its_effect() -> None:
    """Each of the page's keys is taken as it is written, in the order of the file."""
    hook = one(
        "name: Coder\ndescription: careful\nhooks:\n  custom:\n"
        "    - name: my-checker\n"
        '      description: "looks closely"\n'
        "      events: [tool.execute.after, chat.message, event]\n"
        "      module: hooks/checker.js\n"
        "      config:\n        severity: warn\n        checks: [a, b]\n"
        "      filter:\n        tools: [edit, write, edit]\n        eventTypes: [session.idle, mine.own]\n"
        "      priority: 10\n      phase: before\n"
    )
    assert hook == RoleHook(
        index=0,
        name="my-checker",
        description="looks closely",
        events=("tool.execute.after", "chat.message", "event"),
        module="hooks/checker.js",
        config='{"severity":"warn","checks":["a","b"]}',
        tools=("edit", "write"),
        event_types=("session.idle", "mine.own"),
        priority=10,
        phase="before",
        line=5,
        column=7,
        module_at=(8, 15),
    )


def test_a_hook_has_the_defaults_of_the_page() -> None:
    """Priority 50, phase after, no config, no filter, no description."""
    hook = one(role_of(entry()))
    assert (hook.priority, hook.phase) == (50, "after")
    assert (hook.config, hook.tools, hook.event_types, hook.description) == (None, None, None, "")


def test_a_key_without_a_value_is_as_good_as_none() -> None:
    """What stands without a value has its default."""
    hook = one(role_of(entry(priority="~", phase="null", filter="~", config="~", description="~")))
    assert (hook.priority, hook.phase, hook.tools, hook.config) == (50, "after", None, None)
    assert one(role_of(entry(filter="{tools: ~}"))).tools is None


def test_a_role_has_a_name_functions_and_switches() -> None:
    """The keys of the role that matter here are taken."""
    role = read(
        "name: Coder\ndescription: careful\nfunctions: [review, plan]\ndisable_functions: [loop]\n"
        "auto_activate: [review]\nlocked: true\nhooks: {builtin: {auto_activate: true}}\n"
    )
    assert (role.name, role.description, role.hooks, role.diagnostics) == ("Coder", "careful", (), ())
    assert (role.functions, role.disabled) == (("plan", "execute", "review"), ("loop",))
    assert (role.auto_activate, role.locked, role.builtin_auto_activate) == (("review",), True, True)
    assert not role.refused
    assert not role.foreign


def test_a_role_without_hooks_has_none() -> None:
    """Hooks may be missing, empty or nothing; the switch of functions is then not written."""
    for text in ("", "hooks:\n", "hooks: {}\n", "hooks: {custom: }\n", "hooks: {custom: [], builtin: }\n"):
        role = read(f"name: Coder\nprompt: x\n{text}")
        assert (role.hooks, role.diagnostics, role.builtin_auto_activate) == ((), (), None)
    assert read("name: Coder\nhooks: {builtin: {auto_activate: false}}").builtin_auto_activate is False


def test_hooks_keep_the_order_of_the_file() -> None:
    """The index is the place in the file, also behind an entry that is bad."""
    role = read(role_of(entry(name="a"), "name: b", entry(name="c", priority="-1.5")))
    assert [(hook.name, hook.index, hook.priority) for hook in role.hooks] == [("a", 0, 50), ("c", 2, -1.5)]


def test_a_config_holds_whatever_json_can_hold() -> None:
    """Numbers, texts, nothing, dates as text, merged keys and repeated nodes become JSON."""
    hook = one(
        "name: Coder\nhooks:\n  custom:\n    - name: a\n      events: [event]\n      module: a.js\n"
        "      config:\n        base: &base {n: 0x10, o: 0o17, f: -1.5e2, t: true, no: no, z: ~}\n"
        "        other: {<<: *base, n: 1}\n        more: {<<: [*base, {q: 1}], f: 2}\n"
        '        day: 2020-01-02\n        text: "é\\0"\n        1: one\n'
        "        again: *base\n        <<: {k: v}\n"
    )
    assert hook.config is not None
    base = {"n": 16, "o": 15, "f": -150.0, "t": True, "no": "no", "z": None}
    assert json.loads(hook.config) == {
        "base": base,
        "other": base | {"n": 1},
        "more": base | {"f": 2, "q": 1},
        "day": "2020-01-02",
        "text": "é\0",
        "1": "one",
        "again": base,
        "k": "v",
    }


def test_placeholders_are_replaced_in_every_text_that_is_read() -> None:
    """``{env:NAME}`` is replaced in names, modules and configs, once; what is not set stays."""
    text = role_of(entry(name='"{env:WHO}-check"', config='{a: "{env:A}/{env:B}", c: ["x{env:WHO}"]}'))
    role = read(text, {"WHO": "my", "A": "{env:WHO}"})
    (hook,) = role.hooks
    assert (hook.name, hook.config) == ("my-check", '{"a":"{env:WHO}/{env:B}","c":["xmy"]}')
    assert only(role).code == "no_such_variable"
    assert (only(role).line, only(role).column, only(role).field) == (4, 100, "hooks.custom[0].config.a")
    assert one(text).name == "{env:WHO}-check"


def test_other_placeholders_stay_and_that_is_said() -> None:
    """``${NAME}`` is no placeholder of rolebox."""
    role = read(role_of(entry(config='{a: "${HOME}"}')), {"HOME": "/root"})
    assert role.hooks[0].config == '{"a":"${HOME}"}'
    assert (only(role).severity, only(role).code) == ("info", "not_replaced")
    assert "{env:HOME}" in (only(role).hint or "")


# ---- what is wrong with a hook ------------------------------------------------------------------------

LONG = "x" * 129
WRONG_HOOKS = [
    # name, events, module
    (entry(name=""), "missing_key", "hooks.custom[0]", (4, 7), "no name", False),
    (entry(name="~"), "missing_key", "hooks.custom[0]", (4, 7), "no name", False),
    (entry(name="' '"), "empty_name", "hooks.custom[0].name", (4, 14), "blank", False),
    (entry(name="5"), "wrong_type", "hooks.custom[0].name", (4, 14), "a number, not a string", False),
    (entry(name="[a]"), "wrong_type", "hooks.custom[0].name", (4, 14), "a list, not a string", False),
    (entry(name=LONG), "too_long", "hooks.custom[0].name", (4, 14), "129 characters", False),
    (entry(name='"a\\0"'), "bad_character", "hooks.custom[0].name", (4, 14), "NUL", False),
    ("priority: 5", "missing_key", "hooks.custom[0]", (4, 7), "no name and no events and no module", False),
    (entry(events=""), "missing_key", "hooks.custom[0]", (4, 7), "no events", False),
    (entry(events=f"[{'event, ' * 65}]"), "too_many", "hooks.custom[0].events", (4, 29), "65 events", False),
    (entry(events="[]"), "no_events", "hooks.custom[0].events", (4, 29), "empty", False),
    (entry(events="event"), "wrong_type", "hooks.custom[0].events", (4, 29), "write events: [event]", False),
    (entry(events="{a: 1}"), "wrong_type", "hooks.custom[0].events", (4, 29), "such as [a, b]", False),
    (entry(events="[1, event]"), "wrong_type", "hooks.custom[0].events[0]", (4, 30), "a number", True),
    (entry(events="[tool.before]"), "unknown_event", "hooks.custom[0].events[0]", (4, 30), "before", False),
    (entry(events="[event, x]"), "unknown_event", "hooks.custom[0].events[1]", (4, 37), "events are", True),
    (entry(events="[event, event]"), "repeated_event", "hooks.custom[0].events[1]", (4, 37), "once", True),
    (entry(events="[onEvent]"), "unknown_event", "hooks.custom[0].events[0]", (4, 30), "it event", False),
    (entry(events="[PreToolUse]"), "unknown_event", "hooks.custom[0].events[0]", (4, 30), "before", False),
    (entry(events="[tool_call]"), "unknown_event", "hooks.custom[0].events[0]", (4, 30), "after", False),
    (
        entry(events="[agent_end]"),
        "unknown_event",
        "hooks.custom[0].events[0]",
        (4, 30),
        "[agent_end]",
        False,
    ),
    (entry(events="[session.idle]"), "unknown_event", "hooks.custom[0].events[0]", (4, 30), "idle]", False),
    (
        entry(events="[session.x]"),
        "unknown_event",
        "hooks.custom[0].events[0]",
        (4, 30),
        "[session.x]",
        False,
    ),
    (entry(module=""), "missing_key", "hooks.custom[0]", (4, 7), "no module", False),
    (entry(module="''"), "empty_name", "hooks.custom[0].module", (4, 60), "blank", False),
    (entry(module="{a: b}"), "wrong_type", "hooks.custom[0].module", (4, 60), "a mapping", False),
    (entry(module=f"{'y' * 4_097}"), "too_long", "hooks.custom[0].module", (4, 60), "4,096", False),
    # priority and phase
    (entry(priority='"10"'), "odd_type", "hooks.custom[0].priority", (4, 86), "without quotes", True),
    (entry(priority="high"), "bad_number", "hooks.custom[0].priority", (4, 86), '"high" is no number', False),
    (entry(priority="true"), "bad_number", "hooks.custom[0].priority", (4, 86), "a boolean is no", False),
    (entry(priority="[1]"), "bad_number", "hooks.custom[0].priority", (4, 86), "a list is no", False),
    (entry(priority=".inf"), "bad_number", "hooks.custom[0].priority", (4, 86), "no number", False),
    (entry(priority=".nan"), "bad_number", "hooks.custom[0].priority", (4, 86), "no number", False),
    (entry(priority='"1_0"'), "bad_number", "hooks.custom[0].priority", (4, 86), "no number", False),
    (entry(priority='"infinity"'), "bad_number", "hooks.custom[0].priority", (4, 86), "no number", False),
    (entry(priority="9" * 401), "bad_number", "hooks.custom[0].priority", (4, 86), "no number", False),
    (entry(phase="Before"), "unknown_phase", "hooks.custom[0].phase", (4, 83), "mean before?", False),
    (entry(phase="never"), "unknown_phase", "hooks.custom[0].phase", (4, 83), "before or after", False),
    (entry(phase="1"), "wrong_type", "hooks.custom[0].phase", (4, 83), "a number", False),
    # filter
    (entry(filter="[edit]"), "wrong_type", "hooks.custom[0].filter", (4, 84), "a list, not a map", False),
    (entry(filter="{tool: [x]}"), "unknown_key", "hooks.custom[0].filter.tool", (4, 85), "mean tools", True),
    (entry(filter="{tools: edit}"), "wrong_type", "hooks.custom[0].filter.tools", (4, 92), "[edit]", False),
    (entry(filter="{tools: []}"), "empty_filter", "hooks.custom[0].filter.tools", (4, 92), "never", False),
    (entry(filter="{tools: [1]}"), "wrong_type", "hooks.custom[0].filter.tools[0]", (4, 93), "quotes", False),
    (
        entry(filter="{tools: [a], tools: [b]}"),
        "duplicate_key",
        "hooks.custom[0].filter.tools",
        (4, 97),
        "first at 4:85",
        False,
    ),
    (
        entry(filter=f"{{tools: [{', '.join(f't{n}' for n in range(257))}]}}"),
        "too_many",
        "hooks.custom[0].filter.tools",
        (4, 92),
        "257 names",
        False,
    ),
    (
        entry(filter="{eventTypes: [session.idle]}"),
        "unused_filter",
        "hooks.custom[0].filter.eventTypes",
        (4, 85),
        "event is none of its events",
        True,
    ),
    (
        entry(events="[event]", filter="{tools: [edit]}"),
        "unused_filter",
        "hooks.custom[0].filter.tools",
        (4, 71),
        "none of its events is of a tool",
        True,
    ),
    (
        entry(events="[event]", filter="{tools: []}"),
        "empty_filter",
        "hooks.custom[0].filter.tools",
        (4, 78),
        "never fire",
        False,
    ),
    (
        entry(events="[event]", filter="{eventTypes: [session.idel]}"),
        "unknown_type",
        "hooks.custom[0].filter.eventTypes[0]",
        (4, 83),
        "mean session.idle?",
        True,
    ),
    (
        entry(events="[event]", filter="{eventTypes: [turn_complete]}"),
        "unknown_type",
        "hooks.custom[0].filter.eventTypes[0]",
        (4, 83),
        "mean session.idle?",
        True,
    ),
    (
        entry(events="[event]", filter="{eventTypes: [tool_call]}"),
        "unknown_type",
        "hooks.custom[0].filter.eventTypes[0]",
        (4, 83),
        "events: [tool.execute.after]",
        True,
    ),
    (
        entry(events="[event]", filter="{eventTypes: [chat.message]}"),
        "unknown_type",
        "hooks.custom[0].filter.eventTypes[0]",
        (4, 83),
        "events: [chat.message]",
        True,
    ),
    # config
    (entry(config="warn"), "wrong_type", "hooks.custom[0].config", (4, 84), "not a mapping", False),
    (entry(config="[a]"), "wrong_type", "hooks.custom[0].config", (4, 84), "not a mapping", False),
    (entry(config="{a: .inf}"), "no_json", "hooks.custom[0].config.a", (4, 88), '".inf"', False),
    (entry(config="{a: [.nan]}"), "no_json", "hooks.custom[0].config.a[0]", (4, 89), '".nan"', False),
    (entry(config="{a: !x 1}"), "no_json", "hooks.custom[0].config.a", (4, 88), "a tag", False),
    (entry(config="{a: !x {}}"), "no_json", "hooks.custom[0].config.a", (4, 88), "a tag", False),
    (entry(config="{a: !!int x}"), "no_json", "hooks.custom[0].config.a", (4, 88), '"x"', False),
    (entry(config="{a: 1, a: 2}"), "duplicate_key", "hooks.custom[0].config.a", (4, 91), "4:85", False),
    (entry(config="{[a]: 1}"), "unknown_key", "hooks.custom[0].config", (4, 85), "a list is no key", True),
    (entry(config="&c {a: *c}"), "config_too_large", "c", (4, 84), "refers to itself", False),
    (
        entry(config=f'{{a: "{"x" * 65_536}"}}'),
        "config_too_large",
        "hooks.custom[0].config",
        (4, 84),
        "65,544 bytes",
        False,
    ),
    (
        entry(config=f"{{'a b': [{'1, ' * 10_000}]}}"),
        "config_too_large",
        'hooks.custom[0].config."a b"[9998]',
        (4, 30_087),
        "10,000 values",
        False,
    ),
    # other keys
    (entry(moduel="x"), "unknown_key", "hooks.custom[0].moduel", (4, 76), "mean module?", True),
    (entry(zzz="x"), "unknown_key", "hooks.custom[0].zzz", (4, 76), "keys are name, desc", True),
    (entry() + ", name: b", "duplicate_key", "hooks.custom[0].name", (4, 76), "first at 4:8", False),
    (entry(description="[x]"), "odd_type", "hooks.custom[0].description", (4, 89), "left out", True),
]


@pytest.mark.parametrize("text, code, field, where, words, runs", WRONG_HOOKS)
def test_a_fault_in_a_hook_is_one_diagnostic_and_leaves_its_siblings(
    text: str, code: str, field: str, where: tuple[int, int], words: str, *, runs: bool
) -> None:
    """One remark with line, column and field says what is wrong; the hook runs or not, its sibling does."""
    role = read(role_of(text) + SIBLING)
    diagnostic = only(role)
    assert (diagnostic.code, diagnostic.line, diagnostic.column) == (code, *where)
    assert field in (diagnostic.field or "")
    assert words in f"{diagnostic.message}; {diagnostic.hint}"
    assert diagnostic.severity == rules.CODES[code]
    assert [hook.index for hook in role.hooks] == ([0, 1] if runs else [1])


def test_an_entry_that_is_no_mapping_is_one_diagnostic() -> None:
    """Text, a number, nothing or a list instead of a hook is told; the sibling runs."""
    for written in ("text", "5", "~", "[a]", "!tag {}"):
        role = read(f"name: Coder\nhooks:\n  custom:\n    - {written}\n{SIBLING}")
        assert (only(role).code, only(role).line, only(role).column) == ("wrong_type", 4, 7)
        assert len(role.hooks) == 1


def test_several_faults_of_a_hook_are_all_told() -> None:
    """Nothing hides behind the first fault."""
    role = read(role_of("events: [x], priority: a, phase: b, filter: {tools: []}, config: 1, module: 1"))
    assert sorted(said(role)) == [
        "bad_number",
        "empty_filter",
        "missing_key",
        "unknown_event",
        "unknown_phase",
        "wrong_type",
        "wrong_type",
    ]
    assert role.hooks == ()
    assert not role.refused


def test_a_quoted_number_is_taken_for_the_number() -> None:
    """rolebox orders by the number that a text is."""
    assert read(role_of(entry(priority='" 10 "'))).hooks[0].priority == 10


def test_hooks_of_one_name_both_run_and_it_is_said() -> None:
    """The name is a label; two of one are told, because reports mix them up."""
    role = read(role_of(entry(), entry()))
    assert [hook.index for hook in role.hooks] == [0, 1]
    assert (only(role).code, only(role).line, only(role).field) == ("same_name", 5, "hooks.custom[1]")


def test_hooks_beyond_the_limit_do_not_run() -> None:
    """The first 256 run; what is left out is said once."""
    role = read(role_of(*(entry(name=f"h{n}") for n in range(258))))
    assert (len(role.hooks), role.bad_hooks) == (rules.MAX_HOOKS, 2)
    assert (only(role).code, only(role).line) == ("too_many", 4 + rules.MAX_HOOKS)
    assert "258 hooks" in only(role).message


def test_merged_keys_are_bounded_in_the_whole_file() -> None:
    """What ``<<`` brings is counted, so that a small file stays a small task."""
    wide = "{" + ", ".join(f"k{n}: 1" for n in range(101)) + "}"
    many = ", ".join(["*w"] * 100)
    role = read(role_of(entry(config=f"{{a: &w {wide}, b: {{<<: [{many}]}}}}")) + SIBLING)
    assert said(role) == ["too_many"]
    assert [hook.name for hook in role.hooks] == ["sibling"]


def test_a_merge_brings_keys_into_a_hook() -> None:
    """Hooks may share what they have in common; unknown keys of the shared part are passed over."""
    shared = "name: a, events: [event], module: a.js, x-note: 1"
    role = read(f"name: Coder\nhooks:\n  custom:\n    - &a {{{shared}}}\n    - {{<<: *a, name: b}}\n")
    assert [(hook.name, hook.module) for hook in role.hooks] == [("a", "a.js"), ("b", "a.js")]
    assert said(role) == ["unknown_key"]


def test_what_a_merge_names_that_is_no_mapping_brings_nothing() -> None:
    """A list of keys or a text cannot be merged, and is passed over."""
    assert one(role_of("<<: [x], " + entry())).name == "check"


def test_half_of_a_surrogate_pair_is_told_wherever_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable may hold such text, and PyYAML without libyaml lets an escape make it."""
    role = read(role_of(entry(config='{a: "{env:X}"}')), {"X": "\udc80"})
    assert (only(role).code, only(role).field) == ("bad_character", "hooks.custom[0].config.a")
    assert role.hooks == ()
    monkeypatch.delattr(yaml, "CSafeLoader")
    role = read(role_of(entry(config='{"\\ud800": 1}')))
    assert (only(role).code, only(role).field) == ("bad_character", "hooks.custom[0].config")


# ---- what is wrong with a role ------------------------------------------------------------------------

WRONG_ROLES = [
    ("name: 5\nprompt: x", "wrong_type", (1, 7), "not a string"),
    ("name: [a]\nprompt: x", "wrong_type", (1, 7), "a list"),
    ("prompt: x", "no_name", (1, 1), "called by its folder"),
    ("name: ' '\nprompt: x", "no_name", (1, 7), "called by its folder"),
    ("name: ~\nprompt: x", "no_name", (1, 1), "called by its folder"),
    ("name: a\nhooks: []", "wrong_type", (2, 8), "a list, not a mapping"),
    ("name: a\nhooks: {custom: {a: 1}}", "wrong_type", (2, 17), "a mapping, not a list"),
    ("name: a\nhooks: {custom: x}", "wrong_type", (2, 17), "custom: [x]"),
    ("name: a\nhooks: {custm: []}", "unknown_key", (2, 9), "mean custom?"),
    ("name: a\nhooks: {builtin: true}", "wrong_type", (2, 18), "not a mapping"),
    ("name: a\nhooks: {builtin: {auto_activate: [x]}}", "wrong_type", (2, 34), "true or false"),
    ("name: a\nhooks: {builtin: {auto_activat: true}}", "unknown_key", (2, 19), "mean auto_activate?"),
    ("name: a\nhooks: {builtin: {recovery: true}}", "not_provided", (2, 19), "does nothing here"),
    ("name: a\nsubagents: [x, {name: b}, {hooks: {}}]", "not_provided", (2, 28), "subagent are not read"),
    ("name: a\nhook: {}", "unknown_key", (2, 1), "mean hooks?"),
    ("name: a\nprompt: x\nzzzz: 1", "other_key", (3, 1), "no key of a role"),
    ("name: a\nprompt: x\n[a]: 1", "unknown_key", (3, 1), "a list is no key"),
    ("name: a\nprompt: x\nname: b", "duplicate_key", (3, 1), "first at 1:1"),
    ("name: a\nlocked: 'yes'", "wrong_type", (2, 9), "true or false"),
    ("name: a\nfunctions: review", "wrong_type", (2, 12), "functions: [review]"),
    ("name: a\nfunctions: [Review]", "bad_function_name", (2, 13), "a-z, 0-9 and dashes"),
    ("name: a\nfunctions: [1]", "wrong_type", (2, 13), "in quotes"),
    ("name: a\nauto_activate: [pln]", "unknown_function", (2, 17), "mean plan?"),
    ("name: a\nauto_activate: [zzz]", "unknown_function", (2, 17), "name it in functions"),
    (f"name: a\nfunctions: [{', '.join(f'f{n}' for n in range(65))}]", "too_many", (2, 323), "65 functions"),
    ("\ufeffname: a\nprompt: x", "byte_order_mark", (None, None), "ignored"),
]


@pytest.mark.parametrize("text, code, where, words", WRONG_ROLES)
def test_a_fault_of_the_role_is_one_diagnostic_and_leaves_the_rest(
    text: str, code: str, where: tuple[int | None, int | None], words: str
) -> None:
    """One remark says what is wrong and where; the role itself is still a role."""
    role = read(text)
    diagnostic = only(role)
    assert (diagnostic.code, diagnostic.line, diagnostic.column) == (code, *where)
    assert words in f"{diagnostic.message}; {diagnostic.hint}"
    assert not role.refused
    assert not role.foreign


def test_a_description_that_is_no_text_is_left_out() -> None:
    """A role's description is a note."""
    assert read("name: a\nprompt: x\ndescription: [x]").description == ""


# ---- what is no role at all ---------------------------------------------------------------------------

KUBERNETES = "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: a}}\nrules: []\n"
FOREIGN = [
    (KUBERNETES.format(kind="Role"), "a Role of Kubernetes"),
    ("# rights\n---\n" + KUBERNETES.format(kind="ClusterRole"), "a ClusterRole of Kubernetes"),
    (KUBERNETES.format(kind="Role") + "---\n" + KUBERNETES.format(kind="RoleBinding"), "Role of Kubernetes"),
    ("---\n---\nkind: Role\napiVersion: v1\n", "a Role of Kubernetes"),
    (
        '{{- if .Values.rbac }}\napiVersion: v1\nkind: Role\nname: {{ include "x" . }}\n{{- end }}\n',
        "a template",
    ),
    ("- hosts: all\n  roles: [nginx]\n", "a list of Ansible"),
    ("galaxy_info: {author: me}\ndependencies: []\n", "a file of an Ansible role"),
    ("argument_specs: {main: {}}\n", "a file of an Ansible role"),
    ("name: admin\nrules: [read]\n", 'no role of rolebox: it holds "name", "rules"'),
    ("title: x\n---\ntitle: y\n", 'it holds "title"'),
    ("[a]: 1\n", 'it holds "a list"'),
    ("- a\n- b\n", "it holds a list"),
    ("text\n", "it holds a string"),
    ("!Role {a: 1}\n", "it holds a value with a tag"),
]


@pytest.mark.parametrize("text, words", FOREIGN)
def test_a_file_of_something_else_is_left_alone(text: str, words: str) -> None:
    """It is known by what it holds, also with several documents, and that is no error."""
    role = read(text)
    assert (role.refused, role.foreign, role.hooks) == (True, True, ())
    assert (only(role).severity, only(role).code) == ("info", "foreign_file")
    assert words in only(role).message


REFUSED = [
    ("", "empty_file", None, "is empty"),
    ("# nothing\n---\n---\n", "empty_file", None, "is empty"),
    ("name: a\nhooks: [", "not_yaml", 3, "not YAML"),
    ("kind: Role\nname: {{ x }} y\n", "not_yaml", 2, "not YAML"),
    ("name: a\nprompt: *x", "not_yaml", 2, "no anchor &x"),
    ("name: a\nprompt: x\n---\nname: b\nprompt: y\n", "several_documents", 4, "describes one role"),
    ("name: a\nhooks: " + "[" * 40 + "]" * 40, "too_deep", 2, "more than 32 deep"),
    (b"name: \xff\n", "not_utf8", 1, "0xff"),
    (b"name: a\nprompt: \x01\n", "not_yaml", 2, "does not allow"),
    (b"prompt: |\n" + b"  x\n" * 300_000, "file_too_large", None, "more than 1,048,576"),
]


@pytest.mark.parametrize("text, code, line, words", REFUSED)
def test_a_file_that_cannot_be_used_is_refused(
    text: str | bytes, code: str, line: int | None, words: str
) -> None:
    """One error says why; nothing of the file is used, and it is not taken for somebody else's."""
    role = read(text)
    assert (role.refused, role.foreign, role.hooks) == (True, False, ())
    assert (only(role).severity, only(role).code, only(role).line) == ("error", code, line)
    assert words in only(role).message


def test_a_misspelled_key_still_makes_a_role() -> None:
    """Somebody who writes ``hook`` means a role, and is told so."""
    role = read("name: a\nprompts: x\n")
    assert not role.refused
    assert said(role) == ["other_key"]


def test_remarks_are_bounded_and_counted() -> None:
    """A file full of faults gives a bounded number of remarks, and the number of the others."""
    role = read(role_of(*(f"name: a{n}, events: [x], module: a.js, zz: 1" for n in range(250))))
    assert len(role.diagnostics) == rules.MAX_DIAGNOSTICS + 1
    assert role.diagnostics[-1].code == "more_findings"
    assert role.diagnostics[-1].message == f"{500 - rules.MAX_DIAGNOSTICS} more findings are not listed"


PIECES = st.sampled_from(
    [
        *("name: a\n", "hooks:\n", "  custom:\n", "    - name: x\n", "      events: [event]\n"),
        *(
            "      module: a.js\n",
            "      config: &a {b: *a}\n",
            "      <<: *a\n",
            "      filter: {tools: []}\n",
        ),
        *(
            "  builtin: {auto_activate: true}\n",
            "functions: [a]\n",
            "---\n",
            "- x\n",
            "{",
            "}",
            "[",
            "]",
            ": ",
        ),
        *(
            "kind: Role\n",
            "apiVersion: v1\n",
            "auto_activate: ~\n",
            "      priority: 1e999\n",
            "&a ",
            "*a ",
            "\t",
        ),
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=25).map("".join))
def test_reading_never_raises_and_every_remark_has_its_place(text: str) -> None:
    """Whatever bytes there are: a role comes back, its hooks are whole and its remarks lie in the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        role = read(text.encode("utf-8", "replace"), {"A": "b"})
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + 2
    lines += text.count("\u2029")
    for diagnostic in role.diagnostics:
        assert diagnostic.severity == rules.CODES[diagnostic.code]
        assert diagnostic.line is None or 1 <= diagnostic.line <= lines
    for hook in role.hooks:
        assert hook.name
        assert hook.events
        assert hook.config is None or isinstance(json.loads(hook.config), dict)
    assert not (role.refused and role.hooks)
