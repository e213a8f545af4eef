"""Hooks of roles, in JavaScript and Python, over a real bus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.client import Event, Subscriber
from broker.client.tool import Tool
from broker.testing import running_broker
from tests.integration.roles_scene import (
    AFTER,
    Agent,
    Role,
    Roles,
    agent,
    fresh,
    hook,
    roles,
)
from tests.integration.shell_scene import Monitor
from tests.integration.waiting import until

TRACE_JS = """
let loaded = 0;
export default {
  onLoad: (ctx) => {
    loaded += 1;
    ctx.log.info(`loaded ${ctx.hookName} ${loaded}`);
    ctx.inject("of no session");
  },
  onToolBefore: (ctx, { tool, args }) => { args.trace.push(`${ctx.hookName}:${args.trace.length}`); },
  onToolAfter: async (ctx, { output }) => { ctx.inject(`${ctx.hookName} saw ${output}`); },
  onDispose: (ctx) => { ctx.log.info(`disposed ${ctx.hookName}`); },
};
"""
TRACE_PY = """
def on_tool_before(ctx, tool, args):
    args["trace"].append(f"{ctx.hook_name}:{len(args['trace'])}")

async def on_tool_after(ctx, tool, args, output):
    ctx.inject(f"{ctx.hook_name} saw {output}")

def on_dispose(ctx):
    ctx.log.info(f"disposed {ctx.hook_name}")
"""
ECHO_PY = """
from broker.client import Publisher

publishers = []

def on_event(ctx, type, properties):
    publishers[:] = publishers or [Publisher("echo", on_absent="raise")]
    publishers[0].publish("prx.lifecycle.echo", properties, session_id=ctx.session_id)

def on_dispose(ctx):
    for publisher in publishers:
        publisher.close()
