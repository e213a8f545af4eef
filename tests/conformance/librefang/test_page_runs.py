"""The LibreFang page's samples run where it says they lie, bytes unchanged, under ``prxbus up``."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.client import Publisher
from broker.protocol.projections import project
from subscribers.dialects import librefang
from subscribers.dialects import librefang_rules as rules
from tests.conformance.librefang import page
from tests.integration.command import COMMAND
from tests.integration.librefang_scene import RECORD, Served, running
from tests.integration.shell_scene import Monitor
from tests.integration.waiting import until

AGENT = "3f0c1a52-0c35-4f1e-9d7e-6a2b8d1c9e00"
TOOLS = ("bash", "curl", "python3")


@pytest.fixture(scope="module")
def text(pages: Path) -> str:
    """The page."""
    return page.find(pages)


class Request(NamedTuple):
    """What the stand-in for the webhook was sent."""

    path: str
    type: str
    body: dict[str, Any]


@contextmanager
def webhook() -> Iterator[tuple[str, list[Request]]]:
    """A server on the loopback: its address and every request that it gets."""
    requests: list[Request] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append(Request(self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/services/T0/B0", requests
        finally:
            server.shutdown()
            thread.join()


class User:
    """A user whose home holds the page's samples."""

    def __init__(self, folder: Path, text: str) -> None:
        self.home = folder / "user"
        self.hooks = self.home / ".librefang" / "hooks"
        for name in page.tree(text):
            (self.hooks / name).parent.mkdir(parents=True, exist_ok=True)
        notify = self.hooks / "notify-on-end"
        (notify / "HOOK.yaml").write_bytes(page.hook_file(text))
        (notify / "run.sh").write_bytes(page.script(text))
        (self.hooks / "log-session-reset" / "HOOK.yaml").write_text(
            "name: log-session-reset\nevents: [session:reset]\ncommand: ./run.py\n"
        )
        program = self.hooks / "log-session-reset" / "run.py"
        program.write_text(
            "#!/usr/bin/env python3\nimport json, os\n"
            'print(json.loads(os.environ["HOOK_EVENT_DATA"])["reset_reason"], file=open("log", "a"))\n'
        )
        program.chmod(0o755)
        self.run(page.command_line(text))

    def run(self, command: str) -> None:
        """What the page has the user type."""
        subprocess.run(
            ["bash", "-c", command], env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"}, check=True
        )

    @contextmanager
    def up(self, bus: Path, **environ: str) -> Iterator[tuple[Served, Publisher, Monitor]]:
        """``prxbus up`` as this user starts it, an agent and a monitor."""
        command = [COMMAND, "up", "--json", "--no-http", "--runtime-dir", str(bus)]
        variables: dict[str, str | None] = {"SLACK_WEBHOOK_URL": None, "LIBREFANG_HOME": None}
        variables |= {"HOME": str(self.home), **environ}
        with (
            running(command, self.home.parent / "log", variables) as served,
            Publisher("agent", runtime_dir=str(bus), on_absent="raise") as agent,
        ):
            monitor = Monitor(str(bus))
            try:
                yield served, agent, monitor
            finally:
                monitor.events.close()


@pytest.fixture
def user(tmp_path: Path, text: str, require_tool: Callable[[str], str]) -> User:
    """A fresh one."""
    for tool in TOOLS:
        require_tool(tool)
    return User(tmp_path, text)


@pytest.mark.parametrize(
    "payload",
    [
        {"agent_id": AGENT, "session_id": "s1", "status": "ok", "tokens_used": 1234, "steps": 3},
        {"agent_id": AGENT, "agent_name": "main", "success": True, "input_tokens": 1200, "output_tokens": 34},
    ],
    ids=["as the page documents it", "as the program sends it"],
)
def test_the_slack_sample_notifies(runtime_dir: Path, user: User, payload: dict[str, Any]) -> None:
    """The page's file and script post the page's message, whichever names the agent publishes."""
    with webhook() as (address, requests), user.up(runtime_dir, SLACK_WEBHOOK_URL=address) as at:
        served, agent, monitor = at
        assert served.said["librefang"] == {"home": str(user.home / ".librefang"), "hooks": 2}
        agent.publish("prx.lifecycle.agent_end", payload, session_id="s1")
        (run,) = monitor.runs(1)
        assert (run["hook"], run["status"]) == ("notify-on-agent-end", "ok"), run
    message = f"Agent `{AGENT}` finished with status *ok* (1234 tokens)"
    assert requests == [Request("/services/T0/B0", "application/json", {"text": message})]


