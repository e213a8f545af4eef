"""Whether ``prxbus up`` starts a process for plugins, and what it says when it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.cli import wasm_program
from subscribers.cli.up import programs
from subscribers.config.schema import Settings

SETTINGS = Settings()


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    """A workspace with one plugin."""
    (tmp_path / "plugins" / "a").mkdir(parents=True)
    return str(tmp_path)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra counts as installed, whatever is here."""
    monkeypatch.setattr(wasm_program, "is_installed", lambda: True)


def names(workspace: str, settings: Settings = SETTINGS) -> list[str]:
    """The processes of ``prxbus up``."""
    return [program.name for program in programs(settings, "/run/x", workspace)]


def test_a_workspace_with_a_folder_for_plugins_has_the_process(workspace: str, tmp_path: Path) -> None:
    """With the folder there is one, without it or when it is turned off there is none."""
    assert "wasm" in names(workspace)
    off = Settings.model_validate({"wasm": {"enabled": False}})
    assert "wasm" not in names(workspace, off)
    (tmp_path / "plugins" / "a").rmdir()
    (tmp_path / "plugins").rmdir()
    assert "wasm" not in names(workspace)


def test_the_settings_reach_the_process(workspace: str) -> None:
    """Each of [wasm] is a flag of the process, and the log's weight too."""
    settings = Settings.model_validate(
        {
            "wasm": {
                "queue": 7,
                "drain_seconds": 2.5,
                "memory_mb": 99,
                "kv_storage_mb": 3,
                "allow": "filesystem",
                "cache_dir": "/c",
                "state_dir": "/s",
            },
            "log": {"level": "error"},
        }
    )
    program = wasm_program.wasm_program(settings, "/run/x", workspace)
    assert program is not None
    line = " ".join(program.argv)
    for words in (
        "--runtime-dir /run/x",
        f"--workspace {workspace}",
        "--queue 7",
        "--drain-seconds 2.5",
        "--memory-mb 99",
        "--kv-storage-mb 3",
        "--allow filesystem",
        "--log-level error",
        "--cache-dir /c",
        "--state-dir /s",
    ):
        assert words in line


def test_without_the_extra_plugins_are_skipped_with_a_word(
    workspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how many, where, and what to install; without plugins, or turned off, nothing."""
    assert wasm_program.missing_extra(SETTINGS, workspace) is None
    monkeypatch.setattr(wasm_program, "is_installed", lambda: False)
    assert "wasm" not in names(workspace)
    said = wasm_program.missing_extra(SETTINGS, workspace)
    assert said == (
        f"1 plugin in {workspace}/plugins will not run: the package wasmtime is missing; "
        "install it with: pip install 'prxbus[run,wasm]'"
    )
    (tmp_path / "plugins" / "b").mkdir()
    assert "2 plugins" in (wasm_program.missing_extra(SETTINGS, workspace) or "")
    off = Settings.model_validate({"wasm": {"enabled": False}})
    assert wasm_program.missing_extra(off, workspace) is None
    assert wasm_program.missing_extra(SETTINGS, str(tmp_path / "plugins")) is None
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "plugins").symlink_to(tmp_path / "plugins")
    assert (wasm_program.missing_extra(SETTINGS, str(tmp_path / "linked")) or "").startswith("plugins in")


def test_the_package_is_looked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is not there is not installed."""
    monkeypatch.undo()
    monkeypatch.setattr(wasm_program, "PACKAGE", "no_such_package_of_anybody")
    assert not wasm_program.is_installed()
