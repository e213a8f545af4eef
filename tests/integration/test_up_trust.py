"""``prxbus up`` in a workspace that was trusted: it runs what was recorded, and nothing that was changed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client import Publisher
from tests.integration.command import COMMAND, environment, prxbus
from tests.integration.waiting import until

TOPIC = "prx.lifecycle.tool_call_start"
GUARD = """from subscribers.handlers import decide
@decide("tool_call_start")
def guard(event, ctx): return ctx.deny({reason!r})
"""


class Scene:
    """A workspace with a guard in Python and a hook that runs a script, and a user of its own."""

    def __init__(self, folder: Path, runtime_dir: Path) -> None:
        self.workspace = folder / "workspace"
        self.guard = self.workspace / ".prxbus" / "handlers" / "guard.py"
        self.guard.parent.mkdir(parents=True)
        self.guard.write_text(GUARD.format(reason="recorded"))
        self.script = self.workspace / "note.sh"
        self.script.write_text("#!/bin/sh\necho recorded >> notes\n")
        self.script.chmod(0o755)
        self.hooks("error")
        self.runtime_dir = str(runtime_dir)
        self.log = folder / "log"
        self.env = {
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_DATA_HOME": str(folder / "data"),
            "HOME": str(folder / "home"),
            "PRXBUS_CONFIG_DIR": str(folder / "config"),
            "PRXBUS_AGENTS_ENABLED": "false",
            "PRXBUS_HANDLERS_INSTALLED": "false",
        }

    def hooks(self, *events: str) -> None:
        """Have the script run on these events."""
        actions = {event: [{"command": "./note.sh"}] for event in events}
        (self.workspace / "hooks.json").write_text(json.dumps({"hooks": actions}))

    def trust(self) -> None:
        """What the user types after having looked."""
        done = prxbus("trust", str(self.workspace), env=self.env)
        assert done.returncode == 0, done.stderr

    @contextmanager
    def up(self) -> Iterator[dict[str, Any]]:
        """``prxbus up`` in the workspace, which nobody names: its ready line; ended in order."""
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [COMMAND, "up", "--json", "--no-http", "--runtime-dir", self.runtime_dir],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.workspace,
                env=environment(self.env),
            )
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, self.log.read_text()
            yield orjson.loads(line)
            process.terminate()
            assert process.wait(60) == 0, self.log.read_text()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def verdict(self, agent: Publisher) -> str | None:
        """What the guard says, None where there is none."""
        decision = agent.ask(TOPIC, {"tool": "Bash"}, timeout=20.0)
        return decision.reason if decision.denied else None

    def notes(self) -> int:
        """How often the script ran."""
        path = self.workspace / "notes"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def scene(tmp_path: Path, runtime_dir: Path) -> Scene:
    """A workspace that nobody trusts yet."""
    return Scene(tmp_path, runtime_dir)


def test_what_was_trusted_runs_until_it_changes(scene: Scene) -> None:
    """As if it had been named; hooks.json is reloaded; another change ends its processes, unrun."""
    scene.trust()
    with scene.up() as said:
        assert (said["workspace"], said["hooks"], said["handlers"]) == (str(scene.workspace), 1, 1)
        with Publisher("agent", runtime_dir=scene.runtime_dir, on_absent="raise") as agent:
            assert scene.verdict(agent) == "recorded"
            scene.hooks("agent_end")
            until(lambda: (agent.publish("prx.lifecycle.agent_end", {}), scene.notes())[1], "the new hook")
            scene.guard.write_text(GUARD.format(reason="changed"))
            verdicts = []

            def is_gone() -> bool:
                verdicts.append(scene.verdict(agent))
                return verdicts[-1] is None

            until(is_gone, "the guard to be gone")
            assert set(verdicts) <= {"recorded", None}
            told = scene.log.read_text()
            assert "a trusted workspace was changed, so its hooks run no longer" in told
            assert ".prxbus/handlers/guard.py" in told
            until(lambda: '"shell"' not in prxbus("status", "--json", env=where(scene)).stdout, "no shell")
            scene.guard.write_text(GUARD.format(reason="recorded"))  # there is no way back without the user
            before = scene.notes()
            agent.publish("prx.lifecycle.agent_end", {})
            assert scene.verdict(agent) is None
            assert scene.notes() == before


def where(scene: Scene) -> dict[str, str]:
    """The variables that lead to the bus."""
    return {**scene.env, "PRXBUS_RUNTIME_DIR": scene.runtime_dir}


def test_what_changed_since_does_not_run_until_it_is_trusted_anew(scene: Scene) -> None:
    """The file is named with the command; never trusted, the command is named alone."""
    with scene.up() as said:
        assert (said["workspace"], "python" in said["processes"]) == (None, False)
    assert "start it in one that you have looked at with 'prxbus trust'" in scene.log.read_text()
    scene.trust()
    scene.script.write_text("#!/bin/sh\necho changed >> notes\n")
    with scene.up() as said:
        assert (said["workspace"], "python" in said["processes"]) == (None, False)
    told = scene.log.read_text()
    assert (
        f"prxbus up: the hooks of {scene.workspace} do not run: changed since prxbus trust: note.sh" in told
    )
    assert f"run: prxbus trust {scene.workspace}\n" in told
    assert not os.path.exists(scene.workspace / "notes")
