"""What rolebox's own tests assert of hooks, asserted of ours; where we differ on purpose, that.

One role of two hooks, in JavaScript with named exports (phase before) and in Python (after), sees a session
of an agent; what they were given is compared. ``program.py`` lists what is known of the program.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from broker.client import Publisher
from tests.conformance.rolebox.program import ROWS, Row
from tests.conformance.rolebox.sentences import FILES
from tests.conformance.shown import not_tests
from tests.integration.rolebox_scene import NODE, node_version, role, roles_up

EVENTS = "[chat.message, tool.execute.before, tool.execute.after, system.transform, event]"

ROLE = f"""
name: Mirror
functions: [checks]
auto_activate: [checks]
hooks:
  custom:
    - name: last
      events: {EVENTS}
      module: hooks/mirror.py
      config: {{file: FILE}}
    - name: first
      events: {EVENTS}
      module: hooks/mirror.js
      config: {{file: FILE}}
      phase: before
"""

JAVASCRIPT = """
import { appendFileSync } from "node:fs";

let opened;
const tell = (ctx, handler, input) => appendFileSync(opened, JSON.stringify(
  [ctx.hookName, handler, input ?? null, ctx.sessionID ?? null, ctx.agent ?? null]) + "\\n");
export const onLoad = (ctx) => { opened = ctx.config.file; tell(ctx, "onLoad"); };
export const onDispose = (ctx) => { tell(ctx, "onDispose"); opened = undefined; };
export const onChatMessage = (ctx, input) => tell(ctx, "onChatMessage", input);
export const onToolAfter = (ctx, input) => tell(ctx, "onToolAfter", input);
export const onEvent = (ctx, input) => tell(ctx, "onEvent", input);
export async function onToolBefore(ctx, input) {
  tell(ctx, "onToolBefore", input);
  input.args.first = true;
}
export function onSystemTransform(ctx, input) {
  tell(ctx, "onSystemTransform", input);
  input.system = [...input.system, "first"];
}
"""

PYTHON = '''
import json


class Mirror:
    """A class is made once; handlers are its methods, named as they are documented or in snake case."""

    def on_load(self, ctx):
        self.file = open(ctx.config["file"], "a", buffering=1)
        self.tell(ctx, "onLoad")

    def on_dispose(self, ctx):
        self.tell(ctx, "onDispose")
        self.file.close()

    def tell(self, ctx, handler, given=None):
        self.file.write(json.dumps([ctx.hook_name, handler, given, ctx.session_id, ctx.agent]) + "\\n")

    def on_chat_message(self, ctx, text):
        self.tell(ctx, "onChatMessage", {"text": text})

    async def on_tool_before(self, ctx, tool, args):
        self.tell(ctx, "onToolBefore", {"tool": tool, "args": args})
        args["last"] = True

    def onToolAfter(self, ctx, given):
        self.tell(ctx, "onToolAfter", given)

    def on_event(self, ctx, type, properties):
        self.tell(ctx, "onEvent", {"type": type, "properties": properties})

    def on_system_transform(self, ctx, system):
        self.tell(ctx, "onSystemTransform", {"system": system})
        return [*system, "last"]


hook = Mirror
'''


class Told(NamedTuple):
    """A call of a handler, as the hook has written it down."""

    hook: str
    handler: str
    given: Any
    session: str | None
    agent: str | None


class Seen(NamedTuple):
    """All calls in order, and what came back to the agent, by a name for each of its calls."""

    calls: list[Told]
    back: dict[str, Any]

    def of(self, handler: str) -> list[Told]:
        """The calls of one handler."""
        return [call for call in self.calls if call.handler == handler]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, require_tool: Callable[[str], str]) -> Seen:
    """A session from its start to the end of ``prxbus up``."""
    require_tool("node")
    if node_version()[0] < NODE:
        pytest.skip(f"modules in JavaScript need Node {NODE}")
    folder = tmp_path_factory.mktemp("program")
    file = folder / "told"
    directory = role(
        folder / "mirror",
        {
            "role.yaml": ROLE.replace("FILE", str(file)),
            "hooks/mirror.js": JAVASCRIPT,
            "hooks/mirror.py": PYTHON,
            "functions/checks.md": "Say what you have checked.\n",
        },
    )
    back: dict[str, Any] = {}
    with roles_up(folder, directory) as roles, roles.agent("s1", "mirror") as agent:
        back["empty"] = agent.system_transform([])
        back["message"] = agent.chat_message("One")
        agent.chat_message("Two")
        back["before"] = agent.tool_before("no-such-tool", {"odd": 1})
        back["after"] = agent.tool_after("no-such-tool", {"odd": 1}, {"text": "x"})
        agent.event("session.idle", {"a": 1})
        agent.event("todo.updated", {"b": [1]})
        back["prompt"] = agent.system_transform(["You."])
        with Publisher("nobody", runtime_dir=roles.bus, on_absent="raise") as other:
            call = {"tool": "t", "arguments": {}}
            asked = other.ask("prx.lifecycle.tool_call_start", call, timeout=30.0)
            back["without a session"] = asked.updated_input
    return Seen([Told(*json.loads(line)) for line in file.read_text().splitlines()], back)


def test_tool_before_runs_in_both_phases_with_tool_and_args(seen: Seen) -> None:
    """Before, then after; a tool that nobody knows passes, and each sees what the other left."""
    first, last = [call for call in seen.of("onToolBefore") if call.session == "s1"]
    assert first == Told(
        "first", "onToolBefore", {"tool": "no-such-tool", "args": {"odd": 1}}, "s1", "agent-7"
    )
    assert last.given == {"tool": "no-such-tool", "args": {"odd": 1, "first": True}}
    assert seen.back["before"] == {"odd": 1, "first": True, "last": True}


def test_tool_after_runs_in_both_phases_whatever_is_active(seen: Seen) -> None:
    """With tool, args and output; rolebox runs the after phase only while a function is active."""
    given = {"tool": "no-such-tool", "args": {"odd": 1}, "output": {"text": "x"}}
    assert [(call.hook, call.given) for call in seen.of("onToolAfter")] == [("first", given), ("last", given)]
    assert seen.back["after"] == {"text": "x"}


def test_chat_message_runs_in_both_phases_and_activates_once(seen: Seen) -> None:
    """With the text; the functions of the role are active from the first message on, and named once."""
    said = [(call.hook, call.given["text"]) for call in seen.of("onChatMessage")]
    assert said == [("first", "One"), ("last", "One"), ("first", "Two"), ("last", "Two")]
    assert seen.back["message"] == "One"
    assert sum("Say what you have checked." in part for part in seen.back["prompt"]) == 1


def test_system_transform_runs_in_both_phases_around_the_core(seen: Seen) -> None:
    """The before hook's part, the functions of the role, the after hook's part; nothing for no functions."""
    assert seen.back["empty"] == ["first", "last"]
    you, first, functions, last = seen.back["prompt"]
    assert (you, first, last) == ("You.", "first", "last")
    assert functions.startswith("Active functions: checks")


def test_a_hook_of_event_gets_its_type_and_properties_of_any_type(seen: Seen) -> None:
    """In both phases; the start of the session is an event too."""
    calls = [call for call in seen.of("onEvent") if call.session == "s1"]
    given = [(call.hook, call.given["type"]) for call in calls]
    types = ["session.created", "session.idle", "todo.updated"]
    assert given == [(hook, kind) for kind in types for hook in ("first", "last")]
    idle, todo = calls[2], calls[5]
    assert idle.given["properties"] == {"a": 1}
    assert todo.given == {"type": "todo.updated", "properties": {"b": [1]}}


def test_an_event_without_a_session_reaches_the_only_role(seen: Seen) -> None:
    """Its hooks run, with no session in ctx; rolebox runs none."""
    without = [call for call in seen.of("onToolBefore") if call.session is None]
    assert [call.hook for call in without] == ["first", "last"]
    assert seen.back["without a session"] == {"first": True, "last": True}


def test_a_hook_knows_its_name_and_config_while_it_is_loaded(seen: Seen) -> None:
    """Each is loaded once, before any event, and has no session then."""
    loaded = seen.of("onLoad")
    assert sorted(call.hook for call in loaded) == ["first", "last"]
    assert {(call.session, call.agent) for call in loaded} == {(None, None)}
    assert seen.calls.index(loaded[-1]) == 1


def test_what_is_opened_while_it_is_loaded_is_there_until_it_is_disposed(seen: Seen) -> None:
    """Every handler used what ``onLoad`` had opened; ``onDispose`` comes last, once for each."""
    assert sorted(call.hook for call in seen.of("onDispose")) == ["first", "last"]
    for hook in ("first", "last"):
        assert [call.handler for call in seen.calls if call.hook == hook][-1] == "onDispose"


@pytest.mark.parametrize("row", ROWS, ids=[row.about.replace(" ", "-") for row in ROWS])
def test_every_behaviour_of_the_program_is_answered(row: Row) -> None:
    """What is known of the program has tests that show ours, the same or another, and they exist."""
    assert row.shown_by
    assert not_tests(row.shown_by, FILES) == []
