"""Hook files compared with what is on this machine: programs, folders, components, permissions."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subscribers.config.layers import Configured
from subscribers.config.schema import Settings
from subscribers.config.transforms import read as read_transforms
from subscribers.hooks.diagnostics import Diagnostic
from subscribers.hooks.explanation import Explained
from subscribers.sources import inspect_files
from subscribers.sources.hook_source import Absent, Content, Unreadable
from subscribers.sources.inspect_world import World, not_loaded


def world(settings: Mapping[str, Any] | None = None, *faults: Diagnostic, has_wasmtime: bool = True) -> World:
    """A machine with these settings."""
    configured = Configured(Settings.model_validate(settings or {}), {}, faults)
    return World("/nowhere", {}, lambda _workspace: configured, has_wasmtime, not_loaded)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a program, a file that is none, and a plugin with its component."""
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "plain.sh").write_text("#!/bin/sh\n")
    (tmp_path / "plugins" / "a").mkdir(parents=True)
    (tmp_path / "plugins" / "a" / "plugin.wasm").write_bytes(b"\0asm")
    return tmp_path


def hooks_json(workspace: Path, action: str) -> Explained:
    """A hooks.json with one action, explained."""
    text = f'{{"hooks": {{"error": [{action}]}}}}'
    return inspect_files.explain_hooks_json(
        text.encode(), str(workspace / "hooks.json"), str(workspace), world()
    )


def test_a_command_is_told_as_the_program_that_it_is(workspace: Path) -> None:
    """What would run, and where, are absolute paths."""
    (found,) = hooks_json(workspace, '{"command": "./run.sh"}').handlers
    assert (found.status, found.executable, found.cwd) == ("ok", f"{workspace}/run.sh", str(workspace))


@pytest.mark.parametrize(
    "action,status,code",
    [
        ('{"command": "./nothing"}', "dead", "missing_command"),
        ('{"command": "no-such-program"}', "dead", "missing_command"),
        ('{"command": "./plain.sh"}', "dead", "not_executable"),
        ('{"command": "./plugins"}', "dead", "not_executable"),
        ('{"command": "./run.sh", "cwd": "nowhere"}', "dead", "missing_cwd"),
        ('{"command": "./run.sh", "cwd": "out"}', "refused", "cwd_escapes"),
    ],
)
def test_what_cannot_start_here_is_dead(workspace: Path, action: str, status: str, code: str) -> None:
    """A program or folder that is not there, or a link out of the workspace, is an error of its handler."""
    (workspace / "out").symlink_to("/")
    (found,) = hooks_json(workspace, action).handlers
    assert (found.status, found.executable) == (status, None)
    (said,) = found.diagnostics
    assert (said.severity, said.code, said.line) == ("error", code, 1)


def test_a_disabled_action_is_not_looked_up(workspace: Path) -> None:
    """Whether its program is there makes no difference to an action that is turned off."""
    (found,) = hooks_json(workspace, '{"command": "./nothing", "enabled": false}').handlers
    assert (found.status, [d.code for d in found.diagnostics]) == ("skipped", ["disabled"])


HOOK = "name: notify\nevents: [agent:end, agent:x]\ncommand: {}\n"


@pytest.mark.parametrize(
    "command,status,executable,codes",
    [
        ("./run.sh", "ok", "{}/run.sh", []),
        ("run.sh --all", "ok", "{}/run.sh", []),
        ("sh -c true", "ok", "/bin/sh", ["command_on_path"]),
        ("./none", "dead", None, ["missing_command"]),
        ("./plain.sh", "dead", None, ["not_executable"]),
    ],
)
def test_a_librefang_command_is_looked_up_as_for_a_run(
    workspace: Path, command: str, status: str, executable: str | None, codes: list[str]
) -> None:
    """In the hook's folder first, then on the PATH with a notice; what is not there is dead."""
    path = str(workspace / "HOOK.yaml")
    here = World("/nowhere", {"PATH": "/bin"}, world().configured, True, not_loaded)
    first, second = inspect_files.explain_librefang(
        HOOK.format(command).encode(), path, str(workspace), here
    ).handlers
    shown = None if executable is None else executable.format(workspace)
    assert (first.status, first.executable) == (status, shown)
    assert [d.code for d in first.diagnostics] == codes
    assert second.status == "dead"


def test_a_misspelled_hook_file_is_said_and_not_guessed(workspace: Path) -> None:
    """What is in it is shown, and nothing of it runs."""
    path = str(workspace / "hook.yml")
    text = HOOK.format("./run.sh").encode()
    found = inspect_files.explain_librefang(text, path, str(workspace), world())
    assert (found.refused, found.diagnostics[0].code) == (True, "misnamed_file")
    assert [handler.status for handler in found.handlers] == ["dead", "dead"]
    assert isinstance(inspect_files.read_librefang(path), Absent)


def test_a_transform_is_looked_up_in_its_workspace(workspace: Path) -> None:
    """Its command is told as the program that it is, and one that is not there is dead."""
    path = str(workspace / ".prxbus" / "config.toml")
    text = b'[[transform]]\ncommand = ["./run.sh", "-l"]\n[[transform]]\ncommand = "./none"\ntimeout = 2.0\n'
    tables, _ = read_transforms(tomllib.loads(text.decode()), path, str(workspace))
    configured = Configured(Settings(), {}, (), tables)
    here = World("/nowhere", {}, lambda _workspace: configured, True, not_loaded)
    good, bad = inspect_files.explain_configuration(text, path, str(workspace), here).handlers
    assert (good.status, good.executable, good.args) == ("ok", f"{workspace}/run.sh", ("-l",))
    assert (good.timeout_from, bad.timeout_from, bad.timeout_s) == ("default", "own", 2.0)
    assert (bad.status, [d.code for d in bad.diagnostics]) == ("dead", ["missing_command"])


def test_a_package_of_python_is_read_at_its_first_file(workspace: Path) -> None:
    """A folder stands for its __init__.py, a file for itself."""
    (workspace / "a.py").write_text("x = 1\n")
    assert isinstance(inspect_files.read_unit(str(workspace / "a.py")), Content)
    assert isinstance(inspect_files.read_unit(str(workspace)), Absent)
    (workspace / "__init__.py").touch()
    assert isinstance(inspect_files.read_unit(str(workspace)), Content)


def test_a_configuration_tells_its_own_faults(workspace: Path) -> None:
    """Faults of the workspace's file are told there, and those of other places are not."""
    path = str(workspace / ".prxbus" / "config.toml")
    fault = Diagnostic("error", "unknown_section", path, None, None, "foo", "there is no such section", None)
    other = replace(fault, path="environment")
    told = inspect_files.explain_configuration(b"", path, str(workspace), world({}, fault, other))
    assert (told.refused, told.diagnostics) == (True, (fault,))
    assert not inspect_files.explain_configuration(b"", path, str(workspace), world({}, other)).refused
    assert isinstance(inspect_files.read_configuration(path), Absent)


def test_a_file_that_cannot_be_had_says_why() -> None:
    """A missing file and an unreadable one are refused with a reason."""
    assert inspect_files.unreadable("x", Absent()).diagnostics[0].code == "no_file"
    told = inspect_files.unreadable("x", Unreadable("not_a_file", "this is a folder", None))
    assert (told.refused, told.diagnostics[0].code) == (True, "not_a_file")
