"""One event put to handlers of the Codex family without a bus: together, judged, merged, and why not."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subscribers.hooks.firing import Firing
from subscribers.runner.fire import event_of, fire
from subscribers.runner.inspection import explained, world


class Files:
    """Hook files of a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.paths: list[str] = []

    def write(self, name: str, *groups: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
        """A hook file with groups of command handlers for PreToolUse."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        found = [
            {**group, "hooks": [{"type": "command", **handler} for handler in handlers]}
            for group, handlers in groups
        ]
        path.write_text(json.dumps({"hooks": {"PreToolUse": found}}))
        self.paths.append(str(path))

    def fire(self, payload: dict[str, Any], name: str = "tool_call_start", *, is_dry: bool = False) -> Firing:
        """Put a tool call to them."""
        environ = {
            "HOME": str(self.root),
            "PATH": "/usr/bin:/bin",
            "PRXBUS_CONFIG_DIR": str(self.root / "none"),
        }
        here = replace(world(environ), is_trial=True)
        event = event_of(f"prx.lifecycle.{name}", json.dumps(payload).encode(), "s1")
        return fire(event, explained(self.paths, None, here), here, str(self.root), is_dry=is_dry)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """No files yet; the process of the tests does not adopt what others leave behind."""
    monkeypatch.setattr("subscribers.runner.fire_codex.become_subreaper", lambda: False)
    return Files(tmp_path)


def test_all_files_are_one_event(files: Files) -> None:
    """Handlers of two profiles run; a block is no failure, a failure is told, the rest says why not."""
    python = {"command": sys.executable, "args": ["-c", "print('{}')"]}
    files.write(
        ".claude/settings.json",
        (
            {"matcher": "Bash"},
            [{"command": "echo never >&2; exit 2"}, {**python, "if": "Bash(git *)"}, python],
        ),
    )
    files.write(
        ".codex/hooks.json",
        ({"matcher": "^Ba"}, [{"command": "exit 3"}, {"command": "echo {"}]),
        ({"matcher": "Edit"}, [{"command": "exit 2"}]),
    )
    firing = files.fire({"tool": "Bash", "arguments": {"command": "ls"}, "cwd": str(files.root)})
    told = {
        (Path(file.file.path).name, fired.handler.name): (
            fired.reason if fired.outcome is None else fired.outcome.status,
            None if fired.outcome is None else fired.outcome.reason,
            None if fired.answer is None else fired.answer.reason,
        )
        for file in firing.files
        for fired in file.fired
    }
    assert told == {
        ("settings.json", "PreToolUse#0.0"): ("ok", None, "never"),
        ("settings.json", "PreToolUse#0.1"): ('its if "Bash(git *)" does not hold', None, None),
        ("settings.json", "PreToolUse#0.2"): ("ok", None, None),
        ("hooks.json", "PreToolUse#0.0"): ("failed", "hook exited with code 3", None),
        ("hooks.json", "PreToolUse#0.1"): ("failed", "hook returned invalid pre-tool-use JSON output", None),
        ("hooks.json", "PreToolUse#1.0"): ('its matcher "Edit" does not match "Bash"', None, None),
    }
    assert (firing.decision.verdict, firing.decision.reason, firing.decision.by) == (
        "deny",
        "never",
        "PreToolUse#0.0",
    )
    assert firing.has_failed


def test_a_dry_run_says_who_would_not_run(files: Files) -> None:
    """An ``if`` that does not hold, another matcher, an equal one before it, another machine."""
    for name in (".claude/settings.json", ".claude/settings.local.json"):
        handlers = [{"command": "true", "if": "Bash(git *)"}, {"command": "echo"}]
        files.write(name, ({"matcher": "Bash"}, handlers), ({"matcher": "Edit"}, [{"command": "ls"}]))
    call = {"tool": "Bash", "arguments": {"command": "ls"}, "cwd": str(files.root)}
    firing = files.fire(call, is_dry=True)
    told = [[(fired.matched, fired.reason) for fired in file.fired] for file in firing.files]
    here = (False, 'its if "Bash(git *)" does not hold')
    once = (False, "Claude Code runs an equal handler once, and that is one that stands before it")
    other = (False, 'its matcher "Edit" does not match "Bash"')
    assert told == [[here, (True, None), other], [here, once, other]]
    assert not any(fired.outcome for file in firing.files for fired in file.fired)
    away = files.fire({**call, "cwd": "ssh://build/srv"}, is_dry=True)
    assert "its workspace is remote" in (away.files[0].fired[1].reason or "")


@pytest.mark.parametrize("is_dry", [True, False])
def test_what_is_no_event_of_the_agent_is_said_in_its_name(files: Files, is_dry: bool) -> None:
    """A tool call that failed starts no handler for those that worked."""
    files.write(".claude/settings.json", ({}, [{"command": "true"}]))
    path = files.root / ".claude/settings.json"
    path.write_text(path.read_text().replace("PreToolUse", "PostToolUse"))
    call = {"tool": "Bash", "success": False, "cwd": str(files.root)}
    ((fired,),) = (file.fired for file in files.fire(call, "tool_call", is_dry=is_dry).files)
    why = "this tool_call is PostToolUseFailure in Claude Code, not PostToolUse"
    assert (fired.matched, fired.reason, fired.outcome) == (False, why, None)


def test_a_remote_workspace_runs_nothing(files: Files) -> None:
    """Each handler says why."""
    files.write(".codex/hooks.json", ({}, [{"command": "exit 2"}]))
    (file,) = files.fire({"tool": "Bash", "cwd": "ssh://build/srv"}).files
    assert "its workspace is remote" in (file.fired[0].reason or "")
    assert file.fired[0].outcome is None


def test_a_dry_run_starts_nothing(files: Files) -> None:
    """It says what would be tried, whatever the switches say of the place."""
    files.write(".prxbus/hooks.json", ({}, [{"command": f"touch {files.root}/made"}]))
    (file,) = files.fire({"tool": "Bash"}, is_dry=True).files
    assert (file.fired[0].matched, file.fired[0].outcome) == (True, None)
    assert not (files.root / "made").exists()
