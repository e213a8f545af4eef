"""`prxbus up` with Python handlers, and a broker alone, for the benchmarks of asks, transforms and roles.

Decides how it is started and ended; refuses to know what is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .flow import scratch
from .servers import stop


@contextmanager
def broker_alone() -> Iterator[str]:
    """Run a broker that nobody else uses; the bus's directory."""
    from .contenders.prxbus import start_broker

    with scratch() as bus:
        broker = start_broker(bus)
        try:
            yield bus
        finally:
            stop(broker)


@contextmanager
def up(handlers: Mapping[str, str], *options: str) -> Iterator[str]:
    """Run with these files of handlers, source by name; the bus's directory. Without options no HTTP API."""
    with scratch() as bus, tempfile.TemporaryDirectory() as folder:
        for name, source in handlers.items():
            (Path(folder) / name).write_text(source)
        command = [
            *(str(Path(sys.executable).with_name("prxbus")), "up", "--json"),
            *(options or ("--no-http",)),
            *("--log-level", "error", "--runtime-dir", bus, "--handlers", folder),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                assert process.stdout is not None
                said = process.stdout.readline()
                ready = json.loads(said or b"{}")
                if ready.get("handlers", 0) + ready.get("transforms", 0) != len(handlers):
                    raise RuntimeError(f"prxbus up did not start with its handlers: {said!r}")
                yield bus
            finally:
                stop(process)
