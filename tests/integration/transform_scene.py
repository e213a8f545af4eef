"""Transforms at work: the service on a bus, an agent that asks, a monitor that watches."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from broker.client import Decision, Publisher, Subscriber
from broker.testing import running_broker
from tests.integration.service_scene import Runner, serving
from tests.integration.shell_scene import Monitor

TOPIC = "prx.lifecycle.tool_result"


class Scene(NamedTuple):
    """Everything of one test: the bus, the folders, who asks and who watches."""

    bus: str
    workspace: Path
    config: Path
    agent: Publisher
    monitor: Monitor

    def ask(self, output: Any, timeout: float = 20.0, **payload: object) -> Decision:
        """Ask what is to stand in place of a tool's output."""
        whole = {"tool": "Bash", "arguments": {"command": "git diff"}, "agent_id": "a1", "output": output}
        return self.agent.ask(TOPIC, {**whole, **payload}, timeout=timeout, session_id="s1")

    def handlers(self, name: str, source: str) -> Path:
        """Write a file of handlers into the workspace, as an editor does."""
        return write(self.workspace / ".prxbus" / "handlers" / name, source)

    def tables(self, text: str) -> Path:
        """Write the workspace's configuration."""
        return write(self.workspace / ".prxbus" / "config.toml", text)

    def own_tables(self, text: str) -> Path:
        """Write the user's configuration."""
        return write(self.config / "prxbus.toml", text)


def write(path: Path, text: str, *, mode: int = 0o644) -> Path:
    """Write a file whole: a new one, renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.new"
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.rename(path)
    return path


@contextmanager
def scene() -> Iterator[Scene]:
    """A broker, an empty workspace and configuration, an agent and a monitor; no service yet."""
    with tempfile.TemporaryDirectory(prefix="pxb", dir="/tmp", ignore_cleanup_errors=True) as folder:
        workspace, config = Path(folder, "workspace"), Path(folder, "config")
        workspace.mkdir()
        config.mkdir()
        with (
            running_broker(Path(folder, "bus")) as bus,
            Publisher("agent", runtime_dir=bus, on_absent="raise") as agent,
        ):
            monitor = Monitor(bus)
            try:
                yield Scene(bus, workspace, config, agent, monitor)
            finally:
                monitor.events.close()


@contextmanager
def transforms(scene: Scene, *options: str, **environment: str) -> Iterator[Runner]:
    """A transform service for the scene, with ``environment`` added to ours; ended in order."""
    log = scene.workspace.parent / "transform.log"
    options = ("--runtime-dir", scene.bus, "--workspace", str(scene.workspace), *options)
    environ = {"PRXBUS_CONFIG_DIR": str(scene.config), **environment}
    with serving(Runner, "transform_service", log, options, environ, appends=True) as runner:
        yield runner


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def listen(scene: Scene, *patterns: str) -> Subscriber:
    """A subscriber on the scene's bus."""
    return Subscriber(patterns, name="listener", runtime_dir=scene.bus)


def elapsed(began: float) -> float:
    """Seconds since ``began``."""
    return time.monotonic() - began
