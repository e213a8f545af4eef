"""A LibreFang home at work: its files, the shell service that runs its hooks, and what it logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.integration.waiting import until

RECORD = '#!/bin/sh\nprintf "%s" "$HOOK_EVENT_DATA" > "$HOOK_EVENT.new"; mv "$HOOK_EVENT.new" "$HOOK_EVENT"\n'
"""Keeps the payload of each event in a file of its name, whole as soon as it is there."""


class Home:
    """The files of a home."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "hooks").mkdir(parents=True, exist_ok=True)

    def hook(self, name: str, events: str, script: str, more: str = "") -> Path:
        """A hook whose ``run.sh`` is this script; its folder."""
        folder = self.path / "hooks" / name
        folder.mkdir(exist_ok=True)
        program = folder / "run.sh"
        program.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        (folder / "HOOK.yaml").write_text(f"name: {name}\nevents: {events}\ncommand: ./run.sh\n{more}")
        return folder


class Served:
    """A running process, what it said when it was ready, and its log."""

    def __init__(self, process: subprocess.Popen[bytes], said: dict[str, Any], log: Path) -> None:
        self.process = process
        self.said = said
        self.log = log

    def records(self, words: str) -> list[dict[str, Any]]:
        """The records of the log with this message so far."""
        return [record for record in self.every() if record["event"] == words]

    def every(self) -> list[dict[str, Any]]:
        """The records of the log so far."""
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        return list(map(json.loads, lines))

    def record(self, words: str, **facts: Any) -> dict[str, Any]:
        """The first record with this message and these facts, waiting for it."""
        found: list[dict[str, Any]] = []

        def there() -> bool:
            found[:] = [r for r in self.records(words) if facts.items() <= r.items()]
            return bool(found)

        until(there, f"{words!r} with {facts}")
        return found[0]


@contextmanager
def running(command: list[str], log: Path, environ: Mapping[str, str | None]) -> Iterator[Served]:
    """The command, from its ready line to its end in order; a variable that is None is not there."""
    merged: dict[str, str | None] = {**os.environ, **environ}
    env = {name: value for name, value in merged.items() if value is not None}
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=env)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        yield Served(process, orjson.loads(line), log)
        process.terminate()
        assert process.wait(40) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def serve(bus: str, home: Home, *options: str, **environ: str | None) -> Iterator[Served]:
    """The shell service with this home."""
    command = [
        *(sys.executable, "-P", "-m", "subscribers.runner.shell_service"),
        *("--runtime-dir", bus, "--librefang-home", str(home.path), *options),
    ]
    with running(command, home.path.parent / "shell.log", environ) as served:
        yield served
