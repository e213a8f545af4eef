"""WASM plugins on a bus: an agent's events go in, components run, a monitor watches what is reported."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from broker.client import Publisher, Subscriber
from broker.client.tool import Tool
from broker.protocol.events import Event
from broker.testing import running_broker
from tests.integration.waiting import until
from tests.subscribers.runtimes.guests import BOMB, ECHO, LOOP, OK, TRAP, component

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "plugins"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace with a folder for plugins."""
    path = tmp_path / "workspace"
    (path / "plugins").mkdir(parents=True)
    return path


def add(workspace: Path, name: str, body: str, *events: str, more: str = "", data: str = "") -> Path:
    """Write a plugin as a whole, its manifest last."""
    folder = workspace / "plugins" / name
    folder.mkdir(exist_ok=True)
    (folder / "x.wat").write_text(component(body, data=data))
    manifest = f'[plugin]\nname = "{name}"\nversion = "1"\nwasm = "x.wat"\n[[capabilities]]\ntype = "hook"\n'
    (folder / "plugin.toml").write_text(f"{manifest}events = {json.dumps(events)}\n{more}")
    return folder


class Service:
    """A running wasm service."""

    def __init__(self, process: subprocess.Popen[bytes], said: dict[str, Any], log: Path) -> None:
        self.process = process
        self.said = said
        self.log = log

    def lines(self) -> list[dict[str, Any]]:
        """What the service has logged so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def logged(self, words: str) -> bool:
        """Whether the service has written ``words`` to its log."""
        return any(words in str(value) for line in self.lines() for value in line.values())

    def wait_for(self, words: str) -> None:
        """Wait until the service has written ``words`` to its log."""
        until(lambda: self.logged(words), f"{words!r} in {self.log}")

    def loaded(self, name: str, times: int = 1, seconds: float = 40.0) -> None:
        """Wait until a plugin has been loaded so often."""

        def often() -> bool:
            loads = [line for line in self.lines() if line["event"] == "a plugin is loaded"]
            return len([line for line in loads if line["plugin"] == name]) >= times

        until(often, f"{name} to be loaded: {self.log}", seconds=seconds)


@contextmanager
def wasm(bus: str, workspace: Path, *options: str) -> Iterator[Service]:
    """A wasm service for ``workspace``; ended in order."""
    log = workspace.parent / "wasm.log"
    command = [
        *(sys.executable, "-P", "-m", "subscribers.runner.wasm_service"),
        *("--runtime-dir", bus, "--workspace", str(workspace)),
        *("--cache-dir", str(workspace.parent / "cache"), "--state-dir", str(workspace.parent / "state")),
        *options,
    ]
    with log.open("ab") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Service(process, orjson.loads(line), log)
    finally:
        process.terminate()
        try:
            assert process.wait(30) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def counters(bus: str) -> dict[str, Any]:
    """What the service reports to the broker."""
    with Tool("test", runtime_dir=bus) as tool:
        subscribers = tool.request("status").body["status"]["subscribers"]
    return next((dict(each) for each in subscribers if each["name"] == "wasm"), {})


class Monitor:
    """Watches what is reported, and any other topics."""

    def __init__(self, bus: str) -> None:
        self.events = Subscriber(["*"], name="monitor", runtime_dir=bus)
        self.seen: list[Event] = []

    def wait(self, topic: str, count: int, seconds: float = 60.0, **wanted: Any) -> list[Event]:
        """The first ``count`` events of ``topic`` with these fields, waiting for them."""
        deadline = time.monotonic() + seconds
        while len(found := self.of(topic, **wanted)) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} {topic}: {found}"
            self.seen += self.events.batch(timeout=0.2)
        return found[:count]

    def runs(self, count: int, **wanted: Any) -> list[dict[str, Any]]:
        """The first ``count`` reports of calls with these fields."""
        return [event.payload for event in self.wait("prx.hooks.run", count, **wanted)]

    def of(self, topic: str, **wanted: Any) -> list[Event]:
        """The events of one topic seen so far, with these fields."""
        found = [event for event in self.seen if event.topic == topic]
        return [event for event in found if wanted.items() <= event.payload.items()]


@pytest.fixture
def monitor(bus: str) -> Iterator[Monitor]:
    """A monitor on the bus."""
    watching = Monitor(bus)
    yield watching
    watching.events.close()


@pytest.fixture
def agent(bus: str) -> Iterator[Publisher]:
    """An agent on the bus."""
    with Publisher("agent", runtime_dir=bus, on_absent="raise") as publisher:
        yield publisher


def test_a_component_gets_what_a_shell_hook_gets(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """The bare name, and the documented envelope of the event, as the shell dialect makes it."""
    add(workspace, "echo", ECHO, "prx.lifecycle.*")
    with wasm(bus, workspace) as service:
        assert service.said["plugins"] == 1
        agent.publish("prx.lifecycle.tool_call", {"tool": "Bash", "output": "ä"}, session_id="s1")
        (report,) = monitor.runs(1)
        (letter,) = monitor.wait("prx.hooks.dead_letter", 1)
    assert (report["hook"], report["dialect"], report["event"]) == ("plugin:echo", "prx", "tool_call")
    assert (report["status"], report["command"], report["exit_code"]) == ("failed", "x.wat", None)
    assert report["path"] == str(workspace / "plugins" / "echo" / "plugin.toml")
    envelope = json.loads(report["reason"])
    assert list(envelope) == ["event", "timestamp", "session_id", "payload"]
    assert (envelope["event"], envelope["session_id"]) == ("tool_call", "s1")
    assert envelope["payload"] == {"tool": "Bash", "output": "ä", "success": None}
    (event,) = monitor.of("prx.lifecycle.tool_call")
    assert report["event_id"] == event.id
    assert letter.payload["payload"] == {"tool": "Bash", "output": "ä"}
    assert service.logged("a plugin's call failed")


def test_a_plugin_gets_the_events_of_its_manifest(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """Exact names, topics, prefix and star, and the union over blocks; and no report of its own call."""
    add(workspace, "exact", OK, "tool_call", "prx.lifecycle.error")
    add(workspace, "union", OK, "agent_start", more='[[capabilities]]\ntype = "hook"\nevents = ["error"]\n')
    add(workspace, "prefix", OK, "prx.lifecycle.*")
    add(workspace, "every", OK, "*")
    with wasm(bus, workspace):
        for name in ("tool_call", "error", "agent_start", "anything_else"):
            agent.publish(f"prx.lifecycle.{name}", {})
        agent.publish("prx.metrics.x", {})
        monitor.runs(12)
        agent.publish("prx.lifecycle.error", {}, session_id="last")
        monitor.runs(16)
    got: dict[str, list[str]] = {}
    for event in monitor.of("prx.hooks.run")[:12]:
        got.setdefault(event.payload["hook"], []).append(event.payload["event"])
    every = ["tool_call", "error", "agent_start", "anything_else"]
    assert got == {
        "plugin:exact": ["tool_call", "error"],
        "plugin:union": ["error", "agent_start"],
        "plugin:prefix": every,
        "plugin:every": every,
    }
    assert len(monitor.of("prx.hooks.run")) == 16


def test_traps_loops_and_bombs_cost_their_own_call_and_nobody_else(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """Each is reported by its kind and the plugin is called again; a good one goes on beside them."""
    add(workspace, "trap", TRAP, "*")
    add(workspace, "loop", LOOP, "*", more="[resources]\nmax_execution_time_ms = 300\n")
    add(workspace, "bomb", BOMB, "*", more="[resources]\nmax_memory_mb = 2\n")
    add(workspace, "fuel", LOOP, "*", more="[resources]\nmax_fuel = 100000\n")
    add(workspace, "good", OK, "*")
    with wasm(bus, workspace) as service:
        for _ in range(2):
            agent.publish("prx.lifecycle.error", {})
        for name, status in {
            "trap": "failed",
            "loop": "timeout",
            "bomb": "failed",
            "fuel": "failed",
            "good": "ok",
        }.items():
            reports = monitor.runs(2, hook=f"plugin:{name}")
            assert [report["status"] for report in reports] == [status] * 2
        (bombed, _) = monitor.runs(2, hook="plugin:bomb")
        (looped, _) = monitor.runs(2, hook="plugin:loop")
        assert 16 < int(bombed["reason"]) <= 32
        assert 300 <= looped["duration_ms"] < 5_000
        assert service.process.poll() is None


def test_a_slow_plugin_delays_nobody_and_drops_only_its_own(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """While one spins, another handles two hundred events; what the slow one has no room for is counted."""
    add(workspace, "slow", LOOP, "*", more="[resources]\nmax_execution_time_ms = 2000\n")
    add(workspace, "fast", OK, "*")
    with wasm(bus, workspace, "--queue", "2", "--drain-seconds", "0") as service:
        service.loaded("slow")
        service.loaded("fast")
        for number in range(200):
            agent.publish("prx.lifecycle.tool_call", {"tool": str(number)})
            monitor.runs(number + 1, hook="plugin:fast")
        reports = monitor.runs(200, hook="plugin:fast")
        assert all(report["waited_ms"] < 1_000 for report in reports)

        slow = 0

        def accounted() -> bool:
            nonlocal slow
            said = counters(bus)
            slow = said["runs_dropped"] + said["runs_waiting"] + said["runs_now"]
            slow += said["runs"].get("timeout", 0)
            return bool(said["runs"].get("ok") == 200 and slow == 200)

        until(accounted, f"every event of the slow one to be accounted for, not {slow}", seconds=60.0)
        assert counters(bus)["runs_dropped"] > 0


def test_what_a_plugin_publishes_is_one_level_deeper_and_loops_end(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """A plugin that publishes the event that it handles is called at depths 0 to 7 and never again."""
    publish = """(call $events-publish (i32.const 512) (i32.const 19) (i32.const 531) (i32.const 2)
      (i32.const 64)) (i32.const 64)"""
    add(workspace, "loop", publish, "error", data="prx.lifecycle.error{}")
    with wasm(bus, workspace):
        agent.publish("prx.lifecycle.error", {}, session_id="s1")
        reports = monitor.runs(8)
    events = monitor.wait("prx.lifecycle.error", 8)
    assert [event.depth for event in events] == list(range(8))
    assert {event.session_id for event in events} == {"s1"}
    assert [event.caused_by for event in events[1:]] == [event.id for event in events[:-1]]
    assert {event.source for event in events[1:]} == {"wasm/loop"}
    assert [report["status"] for report in reports] == ["ok"] * 8
    monitor.seen += monitor.events.batch(timeout=0.5)
    assert len(monitor.of("prx.lifecycle.error")) == 8


def test_a_plugin_can_subscribe_from_inside(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """Its subscriptions bring other topics, by their names, once each; reports of hooks are refused."""
    body = f"""
      (call $events-subscribe (i32.const 512) (i32.const 9) (i32.const 64))
      (call $events-subscribe (i32.const 512) (i32.const 9) (i32.const 64))
      (if (result i32) (i32.eq (local.get $el) (i32.const 5))
        (then (call $events-subscribe (i32.const 521) (i32.const 11) (i32.const 64))
          (i32.store8 (i32.const 64) (i32.const 1))
          (i32.store (i32.const 68) (i32.load (i32.const 72)))
          (i32.store (i32.const 72) (i32.load (i32.const 76))) (i32.const 64))
        (else {ECHO}))"""
    add(workspace, "topics", body, "error", data="weather.*prx.hooks.*")
    with wasm(bus, workspace) as service:
        agent.publish("prx.lifecycle.error", {})
        (refused,) = monitor.runs(1)
        assert "are not given to plugins" in refused["reason"]

        def arrives() -> bool:
            agent.publish("weather.update", {"rain": True})
            monitor.seen += monitor.events.batch(timeout=0.3)
            return bool(monitor.of("prx.hooks.run", event="weather.update"))

        until(arrives, f"the topic: {service.log.read_text()}", seconds=40.0)
        (report, *_) = monitor.runs(1, event="weather.update")
    envelope = json.loads(report["reason"])
    assert (envelope["event"], envelope["payload"]) == ("weather.update", {"rain": True})
    ids = [event.payload["event_id"] for event in monitor.of("prx.hooks.run", event="weather.update")]
    assert len(ids) == len(set(ids))


KEEP = """
  (call $kv-get (local.get $e) (local.get $el) (i32.const 64))
  (if (result i32) (i32.load8_u (i32.const 64))
    (then (local.set $p (i32.load (i32.const 68))) (local.set $pl (i32.load (i32.const 72))) {echo})
    (else (call $kv-set (local.get $e) (local.get $el) (i32.const 512) (i32.const 5) (i32.const 64))
      (i32.const 64)))
