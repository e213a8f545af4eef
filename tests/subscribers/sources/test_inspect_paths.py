"""From paths to explained files: folders, files, and paths that are neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subscribers.config.layers import Configured
from subscribers.config.schema import Settings
from subscribers.hooks.explanation import Explained, ExplainedFile, Handler
from subscribers.sources.inspect_kinds import KINDS
from subscribers.sources.inspect_paths import Place, inspect
from subscribers.sources.inspect_world import World


def loaded(path: str, _workspace: str) -> Explained:
    """A file of Python that registers one handler, without being executed."""
    return Explained((Handler("error", 0, f"{path}:f", "python", "ok"),), (), False)


WORLD = World("/nowhere", {}, lambda _workspace: Configured(Settings(), {}, ()), True, loaded)
MANIFEST = '[plugin]\nname = "x"\nversion = "1"\n[[capabilities]]\ntype = "hook"\nevents = ["error"]\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a hook file and two plugins of the same name."""
    (tmp_path / "hooks.json").write_text('{"hooks": {"error": [{"command": "true"}]}}')
    for name in ("a", "b"):
        (tmp_path / "plugins" / name).mkdir(parents=True)
        (tmp_path / "plugins" / name / "plugin.toml").write_text(MANIFEST)
        (tmp_path / "plugins" / name / "plugin.wasm").write_bytes(b"\0asm")
    return tmp_path


def looked_at(*paths: Path, dialect: str | None = None, trusted: bool = True) -> list[ExplainedFile]:
    """The files that these paths stand for."""
    return inspect([Place(str(path), trusted) for path in paths], dialect, WORLD)


def test_a_folder_stands_for_its_files(workspace: Path) -> None:
    """Every kind of file in it is found, and taken for what its name says."""
    found = [(file.path, file.dialect, file.because) for file in looked_at(workspace)]
    assert found == [
        (f"{workspace}/hooks.json", "prx", "its name is hooks.json"),
        (f"{workspace}/plugins/a/plugin.toml", "prx-plugin", "its name is plugin.toml"),
        (f"{workspace}/plugins/b/plugin.toml", "prx-plugin", "its name is plugin.toml"),
    ]


def test_a_file_is_explained_once(workspace: Path) -> None:
    """A file that is named beside its folder is not explained twice."""
    assert len(looked_at(workspace / "hooks.json", workspace)) == 3


def test_two_plugins_cannot_have_one_name(workspace: Path) -> None:
    """The second one is refused and says which is the first; with a name of its own it is fine."""
    _, first, second = looked_at(workspace)
    assert [handler.status for handler in first.explained.handlers] == ["ok"]
    (refused,) = second.explained.handlers
    assert (refused.status, refused.diagnostics[0].code) == ("refused", "duplicate_name")
    assert first.path in refused.diagnostics[0].message
    (workspace / "plugins" / "b" / "plugin.toml").write_text(MANIFEST.replace('"x"', '"y"'))
    assert not any(file.is_broken for file in looked_at(workspace))


def test_the_dialect_can_be_told(workspace: Path) -> None:
    """A file is taken for what was said, and a folder is searched for that alone."""
    (workspace / "odd").write_text(MANIFEST)
    (found,) = looked_at(workspace / "odd", dialect="prx-plugin")
    assert (found.dialect, found.because) == ("prx-plugin", "--dialect says so")
    assert [file.dialect for file in looked_at(workspace, dialect="prx-plugin")] == ["prx-plugin"] * 2


def test_trust_is_passed_on(workspace: Path) -> None:
    """Whether a place was named is told of its files and of each of their handlers."""
    (found,) = looked_at(workspace / "hooks.json", trusted=False)
    assert not found.trusted
    assert [handler.trusted for handler in found.explained.handlers] == [False]


def test_python_is_loaded_only_where_the_place_was_named(workspace: Path) -> None:
    """A file of handlers in a named workspace is loaded; elsewhere it is said that it was not, and why."""
    (workspace / ".prxbus" / "handlers").mkdir(parents=True)
    path = workspace / ".prxbus" / "handlers" / "a.py"
    path.write_text("from subscribers.handlers import on\n")
    (found,) = looked_at(workspace, dialect="python")
    assert [handler.name for handler in found.explained.handlers] == [f"{path}:f"]
    (found,) = looked_at(workspace, dialect="python", trusted=False)
    assert (found.explained.handlers, found.is_broken) == ((), False)
    assert [d.code for d in found.explained.diagnostics] == ["not_loaded"]


def test_a_path_that_stands_for_nothing_is_an_error(workspace: Path) -> None:
    """A missing path and an unknown file are refused, with what is supported; the others are explained."""
    (workspace / "run.sh").write_text("#!/bin/sh\n")
    missing, unknown, known = looked_at(workspace / "nothing", workspace / "run.sh", workspace / "hooks.json")
    assert (missing.dialect, missing.is_broken) == (None, True)
    assert [d.code for d in missing.explained.diagnostics] == ["no_file"]
    (said,) = unknown.explained.diagnostics
    assert (said.code, unknown.is_broken) == ("unknown_file", True)
    assert said.hint is not None
    assert all(kind.file in said.hint for kind in KINDS)
    assert not known.is_broken


def test_a_place_with_a_fault_is_a_file_of_its_own(workspace: Path) -> None:
    """What is said of a folder is said once, under its own path, and breaks the check."""
    (workspace / "hooks").mkdir()
    (workspace / "hooks" / "HOOK.yaml").touch()
    found = {file.path: file for file in looked_at(workspace)}
    place = found[f"{workspace}/hooks/HOOK.yaml"]
    assert [d.code for d in place.explained.diagnostics] == ["misplaced_file"]
    assert not place.is_broken


def test_a_missing_file_of_a_known_name_keeps_its_dialect(workspace: Path) -> None:
    """A path that ends in a known name is told as a missing file of that kind."""
    (found,) = looked_at(workspace / "elsewhere" / "hooks.json")
    assert (found.dialect, found.explained.diagnostics[0].code) == ("prx", "no_file")


@pytest.mark.parametrize(
    "name", ["hooks.json", "plugins/a/plugin.toml", "HOOK.yaml", ".prxbus/config.toml", "x.json", "x"]
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.binary())
def test_any_bytes_in_a_file_give_a_report(workspace: Path, name: str, text: bytes) -> None:
    """Whatever is in a file, there is an explanation of it."""
    (workspace / name).parent.mkdir(exist_ok=True)
    (workspace / name).write_bytes(text)
    (found,) = looked_at(workspace / name)
    assert found.is_broken or found.dialect is not None
