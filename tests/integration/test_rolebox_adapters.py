"""The adapters of agents, Python's two and Node's, against a real bus: one table of calls, the same answers.

Who answers here is a decider of the test, which notes what it is asked; roles are in their own tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from broker.cli.exits import USAGE
from broker.cli.main import main
from broker.client import Answer
from broker.client.decider import Ask
from broker.protocol.projections import canonical_event
from broker.testing import running_broker
from subscribers.adapters import rolebox
from subscribers.adapters.rolebox import AsyncRolebox, NotAllowed, Rolebox
from tests.integration.ask_scene import decider
from tests.integration.command import prxbus
from tests.integration.http_scene import served
from tests.integration.waiting import until

SECONDS = 30.0
Calls: TypeAlias = list[list[Any]]
"""Each: the name of the call, its arguments, and whether the agent's own step is part of it."""

NODE = """
const [, adapter, runtimeDir, timeout, ...more] = process.argv;
const { Rolebox, NotAllowed } = await import(adapter);
const given = { session: "s1", agent: "my-agent", role: "quality", timeout: Number(timeout), runtimeDir };
const rolebox = new Rolebox({ ...given, ...JSON.parse(more[0] ?? "{}") });
const own = (value) => Array.isArray(value) ? [...value, "core"]
  : typeof value === "string" ? `${value} core` : { ...value, core: true };
const names = { chat_message: "chatMessage", tool_before: "toolBefore", tool_after: "toolAfter",
  system_transform: "systemTransform", event: "event" };
let text = "";
for await (const chunk of process.stdin) text += chunk;
const found = [];
for (const [name, args, core] of JSON.parse(text)) {
  let value;
  try {
    value = await rolebox[names[name]](...args, ...(core ? [own] : []));
  } catch (error) {
    if (!(error instanceof NotAllowed)) throw error;
    value = [error.verdict, error.reason, error.by, error.message];
  }
  found.push([value ?? null, rolebox.problem]);
}
console.log(JSON.stringify(found));
"""


def own(value: Any) -> Any:
    """The agent's own step: what it makes of a value shows that it ran, and where."""
    if isinstance(value, list):
        return [*value, "core"]
    return f"{value} core" if isinstance(value, str) else {**value, "core": True}


def said(error: NotAllowed) -> list[Any]:
    """What is told of a refusal."""
    return [error.verdict, error.reason, error.by, str(error)]


def with_blocking(bus: str, calls: Calls, timeout: float) -> list[Any]:
    """Make the calls of an agent that blocks; what each returned, and the problem after it."""
    found: list[Any] = []
    with Rolebox("s1", agent="my-agent", role="quality", timeout=timeout, runtime_dir=bus) as agent:
        for name, args, core in calls:
            try:
                value: Any = getattr(agent, name)(*args, *((own,) if core else ()))
            except NotAllowed as error:
                value = said(error)
            found.append([value, agent.problem])
    return found


def with_loop(bus: str, calls: Calls, timeout: float) -> list[Any]:
    """The same in an event loop, where the agent's own step is a coroutine now and then."""

    async def own_later(value: Any) -> Any:
        await asyncio.sleep(0)
        return own(value)

    async def run() -> list[Any]:
        found: list[Any] = []
        arguments: dict[str, Any] = {"agent": "my-agent", "role": "quality", "timeout": timeout}
        async with AsyncRolebox("s1", runtime_dir=bus, **arguments) as agent:
            for number, (name, args, core) in enumerate(calls):
                step: Callable[[Any], Any | Awaitable[Any]] = own if number % 2 else own_later
                try:
                    value: Any = await getattr(agent, name)(*args, *((step,) if core else ()))
                except NotAllowed as error:
                    value = said(error)
                found.append([value, agent.problem])
        return found

    return asyncio.run(run())


def with_node(
    bus: str, calls: Calls, timeout: float, *, environ: Mapping[str, str] | None = None, **given: str
) -> list[Any]:
    """The same in Node, through the file that ``prxbus adapter node --path`` names."""
    adapter = prxbus("adapter", "node", "--path").stdout.strip()
    arguments = [adapter, bus, str(timeout), json.dumps(given)]
    done = subprocess.run(
        ["node", "--input-type=module", "-e", NODE, *arguments],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, **(environ or {})},
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


AGENTS = {"blocking": with_blocking, "loop": with_loop, "node": with_node}


