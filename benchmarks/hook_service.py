"""A broker and a shell service for a workspace, as `prxbus up` starts them, for the benchmarks of hooks.

Decides how the two are started and ended; refuses to know what is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .flow import scratch
from .servers import stop

TOPIC = "prx.lifecycle.tool_call"
FIELDS = {"tool": "Bash", "success": True, "output": "x" * 220}


class HookService(NamedTuple):
    """The bus's directory, the workspace, and the pid of the process that runs the hooks."""

    bus: str
    workspace: Path
    pid: int


@contextmanager
def hook_service(action: Mapping[str, Any], *options: str) -> Iterator[HookService]:
    """Run `action` for each tool call; `options` are the shell service's."""
    from .contenders.prxbus import start_broker

    with scratch() as bus, tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        (workspace / "hooks.json").write_text(json.dumps({"hooks": {"tool_call": [action]}}))
        broker = start_broker(bus)
        try:
            with _shell(bus, folder, options) as pid:
                yield HookService(bus, workspace, pid)
        finally:
            stop(broker)


@contextmanager
def _shell(bus: str, workspace: str, options: Sequence[str]) -> Iterator[int]:
    command = [
        *(sys.executable, "-P", "-m", "subscribers.runner.shell_service", "--log-level", "error"),
        *("--runtime-dir", bus, "--workspace", workspace, "--drain-seconds", "0", *options),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            if not said or json.loads(said)["hooks"] != 1:
                raise RuntimeError(f"the shell service is not ready: {said!r}")
            yield process.pid
        finally:
            stop(process)
