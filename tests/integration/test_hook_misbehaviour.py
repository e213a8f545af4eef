"""Hooks that do whatever they like: ended and reaped on time, nothing left over, nobody else delayed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client.tool import Tool
from subscribers.runtimes.process_table import read_table
from tests.integration.service_scene import Runner
from tests.integration.shell_scene import Scene, hooks, scene, sh, shell
from tests.integration.waiting import until


@pytest.fixture
def at() -> Iterator[Scene]:
    """A bus, a workspace, an agent and a monitor."""
    with scene() as made:
        yield made


def status(bus: str) -> dict[str, Any]:
    """What the shell service has reported of itself."""
    with Tool("test", runtime_dir=bus) as tool:
        subscribers = tool.request("status").body["status"]["subscribers"]
    return next((each for each in subscribers if each["name"] == "shell"), {})


def below(runner: Runner) -> list[int]:
    """The living descendants of the service, and its zombies."""
    table = read_table()
    found: set[int] = set()
    parents = {runner.process.pid}
    while parents:
        parents = {row.pid for row in table.values() if row.ppid in parents} - found
        found |= parents
    return sorted(found)


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmRSS"))


IGNORING = "trap '' TERM; touch running; while :; do sleep 0.02; done"
DOUBLE_FORK = (
    "import os, time\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.closerange(0, 3)\n"
    "        time.sleep(1000)\n"
    "    os._exit(0)\n"
)

DEEDS: dict[str, tuple[dict[str, Any], str]] = {
    "ignores SIGTERM": (sh(IGNORING, timeout_ms=400), "timeout"),
    "forks": (sh("for i in 1 2 3; do sleep 1000 & done; sleep 1000", timeout_ms=400), "timeout"),
    "forks, and goes": (sh("for i in 1 2 3; do sleep 1000 & done", timeout_ms=400), "ok"),
    "double-forks, and goes": (
        {
            "command": "/usr/bin/env",
            "args": [sys.executable, "-I", "-S", "-c", DOUBLE_FORK],
            "timeout_ms": 3_000,
        },
        "ok",
    ),
    "double-forks, and stays": (
        {
            "command": sys.executable,
            "args": ["-I", "-S", "-c", f"{DOUBLE_FORK}time.sleep(1000)"],
            "timeout_ms": 3_000,
        },
        "timeout",
    ),
    "closes its standard input": (sh("exec 0<&-; exit 0", stdin_json=True), "ok"),
    "writes 1 GB": (sh("head -c 1073741824 /dev/zero; head -c 10000000 /dev/zero >&2"), "ok"),
    "holds its pipes open": (sh("(sleep 1000; echo late) & exit 0", timeout_ms=400), "ok"),
    "leaves a session of its own": (sh("setsid sleep 1000 & sleep 1000", timeout_ms=400), "timeout"),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_it_is_ended_and_reaped_on_time(at: Scene, deed: str) -> None:
    """The outcome is told at once, no process of the run is left, memory is flat, and the next hook runs."""
    action, ends = DEEDS[deed]
    hooks(at.workspace, error=[action], agent_end=[sh("exit 0")])
    with shell(at.bus, at.workspace) as runner:
        at.agent.publish("prx.lifecycle.agent_end", {})
        at.monitor.runs(1)
        before = resident(runner.process.pid)
        at.agent.publish("prx.lifecycle.error", {"component": "x", "message": "y" * 30_000})
        ran = at.monitor.runs(2)[1]
        assert ran["status"] == ends, ran
        at.agent.publish("prx.lifecycle.agent_end", {})
        assert at.monitor.runs(3)[2]["status"] == "ok"
        until(lambda: below(runner) == [], "every process of the run to be gone")
        assert resident(runner.process.pid) - before < 12 << 20


def test_all_of_them_at_once(at: Scene) -> None:
    """Nine hooks that misbehave, side by side for one event: each is told as it is, and nothing is left."""
    hooks(at.workspace, error=[action for action, _ in DEEDS.values()])
    with shell(at.bus, at.workspace) as runner:
        at.agent.publish("prx.lifecycle.error", {})
        runs = {run["hook"]: run["status"] for run in at.monitor.wait("prx.hooks.run", len(DEEDS), 55.0)}
        assert runs == {f"error#{number}": ends for number, (_, ends) in enumerate(DEEDS.values())}
        until(lambda: below(runner) == [], "every process to be gone")
        until(lambda: status(at.bus).get("runs") == {"ok": 5, "timeout": 4}, "the counters")
        until(lambda: not (status(at.bus)["ending"] or status(at.bus)["runs_now"]), "the last of them")


def test_out_of_time_is_sigterm_then_five_seconds_then_sigkill(at: Scene) -> None:
    """SIGTERM comes at the timeout, a trap may run, SIGKILL follows after 5 s; it is counted as a timeout."""
    beat = "date +%s.%N > alive.new; mv alive.new alive; sleep 0.02"
    script = f"trap 'date +%s.%N > term' TERM; while :; do {beat}; done"
    hooks(at.workspace, error=[sh(script, timeout_ms=500)])
    with shell(at.bus, at.workspace) as runner:
        at.agent.publish("prx.lifecycle.error", {})
        (ran,) = at.monitor.runs(1)
        assert (ran["status"], ran["exit_code"], ran["signal"]) == ("timeout", None, None)
        assert 500 <= ran["duration_ms"] < 5_000
        until(lambda: below(runner) == [], "the end")
        term, alive = (float((at.workspace / name).read_text()) for name in ("term", "alive"))
        assert 4.5 <= alive - term < 9
        until(lambda: status(at.bus).get("runs") == {"timeout": 1}, "the counter")


def test_a_slow_hook_never_slows_the_publisher(at: Scene) -> None:
    """200 events a second with a hook that sleeps: no call waits, the queue is bounded, drops add up."""
    hooks(at.workspace, error=[{"command": "sleep", "args": ["2"]}])
    options = ("--runs", "8", "--runs-per-hook", "8", "--queue", "32", "--drain-seconds", "0")
    events, slow = 600, 0
    with shell(at.bus, at.workspace, *options) as runner:
        due, pace = time.monotonic(), threading.Event()
        sizes: list[int] = []
        for number in range(events):
            began = time.monotonic()
            assert at.agent.publish("prx.lifecycle.error", {"message": "x" * 1_000})
            slow += time.monotonic() - began > 0.05
            due += 0.005
            if number >= events // 3 and number % 100 == 0:
                sizes.append(resident(runner.process.pid))
            pace.wait(max(0.0, due - time.monotonic()))  # the pace is what is tested

        def counted() -> int:
            found = status(at.bus)
            assert found.get("runs_waiting", 0) <= 32
            assert found.get("runs_now", 0) <= 8
            ended: int = sum(found.get("runs", {}).values())
            return ended + int(found.get("runs_waiting", 0)) + int(found.get("runs_now", 0))

        until(lambda: counted() == events, "every event to be accounted for")
        assert status(at.bus)["runs"]["dropped"] >= events // 2
        assert slow <= events // 100, "the publisher waited"
        assert resident(runner.process.pid) - sizes[0] < 8 << 20
    assert at.agent.stats["dropped_full"] == 0


def test_payload_files_of_a_killed_service_are_swept(at: Scene, tmp_path: Path) -> None:
    """kill -9 leaves the file of a run under way; the next service removes it, and no living one's."""
    where = {"XDG_RUNTIME_DIR": str(tmp_path)}
    hooks(
        at.workspace, error=[sh('echo "$ZERO_HOOK_PAYLOAD_FILE" > where.new; mv where.new where; sleep 1000')]
    )
    path = at.workspace / "where"
    with shell(at.bus, at.workspace, **where) as killed:
        at.agent.publish("prx.lifecycle.error", {})
        until(path.exists, "the run")
        payload = Path(path.read_text().strip())
        assert payload.is_relative_to(tmp_path / "prxbus-payloads")
        assert orjson.loads(payload.read_bytes())["event"] == "error"
        hook = below(killed)[0]
        killed.kill()
        assert payload.exists()
    try:
        path.unlink()
        with shell(at.bus, at.workspace, **where):
            assert not payload.exists()
            at.agent.publish("prx.lifecycle.error", {})
            until(path.exists, "the next run")
            living = Path(path.read_text().strip())
            with shell(at.bus, at.workspace, "--drain-seconds", "0", **where):
                assert living.exists()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(hook, signal.SIGKILL)
    until(lambda: list((tmp_path / "prxbus-payloads").rglob("prx-hook-*")) == [], "all files to be gone")
