"""``prxbus doctor``: what it says where something is missing, without a bus; one that works is elsewhere."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.cli.main import main
from subscribers.cli import doctor
from subscribers.runner import agent_probe
from subscribers.sources.attach_diagnosis import Expected


@pytest.fixture
def look(
    tmp_path: Path,
    runtime_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Any:
    """What the doctor says to a user with an empty home: pairs of level and text."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PRXBUS_RUNTIME_DIR", str(runtime_dir))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PRXBUS_HOOK_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def examine(status: int) -> list[tuple[str, str]]:
        assert main(["doctor", "--json", "--project", str(tmp_path)]) == status
        return [(each["level"], each["text"]) for each in orjson.loads(capsysbinary.readouterr().out)]

    return examine


def test_without_a_bus_it_looks_at_what_there_is(look: Any, tmp_path: Path) -> None:
    """No bus is a fault, no agent is none; settings that cannot be read are."""
    first, second = look(1)
    assert (first[0], first[1].startswith("no bus: ")) == ("fault", True)
    assert second == ("note", "no agent is attached")
    (tmp_path / ".claude" / "settings.json").mkdir(parents=True)
    assert ("fault", f"{tmp_path}/.claude/settings.json: this is a folder, not a file") in look(1)


def test_a_bus_that_listens_for_no_agents_is_a_fault(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which setting that may be."""
    monkeypatch.setattr(doctor, "_bus", lambda *_: (True, []))
    (fault, text), _ = look(1)
    assert (fault, text.startswith("nobody listens for agents at ")) == ("fault", True)


def test_events_that_wait_or_were_lost_are_told(
    look: Any, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files in the spool, and what the process at the socket has counted; that is no fault."""
    monkeypatch.setattr(doctor, "_bus", lambda *_: (True, []))
    monkeypatch.setattr(doctor, "_tries", lambda *_: ())
    said = {"answered": 5, "failed": 1, "delivered": 2, "spool_dropped": 3}
    monkeypatch.setattr(agent_probe, "ask_status", lambda _: said)
    spool = runtime_dir / "hook-spool"
    spool.mkdir()
    for name in ("1-1", "2-1", ".3-1", "dropped"):
        (spool / name).touch()
    told = look(0)
    assert told[0][1].endswith("hook.sock (5 answered, 1 failed, 2 delivered)")
    assert told[1:3] == [
        ("note", "2 events of agents wait to be taken"),
        ("note", "3 events of agents were lost while no bus was there"),
    ]


def test_a_stranger_of_the_same_name_is_noticed(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package that installs `broker` hides ours, or ours it."""
    found = {"broker": ["prxbus", "broker"]}
    monkeypatch.setattr(importlib.metadata, "packages_distributions", lambda: found)
    assert look(1)[0] == ("fault", "the package broker also installs 'broker', and one hides the other")


def test_a_path_that_does_not_lead_here_is_a_fault(runtime_dir: Path) -> None:
    """Whether it fails or is answered by somebody else; without a bus nothing could come by."""
    expected = Expected("/x/prxbus_hook.py", f"{runtime_dir}/hook.sock", None, None)
    (finding,) = doctor._tries(str(runtime_dir), expected, [])
    assert (finding.level, "no bus answers" in finding.text) == ("fault", True)


def test_findings_are_printed_with_what_to_do(
    look: Any, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A line each, and its hint below it."""
    assert main(["doctor"]) == 1
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert lines[0].startswith("FAULT no bus: ")
    assert lines[1] == "      start one: prxbus up"
    assert json.dumps(lines).count("note  ") >= 1
