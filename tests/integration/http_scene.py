"""A running ``http`` process on a real bus, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson

SECONDS = 40.0


class Served:
    """A running service: its ready line, its log, and a client that has the token."""

    def __init__(self, process: subprocess.Popen[bytes], said: dict[str, Any], log: Path, token: str) -> None:
        self.process = process
        self.said = said
        self.log = log
        self.address: str = said["http"]
        self.letter = {"Authorization": f"Bearer {token}"}
        self.client = httpx2.Client(base_url=self.address, headers=self.letter, timeout=SECONDS)

    def metric(self, name: str, **labels: str) -> float | None:
        """One sample of the metrics; None when it is not told."""
        shown = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
        start = f"{name}{{{shown}}} " if labels else f"{name} "
        for line in self.client.get("/metrics").text.splitlines():
            if line.startswith(start):
                return float(line.removeprefix(start))
        return None


@contextmanager
def served(
    bus: str, folder: Path, workspace: Path | None, *options: str, environ: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """An ``http`` service at a free port; ended in order, with exit code 0."""
    log = folder / "http.log"
    command = [
        *(sys.executable, "-P", "-m", "subscribers.runner.http_service", "--port", "0"),
        *("--runtime-dir", bus, "--state-dir", str(folder / "state")),
        *(() if workspace is None else ("--workspace", str(workspace))),
        *options,
    ]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, **(environ or {})}
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, log.read_text()
        said = orjson.loads(line)
        token = (environ or {}).get("PRXBUS_API_TOKEN") or Path(said["http_token_file"]).read_text().strip()
        found = Served(process, said, log, token)
        with found.client:
            yield found
        process.terminate()
        assert process.wait(SECONDS) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def write_hooks(workspace: Path, **events: list[dict[str, Any]]) -> str:
    """Save a hooks.json as an editor does: a new file, renamed; its text."""
    text = json.dumps({"hooks": events}, indent=2)
    temporary = workspace / ".editor"
    temporary.write_text(text)
    temporary.rename(workspace / "hooks.json")
    return text
