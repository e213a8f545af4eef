"""Roles at work: their process on a bus, with modules in JavaScript and Python, and an agent that asks."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from broker.client import Decision, Publisher
from tests.integration.service_scene import Runner, serving
from tests.integration.waiting import until

BEFORE, AFTER, PROMPT = "tool_call_start", "tool_call", "system_transform"


class Roles(Runner):
    """A running process of roles."""

    def lines(self, logger: str, words: str = "") -> list[dict[str, Any]]:
        """What a logger has written that holds these words."""
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{") and words in line]
        return [line for line in map(orjson.loads, lines) if line["logger"] == logger]

    def until_logged(self, logger: str, words: str, times: int = 1) -> None:
        """Wait until it has, so many times."""
        until(lambda: len(self.lines(logger, words)) >= times, f"{logger}: {words}\n{self.log.read_text()}")

    def hang_up(self) -> None:
        """Have it look at all files again."""
        os.kill(self.process.pid, signal.SIGHUP)


class Role:
    """A role's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, text: str) -> None:
        """Write a file of it as an editor does: a new one, renamed."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{path.name}.new"
        temporary.write_text(text)
        temporary.rename(path)

    def hooks(self, *hooks: dict[str, Any], **more: Any) -> None:
        """Write its role.yaml; JSON is YAML."""
        whole = {"name": self.directory.name, "hooks": {"custom": list(hooks)}, **more}
        self.write("role.yaml", orjson.dumps(whole, option=orjson.OPT_INDENT_2).decode())


def hook(name: str, module: str, *events: str, **more: Any) -> dict[str, Any]:
    """An entry of ``hooks.custom``."""
    return {"name": name, "module": module, "events": list(events), **more}


@contextmanager
def roles(bus: str, log: Path, *directories: Path, options: tuple[str, ...] = ()) -> Iterator[Roles]:
    """The process, for these roles; ended in order."""
    named = tuple(part for directory in directories for part in ("--role", str(directory)))
    with serving(Roles, "roles_service", log, ("--runtime-dir", bus, *named, *options), {}) as runner:
        yield runner


@contextmanager
def agent(bus: str) -> Iterator[Agent]:
    """An agent on the bus."""
    with Publisher("agent", runtime_dir=bus, on_absent="raise") as publisher:
        yield Agent(publisher)


class Agent:
    """Asks about the steps of a session."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher

    def ask(
        self, name: str, payload: dict[str, Any], session: str | None = "s", timeout: float = 20.0
    ) -> Decision:
        """What the hooks of its role make of an event."""
        topic = name if "." in name else f"prx.lifecycle.{name}"
        return self.publisher.ask(topic, payload, session_id=session, timeout=timeout)

    def args(self, session: str | None = "s", timeout: float = 20.0, **more: Any) -> dict[str, Any]:
        """The arguments of a call of a tool, as its hooks leave them."""
        payload = {"tool": "write", "arguments": {"trace": []}, **more}
        decision = self.ask(BEFORE, payload, session, timeout)
        return dict(decision.input if decision.updated_input is None else decision.updated_input)

    def prompt(self, session: str = "s") -> list[str]:
        """The system prompt, as its hooks leave it."""
        decision = self.ask(PROMPT, {"system": ["base"]}, session)
        whole = decision.input if decision.updated_input is None else decision.updated_input
        return list(whole["system"])


def fresh(prefix: str = "pxb") -> tempfile.TemporaryDirectory[str]:
    """A folder whose path is short enough for sockets."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir="/tmp", ignore_cleanup_errors=True)


def elapsed(began: float) -> float:
    """Seconds since then."""
    return time.monotonic() - began