class Hooks:
    """A decider that behaves as the hooks of a role: it notes events, edits what can be edited."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any, str | None, str | None]] = []

    def __call__(self, ask: Ask) -> list[Answer] | None:
        """Note the event and answer it."""
        payload, event = ask.event.payload, ask.event.topic.rpartition(".")[2]
        self.seen.append((event, payload, ask.event.session_id, ask.event.source))
        half = payload.get("phase", "both")
        if event == "tool_call_start" and payload["tool"] in ("deny", "ask"):
            return [Answer("guard.js", payload["tool"], "not here")]
        if event == "tool_call_start" and payload["tool"] == "silent":
            return None
        if event == "tool_call_start":
            trail = [*payload["arguments"].get("trail", []), half]
            return [Answer("h", updated_input={**payload["arguments"], "trail": trail})]
        if event == "system_transform":
            return [Answer("h", updated_input={**payload, "system": [*payload["system"], half]})]
        if event == "tool_call" and payload["tool"] == "cat":
            return [Answer("h", output=f"{payload['output']} {half}")]
        return []


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory, require_tool: Callable[[str], str]) -> Iterator[str]:
    """A bus with an HTTP API, which agents in Node need."""
    require_tool("node")
    with (
        tempfile.TemporaryDirectory(prefix="pxb", dir="/tmp") as path,
        running_broker(path) as directory,
        served(directory, tmp_path_factory.mktemp("http"), None),
    ):
        yield directory


@pytest.fixture
def hooks(bus: str) -> Iterator[Hooks]:
    """Hooks on the bus."""
    found = Hooks()
    with decider(bus, found, patterns=("prx.lifecycle.*",)):
        yield found


def test_the_five_calls_are_the_same_in_every_language(bus: str, hooks: Hooks) -> None:
    """Each returns its subject as the hooks left it; with the agent's step, before and after it."""
    args = {"path": "a.ts", "content": "console.log(1)"}
    calls: Calls = [
        ["chat_message", ["Hello"], False],
        ["chat_message", ["Hello"], True],
        ["tool_before", ["write", args], False],
        ["tool_before", ["write", args], True],
        ["tool_before", ["deny", args], True],
        ["tool_before", ["ask", args], False],
        ["tool_after", ["write", args, {"ok": True}], False],
        ["tool_after", ["cat", args, "text"], True],
        ["system_transform", [["You are careful."]], False],
        ["system_transform", [["You are careful."]], True],
        ["event", ["session.idle", {"n": 1}], False],
        ["event", ["file.edited", {"file": "a.ts"}], False],
        ["tool_before", ["unlike", "no object"], False],
    ]
    expected = [
        ["Hello", None],
        ["Hello core", None],
        [{**args, "trail": ["both"]}, None],
        [{**args, "trail": ["before", "after"], "core": True}, None],
        [["deny", "not here", "guard.js", "guard.js: not here"], None],
        [["ask", "not here", "guard.js", "guard.js: not here"], None],
        [{"ok": True}, None],
        ["text before core after", None],
        [["You are careful.", "both"], None],
        [["You are careful.", "before", "core", "after"], None],
        [None, None],
        [None, None],
    ]
    seen = {}
    for name, make in AGENTS.items():
        hooks.seen = []
        found = make(bus, calls, SECONDS)
        assert found[:-1] == expected, name
        wrong, problem = found[-1]  # it can be no tool's input: the agent goes on, and knows why
        assert (wrong, "arguments" in problem) == ("no object", True), name
        seen[name] = hooks.seen
    assert {source for _, _, _, source in seen["node"]} == {"http-ask"}
    assert {source for _, _, _, source in seen["loop"]} == {"my-agent"}
    heard = {name: [row[:3] for row in rows] for name, rows in seen.items()}
    assert heard["blocking"] == heard["loop"] == heard["node"]
    assert heard["node"][0] == (
        "session_start",
        {"source": "startup", "agent": "my-agent", "role": "quality"},
        "s1",
    )
    assert ("turn_complete", {"properties": {"n": 1}}, "s1") in heard["node"]
    assert ("file_edited", {"type": "file.edited", "properties": {"file": "a.ts"}}, "s1") in heard["node"]
    halves = [row[1].get("phase") for row in heard["node"] if row[0] == "user_prompt"]
    assert halves == [None, "before", "after"]


def test_without_an_answer_an_agent_goes_on_and_knows_why(bus: str, hooks: Hooks, tmp_path: Path) -> None:
    """A hook that is late, a bus that is not there: each call returns what it was given, in its time."""
    calls: Calls = [["tool_before", ["bash", {"a": 1}], True], ["chat_message", ["on"], False]]
    silent: Calls = [["tool_before", ["silent", {"a": 1}], False]]
    nowhere = str(tmp_path / "nowhere")
    for name, make in AGENTS.items():
        ((late, problem),) = make(bus, silent, 0.5)
        assert late == {"a": 1}
        assert "timeout" in problem, name
        (kept, absent), _ = make(nowhere, calls, SECONDS)
        assert kept == {"a": 1, "core": True}
        assert "'prxbus up'" in absent, name
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"http://127.0.0.1:{gone.getsockname()[1]}"
    (_, refused), _ = with_node(bus, calls, SECONDS, address=address)
    assert "ECONNREFUSED" in refused
    wrong = with_node(bus, calls * 4, SECONDS, token="not-the-token")
    assert {problem for _, problem in wrong} == {"the token is wrong"}
    assert with_node(bus, calls[1:], SECONDS) == [["on", None]]  # for which nobody else is kept out


