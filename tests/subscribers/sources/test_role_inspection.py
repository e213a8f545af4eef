"""A role on this machine explained: its modules, and which sessions reach its hooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from subscribers.config.schema import Roles
from subscribers.hooks.explanation import ExplainedFile
from subscribers.sources.inspect_paths import Place, inspect
from subscribers.sources.inspect_world import World, not_loaded
from subscribers.sources.role_inspection import configured_directories, said
from subscribers.sources.role_modules import Languages

ROLE = """\
name: Coder
auto_activate: [plan]
hooks:
  custom:
    - {name: a, events: [event], module: a.js}
    - {name: b, events: [event], module: b.py, config: {who: "{env:WHO}", key: "{env:PRXBUS_API_TOKEN}"}}
    - {name: c, events: [event], module: gone.js}
"""


def world(settings: Roles, environ: Mapping[str, str], languages: Languages | None = None) -> World:
    """A machine with these settings."""
    configured: Any = SimpleNamespace(settings=SimpleNamespace(roles=settings))
    here = World("/", environ, lambda _: configured, False, not_loaded)
    return here if languages is None else replace(here, languages=lambda: languages)


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """A role with two modules of three."""
    found = tmp_path / "coder"
    found.mkdir()
    (found / "role.yaml").write_text(ROLE)
    (found / "a.js").write_text("export default {}\n")
    (found / "b.py").write_text("x = 1\n")
    return found


def look(role: Path, settings: Roles | None = None, languages: Languages | None = None) -> ExplainedFile:
    """The role's file, explained."""
    here = world(settings or Roles(), {"WHO": "me"}, languages)
    (file,) = inspect([Place(str(role), True)], None, here)
    return file


def codes(file: ExplainedFile) -> list[str]:
    """The codes of what is said of the file."""
    return [diagnostic.code for diagnostic in file.explained.diagnostics]


def test_each_hook_is_shown_with_its_module(role: Path) -> None:
    """A module that is not there makes its hook dead, and no other; the rest is said of the file."""
    file = look(role)
    assert (file.dialect, file.workspace, file.because) == ("rolebox", str(role), "its name is role.yaml")
    assert [(h.name, h.status, h.runtime) for h in file.explained.handlers] == [
        ("a", "ok", "node"),
        ("b", "ok", "python"),
        ("c", "dead", "node"),
    ]
    assert codes(file) == ["only_a_name"]
    remarks = [d.code for handler in file.explained.handlers for d in handler.diagnostics]
    assert remarks == ["no_such_variable", "missing_module"]
    assert file.is_broken


def test_the_time_of_a_handler_is_the_configured_one(role: Path) -> None:
    """It says whether that is the default."""
    times = [
        (
            look(role, settings).explained.handlers[0].timeout_s,
            look(role, settings).explained.handlers[0].timeout_from,
        )
        for settings in (Roles(), Roles(timeout=2.5))
    ]
    assert times == [(5.0, "default"), (2.5, "settings")]


def test_a_language_that_cannot_be_run_is_said(role: Path) -> None:
    """Without Node the hooks in JavaScript do not run; the one in Python does."""
    file = look(role, languages=Languages(javascript="needs Node 20 or newer"))
    assert [h.status for h in file.explained.handlers] == ["dead", "ok", "dead"]
    assert file.explained.handlers[0].diagnostics[0].message == "needs Node 20 or newer"


def test_hooks_that_are_turned_off_are_skipped(role: Path) -> None:
    """What is broken stays broken."""
    file = look(role, Roles(enabled=False))
    assert [h.status for h in file.explained.handlers] == ["skipped", "skipped", "dead"]
    (role / "role.yaml").write_text("name: a\nprompt: x\n")
    assert codes(look(role, Roles(enabled=False))) == []


def test_a_file_of_something_else_is_no_fault(role: Path) -> None:
    """A Role of Kubernetes is listed as such, and nothing is broken."""
    (role / "role.yaml").write_text("apiVersion: v1\nkind: Role\n---\napiVersion: v1\nkind: Role\n")
    file = look(role)
    assert codes(file) == ["foreign_file"]
    assert not file.is_broken
    assert said([file], Roles()) == [file]


def test_a_role_that_nobody_has_named_does_not_run(role: Path, tmp_path: Path) -> None:
    """One that is named in the settings does, also by a link."""
    file = look(role)
    (named,) = said([file], Roles())
    assert codes(named) == ["only_a_name", "named_only"]
    assert f"--role {role}" in (named.explained.diagnostics[-1].hint or "")
    (tmp_path / "link").symlink_to(role)
    assert said([file], Roles(dirs=str(tmp_path / "link"))) == [file]
    assert configured_directories(Roles(dirs=f"{role}::{role}:{tmp_path}/x")) == (str(role), f"{tmp_path}/x")
    assert configured_directories(Roles()) == ()
    assert configured_directories(Roles(dirs="~/coder")) == (str(Path.home() / "coder"),)


def test_with_several_roles_a_session_has_to_name_its_own(role: Path, tmp_path: Path) -> None:
    """Several that are named, several that are looked at, or both; not where every session counts."""
    file = look(role)
    other = replace(file, path="/srv/other/role.yaml", workspace="/srv/other")
    both = Roles(dirs=f"{role}:{tmp_path}/x")
    (found,) = said([file], both)
    assert codes(found) == ["only_a_name", "needs_role"]
    assert '"role": "coder"' in (found.explained.diagnostics[-1].hint or "")
    assert [codes(file)[1:] for file in said([file, other], Roles())] == [["named_only", "needs_role"]] * 2
    (found,) = said([file], both.model_copy(update={"scope": "all"}))
    assert codes(found) == ["only_a_name", "scope_all"]
