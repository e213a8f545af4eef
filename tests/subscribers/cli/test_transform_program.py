"""When ``prxbus up`` starts the transform process, and what it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.cli.transform_program import of_transforms, transform_program
from subscribers.config.schema import Settings
from subscribers.config.transforms import Table, Transform
from subscribers.sources import handlers

TRANSFORM = Transform("t", "/c/prxbus.toml", "/c", Table.model_validate({"command": ["true"]}))


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "entry_points", list)


def told(settings: Settings, workspace: Path | None, *transforms: Transform) -> list[str] | None:
    """The arguments of the process, or None where there is none."""
    path = None if workspace is None else str(workspace)
    program = transform_program(settings, "/run/x", path, transforms, ("--sandbox", "none"))
    if program is None:
        return None
    assert (program.name, program.rank) == ("transform", 1)
    return list(program.argv)


def test_there_is_none_where_there_is_nothing(tmp_path: Path) -> None:
    """No table, no folder of handlers, no named file: no process."""
    assert told(Settings(), tmp_path) is None
    assert told(Settings(), None) is None


def test_a_table_is_enough(tmp_path: Path) -> None:
    """With or without a workspace; files of handlers that are not there are not looked for."""
    argv = told(Settings(), None, TRANSFORM)
    assert argv is not None
    assert "--workspace" not in argv
    assert "--tables-only" in argv
    argv = told(Settings(), tmp_path, TRANSFORM)
    assert argv is not None
    assert argv[argv.index("--workspace") + 1] == str(tmp_path)
    assert argv[argv.index("--sandbox") + 1] == "none"


def test_a_folder_of_handlers_is_enough(tmp_path: Path) -> None:
    """It may hold transforms, now or later; named files and packages are handed on."""
    (tmp_path / ".prxbus" / "handlers").mkdir(parents=True)
    settings = Settings.model_validate({"handlers": {"path": "/a.py:/b"}})
    argv = told(settings, tmp_path)
    assert argv is not None
    assert "--tables-only" not in argv
    assert "--installed" in argv
    assert [argv[n + 1] for n, word in enumerate(argv) if word == "--handlers"] == ["/a.py", "/b"]


def test_switched_off_handlers_stay_off(tmp_path: Path) -> None:
    """With handlers.enabled false no function is loaded, and tables still run."""
    (tmp_path / ".prxbus" / "handlers").mkdir(parents=True)
    settings = Settings.model_validate({"handlers": {"enabled": False, "path": "/a.py"}})
    assert told(settings, tmp_path) is None
    argv = told(settings, tmp_path, TRANSFORM)
    assert argv is not None
    assert "--tables-only" in argv
    assert "--handlers" not in argv


def test_the_ready_line_counts_them() -> None:
    """One transform, several transforms."""
    assert [of_transforms(count) for count in (1, 2)] == [", 1 transform", ", 2 transforms"]
