"""Imported hooks while a bus runs: changes hold from the next event on, and only what was confirmed runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

from broker.client import Publisher
from broker.testing import running_broker
from subscribers.sources.import_actions import Importer
from subscribers.sources.import_places import ImportPlaces
from subscribers.sources.import_sources import homes
from tests.integration.service_scene import Runner, serving
from tests.integration.waiting import until

NOW = 1_790_000_000.0


def write(path: Path, text: str, mode: int = 0o755) -> None:
    """A file with the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def guard(said: str) -> str:
    """A hook that blocks, and says something."""
    return f"#!/bin/sh\necho {said} >&2\nexit 2\n"


def confirm(importer: Importer, name: str = "claude:project") -> str:
    """Import or update what there is; the import's id."""
    if name.startswith("claude:"):
        plan = importer.preview(name).plan
        importer.confirm(name, plan.fingerprint, NOW)
    else:
        plan = importer.preview_update(name).plan
        importer.confirm_update(name, plan.fingerprint, NOW)
    return plan.import_id


def test_changes_hold_from_the_next_event_on(runtime_dir: Path, tmp_path: Path) -> None:
    """Imported, disabled, enabled, updated, damaged, repaired, removed: each shows in the answers."""
    home, ws = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    script = ws / ".claude" / "hooks" / "guard.sh"
    write(script, guard("one"))
    handler = {"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh', "timeout": 20}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}}
    write(ws / ".claude" / "settings.json", json.dumps(settings), 0o644)
    environment = {"HOME": str(home), "XDG_DATA_HOME": str(tmp_path / "data"), "PRXBUS_CONFIG_DIR": str(home)}
    importer = Importer(ImportPlaces(str(tmp_path / "data/prxbus/imports"), str(ws)), homes(environment))
    with running_broker(runtime_dir) as bus, Publisher("agent", runtime_dir=bus) as agent:
        options = ("--runtime-dir", bus, "--workspace", str(ws))
        with serving(Runner, "codex_service", tmp_path / "log", options, environment) as service:

            def answer() -> str:
                asked = agent.ask("prx.lifecycle.tool_call_start", {"tool": "Bash", "input": {}}, timeout=30)
                return asked.reason or "none" if asked.verdict == "deny" else "none"

            name = confirm(importer)
            script.unlink()  # the copy runs
            until(lambda: answer() == "one", "the import to answer")
            importer.disable(name, NOW)
            assert answer() == "none"
            importer.enable(name, NOW)
            until(lambda: answer() == "one", "the enabled import to answer")
            write(script, guard("two"))
            until(lambda: answer() == "one", "the copy to answer, whatever becomes of its source")
            confirm(importer, name)
            until(lambda: answer() == "two", "the update to answer")
            (copy,) = (path for path in (tmp_path / "data").rglob("guard.sh") if "two" in path.read_text())
            os.chmod(copy, 0o700)
            copy.write_text(guard("evil"))
            os.chmod(copy, 0o500)
            until(lambda: answer() == "none" and service.logged("is not what was confirmed"), "the check")
            confirm(importer, name)
            until(lambda: answer() == "two", "the repaired import to answer")
            importer.remove(name, NOW)
            assert answer() == "none"
