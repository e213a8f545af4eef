"""``prxbus status`` and ``prxbus top`` as processes of their own, against a real broker."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.client import Decider, Publisher, Subscriber
from broker.client.tool import Tool
from broker.protocol.limits import TABLE
from tests.integration.command import (
    COMMAND,
    DEADLINE_S,
    drained,
    environment,
    prxbus,
    started,
    temporary_bus,
    terminal,
)

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def bus() -> Iterator[str]:
    """A bus that the tests of this file share."""
    with temporary_bus() as directory:
        yield directory


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for ``condition``."""
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        pause.wait(0.02)


def reported(bus: str, name: str, counter: str) -> int:
    """What the peer ``name`` has reported of ``counter``, 0 before it has."""
    with Tool("test", runtime_dir=bus, timeout=60.0) as tool:
        status = tool.request("status").body["status"]
    rows: list[dict[str, Any]] = status["subscribers"] + status["publishers"]
    return sum(int(row.get(counter, 0)) for row in rows if row["name"] == name)


def test_the_report_tells_of_broker_and_peers(bus: str) -> None:
    """As JSON the whole report, as text what matters; both name who is there and what they counted."""
    with (
        Subscriber(["c.*"], name="the auditor", runtime_dir=bus) as events,
        Publisher("the agent", runtime_dir=bus, on_absent="block") as agent,
    ):
        for _ in range(10):
            agent.publish("c.x", {})
        received = 0
        while received < 10:
            received += len(events.batch(timeout=1.0))
        until(lambda: reported(bus, "the auditor", "received") == 10, "the report of the subscriber")
        until(lambda: reported(bus, "the agent", "published") == 10, "the report of the publisher")
        as_json = prxbus("status", "--json", "--runtime-dir", bus, "--timeout", "60")
        as_text = prxbus("status", "--runtime-dir", bus, "--timeout", "60")
    assert as_json.returncode == as_text.returncode == 0
    status = json.loads(as_json.stdout)
    assert len(as_json.stdout.splitlines()) == 1
    assert status["broker"]["runtime_dir"] == bus
    assert [(row["name"], row["received"]) for row in status["subscribers"]] == [("the auditor", 10)]
    assert [(row["name"], row["published"]) for row in status["publishers"]] == [("the agent", 10)]
    lines = [line.split() for line in as_text.stdout.splitlines()]
    pid = str(os.getpid())
    assert any(line[:5] == ["the", "auditor", pid, "10", "0"] and line[-1] == "c.*" for line in lines)
    assert ["the", "agent", pid, "10", "0", "0", "0"] in lines


def test_a_loss_is_named_by_subscriber_and_topic(bus: str) -> None:
    """A subscriber that was stopped reports what it missed, and status shows it below its row."""
    with started("tap", "d.lost", "--json", "--ready", "--runtime-dir", bus) as tap:
        assert tap.stderr is not None
        assert b"ready" in tap.stderr.readline()
        os.kill(tap.pid, signal.SIGSTOP)
        with Publisher("flood", runtime_dir=bus, on_full="block", on_absent="block") as agent:
            for n in range(30_000):
                agent.publish("d.lost", {"n": n, "fill": "x" * 100})
                agent.publish("other.topic", {})  # so that each has a frame of its own
            os.kill(tap.pid, signal.SIGCONT)
            with drained(tap.stdout):
                until(lambda: reported(bus, "prxbus-tap", "missed") > 0, "the report of the gap")
                said = prxbus("status", "--runtime-dir", bus, "--timeout", "60")
                tap.kill()
    assert said.returncode == 0
    assert " of d.lost" in said.stdout


def test_the_limits_are_listed(bus: str) -> None:
    """Every limit of the table, by name, with its value; as JSON for programs."""
    as_text = prxbus("status", "--limits", "--runtime-dir", bus, "--timeout", "60")
    as_json = prxbus("status", "--limits", "--json", "--runtime-dir", bus, "--timeout", "60")
    told = json.loads(as_json.stdout)
    for limit in TABLE:
        assert any(line.startswith(f"{limit.name} ") for line in as_text.stdout.splitlines()), limit.name
        assert told[limit.name.replace(" ", "_")] == limit.value


@pytest.mark.parametrize("verb", ["status", "top --once"])
def test_without_a_bus_there_is_a_way_out(verb: str, runtime_dir: Path) -> None:
    """Exit code 3 and what to do."""
    said = prxbus(*verb.split(), "--runtime-dir", str(runtime_dir))
    assert (said.returncode, said.stdout) == (3, "")
    assert "no bus answers in" in said.stderr
    assert "prxbus up" in said.stderr


def publishing(bus: str, done: threading.Event) -> None:
    """An agent and a hook runner at work until ``done``."""
    with Publisher("worker", runtime_dir=bus, on_full="block", on_absent="block") as agent:
        while not done.wait(0.005):
            agent.publish("e.work", {"n": 1})
            run = {"hook": "work#0", "event": "work", "status": "timeout", "duration_ms": 12.0}
            agent.publish("prx.hooks.run", run)


