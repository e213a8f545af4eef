"""Where a command and a folder are: found as the page says, or told why not."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from subscribers.hooks.spec import HookSpec
from subscribers.sources.resolve import SEVERITIES, Resolved, Unresolved, check, resolve

SPEC = HookSpec(
    id="error#0",
    dialect="prx",
    path="hooks.json",
    line=7,
    event="error",
    command="sh",
    args=(),
    env={},
    cwd=None,
    timeout_s=30.0,
    grace_s=5.0,
    stdin=False,
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a script, a file that is no program, a folder and links out of it and within."""
    ws = tmp_path / "ws"
    (ws / "hooks").mkdir(parents=True)
    (ws / "sub" / "deep").mkdir(parents=True)
    for name in ("run.sh", "my hook.sh"):
        (ws / "hooks" / name).write_text("#!/bin/sh\n")
        (ws / "hooks" / name).chmod(0o755)
    (ws / "hooks" / "plain.txt").write_text("")
    (ws / "alone").write_text("#!/bin/sh\n")
    (ws / "alone").chmod(0o755)
    (tmp_path / "outside").mkdir()
    (ws / "out").symlink_to(tmp_path / "outside")
    (ws / "in").symlink_to(ws / "sub" / "deep")
    return ws


@pytest.fixture
def prxbus_folder(tmp_path: Path) -> Path:
    """A folder that stands for the one of the running prxbus, with two programs in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("prxbus", "sh"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def executable(command: str, workspace: Path, prxbus_folder: Path) -> str:
    """The program that a command means."""
    found = resolve(replace(SPEC, command=command), str(workspace), str(prxbus_folder))
    assert isinstance(found, Resolved), found
    assert found.cwd == str(workspace)
    return found.executable


def refusal(workspace: Path, command: str = "sh", cwd: str | None = None) -> Unresolved:
    """Why a command or a folder cannot be used."""
    found = resolve(replace(SPEC, command=command, cwd=cwd), str(workspace), "/nonexistent")
    assert isinstance(found, Unresolved)
    return found


def test_an_absolute_command_is_taken_as_it_is(workspace: Path, prxbus_folder: Path) -> None:
    """An absolute path outside of the workspace is allowed; links are not resolved away."""
    assert executable("/bin/sh", workspace, prxbus_folder) == "/bin/sh"
    assert executable(sys.executable, workspace, prxbus_folder) == sys.executable


@pytest.mark.parametrize("command", ["hooks/run.sh", "./hooks/run.sh", "hooks/my hook.sh", "./alone"])
def test_a_relative_command_starts_at_the_workspace(
    command: str, workspace: Path, prxbus_folder: Path
) -> None:
    """A command with a slash is looked for in the workspace, whatever the working directory is."""
    expected = workspace / command
    assert executable(command, workspace, prxbus_folder) == str(expected)
    moved = resolve(replace(SPEC, command=command, cwd="sub"), str(workspace), str(prxbus_folder))
    assert moved == Resolved(str(expected), str(workspace / "sub"))


def test_a_name_is_looked_up_on_the_safe_path(
    workspace: Path, prxbus_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's folders come first, the one of prxbus last; our own PATH does not count."""
    monkeypatch.setenv("PATH", str(workspace / "hooks"))
    assert os.path.dirname(executable("sh", workspace, prxbus_folder)) in (
        "/usr/local/bin",
        "/usr/bin",
        "/bin",
    )
    assert executable("prxbus", workspace, prxbus_folder) == str(prxbus_folder / "prxbus")
    assert refusal(workspace, "run.sh").code == "missing_command"


@pytest.mark.parametrize(
    "command,code,hint",
    [
        ("no-such-program-here", "missing_command", "absolute path"),
        ("alone", "missing_command", "write ./alone"),
        ("sh -c true", "missing_command", "args"),
        ("/bin/sh -c true", "missing_command", "args"),
        ("hooks/missing.sh", "missing_command", "create it"),
        ("/dev/null/x", "missing_command", "correct the path"),
        ("hooks", "missing_command", "./hooks"),
        ("./hooks", "not_executable", "executable file"),
        ("/dev/null", "not_executable", "executable file"),
        ("hooks/plain.txt", "not_executable", "chmod +x"),
    ],
)
def test_a_command_that_cannot_run_is_told_with_a_remedy(
    command: str, code: str, hint: str, workspace: Path
) -> None:
    """What is missing, no program, or a command line instead of a command gets its own hint."""
    found = refusal(workspace, command)
    assert (found.code, found.field) == (code, "command")
    assert hint in str(found.hint)


