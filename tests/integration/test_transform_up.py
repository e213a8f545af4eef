"""``prxbus up`` with transforms, as a person starts it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from broker.client import Publisher
from tests.integration.test_up import PRXBUS, up
from tests.integration.transform_scene import TOPIC, write

FUNCTION = "from subscribers.handlers import transform\n@transform\ndef f(event, ctx): return 'function'\n"
TABLE = "[[transform]]\ncommand = ['printf', '{\"content\": \"command\"}']\ntools = ['Bash']\n"


def test_transforms_run_with_up(runtime_dir: Path, tmp_path: Path) -> None:
    """The ready line counts them; a command of the user's and a function of the workspace answer."""
    write(tmp_path / "config" / "prxbus.toml", TABLE)
    write(tmp_path / "workspace" / ".prxbus" / "handlers" / "f.py", FUNCTION)
    environ = {"PRXBUS_CONFIG_DIR": str(tmp_path / "config")}
    with up(runtime_dir, "--workspace", str(tmp_path / "workspace"), environ=environ) as (_, said):
        assert said["transforms"] == 2
        assert "transform" in said["processes"]
        with Publisher("agent", runtime_dir=str(runtime_dir), on_absent="raise") as agent:
            for tool, answer in (("Bash", "command"), ("Read", "function")):
                decision = agent.ask(TOPIC, {"tool": tool, "output": "raw"}, timeout=30.0)
                assert decision.output == answer


def test_a_configured_command_runs_without_a_workspace(runtime_dir: Path, tmp_path: Path) -> None:
    """The user's own tables are no workspace's affair; where there is nothing, there is no process."""
    write(tmp_path / "config" / "prxbus.toml", TABLE)
    (tmp_path / "none").mkdir()
    environ = {"PRXBUS_CONFIG_DIR": str(tmp_path / "config"), "HOME": str(tmp_path)}
    with up(runtime_dir, environ=environ) as (_, said):
        assert said["transforms"] == 1
        with Publisher("agent", runtime_dir=str(runtime_dir), on_absent="raise") as agent:
            decision = agent.ask(TOPIC, {"tool": "Bash", "output": "raw"}, timeout=30.0)
            assert decision.output == "command"
    environ["PRXBUS_CONFIG_DIR"] = str(tmp_path / "none")
    with up(runtime_dir, environ=environ) as (_, said):
        assert "transform" not in said["processes"]
        assert "transforms" not in said


@pytest.mark.parametrize("action", ["show", "check"])
def test_config_tells_of_transforms(tmp_path: Path, action: str) -> None:
    """`prxbus config` lists the tables, and names the place of a fault; `prxbus up` starts nothing then."""
    path = write(tmp_path / "prxbus.toml", TABLE + "[[transform]]\ncomand = 'x'\n")
    environ = {**os.environ, "PRXBUS_CONFIG_DIR": str(tmp_path)}
    done = subprocess.run(
        [PRXBUS, "config", action], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert (
        f"{path}: error: transform[1].comand: there is no such setting; did you mean command?" in done.stderr
    )
    if action == "show":
        assert 'transform prxbus.toml:transform[0]: printf \'{"content": "command"}\'' in done.stdout
    told = subprocess.run(
        [PRXBUS, "config", action, "--json"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(told.stdout)["transforms"] == [
        {
            "name": "prxbus.toml:transform[0]",
            "origin": str(path),
            "command": ["printf", '{"content": "command"}'],
            "tools": ["Bash"],
            "agents": [],
            "timeout": 5.0,
        }
    ]
    started = subprocess.run(
        [PRXBUS, "up", "--runtime-dir", str(tmp_path / "bus")],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert started.returncode == 2
    assert "nothing was started" in started.stderr
