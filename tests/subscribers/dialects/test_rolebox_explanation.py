"""A role.yaml explained: each hook with each event, whether it fires, and why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import rolebox_rules as rules
from subscribers.dialects.rolebox_explanation import Located, Timeout, explain, topics_of
from subscribers.dialects.rolebox_file import read_role
from subscribers.hooks.diagnostics import Diagnostic
from subscribers.hooks.explanation import HANDLERS, Explained

PATH = "/srv/roles/coder/role.yaml"
FIVE = Timeout(5.0, "default")
MISSING = Diagnostic("error", "missing_module", PATH, 5, 1, "hooks.custom[0].module", "no file", None)


def explained(text: str, modules: Mapping[int, Located] | None = None) -> Explained:
    """The role explained, by default with every module in its place."""
    content = text.encode()
    role = read_role(content, PATH)
    found = {hook.index: Located(f"/srv/roles/coder/{hook.module}") for hook in role.hooks}
    return explain(content, role, found if modules is None else modules, FIVE)


def hooks(*entries: str) -> str:
    """A role with these hooks, each in flow style without its braces."""
    return "name: Coder\nhooks:\n  custom:\n" + "".join(f"    - {{{entry}}}\n" for entry in entries)


def test_each_event_of_a_hook_is_a_handler_with_all_its_facts() -> None:
    """Event, filter, module, order, time, place and runtime are those of the file."""
    text = (
        "name: Coder\nhooks:\n  custom:\n    - name: check\n      module: hooks/check.js\n"
        "      priority: 10\n      phase: before\n"
        "      filter: {tools: [edit, write], eventTypes: [session.idle, own.kind]}\n"
        "      events:\n        - tool.execute.before\n        - event\n        - chat.message\n"
    )
    found = explained(text)
    assert (found.diagnostics, found.refused) == ((), False)
    tool, event, message = found.handlers
    assert (tool.event, tool.name, tool.index, tool.line) == ("tool.execute.before", "check", 0, 10)
    assert (tool.topics, tool.matcher) == (("prx.lifecycle.tool_call_start",), "tools: edit, write")
    assert (tool.runtime, tool.command, tool.args) == (
        "node",
        "hooks/check.js",
        ("phase=before", "priority=10"),
    )
    assert (tool.timeout_s, tool.timeout_from, tool.status) == (5.0, "default", "ok")
    assert tool.executable == "/srv/roles/coder/hooks/check.js"
    assert event.topics == ("prx.lifecycle.turn_complete", "prx.lifecycle.own_kind")
    assert event.matcher == "eventTypes: session.idle, own.kind"
    assert (message.topics, message.matcher, message.line) == (("prx.lifecycle.user_prompt",), None, 12)


def test_handlers_of_one_event_are_numbered_and_python_is_told() -> None:
    """The second hook of an event has the second number."""
    first, second = explained(
        hooks("name: a, events: [event], module: a.js", "name: b, events: [event], module: b.py")
    ).handlers
    assert [(h.index, h.runtime) for h in (first, second)] == [(0, "node"), (1, "python")]
    assert first.topics == topics_of("event")


def test_what_keeps_a_hook_from_running_stands_with_each_of_its_events() -> None:
    """Also where it is a warning only, because it is this machine's fault and not the file's."""
    warned = replace(MISSING, severity="warning", code="no_runtime")
    text = hooks("name: a, events: [chat.message, event], module: a.js, prioriti: 3")
    first, second = explained(text, {0: Located(None, (warned,))}).handlers
    assert (first.status, second.status) == ("dead", "dead")
    assert [said.code for said in first.diagnostics] == ["unknown_key", "no_runtime"]
    assert [said.code for said in second.diagnostics] == ["no_runtime"]


def test_topics_are_those_that_reach_the_handler() -> None:
    """``event`` without a filter hears of everything that has no handler of its own."""
    assert "prx.lifecycle.agent_start" in topics_of("event")
    assert "prx.lifecycle.tool_call" not in topics_of("event")
    assert topics_of("tool.execute.after") == ("prx.lifecycle.tool_call",)
    assert topics_of("system.transform", ("x",)) == ("prx.lifecycle.system_transform",)
    assert topics_of("event", ("session.created", "tool_call", "agent_end")) == (
        "prx.lifecycle.session_start",
        "prx.lifecycle.agent_end",
    )
    assert topics_of("nothing") == ()


@pytest.mark.parametrize(
    "entry,rows",
    [
        ("name: a, events: [event, evnt], module: a.js", [("event", "ok", []), ("evnt", "dead", [0])]),
        ("name: a, events: [1, event], module: a.js", [("1", "refused", [0]), ("event", "ok", [])]),
        ("name: a, events: [evnt], module: a.js", [("evnt", "refused", [0])]),
        ("name: a, events: [event, event], module: a.js", [("event", "ok", []), ("event", "ok", [0])]),
        ("name: a, events: event, module: a.js", [("", "refused", [0])]),
        ("name: a, module: a.js", [("", "refused", [0])]),
        (
            "name: a, events: [event, chat.message], module: a.js, phase: x, zzz: 1",
            [("event", "refused", [0, 1]), ("chat.message", "refused", [0])],
        ),
    ],
)
def test_what_does_not_fire_says_why(entry: str, rows: list[tuple[str, str, list[int]]]) -> None:
    """Remarks stand at the event that they are about; errors of a hook at each of its events."""
    found = explained(hooks(entry))
    said = read_role(hooks(entry).encode(), PATH).diagnostics
    shown = [(h.event, h.status, [said.index(d) for d in h.diagnostics]) for h in found.handlers]
    assert shown == rows
    assert found.diagnostics == ()


def test_an_entry_without_a_name_or_shape_is_called_by_its_place() -> None:
    """Nobody has to guess which entry is meant."""
    text = hooks("events: [event], module: a.js") + "    - text\n"
    assert [(h.name, h.status, h.line) for h in explained(text).handlers] == [
        ("hook#0", "refused", 4),
        ("hook#1", "refused", 5),
    ]


def test_a_hook_without_its_module_is_dead() -> None:
    """What is said of the module stands at each event of the hook."""
    text = hooks("name: a, events: [event, chat.message], module: a.js")
    found = explained(text, {0: Located(None, (MISSING,))})
    assert [(h.status, h.diagnostics, h.executable) for h in found.handlers] == [
        ("dead", (MISSING,), None)
    ] * 2


def test_merged_keys_are_shown() -> None:
    """What a hook has by ``<<`` is shown as its own."""
    text = (
        "name: Coder\nhooks:\n  custom:\n    - &a {name: a, events: [event], module: a.js}\n"
        "    - {<<: [x, *a], name: b}\n    - {<<: *a, name: c}\n"
    )
    assert [(h.name, h.event, h.command) for h in explained(text).handlers] == [
        ("a", "event", "a.js"),
        ("b", "event", "a.js"),
        ("c", "event", "a.js"),
    ]


def test_a_role_without_hooks_has_no_handlers() -> None:
    """Remarks on the role are remarks on the file."""
    for text in ("name: a\nprompt: x\n", "name: a\nhooks: {}\n", "name: a\nhooks: {custom: }\n"):
        assert explained(text) == Explained((), (), refused=False)
    found = explained("name: a\nhooks: {custom: {a: 1}}\n")
    assert (found.handlers, [d.code for d in found.diagnostics]) == ((), ["wrong_type"])


def test_a_foreign_file_is_not_refused() -> None:
    """It is no fault that something else has a file of this name; a broken role is one."""
    found = explained("apiVersion: v1\nkind: Role\n")
    assert (found.refused, [d.severity for d in found.diagnostics]) == (False, ["info"])
    assert explained("name: a\nhooks: [").refused


def test_handlers_are_bounded() -> None:
    """However many events the hooks of a file name."""
    many = ", ".join(["event"] * 8)
    text = hooks(*(f"name: h{n}, events: [{many}], module: a.js" for n in range(rules.MAX_HOOKS)))
    assert len(explained(text).handlers) == HANDLERS


def test_bytes_that_are_no_role_any_more_have_no_handlers() -> None:
    """The file may have changed between two looks; nothing is raised."""
    role = read_role(hooks("name: a, events: [event], module: a.js").encode(), PATH)
    assert explain(b"[", role, {}, FIVE).handlers == ()


@given(st.text(alphabet="abnem:ehks{}[],-<*& \n", max_size=120))
def test_explaining_never_raises(tail: str) -> None:
    """Whatever stands behind a good hook."""
    explained(hooks("name: a, events: [event], module: a.js") + tail)
