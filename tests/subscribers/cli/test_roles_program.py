"""The process that runs the hooks of roles: whether there is one, and what it is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.cli.exits import UsageError
from subscribers.cli.roles_program import named_roles, of_roles, role_directories, roles_program
from subscribers.config.schema import Settings
from subscribers.runner.roles_service import _parser


def test_without_a_role_there_is_no_process() -> None:
    """Nor where roles are configured and switched off."""
    assert roles_program(Settings(), "/r") is None
    off = Settings.model_validate({"roles": {"dirs": "/a", "enabled": False}})
    assert roles_program(off, "/r") is None


def test_the_process_is_told_what_is_configured() -> None:
    """Its own parser understands every argument."""
    section = {"dirs": "/a:~/b", "scope": "all", "timeout": 2.5, "workers": 3, "memory_mb": 99, "node": "/n"}
    program = roles_program(Settings.model_validate({"roles": section}), "/r")
    assert program is not None
    assert program.rank == 1
    told = _parser().parse_args(program.argv[4:])
    assert told.role == ["/a", os.path.expanduser("~/b")]
    assert (told.scope, told.timeout, told.workers, told.memory_mb) == ("all", 2.5, 3, 99)
    assert (told.node, told.runtime_dir, told.lifeline) == ("/n", "/r", True)


def test_roles_are_named_on_the_command_line(tmp_path: Path) -> None:
    """Relative to the current directory, several, and none that is not there."""
    named = named_roles([str(tmp_path), "."])
    assert named == f"{tmp_path}:{Path.cwd()}"
    assert role_directories(Settings.model_validate({"roles": {"dirs": named}})) == tuple(named.split(":"))
    assert named_roles(None) is None
    for path, words in ((str(tmp_path / "none"), "no such directory"), ("/a:b", "cannot be named")):
        with pytest.raises(UsageError, match=words):
            named_roles([path])


@pytest.mark.parametrize(
    "said, line",
    [
        ({}, ""),
        ((1, 0, 2, 0), ", 2 hooks of 1 role"),
        ((2, 1, 1, 3), ", 1 hook of 2 roles (3 hooks refused, 1 role refused, see above)"),
    ],
)
def test_the_ready_line_says_what_is_in_force(said: tuple[int, ...], line: str) -> None:
    """Roles, hooks, and what was refused; nothing where there is no such process."""
    names = ("roles", "roles_refused", "role_hooks", "role_hooks_refused")
    assert of_roles(dict(zip(names, said, strict=False))) == line