"""


def test_keys_outlive_a_trap_an_edit_and_a_restart(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """What was kept is given back by a process that was started later, and belongs to its plugin alone."""
    for name in ("one", "two"):
        add(workspace, name, KEEP.format(echo=ECHO), "error" if name == "one" else "agent_end", data="value")
    with wasm(bus, workspace):
        agent.publish("prx.lifecycle.error", {})
        assert monitor.runs(1, hook="plugin:one")[0]["reason"] is None
    with wasm(bus, workspace):
        agent.publish("prx.lifecycle.error", {})
        assert monitor.runs(2, hook="plugin:one")[1]["reason"] == "value"
        agent.publish("prx.lifecycle.agent_end", {})
        assert monitor.runs(1, hook="plugin:two")[0]["reason"] is None
    files = (workspace.parent / "state").rglob("*.sqlite3")
    assert sorted(path.name for path in files) == ["one.sqlite3", "two.sqlite3"]


def test_keys_are_bounded_by_the_manifest(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """A plugin that may keep nothing is refused by the result of set."""
    add(
        workspace,
        "none",
        KEEP.format(echo=ECHO),
        "error",
        data="value",
        more="[resources]\nmax_kv_storage_mb = 0\n",
    )
    with wasm(bus, workspace):
        agent.publish("prx.lifecycle.error", {})
        (report,) = monitor.runs(1)
    assert report["status"] == "failed"
    assert "max_kv_storage_mb" in report["reason"]


def test_an_edit_takes_effect_and_a_bad_one_leaves_the_last_good_version(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """Manifest and component are followed, and neither takes the plugin away when it is bad."""
    folder = add(workspace, "a", OK, "error")
    with wasm(bus, workspace) as service:
        service.loaded("a")
        (folder / "x.wat").write_text("(component")
        service.wait_for("its last good version goes on")
        (folder / "plugin.toml").write_text("[plugin")
        service.wait_for("kept_last_good")
        agent.publish("prx.lifecycle.error", {})
        assert monitor.runs(1)[0]["status"] == "ok"
        add(workspace, "a", ECHO, "agent_end")
        service.loaded("a", 2)
        agent.publish("prx.lifecycle.error", {})
        agent.publish("prx.lifecycle.agent_end", {})
        assert monitor.runs(2)[1]["event"] == "agent_end"
        add(workspace, "b", OK, "agent_end")
        service.loaded("b")
        shutil.rmtree(folder)
        service.wait_for("['b']")
        agent.publish("prx.lifecycle.agent_end", {})
        monitor.runs(1, hook="plugin:b")
        monitor.seen += monitor.events.batch(timeout=0.3)
        assert len(monitor.of("prx.hooks.run", hook="plugin:a")) == 2


def test_a_plugin_that_cannot_be_loaded_says_why_and_its_siblings_run(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """A missing component, a core module, WASI without leave, too much memory: each has its sentence."""
    add(workspace, "good", OK, "*")
    (add(workspace, "gone", OK, "*") / "x.wat").unlink()
    (add(workspace, "core", OK, "*") / "x.wat").write_bytes(b"\0asm\x01\0\0\0")
    (add(workspace, "wasi", OK, "*") / "x.wat").write_text(
        '(component (import "wasi:cli/exit@0.2.0" (instance (export "exit" (func)))))'
    )
    add(workspace, "files", OK, "*", more='[permissions]\nrequired = ["filesystem"]\n')
    add(workspace, "large", OK, "*", more="[resources]\nmax_memory_mb = 2048\n")
    with wasm(bus, workspace) as service:
        for words in (
            "its component x.wat is not there",
            "core module",
            "WASI is not granted",
            'it needs the permission "filesystem"',
            "the setting wasm.memory_mb allows 1024",
        ):
            service.wait_for(words)
        service.loaded("good")
        agent.publish("prx.lifecycle.error", {})
        assert monitor.runs(1, hook="plugin:good")[0]["status"] == "ok"
        (report, *_) = monitor.runs(1, hook="plugin:core")
        assert report["status"] == "not_started"
        assert "core module" in report["reason"]


def test_it_stops_on_time_whatever_a_plugin_does(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """A call under way is ended when the budget is over, reported as such, and the exit code is 0."""
    add(workspace, "loop", LOOP, "*")
    with wasm(bus, workspace, "--drain-seconds", "0.3") as service:
        service.loaded("loop")
        agent.publish("prx.lifecycle.error", {})
        until(lambda: counters(bus).get("runs_now"), "the call")
        began = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(20) == 0
        assert time.monotonic() - began < 15
        (report,) = monitor.runs(1)
    assert (report["status"], report["reason"]) == (
        "timeout",
        "it was ended early: the plugin is no longer needed",
    )


def test_the_example_written_as_text(bus: str, workspace: Path, monitor: Monitor, agent: Publisher) -> None:
    """It logs errors whole, counts events, and is loaded from the tree as it is."""
    shutil.copytree(EXAMPLES / "error-watch", workspace / "plugins" / "error-watch")
    with wasm(bus, workspace) as service:
        for name in ("agent_start", "error", "agent_end"):
            agent.publish(f"prx.lifecycle.{name}", {"message": "disk full"} if name == "error" else {})
        assert [report["status"] for report in monitor.runs(3)] == ["ok"] * 3
        service.wait_for("events so far: 3")
        assert service.logged("disk full")


@pytest.mark.timeout(700)
def test_the_example_written_in_python(bus: str, workspace: Path, monitor: Monitor, agent: Publisher) -> None:
    """Built with componentize-py from the tree, it counts over a restart and publishes what failed."""
    if shutil.which("componentize-py", path=os.path.dirname(sys.executable)) is None:
        assert not os.environ.get("CI"), "componentize-py is missing"
        pytest.skip("componentize-py is not installed")
    folder = workspace / "plugins" / "tool-counter"
    shutil.copytree(EXAMPLES / "tool-counter", folder, ignore=shutil.ignore_patterns("*.wasm", "__pycache__"))
    built = subprocess.run(
        [folder / "build"],
        env={
            **os.environ,
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "PRXBUS_WIT": str(ROOT / "subscribers" / "runtimes" / "wit"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    for calls in (1, 2):
        with wasm(bus, workspace) as service:
            service.loaded("tool-counter", calls, seconds=300.0)  # compiles 18 MB the first time
            agent.publish("prx.lifecycle.tool_call", {"tool": "Bash", "success": calls == 1})
            monitor.runs(calls, status="ok")
            service.wait_for(f"Bash: {calls} calls")
            agent.publish("prx.lifecycle.tool_call", {"tool": None})
    (alert,) = monitor.wait("prx.alerts.tool_failed", 1)
    assert (alert.payload, alert.depth) == ({"tool": "Bash", "calls": 2}, 1)
    (without, *_) = monitor.runs(1, status="failed")
    assert without["reason"] == "tool_call without the name of a tool"
