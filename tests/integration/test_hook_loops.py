"""The bus beneath the hooks: always on, three kinds of subscription, and loops that end at depth eight."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from broker.client import Event, Publisher, Subscriber
from tests.integration.command import COMMAND
from tests.integration.shell_scene import Scene, hooks, scene, sh, shell
from tests.integration.waiting import until

LIFECYCLE = (
    *("agent_start", "agent_end", "llm_request", "llm_response"),
    *("tool_call_start", "tool_call", "turn_complete", "error"),
)

WITH_CLIENT = (
    "from broker.client import Publisher\n"
    "import sys\n"
    "with Publisher('hook', on_absent='raise') as bus:\n"
    "    bus.publish(sys.argv[1], {})\n"
)

RAW = """
import os, sys, time, zmq, msgpack
depth = os.environ["PRXBUS_DEPTH"]
if int(depth) > 7:
    sys.exit(0)
topic, publisher, cause = sys.argv[1], os.urandom(16), os.environ["PRXBUS_CAUSE"]
envelope = msgpack.packb([1, publisher, 1, time.time_ns(), None, "raw", cause, b"{}"])
socket = zmq.Context().socket(zmq.XPUB)
socket.connect("ipc://" + os.environ["PRXBUS_RUNTIME_DIR"] + "/ingress.sock")
heard = set()
while len(heard) < 8:
    heard.add(socket.recv())
socket.send(depth.encode() + topic.encode() + b"\\0" + envelope)
"""


@pytest.fixture
def at() -> Iterator[Scene]:
    """A bus, a workspace, an agent and a monitor."""
    with scene() as made:
        yield made


def _received(events: Subscriber, count: int) -> list[Event]:
    """The next ``count`` events, and what comes within a second after them."""
    got: list[Event] = []
    while len(got) < count and (batch := events.batch(timeout=40.0)):
        got += batch
    while batch := events.batch(timeout=1.0):
        got += batch
    return got


def answering(way: str, topic: str) -> dict[str, Any]:
    """An action that publishes an event of this topic, in one of the ways that there are."""
    if way == "prxbus pub":
        return {"command": "prxbus", "args": ["pub", topic, "{}"]}
    if way == "sh -> prxbus pub":
        return sh(f"/bin/sh -c 'exec prxbus pub {topic} \"{{}}\"'; exit $?")
    program = WITH_CLIENT if way == "client" else RAW
    return {"command": sys.executable, "args": ["-c", program, topic]}


@pytest.mark.parametrize("way", ["prxbus pub", "client", "raw", "sh -> prxbus pub"])
def test_two_hooks_that_answer_each_other_stop_at_eight(at: Scene, way: str) -> None:
    """Each hook publishes what starts the other: eight runs, depths 0 to 7, and the ninth event never is.

    Through the command, the client, a program that speaks the wire itself, and a shell in between: all that
    they have in common is the environment that they inherit.
    """
    hooks(
        at.workspace,
        agent_start=[answering(way, "prx.lifecycle.agent_end")],
        agent_end=[answering(way, "prx.lifecycle.agent_start")],
    )
    with (
        shell(at.bus, at.workspace),
        Subscriber(["prx.lifecycle.*"], runtime_dir=at.bus) as events,
    ):
        at.agent.publish("prx.lifecycle.agent_start", {})
        runs = at.monitor.wait("prx.hooks.run", 8, 55.0)
        got = _received(events, 8)
    assert [run["status"] for run in runs] == ["ok"] * 8, runs
    assert [event.depth for event in got] == list(range(8))
    names = [event.topic.rpartition(".")[2] for event in got]
    assert names == ["agent_start", "agent_end"] * 4
    assert [event.caused_by for event in got[1:]] == [event.id for event in got[:-1]]
    assert len(at.monitor.of("prx.hooks.run")) == 8


def test_at_depth_eight_the_publisher_is_told_nothing_and_it_is_counted(at: Scene) -> None:
    """The command of the eighth hook succeeds; its event is nowhere, and its client counts it."""
    done = subprocess.run(
        [COMMAND, "pub", "prx.lifecycle.error", "{}"],
        env={"PRXBUS_RUNTIME_DIR": at.bus, "PRXBUS_DEPTH": "8", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with Subscriber(["prx.lifecycle.*"], runtime_dir=at.bus) as events:
        with Publisher("deep", runtime_dir=at.bus) as bus:
            bus.publish("prx.lifecycle.error", {}, depth=8)
            assert bus.stats["over_depth"] == 1
            bus.publish("prx.lifecycle.error", {}, depth=7)
        assert [event.depth for event in _received(events, 1)] == [7]


@pytest.mark.parametrize("with_hooks", [True, False], ids=["with hooks", "without hooks"])
def test_the_bus_carries_every_event_with_or_without_hooks(at: Scene, with_hooks: bool) -> None:
    """Each of the page's eight events is on the topic of its name, whether anything runs for it or not."""
    if with_hooks:
        hooks(at.workspace, **{name: [sh("exit 0")] for name in LIFECYCLE})
    with (
        shell(at.bus, at.workspace) as runner,
        Subscriber(["prx.lifecycle.*"], runtime_dir=at.bus) as events,
    ):
        assert runner.said["hooks"] == (8 if with_hooks else 0)
        for name in LIFECYCLE:
            at.agent.publish(f"prx.lifecycle.{name}", {})
        got = _received(events, 8)
        if with_hooks:
            at.monitor.runs(8)
    assert [event.topic for event in got] == [f"prx.lifecycle.{name}" for name in LIFECYCLE]


KINDS = {
    "prx.lifecycle.tool_call": ["prx.lifecycle.tool_call"],
    "prx.lifecycle.*": [
        *("prx.lifecycle.tool_call", "prx.lifecycle.tool_call_start", "prx.lifecycle.error"),
    ],
    "prx.*": [
        *("prx.lifecycle.tool_call", "prx.lifecycle.tool_call_start", "prx.lifecycle.error"),
        *("prx.metrics.tokens", "prx.other.deep.topic"),
    ],
}
SENT = (*KINDS["prx.*"], "another.domain")


@pytest.mark.parametrize("pattern", KINDS)
def test_three_kinds_of_subscription_by_client_and_command(at: Scene, pattern: str) -> None:
    """Exact, wildcard and hierarchy get just what the page says, through the client and through tap."""
    expected = KINDS[pattern]
    tap = subprocess.Popen(
        [COMMAND, "tap", pattern, "--json", "--count", str(len(expected)), "--timeout", "50"],
        env={"PRXBUS_RUNTIME_DIR": at.bus, "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
    )
    try:
        with Subscriber([pattern], name="client", runtime_dir=at.bus) as events:
            until(lambda: _taps(at.bus), "the tap")
            for topic in SENT:
                at.agent.publish(topic, {})
            got = _received(events, len(expected))
        out, _ = tap.communicate(timeout=60)
    finally:
        tap.kill()
        tap.communicate()
    assert [event.topic for event in got] == expected
    assert [json.loads(line)["topic"] for line in out.splitlines()] == expected


def _taps(bus: str) -> bool:
    from broker.client.tool import Tool

    with Tool("test", runtime_dir=bus) as tool:
        return any("tap" in each["name"] for each in tool.request("status").body["status"]["subscribers"])