def test_one_view_shows_topics_subscribers_and_hooks(bus: str) -> None:
    """What flows while it looks is counted, and the runs of hooks are read."""
    done = threading.Event()
    worker = threading.Thread(target=publishing, args=(bus, done))
    worker.start()
    try:
        as_json = prxbus("top", "--once", "--json", "--interval", "2", "--runtime-dir", bus)
        as_text = prxbus("top", "--once", "--interval", "2", "--runtime-dir", bus)
    finally:
        done.set()
        worker.join()
    assert as_json.returncode == as_text.returncode == 0
    view = json.loads(as_json.stdout)
    topics = {row["topic"]: row for row in view["topics"]}
    assert topics["e.work"]["total"] > 0
    assert topics["e.work"]["per_second"] > 0
    assert "prxbus-top" in {row["name"] for row in view["subscribers"]}
    (hook,) = view["hooks"]
    assert (hook["hook"], hook["event"], hook["p50_ms"]) == ("work#0", "work", 12.0)
    assert hook["runs"] == hook["timed_out"] > 0
    assert (hook["ok"], hook["failed"], hook["not_started"]) == (0, 0, 0)
    assert view["problem"] is None
    for word in ("e.work", "prxbus-top", "work#0", "12.0 ms"):
        assert word in as_text.stdout
    assert "\x1b" not in as_text.stdout


@pytest.mark.parametrize("env,styled", [({}, True), ({"NO_COLOR": "1"}, False)])
def test_one_view_on_a_terminal_has_no_styles_when_none_are_wanted(
    bus: str, env: dict[str, str], *, styled: bool
) -> None:
    """NO_COLOR takes bold and dim away too, not the colours alone."""
    command = [COMMAND, "top", "--once", "--interval", "0.2", "--runtime-dir", bus]
    clean = environment({"TERM": "xterm", **env})
    with terminal(80) as (ours, theirs):
        top = subprocess.run(command, stdin=theirs, stdout=theirs, env=clean, timeout=DEADLINE_S, check=False)
        drawn = os.read(ours, 65_536)
    assert top.returncode == 0
    assert b"prxbus top" in drawn
    assert (b"\x1b" in drawn) is styled


def test_the_live_view_needs_a_terminal(bus: str) -> None:
    """Into a pipe it says what to use instead."""
    said = prxbus("top", "--runtime-dir", bus)
    assert (said.returncode, said.stdout) == (2, "")
    assert "--once" in said.stderr


def test_the_live_view_as_json_goes_on_until_interrupted(bus: str) -> None:
    """One line for each interval; Ctrl-C is exit code 130 and no traceback."""
    with started("top", "--json", "--interval", "0.1", "--runtime-dir", bus) as top:
        assert top.stdout is not None
        views = [json.loads(top.stdout.readline()) for _ in range(3)]
        top.send_signal(signal.SIGINT)
        _, said = top.communicate(timeout=DEADLINE_S)
    assert top.returncode == 130
    assert said == b""
    assert views[0]["watched_s"] < views[1]["watched_s"] < views[2]["watched_s"]


def test_the_live_view_lives_on_a_terminal(bus: str) -> None:
    """It draws the tables within the screen, ends with q, and leaves the terminal as it was."""
    command = [COMMAND, "top", "--interval", "0.2", "--runtime-dir", bus]
    with terminal(100, 30) as (ours, theirs):
        before = termios.tcgetattr(theirs)
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment({"TERM": "xterm"})
        ) as top:
            try:
                drawn = b""
                while b"prxbus-top" not in drawn or b"hooks" not in drawn:
                    ready, _, _ = select.select([ours], [], [], DEADLINE_S)
                    assert ready, drawn
                    drawn += os.read(ours, 65_536)
                os.write(ours, b"q")
                deadline = time.monotonic() + DEADLINE_S
                while top.poll() is None:  # what it still draws must not block it
                    assert time.monotonic() < deadline
                    if select.select([ours], [], [], 0.05)[0]:
                        os.read(ours, 65_536)
                assert top.returncode == 0
                assert top.stderr is not None
                assert top.stderr.read() == b""
            finally:
                top.kill()
        assert termios.tcgetattr(theirs) == before


def test_deciders_and_asks_are_shown(bus: str) -> None:
    """Who decides, in which order and with which policy; what was asked; in each of the four ways."""

    def told() -> dict[str, Any]:
        said = prxbus("status", "--runtime-dir", bus, "--timeout", "60", "--json")
        report: dict[str, Any] = json.loads(said.stdout)
        return report

    def asked() -> bool:
        return any(row.get("asked") == 2 and row.get("answered") == 1 for row in told()["deciders"])

    with (
        Decider(["d.*"], name="guard", priority=7, failure="closed", runtime_dir=bus, wait=60) as asks,
        Publisher("asker", runtime_dir=bus, on_absent="block") as publisher,
    ):
        thread = threading.Thread(target=lambda: [ask.reply(()) for ask in asks.batch(1, 60.0)])
        thread.start()
        assert not publisher.ask("d.x", {}, timeout=60.0).denied
        thread.join()
        assert publisher.ask("d.x", {}, timeout=0.1).denied
        assert len(asks.batch(1, 60.0)) == 1
        until(asked, "the decider's report")
        status = prxbus("status", "--runtime-dir", bus, "--timeout", "60").stdout
        top = prxbus("top", "--once", "--runtime-dir", bus, env={"COLUMNS": "100"}).stdout
        view = json.loads(prxbus("top", "--once", "--json", "--runtime-dir", bus).stdout)
        report = told()
    assert "asks        0 under way; 2 asked, 2 answered, 0 cancelled\n" in status
    (row,) = (line.split() for line in status.splitlines() if line.startswith("guard "))
    assert row[2:] == ["7", "closed", "2", "1", "0", "0", "d.*"]
    assert "2 asks, 0 under way" in top
    assert [line.split()[2:4] for line in top.splitlines() if line.startswith("guard ")] == [["7", "closed"]]
    assert (view["deciders"][0]["name"], view["asks"]["timeout"]) == ("guard", 1)
    assert (report["asks"]["asked"], report["asks"]["closed_and_dead"]) == (2, [])
