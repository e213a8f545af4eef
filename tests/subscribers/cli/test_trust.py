"""``prxbus trust`` as a user types it, and what ``prxbus check`` says afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.cli.trust_start import Started, command, here, with_port
from subscribers.config.schema import Settings
from tests.subscribers.cli.typing_commands import Type, as_json, typing


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: a hook that runs a script; a user who has trusted nothing."""
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("PRXBUS_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LIBREFANG_HOME", raising=False)
    folder = tmp_path / "work space"
    folder.mkdir()
    (folder / "hooks.json").write_text('{"hooks": {"error": [{"command": "./a.sh"}]}}')
    (folder / "a.sh").write_text("#!/bin/sh\n")
    (folder / "a.sh").chmod(0o755)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def typed(capsysbinary: pytest.CaptureFixture[bytes]) -> Type:
    """Types commands."""
    return typing(capsysbinary)


def test_a_workspace_is_shown_then_recorded_then_removed(workspace: Path, typed: Type) -> None:
    """A dry run records nothing; later, marks say what changed; nothing is left after removing it."""
    shown = typed("trust", "--dry-run")
    assert "PRX hooks                  hooks.json" in shown
    assert "named by a command         a.sh" in shown
    assert typed("trust", "--list").startswith("no workspace is trusted; ")
    assert f"'prxbus up' started in {workspace} runs its hooks" in typed("trust")
    assert typed("trust", "--list").startswith(f"unchanged  {workspace}  (2 files, ")
    (workspace / "a.sh").write_text("#!/bin/sh\nfalse\n")
    (workspace / ".prxbus").mkdir()
    (workspace / ".prxbus" / "config.toml").touch()
    assert typed("trust", "--list").rstrip().endswith("): a.sh, .prxbus/config.toml (added)")
    marks = [line.split()[0] for line in typed("trust", str(workspace)).splitlines()[1:4]]
    assert marks == ["+", "~", "="]
    (workspace / ".prxbus" / "config.toml").unlink()
    assert "no longer there            .prxbus/config.toml" in typed("trust")
    assert typed("trust", "--remove").endswith("is no longer trusted\n")
    assert "was not trusted" in typed("trust", "--remove", str(workspace), status=1)


def test_as_json_it_has_all_of_the_digests(workspace: Path, typed: Type) -> None:
    """One document for each question, also where nothing is recorded."""
    first = as_json(typed("trust", "--json"))
    assert (first["workspace"], first["recorded"], first["added"]) == (
        str(workspace),
        True,
        ["a.sh", "hooks.json"],
    )
    assert [(file["path"], file["role"], len(file["sha256"])) for file in first["files"]] == [
        ("a.sh", "command", 64),
        ("hooks.json", "prx", 64),
    ]
    (workspace / "a.sh").write_text("x")
    (listed,) = as_json(typed("trust", "--list", "--json"))["workspaces"]
    assert (listed["state"], listed["reasons"], listed["files"]) == ("changed", ["a.sh"], 2)
    assert as_json(typed("trust", "--remove", "--json"))["removed"] is True
    assert as_json(typed("trust", "--remove", "--json", status=1))["removed"] is False


def test_what_cannot_be_trusted_is_not_recorded(workspace: Path, typed: Type, tmp_path: Path) -> None:
    """A file that leads outside is refused with its target; an empty folder has nothing to trust."""
    (tmp_path / "else.json").write_text("{}")
    (workspace / "hooks.json").unlink()
    assert "holds nothing that would run" in typed("trust", status=1)
    (workspace / "hooks.json").symlink_to(tmp_path / "else.json")
    told = typed("trust", status=4)
    assert "nothing was recorded: " in told
    assert f"out of the workspace, to {tmp_path}/else.json" in told
    assert as_json(typed("trust", "--json", status=4))["recorded"] is False
    assert typed("trust", "--list").startswith("no workspace")


