"""What a role that was read comes to, and what is logged of its hooks."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.logs import configure
from subscribers.hooks.module_plan import State
from subscribers.hooks.role_functions import Function
from subscribers.hooks.role_sessions import Named
from subscribers.runner.roles_reports import hook_log, log_missing, log_state
from subscribers.runner.roles_set import RoleSet, role_set
from subscribers.sources.role_directories import load_role
from subscribers.sources.role_modules import Languages

ROLE = """
name: The Coder
auto_activate: [review]
functions: [review]
locked: true
hooks:
  custom:
    - {name: late, events: [chat.message, event], module: h.py, priority: 60, filter: {eventTypes: [x]}}
    - {name: early, events: [tool.execute.before], module: h.py, phase: before, filter: {tools: [edit]}}
    - {name: script, events: [chat.message], module: h.mjs}
    - {name: first, events: [chat.message], module: h.py, priority: 1}
    - {name: gone, events: [chat.message], module: none.py}
    - {name: bad, events: [chat.mesage], module: h.py}
"""


@pytest.fixture
def roles(tmp_path: Path) -> RoleSet:
    """A role, one that is refused, and one without a name, on a machine without Node."""
    for name, text in (
        ("coder", ROLE),
        ("broken", "hooks: ["),
        ("bare", ROLE.replace("name: The Coder", "")),
    ):
        folder = tmp_path / name
        (folder / "functions").mkdir(parents=True)
        (folder / "role.yaml").write_text(text)
        (folder / "h.py").touch()
        (folder / "h.mjs").touch()
        (folder / "functions" / "review.md").write_text("---\nparams: {focus: care}\n---\nWith {focus}.\n")
    without = Languages(javascript="needs Node 20 or newer: there is none")
    return role_set([load_role(str(tmp_path / name), without) for name in ("coder", "broken", "bare")], 2.5)


def test_roles_come_to_names_chains_and_functions(roles: RoleSet) -> None:
    """In order; a refused role counts and has no place, a hook without a module is said with its reason."""
    assert roles.named == (Named("coder", "The Coder"), Named("bare", None))
    assert (roles.refused, roles.bad_hooks) == (1, 2)
    assert [link.name for link in roles.links((0,))] == ["early", "first", "late"]
    assert [link.name for link in roles.links((0, 1))] == ["early", "early", "first", "first", "late", "late"]
    assert roles.links((0, 1)) is roles.links((0, 1))
    early, _, late = roles.links((0,))
    assert (early.phase, early.tools, early.timeout_s) == ("before", frozenset({"edit"}), 2.5)
    assert (late.priority, late.event_types, late.label) == (60, frozenset({"x"}), "The Coder:late")
    assert roles.listens == {"chat.message", "event", "tool.execute.before"}
    assert len(roles.modules) == 6
    functions = roles.functions[0]
    assert (functions.auto, functions.locked) == (("review",), frozenset({"review"}))
    assert functions.functions["review"] == Function("review", "With {focus}.", (("focus", "care"),))
    assert [(each.role, each.name, each.reason) for each in roles.missing[:2]] == [
        ("The Coder", "script", "needs Node 20 or newer: there is none"),
        ("The Coder", "gone", roles.missing[1].reason),
    ]
    assert "none.py" in roles.missing[1].reason


@pytest.fixture
def logged() -> Iterator[StringIO]:
    """What is logged, as JSON lines."""
    stream = StringIO()
    configure("debug", json=True, stream=stream)
    yield stream
    configure()


def test_an_event_without_a_handler_is_warned_about(roles: RoleSet, logged: StringIO) -> None:
    """A name that is misspelt in a module is otherwise heard of by nobody: nothing happens, for ever."""
    log_state(next(iter(roles.hooks.values())), State("loaded", ("onEvent",)))
    *_, line = map(orjson.loads, logged.getvalue().splitlines())
    assert (line["logger"], line["level"]) == ("hook:custom-registry", "warning")
    assert line["event"] == 'Custom hook "late" has no handler for chat.message: nothing happens then'
    assert (line["exports"], line["role"]) == (["onEvent"], "The Coder")
    log_state(next(iter(roles.hooks.values())), State("loaded", (), "its module has none of the handlers"))
    *_, registered, line = map(orjson.loads, logged.getvalue().splitlines())
    assert registered["event"] == "Registered custom hook"
    assert line["event"] == 'Custom hook "late" has no handler for chat.message, event: nothing happens then'


def test_a_module_that_cannot_be_loaded_is_told_with_its_trace_and_what_to_do(
    roles: RoleSet, logged: StringIO
) -> None:
    """The trace alone would leave out what a reason adds, such as how a neighbour is imported."""
    log_state(next(iter(roles.hooks.values())), State("refused", (), "no sib; write 'from .sib'", "trace"))
    line = orjson.loads(logged.getvalue())
    assert (line["err"], line["reason"]) == ("trace", "no sib; write 'from .sib'")


def test_the_log_has_the_page_s_names_and_messages(roles: RoleSet, logged: StringIO) -> None:
    """Loader, registry, and a logger for each hook; what a hook logs cannot pose as something else."""
    hook = next(iter(roles.hooks.values()))
    log_state(hook, State("loading"))
    both = ("onEvent", "onChatMessage")
    log_state(hook, State("loaded", both))
    log_state(hook, State("loaded", both, "onLoad threw: Error: no", "trace"))
    log_state(hook, State("refused", (), "SyntaxError", None, kept=True))
    log_state(hook, State("quarantined", (), "it ended"))
    log_missing(roles.missing[1])
    hook_log(hook, "warn", "careful", {"logger": "root", "self": 2, "n": 1})
    hook_log(hook, "odd", "hello", {})
    lines: list[dict[str, Any]] = [orjson.loads(line) for line in logged.getvalue().splitlines()]
    assert [(line["logger"], line["level"], line["event"]) for line in lines] == [
        ("hook:custom-registry", "debug", "Registered custom hook"),
        ("hook:custom-registry", "debug", "Registered custom hook"),
        ("hook:custom-registry", "warning", 'Custom hook "late" onLoad threw'),
        ("hook:custom-loader", "warning", "Failed to load custom hook module"),
        ("hook:custom-registry", "warning", 'Custom hook "late" is quarantined'),
        ("hook:custom-loader", "warning", "Failed to load custom hook module"),
        ("hook:late", "warning", "careful"),
        ("hook:late", "info", "hello"),
    ]
    assert (lines[0]["name"], lines[0]["events"]) == ("late", ["chat.message", "event"])
    assert lines[2]["err"] == "trace"
    assert lines[3]["modulePath"].endswith("/h.py")
    assert (lines[3]["err"], lines[3]["kept"]) == ("SyntaxError", "the version before stays in force")
    assert lines[5]["modulePath"].endswith("/none.py")
    assert (lines[6]["field_logger"], lines[6]["n"], lines[6]["role"]) == ("root", 1, "The Coder")
