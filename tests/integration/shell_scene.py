"""Hooks at work: the shell service on a bus, an agent that publishes, a monitor that watches."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from broker.client import Event, Publisher, Subscriber
from broker.testing import running_broker
from tests.integration.service_scene import Runner, serving


def hooks(workspace: Path, **events: list[dict[str, Any]]) -> None:
    """Write the workspace's hooks.json as an editor does: a new file, renamed."""
    temporary = workspace / ".hooks.json.new"
    temporary.write_text(json.dumps({"hooks": events}))
    temporary.rename(workspace / "hooks.json")


def sh(script: str, **fields: Any) -> dict[str, Any]:
    """An action that runs a shell script."""
    return {"command": "/bin/sh", "args": ["-c", script], **fields}


@contextmanager
def shell(bus: str, workspace: Path, *options: str, **environment: str) -> Iterator[Runner]:
    """A shell service for ``workspace``, with ``environment`` added to ours; ended in order."""
    options = ("--runtime-dir", bus, "--workspace", str(workspace), *options)
    environ = {"SECRET_TOKEN": "do-not-pass-on", "HOME": "/root", **environment}
    with serving(Runner, "shell_service", workspace.parent / "shell.log", options, environ) as runner:
        yield runner


class Monitor:
    """Watches what hooks report."""

    def __init__(self, bus: str) -> None:
        self.events = Subscriber(["prx.hooks.*"], name="monitor", runtime_dir=bus)
        self.seen: list[Event] = []

    def runs(self, count: int) -> list[dict[str, Any]]:
        """The first ``count`` reports of runs, waiting for them."""
        return self.wait("prx.hooks.run", count)

    def wait(self, topic: str, count: int, seconds: float = 30.0) -> list[dict[str, Any]]:
        """The first ``count`` payloads of ``topic``, waiting for them."""
        deadline = time.monotonic() + seconds
        while len(found := self.of(topic)) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} {topic}: {found}"
            self.seen += self.events.batch(timeout=0.2)
        return found[:count]

    def of(self, topic: str) -> list[dict[str, Any]]:
        """The payloads of one topic seen so far."""
        return [event.payload for event in self.seen if event.topic == topic]


class Scene(NamedTuple):
    """Everything of one test: the bus's directory, the workspace, who publishes and who watches."""

    bus: str
    workspace: Path
    agent: Publisher
    monitor: Monitor


@contextmanager
def scene() -> Iterator[Scene]:
    """A broker, an empty workspace, an agent and a monitor; no shell service yet."""
    with tempfile.TemporaryDirectory(prefix="pxb", dir="/tmp", ignore_cleanup_errors=True) as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with (
            running_broker(Path(folder, "bus")) as bus,
            Publisher("agent", runtime_dir=bus, on_absent="raise") as agent,
        ):
            monitor = Monitor(bus)
            try:
                yield Scene(bus, workspace, agent, monitor)
            finally:
                monitor.events.close()