def test_wrong_usage_is_told(workspace: Path, typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is none, one with a name that cannot be written down, and one for the whole list."""
    assert "is not a directory" in typed("trust", "nowhere", status=2)
    odd = workspace / os.fsdecode(b"\xff")
    odd.mkdir()
    monkeypatch.chdir(odd)
    assert "not UTF-8" in typed("trust", status=2)
    assert "leave out DIR" in typed("trust", "--list", str(workspace), status=2)


def test_records_inside_of_the_workspace_are_refused(
    workspace: Path, typed: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could be changed by what they speak of, so nothing is recorded there and nothing counts."""
    monkeypatch.setenv("XDG_STATE_HOME", str(workspace / "state"))
    assert "prxbus up --workspace" in typed("trust", status=4)
    assert not (workspace / "state").exists()


def test_damaged_records_are_listed(workspace: Path, typed: Type, tmp_path: Path) -> None:
    """With what to do; trusting anew mends one."""
    typed("trust")
    (path,) = (tmp_path / "state" / "prxbus" / "trust").glob("*.json")
    path.write_text("{")
    assert typed("trust", "--list").startswith(f"unusable  {path} cannot be used: it is not JSON")
    assert f"run: {command(str(workspace))}" in str(Started(str(workspace), {}).warning)
    typed("trust")
    assert typed("trust", "--list").startswith("unchanged")


def test_up_counts_exactly_the_directory_that_was_trusted(workspace: Path, typed: Type) -> None:
    """Neither one below it; and what changed is named in a line, with the command for a name with a blank."""
    environ: dict[str, str] = {}
    started = here(environ)
    assert started is not None
    assert (started.workspace, started.warning) == (None, None)
    typed("trust")
    (workspace / "below").mkdir()
    assert Started(str(workspace), environ).workspace == str(workspace)
    assert Started(str(workspace / "below"), environ).standing.state == "never"
    handlers = workspace / ".prxbus" / "handlers"
    handlers.mkdir(parents=True)
    for number in range(9):
        (handlers / f"{number}.py").touch()
    changed = Started(str(workspace), environ)
    assert changed.workspace is None
    assert changed.warning is not None
    assert "changed since prxbus trust: .prxbus/handlers/0.py (added), " in changed.warning
    assert changed.warning.endswith(f", and 1 more; look at it, and run: prxbus trust '{workspace}'")


def test_a_directory_that_was_deleted_is_no_workspace(workspace: Path, typed: Type) -> None:
    """There is nothing to trust, and nothing to start."""
    (workspace / "gone").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workspace / "gone")
        (workspace / "gone").rmdir()
        assert here({}) is None
        assert "the current directory was deleted" in typed("trust", status=2)


def test_the_http_api_keeps_its_port() -> None:
    """Others know the one that it got; without an API there is none to keep."""
    settings = Settings()
    assert with_port(settings, {"http": {"http": "http://127.0.0.1:4711"}}).http.port == 4711
    assert with_port(settings, {}) == settings


def test_check_tells_of_trust(workspace: Path, typed: Type) -> None:
    """Not trusted, then as recorded, then which files changed, each where it is shown."""
    assert "not trusted: it runs only under prxbus up --workspace ., or after prxbus trust" in typed("check")
    typed("trust")
    told = typed("check")
    assert "trusted: it is as `prxbus trust` recorded it [trusted]" in told
    assert "not trusted" not in told
    (workspace / "a.sh").write_text("#!/bin/sh\nfalse\n")
    told = typed("check")
    assert "changed since prxbus trust: a.sh [trust_changed]" in told
    assert f"prxbus trust '{workspace}'" in told
    assert "not trusted" in told
    (workspace / "hooks.json").write_text('{"hooks": {"error": [{"command": "./a.sh", "args": ["x"]}]}}')
    told = typed("check", ".")
    assert "changed since prxbus trust: hooks.json" in told
    assert "changed since prxbus trust: a.sh" in told
    assert "not trusted" not in told