def test_a_name_that_the_system_cannot_spell_is_missing(workspace: Path) -> None:
    """A path that cannot be encoded is told, not raised."""
    assert refusal(workspace, "/x\ud800").code == "missing_command"


@pytest.mark.parametrize(
    "cwd,folder",
    [(None, "ws"), (".", "ws"), ("sub", "ws/sub"), ("sub/../hooks", "ws/hooks"), ("in", "ws/sub/deep")],
)
def test_a_relative_folder_starts_at_the_workspace(cwd: str | None, folder: str, workspace: Path) -> None:
    """Without cwd the workspace counts; links within it are followed."""
    found = resolve(replace(SPEC, cwd=cwd), str(workspace), "")
    assert isinstance(found, Resolved)
    assert found.cwd == str(workspace.parent / folder)


def test_an_absolute_folder_may_lie_anywhere(workspace: Path) -> None:
    """The page's example names a folder outside, so an absolute one is allowed."""
    found = resolve(replace(SPEC, cwd="/"), str(workspace), "")
    assert isinstance(found, Resolved)
    assert found.cwd == "/"


@pytest.mark.parametrize("cwd", ["out", "out/.", "sub/../out", "in/../../.."])
def test_a_relative_folder_may_not_leave_through_links(cwd: str, workspace: Path) -> None:
    """What leads outside once links are resolved is refused, although it looks harmless."""
    found = refusal(workspace, cwd=cwd)
    assert (found.code, found.field) == ("cwd_escapes", "cwd")


def test_a_workspace_behind_a_link_is_inside_itself(workspace: Path, tmp_path: Path) -> None:
    """A workspace that is named through a link still contains its own folders."""
    (tmp_path / "link").symlink_to(workspace)
    found = resolve(replace(SPEC, cwd="sub"), str(tmp_path / "link"), "")
    assert isinstance(found, Resolved)
    assert found.cwd == str(workspace / "sub")


@pytest.mark.parametrize(
    "cwd,said",
    [("nowhere", "does not exist"), ("/nonexistent/x", "does not exist"), ("hooks/run.sh", "not a folder")],
)
def test_a_missing_folder_is_told(cwd: str, said: str, workspace: Path) -> None:
    """A folder that is not there, or is a file, cannot be a working directory."""
    found = refusal(workspace, cwd=cwd)
    assert (found.code, found.field) == ("missing_cwd", "cwd")
    assert said in found.message


def test_the_answer_follows_the_file_system(workspace: Path) -> None:
    """The same question is answered anew each time: a program that appears is found."""
    assert refusal(workspace, "hooks/late.sh").code == "missing_command"
    (workspace / "hooks" / "late.sh").write_text("#!/bin/sh\n")
    (workspace / "hooks" / "late.sh").chmod(0o700)
    assert isinstance(resolve(replace(SPEC, command="hooks/late.sh"), str(workspace), ""), Resolved)


def test_loading_tells_what_could_not_run_now(workspace: Path) -> None:
    """Each hook that cannot run gets one diagnostic with its id, line and severity; sound ones none."""
    specs = [
        SPEC,
        replace(SPEC, id="error#1", line=8, command="no-such-program-here"),
        replace(SPEC, id="error#2", line=9, cwd="out"),
        replace(SPEC, id="error#3", line=10, cwd="nowhere"),
    ]
    told = [(d.severity, d.code, d.path, d.line, d.field) for d in check(specs, str(workspace), "")]
    assert told == [
        ("warning", "missing_command", "hooks.json", 8, "error#1.command"),
        ("error", "cwd_escapes", "hooks.json", 9, "error#2.cwd"),
        ("warning", "missing_cwd", "hooks.json", 10, "error#3.cwd"),
    ]
    assert {code for _, code, *_ in told} <= SEVERITIES.keys()
