"""The example hooks do what their README says, started exactly as the PRX dialect says."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from subscribers.dialects import prx
from subscribers.dialects.base import EventView, Place
from subscribers.hooks.plan import Plan
from subscribers.sources.resolve import Resolved, resolve

EXAMPLE = Path(__file__).parents[2] / "examples" / "prx"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A copy of the example, and beside it a stand-in for prxbus that notes how it was called."""
    shutil.copytree(EXAMPLE, tmp_path / "ws")
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "prxbus"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "$PRXBUS_DEPTH" "$PRXBUS_RUNTIME_DIR" > called\n')
    stand_in.chmod(0o755)
    return tmp_path / "ws"


def fire(workspace: Path, event: str, payload: dict[str, Any]) -> None:
    """Run the hooks of an event one after another, and see each succeed."""
    view = EventView(event, json.dumps(payload).encode(), "s1", 1_774_080_930_123_000_000, 2, "id/1")
    body = prx.envelope(view)
    payload_file = workspace.parent / "payload.json"
    payload_file.write_bytes(body)
    bin_folder = str(workspace.parent / "bin")
    specs = Plan.of(prx.parse((workspace / "hooks.json").read_bytes(), "hooks.json").specs).for_event(event)
    assert specs
    for spec in specs:
        found = resolve(spec, str(workspace), bin_folder)
        assert isinstance(found, Resolved)
        place = Place(str(workspace), "/run/bus", str(payload_file), bin_folder, found.executable, found.cwd)
        run = prx.render(spec, view, place, body)
        subprocess.run(
            run.argv, env=dict(run.env), cwd=run.cwd, input=run.stdin or b"", timeout=30, check=True
        )


def test_tool_calls_are_audited_whatever_their_size(workspace: Path) -> None:
    """A short and a very long tool output both become one line of the audit log."""
    outputs = ["ok", "x\n" * 200_000]
    for output in outputs:
        fire(workspace, "tool_call", {"tool": "Bash", "success": True, "output": output})
    lines = (workspace / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["payload"]["output"] for line in lines] == outputs


def test_sessions_are_tracked(workspace: Path) -> None:
    """Start and end of a session are noted with the event's time."""
    fire(workspace, "agent_start", {"agent": "main", "session": "s1"})
    fire(workspace, "agent_end", {"success": True, "messages_count": 4})
    time = "2026-03-21T08:15:30.123Z"
    assert (workspace / "sessions.log").read_text() == f"{time} start s1\n{time} end s1\n"


def test_latencies_are_noted(workspace: Path) -> None:
    """A model call becomes a row, read from the standard input."""
    payload = {"provider": "openai", "model": "gpt-4o", "duration_ms": 1842, "success": True}
    fire(workspace, "llm_response", payload)
    assert (workspace / "latency.tsv").read_text() == "2026-03-21T08:15:30.123Z\tgpt-4o\t1842\tok\n"


def test_errors_are_published_one_deeper(workspace: Path) -> None:
    """The error hook finds prxbus on its PATH and publishes with the bus and depth it was given."""
    fire(workspace, "error", {"component": "llm", "message": "timeout"})
    called = (workspace / "called").read_text().splitlines()
    assert called == ["pub", "prx.metrics.errors", '{"count": 1}', "3", "/run/bus"]
