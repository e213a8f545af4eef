"""The HTTP API as ``prxbus up`` serves it, and the README's own commands against it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tests.integration.command import prxbus
from tests.integration.http_scene import write_hooks
from tests.integration.test_up import up as up_without_http
from tests.integration.test_up import up_with

README = Path(__file__).parents[2] / "README.md"


def test_up_serves_the_hooks_of_the_workspace(runtime_dir: Path, tmp_path: Path) -> None:
    """The ready line names the address and the token's file; hooks, events and metrics are there."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    write_hooks(workspace, error=[{"command": "true"}])
    options = ("--http", "0", "--workspace", str(workspace))
    environ = {"PRXBUS_HTTP_STATE_DIR": str(tmp_path / "state")}
    with up_with(runtime_dir, *options, environ=environ) as (_, said):
        assert said["processes"].keys() >= {"broker", "shell", "http"}
        token = Path(said["http_token_file"]).read_text().strip()
        letter = {"Authorization": f"Bearer {token}"}
        hooks = httpx2.get(f"{said['http']}/api/hooks", headers=letter).json()["hooks"]
        assert [(hook["id"], hook["event"]) for hook in hooks] == [("hook_01", "error")]
        assert httpx2.get(f"{said['http']}/api/status", headers=letter).json()["workspace"] == str(workspace)
        assert b"prxbus_up 1.0" in httpx2.get(f"{said['http']}/metrics", headers=letter).content
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{said['http']}/healthz")


def test_up_can_do_without(runtime_dir: Path) -> None:
    """No process, no address, no token."""
    with up_without_http(runtime_dir) as (_, said):
        assert "http" not in said
        assert "http" not in said["processes"]
        assert not (runtime_dir / "http-token").exists()
    environ = {"PRXBUS_HTTP_ENABLED": "false"}
    with up_with(runtime_dir, environ=environ) as (_, said):
        assert "http" not in said["processes"]


def test_a_taken_port_starts_nothing(runtime_dir: Path) -> None:
    """Exit code 4 with the flags that help; the bus is not left running."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = prxbus("up", "--http", port, "--runtime-dir", str(runtime_dir))
    assert done.returncode == 4
    assert f"port {port} of 127.0.0.1 is in use: choose another with --http PORT" in done.stderr
    assert "nothing was started: the HTTP API cannot be served" in done.stderr
    assert [name for name in os.listdir(runtime_dir) if name.endswith(".sock")] == []


@pytest.mark.parametrize("port", ["65536", "-1", "x"])
def test_what_is_no_port_is_refused(runtime_dir: Path, port: str) -> None:
    """Exit code 2, before anything starts."""
    done = prxbus("up", f"--http={port}", "--runtime-dir", str(runtime_dir))
    assert done.returncode == 2
    assert "http" in done.stderr


def test_the_commands_of_the_readme_work(
    runtime_dir: Path, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """Each line of the section runs as it is written, but for the address and the directory."""
    require_tool("curl")
    shell = require_tool("bash")
    section = README.read_text().split("## HTTP API")[1].split("\n## ")[0]
    (block,) = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    first, *commands = [line.removeprefix("$ ") for line in block.splitlines()]
    assert first == "prxbus up --workspace . --runtime-dir ./bus"
    assert len(commands) == 13
    options = ("--http", "0", "--workspace", str(tmp_path))
    environ = {"PRXBUS_HTTP_STATE_DIR": str(tmp_path / "state")}
    with up_with(runtime_dir, *options, environ=environ) as (_, said):
        (tmp_path / "bus").symlink_to(runtime_dir)
        script = "\n".join(f"{command}\necho" for command in commands)
        done = subprocess.run(
            [shell, "-eu", "-c", script.replace("http://127.0.0.1:16831", said["http"])],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    shown = [json.loads(line) for line in lines if line.startswith("{")]
    assert shown[0] == {"status": "ok"}
    assert [answer["id"] for answer in shown[1:6]] == ["hook_01"] * 5
    assert shown[3]["action"] == {"command": "ls", "args": ["-l"]}
    assert (shown[4]["status"], shown[5]) == ("ok", {"id": "hook_01", "enabled": False})
    assert shown[6]["published"] == 1
    assert (shown[7]["verdict"], shown[7]["allowed"]) == ("none", True)
    assert ": ready" in lines
    assert any(line.startswith("prxbus_events_published_total") for line in lines)
