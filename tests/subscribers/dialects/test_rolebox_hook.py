"""What is wrong with an entry of a role.yaml: one diagnostic each, and its siblings run."""

from __future__ import annotations

import pytest
import yaml

from subscribers.dialects import rolebox_rules as rules
from tests.subscribers.dialects.rolebox_texts import SIBLING, entry, one, only, read, role_of, said

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
