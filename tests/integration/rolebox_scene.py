"""Roles at work under ``prxbus up --role``: their directories, an agent of them, and what is logged."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subscribers.adapters.rolebox import Rolebox
from tests.integration.command import COMMAND
from tests.integration.librefang_scene import Served, running

SECONDS = 30.0
NODE = 20
"""The Node from which modules in JavaScript run."""


def node_version() -> tuple[int, int]:
    """Major and minor version of the installed Node; (0, 0) without one."""
    path = shutil.which("node")
    if path is None:
        return 0, 0
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    major, minor, _ = said.strip().removeprefix("v").split(".")
    return int(major), int(minor)


def role(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A directory with these files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


class Roles:
    """A bus with roles. ``said`` is its ready line."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.said: dict[str, Any] = served.said
        self.bus: str = served.said["runtime_dir"]

    def agent(self, session: str, role: str | None = None) -> Rolebox:
        """An agent of a session that plays this role."""
        return Rolebox(session, agent="agent-7", role=role, timeout=SECONDS, runtime_dir=self.bus)

    def logged(self, logger: str) -> list[dict[str, Any]]:
        """What one logger has said so far."""
        return [record for record in self.served.every() if record.get("logger") == logger]


@contextmanager
def roles_up(folder: Path, *roles: Path, options: tuple[str, ...] = ()) -> Iterator[Roles]:
    """``prxbus up`` with these roles, from its ready line to its end in order."""
    home = folder / "nobody"
    home.mkdir(exist_ok=True)
    environ = {
        "HOME": str(home),
        "LIBREFANG_HOME": None,
        "PRXBUS_CONFIG_DIR": str(home),
        "XDG_CONFIG_HOME": None,
        "XDG_STATE_HOME": None,
        "XDG_DATA_HOME": None,
    }
    with tempfile.TemporaryDirectory(prefix="pxb", dir="/tmp") as bus:
        named = [argument for directory in roles for argument in ("--role", str(directory))]
        command = [COMMAND, "up", "--json", "--http", "0", "--runtime-dir", bus, *named, *options]
        with running(command, folder / "up.log", environ) as served:
            yield Roles(served)
