"""Samples of our own, of the shapes that the page shows, run at the paths and hosts that they name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.prx.stage import Event, Played, Stage, stage

pytestmark = pytest.mark.timeout(150)  # each test starts a whole bus, in a machine of its own

SAMPLES = Path(__file__).with_name("samples")
CALL = ("tool_call", {"tool": "Bash", "success": True, "output": "line 1\nline 2"})


@pytest.fixture(scope="module")
def machine(require_tool: Callable[[str], str]) -> Iterator[Stage]:
    """A stage for all samples."""
    with stage(require_tool) as made:
        yield made


def played(machine: Stage, name: str, runs: int, *events: Event) -> Played:
    """What came of a sample; every run must have ended well."""
    folder = SAMPLES / name
    scripts = {path.name: path.read_bytes() for path in folder.glob("scripts/*")}
    found = machine.play((folder / "hooks.json").read_bytes(), scripts, events, runs)
    assert [run["status"] for run in found.runs] == ["ok"] * runs, found.runs
    return found


def test_an_audit_log_gets_every_call_whatever_its_size(machine: Stage) -> None:
    """A short and a very long output both become one line, with the file that the action's env names."""
    long = ("tool_call", {"tool": "Read", "success": False, "output": "x" * 100_000})
    found = played(machine, "audit", 2, CALL, long)
    lines = [json.loads(line) for line in found.text("calls.jsonl").splitlines()]
    assert sorted((line["payload"] for line in lines), key=str) == sorted((CALL[1], long[1]), key=str)


def test_an_alert_is_posted_by_curl_from_its_standard_input(machine: Stage) -> None:
    """curl, found on the PATH, sends the whole envelope to the https address that the sample names."""
    found = played(machine, "alert", 1, ("error", {"component": "llm", "message": "timeout"}))
    (request,) = found.requests
    assert (request["host"], request["path"]) == ("alerts.example", "/services/T11/B11")
    assert request["type"] == "application/json"
    envelope = json.loads(request["body"])
    assert (envelope["event"], envelope["payload"]["message"]) == ("error", "timeout")


def test_a_latency_is_taken_from_standard_input(machine: Stage) -> None:
    """python3, found on the PATH, reads the event from its standard input."""
    call = {"provider": "openai", "model": "gpt-4o", "duration_ms": 1842, "success": True}
    found = played(machine, "latency", 1, ("llm_response", call))
    assert found.text("latency.txt") == "sess_abc123 openai/gpt-4o 1842\n"


def test_a_session_is_tracked_by_two_events(machine: Stage) -> None:
    """The same script is told by its argument what it is called for."""
    start = ("agent_start", {"agent": "main", "session": "sess_abc123"})
    end = ("agent_end", {"success": True, "messages_count": 4})
    found = played(machine, "sessions", 2, start, end)
    assert sorted(found.text("sessions.txt").splitlines()) == [
        "begin sess_abc123 agent_start",
        "finish sess_abc123 agent_end",
    ]


def test_an_event_without_fields_and_a_folder_outside(machine: Stage) -> None:
    """turn_complete has an empty payload; an absolute cwd holds, and without stdin_json input is empty."""
    found = played(machine, "all-at-once", 3, ("agent_start", {}), ("turn_complete", {}))
    assert found.text("notified") == "--title\nAn agent has started\n"
    lines = sorted(line.split("|") for line in found.text("turns.txt").splitlines())
    assert (lines[0][:2], json.loads(lines[0][2])["payload"]) == (["", "/working/directory"], {})
    assert (lines[1][0], lines[1][2]) == ("second", "")


def test_three_channels_hold_the_same_bytes(machine: Stage) -> None:
    """Variable, file and standard input, read by bash and Python, with jq or without."""
    found = played(machine, "channels", 3, CALL)
    assert found.text("variable") == found.text("file") == found.text("input")
    assert {found.text(f"{name}.tool") for name in ("variable", "file", "input")} == {"Bash\n"}