"""


class Scene(NamedTuple):
    """A bus, and a folder for roles."""

    bus: str
    folder: Path

    def role(self, name: str) -> Role:
        """A directory of a role."""
        return Role(self.folder / name)

    def log(self, name: str) -> Path:
        """A file for the log of a process."""
        return self.folder / f"{name}.log"


@pytest.fixture(scope="module")
def scene(require_tool: Callable[[str], str]) -> Iterator[Scene]:
    """A bus without roles."""
    require_tool("node")
    with fresh() as folder, running_broker(Path(folder, "bus")) as bus:
        yield Scene(bus, Path(folder))


@pytest.fixture(scope="module")
def quality(scene: Scene) -> Iterator[Roles]:
    """A role with hooks in both languages, at work, beside another role."""
    role = scene.role("quality")
    role.write("trace.mjs", TRACE_JS)
    role.write("trace.py", TRACE_PY)
    role.write("echo.py", ECHO_PY)
    role.hooks(
        hook("py-late", "trace.py", "tool.execute.before"),
        hook("js-late", "trace.mjs", "tool.execute.before", "tool.execute.after", priority=60),
        hook("js-early", "trace.mjs", "tool.execute.before", phase="before", priority=10),
        hook("py-early", "trace.py", "tool.execute.before", phase="before", priority=5),
        hook("py-after", "trace.py", "tool.execute.after", filter={"tools": ["write"]}, priority=70),
        hook("echo", "echo.py", "event", filter={"eventTypes": ["echo"]}),
        auto_activate=["review"],
        functions=["review"],
    )
    other = scene.role("other")
    other.write("trace.py", TRACE_PY)
    other.hooks(hook("only", "trace.py", "tool.execute.before"))
    with roles(scene.bus, scene.log("quality"), role.directory, other.directory) as running:
        yield running


@pytest.fixture
def session(scene: Scene, quality: Roles) -> Iterator[Agent]:
    """An agent whose session ``s`` plays the role quality."""
    with agent(scene.bus) as found:
        found.ask("session_start", {"role": "quality"})
        yield found


WHOLE = ["py-early:0", "js-early:1", "py-late:2", "js-late:3"]


def test_priorities_order_hooks_of_both_languages_and_each_sees_the_last_edit(session: Agent) -> None:
    """Before hooks, then after hooks, the lower number first, whatever they are written in."""
    assert session.args()["trace"] == WHOLE
    first = session.args(phase="before")
    assert first["trace"] == WHOLE[:2]
    assert session.args(phase="after", arguments=first)["trace"] == WHOLE


def test_hooks_fire_for_the_sessions_of_their_role(quality: Roles, session: Agent) -> None:
    """By the role that a session named; one without fires nothing where two are loaded, and it is said."""
    session.ask("session_start", {"role": "other"}, "t")
    assert session.args("t")["trace"] == ["only:0"]
    session.ask("session_start", {"role": "cook"}, "u")
    assert session.args("u")["trace"] == session.args("v")["trace"] == []
    quality.until_logged("subscribers.roles", "'cook', a role that is not loaded")
    quality.until_logged("subscribers.roles", "a session that names no role fires nothing")


def test_what_hooks_inject_is_in_the_next_prompt_once(session: Agent) -> None:
    """One element, in the order of the hooks; the functions of the role stand behind it."""
    session.ask("user_prompt", {"prompt": "hello"})
    session.ask(AFTER, {"tool": "write", "arguments": {}, "output": "x"})
    session.ask(AFTER, {"tool": "read", "arguments": {}, "output": "y"})
    active = "Active functions: review"
    assert session.prompt() == ["base", "js-late saw x\npy-after saw x\njs-late saw y", active]
    assert session.prompt() == ["base", active]
    asked = session.ask("prx.rolebox.functions", {})
    assert asked.output == {"active": ["review"], "locked": []}


def test_what_is_injected_while_a_module_is_loaded_is_said_to_be_lost(quality: Roles) -> None:
    """It is of no session; the log names the hook, which is not in force yet."""
    quality.until_logged("subscribers.roles", "injected without a session")
    said = quality.lines("subscribers.roles", "injected without a session")
    assert "js-late" in {line["hook"] for line in said}


def test_an_event_that_is_published_and_asked_is_handled_once(scene: Scene, session: Agent) -> None:
    """Every run is reported once; what nobody asked about is, with its decision ignored."""
    monitor = Monitor(scene.bus)
    with Subscriber(["prx.lifecycle.tool_call_start"], name="copies", runtime_dir=scene.bus) as copies:
        session.args()
        (copy,) = copies.batch(timeout=20)
    payload = {"tool": "write", "arguments": {"trace": []}}
    session.publisher.publish("prx.lifecycle.tool_call_start", payload, session_id="s")
    runs = [run for run in monitor.runs(8) if run["event"] == "tool_call_start"]
    assert [run["reason"] for run in runs if run["event_id"] == copy.id] == [None] * 4
    ignored = {run["reason"] for run in runs if run["event_id"] != copy.id}
    assert ignored == {"observed, decision ignored"}
    assert {run["dialect"] for run in runs} == {"rolebox"}
    monitor.events.close()


def test_a_hook_that_publishes_what_it_listens_to_comes_to_an_end(scene: Scene, session: Agent) -> None:
    """Each event is one level deeper than the one that has led to it; the eighth reaches nobody."""
    monitor = Monitor(scene.bus)
    with Subscriber(["prx.lifecycle.echo"], name="echoes", runtime_dir=scene.bus) as echoes:
        session.publisher.publish("prx.lifecycle.echo", {"n": 1}, session_id="s")
        heard: list[Event] = []
        until(lambda: len(heard.__iadd__(echoes.batch(timeout=0.1))) >= 8, "eight echoes")
    assert [event.depth for event in heard] == [*range(8)]
    assert [event.caused_by for event in heard] == [None, *(event.id for event in heard[:-1])]
    assert len([run for run in monitor.runs(8) if run["event"] == "echo"]) == 8
    monitor.events.close()


def test_many_sessions_at_once_each_get_their_own_edits(session: Agent) -> None:
    """More than a host takes calls of one hook: they wait, and none is lost."""

    def turn(number: int) -> list[list[str]]:
        session.ask("session_start", {"role": "quality"}, f"m{number}")
        return [session.args(f"m{number}", timeout=40.0)["trace"] for _ in range(3)]

    with ThreadPoolExecutor(80) as threads:
        assert list(threads.map(turn, range(80))) == [[WHOLE] * 3] * 80


def test_every_module_is_loaded_for_each_hook(quality: Roles, session: Agent) -> None:
    """Two hooks of one file share nothing; both are loaded once."""
    loaded = [line["event"] for line in quality.lines("hook:js-late") + quality.lines("hook:js-early")]
    assert sorted(loaded) == ["loaded js-early 1", "loaded js-late 1"]


def test_without_node_the_hooks_in_python_run_and_the_others_are_named(tmp_path: Path) -> None:
    """With the reason, in the log, in the ready line and in the broker's status."""
    with fresh() as folder, running_broker(Path(folder, "bus")) as bus, agent(bus) as asking:
        role = Role(Path(folder, "mixed"))
        role.write("trace.mjs", TRACE_JS)
        role.write("trace.py", TRACE_PY)
        role.hooks(*(hook(name, f"trace.{name}", "tool.execute.before") for name in ("py", "mjs")))
        log = Path(folder, "log")
        with roles(bus, log, role.directory, options=("--node", "/nowhere/node")) as running:
            assert (running.said["role_hooks"], running.said["role_hooks_refused"]) == (1, 1)
            assert asking.args()["trace"] == ["py:0"]
            (said,) = running.lines("hook:custom-loader")
            assert (said["hook"], said["modulePath"]) == ("mjs", str(role.directory / "trace.mjs"))
            assert said["err"].startswith("needs Node 20 or newer")
            until(lambda: (_counters(bus).get("runs") or {}).get("ok") == 1, "the broker's status")
            counters = _counters(bus)
            assert (counters["roles"], counters["hooks"], counters["refused"]) == (1, 1, 1)


def _counters(bus: str) -> dict[str, Any]:
    """What the broker's status has of the process."""
    with Tool("status", runtime_dir=bus) as tool:
        rows = tool.request("status").body["status"]["deciders"]
    (row,) = [row for row in rows if row["name"] == "roles"]
    return dict(row)


def test_texts_roles_and_functions_survive_kill_9(require_tool: Callable[[str], str]) -> None:
    """The process that comes after it knows what was injected before the ask was answered."""
    require_tool("node")
    with fresh() as folder, running_broker(Path(folder, "bus")) as bus, agent(bus) as asking:
        role, empty, log = Role(Path(folder, "lasting")), Role(Path(folder, "empty")), Path(folder, "log")
        role.write("trace.mjs", TRACE_JS)
        functions = {"auto_activate": ["review"], "functions": ["review"], "locked": True}
        role.hooks(hook("js", "trace.mjs", "tool.execute.after"), **functions)
        empty.hooks()
        with roles(bus, log, role.directory, empty.directory) as running:
            asking.ask("agent_start", {"role": "lasting"})
            asking.ask("user_prompt", {"prompt": "hello"})
            asking.ask(AFTER, {"tool": "t", "output": "it"})
            running.kill()
        assert Path(bus, "roles.db").stat().st_mode & 0o777 == 0o600
        with roles(bus, log, role.directory, empty.directory):
            assert asking.prompt() == ["base", "js saw it", "Active functions: review (locked)"]
            assert asking.prompt() == ["base", "Active functions: review (locked)"]