def test_the_slack_sample_does_nothing_without_an_address(runtime_dir: Path, user: User) -> None:
    """Nothing injects the secret: without the variable the script says so, and that is no failure."""
    with user.up(runtime_dir) as (_, agent, monitor):
        agent.publish("prx.lifecycle.agent_end", {"agent_id": AGENT, "status": "error", "tokens_used": 0})
        (run,) = monitor.runs(1)
    assert (run["status"], run["stderr"]) == ("ok", "SLACK_WEBHOOK_URL not set, skipping\n")


def test_the_script_ends_early_for_other_events(runtime_dir: Path, user: User) -> None:
    """With more events in its file, it acts on the one that it is written for."""
    file = user.hooks / "notify-on-end" / "HOOK.yaml"
    file.write_bytes(file.read_bytes().replace(b"  - agent:end\n", b"  - agent:*\n  - session:*\n"))
    with webhook() as (address, requests), user.up(runtime_dir, SLACK_WEBHOOK_URL=address) as at:
        _, agent, monitor = at
        agent.publish("prx.lifecycle.session_start", {})
        agent.publish("prx.lifecycle.agent_end", {"agent_id": AGENT, "status": "max_steps", "tokens_used": 1})
        runs = monitor.runs(2)
    assert {run["event"] for run in runs} == {"session_start", "agent_end"}
    assert {run["status"] for run in runs} == {"ok"}
    assert [request.body["text"].count("*max_steps*") for request in requests] == [1]


def test_the_other_hook_of_the_pages_home_runs_beside_it(runtime_dir: Path, user: User) -> None:
    """A Python program, for another event, in a folder of its own."""
    with user.up(runtime_dir) as (_, agent, monitor):
        agent.publish("prx.lifecycle.session_reset", {"reset_reason": "daily"})
        (run,) = monitor.runs(1)
        assert run["status"] == "ok", run
    assert (user.hooks / "log-session-reset" / "log").read_text() == "daily\n"


def test_the_sample_file_is_read_without_a_remark(text: str) -> None:
    """It means one hook of one event, and everything in it has its effect."""
    parsed = librefang.parse(page.hook_file(text), "HOOK.yaml")
    assert parsed.diagnostics == ()
    (spec,) = parsed.specs
    assert (spec.name, spec.event, spec.command) == ("notify-on-agent-end", "agent_end", "./run.sh")


def test_the_tables_of_the_page_are_ours(text: str) -> None:
    """Events, patterns and every field of every event, in the page's order."""
    assert page.events(text) == list(rules.EVENTS)
    shown = page.patterns(text)
    assert shown.pop("*") == []
    assert {p: [rules.EVENTS[name] for name in names] for p, names in shown.items()} == {
        pattern: list(events) for pattern, events in rules.PATTERNS.items() if pattern != "*"
    }
    documented = page.fields(text)
    assert documented.keys() == {*rules.EVENTS, "transform_tool_result"}
    for native, names in documented.items():
        view = project("librefang", rules.EVENTS.get(native, "tool_result"), {})
        assert list(view)[: len(names)] == names


def test_each_event_of_the_page_fires_with_its_documented_payload(
    runtime_dir: Path, user: User, text: str
) -> None:
    """What is published with the fields of the page arrives with them, unchanged, in HOOK_EVENT_DATA."""
    folder = user.hooks / "record"
    folder.mkdir()
    (folder / "HOOK.yaml").write_text("name: record\nevents: ['agent:*', 'session:*']\ncommand: run.sh\n")
    (folder / "run.sh").write_text(RECORD)
    (folder / "run.sh").chmod(0o755)
    sample: dict[str, Any] = {
        "status": "ok",
        "tokens_used": 7,
        "steps": 2,
        "duration_ms": 15,
        "step_index": 0,
        "tool_call": None,
        "reset_reason": "suspended",
        "message_count_cleared": 4,
    }
    documented = {n: f for n, f in page.fields(text).items() if n.startswith(("agent:", "session:"))}
    with user.up(runtime_dir) as (_, agent, _monitor):
        for native, names in documented.items():
            payload = {name: sample.get(name, f"some {name}") for name in names}
            agent.publish(f"prx.lifecycle.{rules.EVENTS[native]}", payload)
            until((folder / native).exists, f"{native} to arrive")
            found = json.loads((folder / native).read_text())
            assert {name: found[name] for name in names} == payload
