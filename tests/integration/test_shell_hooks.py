"""The main job: an agent's events go in, hooks run in a process of their own, a monitor watches."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client import Event, Publisher, Subscriber
from broker.testing import running_broker
from tests.integration.shell_scene import Monitor, hooks, sh, shell
from tests.integration.waiting import until


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    path = tmp_path / "workspace"
    path.mkdir()
    return path


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


CHANNELS = """
printf %s "$ZERO_HOOK_PAYLOAD" > variable
cat "$ZERO_HOOK_PAYLOAD_FILE" > file
cat > stdin
printf '%s|%s|%s' "$ZERO_HOOK_EVENT" "$ZERO_HOOK_SESSION" "$ZERO_HOOK_TIMESTAMP" > names
stat -c %a "$ZERO_HOOK_PAYLOAD_FILE" > mode
printf %s "$ZERO_HOOK_PAYLOAD_FILE" > path
pwd > cwd
env > environment
"""


def test_the_payload_arrives_on_all_three_channels(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """Variable, file and standard input hold the same envelope; the file is private and gone afterwards."""
    hooks(workspace, tool_call=[sh(CHANNELS, stdin_json=True, env={"CUSTOM": "value"})])
    payload = {"tool": "Bash", "success": True, "output": "ünïcode"}
    with shell(bus, workspace):
        agent.publish("prx.lifecycle.tool_call", payload, session_id="sess_1")
        (run,) = monitor.runs(1)
    assert (run["status"], run["hook"]) == ("ok", "tool_call#0"), run
    envelope = orjson.loads((workspace / "stdin").read_bytes())
    assert (envelope["event"], envelope["session_id"], envelope["payload"]) == (
        "tool_call",
        "sess_1",
        payload,
    )
    assert envelope["timestamp"].endswith("Z")
    channels = {(workspace / name).read_bytes() for name in ("variable", "file", "stdin")}
    assert len(channels) == 1
    assert (workspace / "names").read_text() == f"tool_call|sess_1|{envelope['timestamp']}"
    assert (workspace / "mode").read_text().strip() == "600"
    assert (workspace / "cwd").read_text().strip() == str(workspace)
    assert not Path((workspace / "path").read_text()).exists()


def test_the_environment_is_clean(bus: str, workspace: Path, monitor: Monitor, agent: Publisher) -> None:
    """Nothing is inherited: the documented variables, ours, the action's own, and a safe PATH."""
    hooks(
        workspace,
        error=[sh("env > environment", env={"CUSTOM": "value", "PATH": "/evil", "LD_PRELOAD": "x"})],
    )
    with shell(bus, workspace):
        agent.publish("prx.lifecycle.error", {"component": "tool", "message": "m"})
        monitor.runs(1)
    lines = (workspace / "environment").read_text().splitlines()
    found = dict(line.partition("=")[::2] for line in lines)
    assert {"SECRET_TOKEN", "HOME", "LD_PRELOAD"} & found.keys() == set()
    assert found["PATH"].startswith("/usr/local/bin:/usr/bin:/bin:")
    assert (found["CUSTOM"], found["PRXBUS_DEPTH"], found["PRXBUS_RUNTIME_DIR"]) == ("value", "1", bus)
    assert found["PRXBUS_CAUSE"].endswith(":prx.lifecycle.error:1")
    assert found.keys() - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH",
        "CUSTOM",
        *(f"ZERO_HOOK_{name}" for name in ("EVENT", "SESSION", "TIMESTAMP", "PAYLOAD", "PAYLOAD_FILE")),
        *(f"PRXBUS_{name}" for name in ("RUNTIME_DIR", "DEPTH", "CAUSE")),
    }


