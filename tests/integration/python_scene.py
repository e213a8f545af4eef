"""Python handlers at work: the service on a bus, an agent that asks and publishes, a monitor that watches."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from broker.client import Publisher
from broker.testing import running_broker
from tests.integration.service_scene import Runner, serving
from tests.integration.shell_scene import Monitor
from tests.integration.waiting import until

HEAD = "from subscribers.handlers import on, decide, transform\n"
IN_FORCE = "handlers are in force"


class Handlers(Runner):
    """A running service of Python handlers."""

    def count(self, words: str) -> int:
        """How many lines of the log hold ``words``."""
        return sum(words in line for line in self.log.read_text().splitlines())

    def pids(self) -> list[int]:
        """The workers that were put into service, in order."""
        lines = [orjson.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line["pid"] for line in lines if line.get("event") == IN_FORCE]

    def in_force(self, times: int) -> None:
        """Wait until workers have been put into service so many times since the start."""
        try:
            until(lambda: self.count(IN_FORCE) >= times, f"{times} times in force")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.log.read_text()}") from None


class Scene(NamedTuple):
    """Everything of one test: the bus's directory, the workspace, who asks and who watches."""

    bus: str
    workspace: Path
    agent: Publisher
    monitor: Monitor

    @property
    def folder(self) -> Path:
        """Where the workspace's handlers are."""
        return self.workspace / ".prxbus" / "handlers"

    def write(self, name: str, source: str) -> Path:
        """Write a file of handlers as an editor does: a new file, renamed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".{name}.new"
        temporary.write_text(HEAD + source)
        return temporary.rename(self.folder / name)


@contextmanager
def scene() -> Iterator[Scene]:
    """A broker, an empty workspace, an agent and a monitor; no service yet."""
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


@contextmanager
def handlers(on: Scene, *options: str, **environment: str) -> Iterator[Handlers]:
    """The service for the scene's workspace, with ``environment`` added to ours; ended in order."""
    options = ("--lifeline", "--runtime-dir", on.bus, "--workspace", str(on.workspace), *options)
    log = on.workspace.parent / "python.log"
    with serving(Handlers, "python_service", log, options, environment) as service:
        yield service


def gone(pid: int) -> bool:
    """Whether there is no such process any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@contextmanager
def meanwhile(task: Any) -> Iterator[list[Any]]:
    """``task`` runs in a thread within the block; what it returned is in the list after it."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(task()))
    thread.start()
    try:
        yield results
    finally:
        thread.join(60)