def test_an_agent_that_a_hook_has_started_is_as_deep_as_it_says(bus: str) -> None:
    """Depth and cause come from the environment; at depth 8 nobody is asked, so that loops end."""
    depths: list[tuple[int, str | None]] = []

    def notes(ask: Ask) -> list[Answer]:
        depths.append((ask.event.depth, ask.event.caused_by))
        return []

    with decider(bus, notes, patterns=("prx.lifecycle.user_prompt",)):
        for depth in ("3", "8", "deep"):
            environ = {"PRXBUS_DEPTH": depth, "PRXBUS_CAUSE": "x:y:1"}
            with_node(bus, [["chat_message", ["a"], False]], SECONDS, environ=environ)
    assert depths == [(3, "x:y:1"), (7, "x:y:1")]


def test_without_a_bus_every_agent_says_where_none_is(tmp_path: Path) -> None:
    """What it was given comes back, with the directory that was looked into and what to do."""
    nowhere = str(tmp_path / "nothing")
    for name, make in AGENTS.items():
        ((value, problem),) = make(nowhere, [["chat_message", ["a"], False]], SECONDS)
        assert value == "a", name
        assert nowhere in problem, name
        assert "'prxbus up'" in problem, name


def test_a_bus_that_is_started_later_hears_whose_session_it_is(runtime_dir: Path) -> None:
    """An agent that began without one goes on, and its first call that can be asked tells the role first."""
    with Rolebox("s1", role="quality", timeout=SECONDS, runtime_dir=runtime_dir) as agent:
        assert agent.chat_message("one") == "one"
        assert agent.problem is not None
        hooks = Hooks()
        with running_broker(runtime_dir) as bus, decider(bus, hooks, patterns=("prx.lifecycle.*",)):
            until(lambda: agent.chat_message("two") == "two" and agent.problem is None, "an answer")
            agent.chat_message("three")
    events = [(event, payload.get("role"), payload.get("prompt")) for event, payload, _, _ in hooks.seen]
    assert events[0] == ("session_start", "quality", None)
    assert [event for event, _, _ in events].count("session_start") == 1
    assert events[-1] == ("user_prompt", None, "three")


MOVED = """
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
const [, adapter, folder] = process.argv;
const { Rolebox } = await import(adapter);
const asked = [], said = [];
let current;
const write = (name, text) => writeFileSync(`${folder}/${name}`, `${text}\\n`);
const token = (text) => { current = text; write("http-token", text); };
const serve = async () => {
  const server = createServer((request, answer) => {
    const known = request.headers.authorization === `Bearer ${current}`;
    asked.push(known);
    answer.writeHead(known ? 200 : 401, { connection: "close" });
    answer.end(JSON.stringify({ allowed: true, heard: [], updated_input: null, detail: "no" }));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  write("http-address", `http://127.0.0.1:${server.address().port}`);
  return server;
};
const rolebox = new Rolebox({ session: "s1", runtimeDir: folder });
const call = async () => { await rolebox.chatMessage("a"); said.push(rolebox.problem); };
await call();
token("one");
let server = await serve();
await call();
await new Promise((done) => server.close(done));
server = await serve();
await call();
token("two");
await call();
await new Promise((done) => server.close(done));
await call();
console.log(JSON.stringify({ said, asked }));
server.close();
"""


def test_an_agent_in_node_finds_a_bus_that_was_started_again(
    tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """Later, at another port, with another token: the call that notices it is answered, the session known."""
    adapter = prxbus("adapter", "node", "--path").stdout.strip()
    command = [require_tool("node"), "--input-type=module", "-e", MOVED, adapter, str(tmp_path)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PRXBUS_")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "'prxbus up'" in found["said"][0]
    assert found["said"][1:4] == [None, None, None]
    assert "ECONNREFUSED" in found["said"][4]
    assert found["asked"] == [True, True, True, False, True]  # the first is the start of the session


def test_types_of_events_are_those_of_the_catalogue() -> None:
    """The tables of both adapters say of each type what the dialect says."""
    node = Path(rolebox.__file__).with_suffix(".mjs").read_text()
    assert dict(re.findall(r'^  "([a-z.]+)": "([a-z_]+)",$', node, re.MULTILINE)) == rolebox.TYPES
    for kind, event in rolebox.TYPES.items():
        assert canonical_event("rolebox", kind) == event


def test_the_file_that_is_printed_is_the_adapter() -> None:
    """Byte for byte what lies in the package, which an agent may keep as its own."""
    path = Path(prxbus("adapter", "node", "--path").stdout.strip())
    assert prxbus("adapter", "node").stdout == path.read_text()


def test_in_another_language_the_command_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a wrong usage, and not the end of the way."""
    assert main(["adapter", "python"]) == USAGE
    said = capsys.readouterr().err
    assert "there is one for node and none for 'python'; in Python: from subscribers.adapters.rolebox" in said
    assert "POST /api/ask" in said
