"""The example of a LibreFang home does what the README promises of one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from broker.client import Publisher
from tests.integration.command import COMMAND
from tests.integration.librefang_scene import running
from tests.integration.waiting import until

EXAMPLE = Path(__file__).parents[3] / "examples" / "librefang"


def test_the_example_notes_starts_and_ends(
    runtime_dir: Path, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """A line for the start of the bus, and one for each run, also for an event beyond a variable."""
    require_tool("python3")
    home = tmp_path / "home"
    shutil.copytree(EXAMPLE, home)
    log = home / "hooks" / "note-ends" / "runs.log"
    command = [COMMAND, "up", "--json", "--no-http", "--runtime-dir", str(runtime_dir)]
    with (
        running([*command, "--librefang-home", str(home)], tmp_path / "log", {}) as served,
        Publisher("agent", runtime_dir=str(runtime_dir), on_absent="raise") as agent,
    ):
        assert served.said["librefang"] == {"home": str(home), "hooks": 1}
        run = {"agent_id": "a1", "status": "ok", "tokens_used": 5, "duration_ms": 20}
        agent.publish("prx.lifecycle.agent_end", run)
        agent.publish("prx.lifecycle.agent_end", {"agent_id": "a2", "more": "x" * 300_000})
        until(lambda: log.exists() and log.read_text().count("\n") == 3, "three lines")
        assert "was added" in served.log.read_text()
        assert "warning" not in served.log.read_text()
    lines = log.read_text().splitlines()
    assert "a1: ok, 5 tokens, 20 ms" in lines
    assert "a2: None, None tokens, None ms" in lines
    assert any(line.startswith("prxbus ") and "started at 2" in line for line in lines)