def test_a_large_payload_reaches_the_hook_whole(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """20 MB travel by claim check and arrive in the file and on standard input; the variable is unset."""
    script = (
        'wc -c < "$ZERO_HOOK_PAYLOAD_FILE" > size; cksum > stdin; cksum < "$ZERO_HOOK_PAYLOAD_FILE" > file'
    )
    hooks(
        workspace,
        tool_call=[sh(f'{script}; printf %s "${{ZERO_HOOK_PAYLOAD-unset}}" > variable', stdin_json=True)],
    )
    with shell(bus, workspace):
        agent.publish(
            "prx.lifecycle.tool_call", {"tool": "Bash", "success": True, "output": "x" * 20_000_000}
        )
        (run,) = monitor.runs(1)
    assert run["status"] == "ok"
    assert int((workspace / "size").read_text()) > 20_000_000
    assert (workspace / "stdin").read_text() == (workspace / "file").read_text()
    assert (workspace / "variable").read_text() == "unset"


def test_actions_of_one_event_run_side_by_side(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """Two actions that wait for each other both end well: they run at the same time."""
    meet = (
        "touch {mine}; n=0; until [ -e {other} ]; do n=$((n+1)); [ $n -gt 2000 ] && exit 9; sleep 0.01; done"
    )
    hooks(
        workspace,
        agent_start=[sh(meet.format(mine="a", other="b")), sh(meet.format(mine="b", other="a"))],
    )
    with shell(bus, workspace):
        agent.publish("prx.lifecycle.agent_start", {})
        assert [run["status"] for run in monitor.runs(2)] == ["ok", "ok"]


def test_every_way_a_run_can_end_is_reported_and_failures_are_dead_letters(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """ok, failed, signalled, timeout, not started: each with its facts, and none stops another."""
    hooks(
        workspace,
        agent_end=[
            sh("exit 0"),
            sh("echo no >&2; exit 3"),
            sh("kill -9 $$"),
            sh("sleep 60", timeout_ms=200),
            {"command": "./missing.sh"},
        ],
    )
    with shell(bus, workspace):
        agent.publish("prx.lifecycle.agent_end", {"success": True}, session_id="s")
        runs = {run["hook"]: run for run in monitor.runs(5)}
        letters = monitor.wait("prx.hooks.dead_letter", 4)
    statuses = [runs[f"agent_end#{index}"]["status"] for index in range(5)]
    assert statuses == ["ok", "failed", "signalled", "timeout", "not_started"]
    assert (runs["agent_end#1"]["exit_code"], runs["agent_end#1"]["stderr"]) == (3, "no\n")
    assert runs["agent_end#2"]["signal"] == 9
    assert runs["agent_end#3"]["duration_ms"] >= 200
    assert "cannot be found: No such file or directory" in runs["agent_end#4"]["reason"]
    assert (letters[0]["topic"], letters[0]["payload"]) == ("prx.lifecycle.agent_end", {"success": True})
    assert {event.session_id for event in monitor.seen} == {"s"}


def test_a_hook_that_publishes_goes_one_level_deeper_and_stops_at_eight(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """A hook that answers its event with the same event runs eight times, at depths 0 to 7."""
    program = (
        "from broker.client import Publisher\n"
        "with Publisher('hook', on_absent='raise') as bus:\n"
        "    bus.publish('prx.lifecycle.error', {'component': 'hook'})\n"
    )
    hooks(workspace, error=[{"command": sys.executable, "args": ["-c", program]}])
    with shell(bus, workspace), Subscriber(["prx.lifecycle.error"], runtime_dir=bus) as events:
        agent.publish("prx.lifecycle.error", {"component": "agent"})
        assert [run["status"] for run in monitor.runs(8)] == ["ok"] * 8
        got: list[Event] = []
        while batch := events.batch(timeout=1.0):
            got += batch
    assert [event.depth for event in got] == list(range(8))
    assert [event.caused_by for event in got[1:]] == [event.id for event in got[:-1]]


def test_an_invalid_file_at_start_is_said_and_a_good_one_is_taken(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """The service starts without hooks, says where the fault is, and runs them once the file is mended."""
    (workspace / "hooks.json").write_text('{"hooks": {\n  "error": [ oops ]\n}}')
    with shell(bus, workspace) as runner:
        assert runner.said["hooks"] == 0
        assert runner.logged("no hooks run from this file")
        assert runner.logged("hooks.json:2:")
        hooks(workspace, error=[sh("exit 0")])
        until(lambda: runner.logged('"hooks":1'), "the good file")
        agent.publish("prx.lifecycle.error", {})
        assert monitor.runs(1)[0]["status"] == "ok"


def test_a_file_that_breaks_while_running_leaves_the_last_good_set(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """A half-written file changes nothing but what is said; a deleted one ends the hooks."""
    hooks(workspace, error=[sh("exit 0")])
    with shell(bus, workspace) as runner:
        (workspace / "hooks.json").write_text('{"hooks": {"error": [')
        until(lambda: runner.logged("1 hook of the last good file stay in force"), "the refusal")
        agent.publish("prx.lifecycle.error", {})
        monitor.runs(1)
        (workspace / "hooks.json").unlink()
        until(lambda: runner.logged("the file is gone"), "the deletion")
        agent.publish("prx.lifecycle.error", {})
        hooks(workspace, error=[sh("exit 7")])
        until(lambda: runner.log.read_text().count('"status":"good"') == 2, "the new file")
        agent.publish("prx.lifecycle.error", {})
        assert [run["exit_code"] for run in monitor.runs(2)] == [0, 7]


def test_too_many_runs_wait_and_then_are_dropped_and_counted(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """The queue of runs is bounded: what does not fit is counted in status, and the publisher never waits."""
    from broker.client.tool import Tool

    (workspace / "gate").write_text("")
    hooks(workspace, error=[sh("while [ -e gate ]; do sleep 0.02; done")])
    with shell(bus, workspace, "--runs", "2", "--runs-per-hook", "2", "--queue", "3"):
        for _ in range(20):
            assert agent.publish("prx.lifecycle.error", {})

        def reported() -> dict[str, Any]:
            with Tool("test", runtime_dir=bus) as tool:
                subscribers = tool.request("status").body["status"]["subscribers"]
            return next((each for each in subscribers if each["name"] == "shell"), {})

        until(lambda: reported().get("runs_dropped") == 15, "the count of drops")
        assert reported()["runs"]["dropped"] == 15
        (workspace / "gate").unlink()
        assert [run["status"] for run in monitor.runs(5)] == ["ok"] * 5


def test_sigterm_lets_runs_end_and_flushes_their_reports(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """A run under way when the service is told to stop ends in its own time and is reported."""
    hooks(workspace, error=[sh("touch begun; while [ ! -e go ]; do sleep 0.02; done")])
    with shell(bus, workspace) as runner:
        agent.publish("prx.lifecycle.error", {})
        until((workspace / "begun").exists, "the run")
        runner.process.send_signal(signal.SIGTERM)
        (workspace / "go").write_text("")
        assert runner.process.wait(30) == 0
        assert monitor.runs(1)[0]["status"] == "ok"


def test_a_run_that_does_not_end_is_ended_at_the_budget(
    bus: str, workspace: Path, monitor: Monitor, agent: Publisher
) -> None:
    """After the drain budget a run is ended and reported as such, and nothing of it is left."""
    hooks(workspace, error=[sh("echo $$ > pid; exec sleep 600")])
    with shell(bus, workspace, "--drain-seconds", "0.3") as runner:
        agent.publish("prx.lifecycle.error", {})
        until(lambda: (workspace / "pid").exists() and (workspace / "pid").read_text().strip(), "the run")
        runner.process.send_signal(signal.SIGTERM)
        assert runner.process.wait(30) == 0
    (run,) = monitor.runs(1)
    assert (run["status"], run["reason"]) == ("timeout", "ended early: its subscriber is shutting down")
    until(lambda: not Path("/proc", (workspace / "pid").read_text().strip()).exists(), "the process to go")
