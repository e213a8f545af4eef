"""A demonstration that is killed leaves no bus behind."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.integration.waiting import until


def children_of(pid: int) -> list[int]:
    """The processes that ``pid`` has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            if parent == pid:
                found.append(int(stat.parent.name))
    return found


def test_a_demonstration_that_is_killed_takes_its_bus_along(runtime_dir: Path) -> None:
    """However it ended: the bus notices that nobody holds the other end of its standard input."""
    program = "import sys; from broker.cli.main import main; sys.exit(main(['demo']))"
    environ = {**os.environ, "TMPDIR": str(runtime_dir)}  # short: there are sockets below it
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
    ) as demo:
        until(lambda: children_of(demo.pid), "the demonstration's bus")
        (bus,) = children_of(demo.pid)
        until(lambda: len(children_of(bus)) >= 2, "its broker and its subscriber")
        family = [bus, *children_of(bus)]
        demo.kill()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in family), "the end of all of them")
