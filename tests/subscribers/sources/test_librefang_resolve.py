"""Where the program of a LibreFang hook is found, in the order that is promised."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.dialects import librefang
from subscribers.hooks.spec import HookSpec
from subscribers.sources.librefang_resolve import check, resolve
from subscribers.sources.resolve import Resolved, Unresolved


class Folder:
    """A hook's folder, and one on the PATH."""

    def __init__(self, path: Path) -> None:
        self.hook = path / "hook"
        self.bin = path / "bin"
        self.hook.mkdir()
        self.bin.mkdir()

    def program(self, name: str, mode: int = 0o755, folder: Path | None = None) -> str:
        """A program of that name; its path."""
        path = (folder or self.hook) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
        return str(path)

    def spec(self, command: str, args: str = "") -> HookSpec:
        """A hook with this command."""
        text = f"name: n\nevents: [agent:end, agent:start]\ncommand: {command!r}\n{args}"
        return librefang.parse(text.encode(), str(self.hook / "HOOK.yaml")).specs[0]

    def find(self, command: str, args: str = "") -> Resolved | Unresolved:
        """What is found for it."""
        return resolve(self.spec(command, args), str(self.bin))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty hook."""
    return Folder(tmp_path)


@pytest.mark.parametrize(
    "command", ["./run.sh", "run.sh", "./my run.sh", ".//run.sh", "sub/run.sh", "../other/run.sh"]
)
@pytest.mark.parametrize("args", ["", "args: []\n"])
def test_the_whole_command_is_a_file_of_the_folder(folder: Folder, command: str, args: str) -> None:
    """Blanks in its name need no quotes; a path may leave the folder; nothing is said about it."""
    path = folder.program(command)
    found = folder.find(command, args)
    assert isinstance(found, Resolved)
    assert os.path.samefile(found.executable, path)
    assert (found.cwd, found.args, found.notice) == (str(folder.hook), (), None)


def test_a_file_of_the_folder_comes_before_the_path(folder: Folder) -> None:
    """A bare word that is in the folder is that file."""
    path = folder.program("tool")
    folder.program("tool", folder=folder.bin)
    assert folder.find("tool") == Resolved(path, str(folder.hook))


def test_an_absolute_path_stands_for_itself(folder: Folder) -> None:
    """With blanks in it too."""
    path = folder.program("my tool", folder=folder.bin)
    assert folder.find(path) == Resolved(path, str(folder.hook))


def test_a_command_with_arguments_is_split_where_there_are_no_args(folder: Folder) -> None:
    """The first word is looked up in the folder, as an absolute path, and on the PATH."""
    own, other = folder.program("run.sh"), folder.program("tool", folder=folder.bin)
    assert folder.find("./run.sh  a b") == Resolved(own, str(folder.hook), ("a", "b"))
    assert folder.find(f"{other} a") == Resolved(other, str(folder.hook), ("a",))
    found = folder.find("tool a b")
    assert isinstance(found, Resolved)
    assert (found.executable, found.args) == (other, ("a", "b"))
    assert found.notice == f'"tool" is no file in the hook\'s folder: {other} from the PATH is used'


def test_with_args_the_command_is_never_split(folder: Folder) -> None:
    """Not even where the first word would be there; as one word it is looked up on the PATH."""
    folder.program("run.sh")
    assert isinstance(folder.find("./run.sh a", "args: [b]\n"), Unresolved)
    other = folder.program("two words", folder=folder.bin)
    found = folder.find("two words", "args: [b]\n")
    assert isinstance(found, Resolved)
    assert (found.executable, found.args) == (other, ())
    assert found.notice is not None


def test_a_folder_of_that_name_is_no_file(folder: Folder) -> None:
    """The word is then looked up on the PATH; where that has none, the folder is mentioned."""
    (folder.hook / "node").mkdir()
    missing = folder.find("node")
    assert isinstance(missing, Unresolved)
    assert missing.hint == "this is a folder: name the executable file in it"
    path = folder.program("node", folder=folder.bin)
    found = folder.find("node")
    assert isinstance(found, Resolved)
    assert found.executable == path


@pytest.mark.parametrize(
    "command,code,words",
    [
        ("./gone.sh", "missing_command", 'no "./gone.sh" in "'),
        ("gone", "missing_command", "or on the PATH"),
        ("/nowhere/gone", "missing_command", 'no "/nowhere/gone" there'),
        ("./plain.sh", "not_executable", "is not executable"),
        ("./plain.sh with words", "not_executable", "is not executable"),
        ("./pipe", "not_executable", "is not a file"),
        ("./dangling", "missing_command", "which cannot be found"),
        ("x" * 5_000, "missing_command", "no "),
    ],
)
def test_what_cannot_be_run_is_named(folder: Folder, command: str, code: str, words: str) -> None:
    """What is there and cannot be run is not looked for on the PATH, and the hint says what to do."""
    folder.program("plain.sh", 0o644)
    folder.program("plain.sh", folder=folder.bin)
    os.mkfifo(folder.hook / "pipe")
    (folder.hook / "dangling").symlink_to("/nowhere")
    found = folder.find(command)
    assert isinstance(found, Unresolved)
    assert (found.code, found.field) == (code, "command")
    assert words in found.message
    assert found.hint


def test_relative_folders_of_the_path_do_not_count(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program is never looked for in whatever folder we stand in."""
    folder.program("tool", folder=folder.bin)
    monkeypatch.chdir(folder.bin)
    assert isinstance(resolve(folder.spec("tool"), ".:"), Unresolved)


def test_the_path_is_ours_by_default(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks inherit it; without one there is the usual."""
    path = folder.program("tool", folder=folder.bin)
    monkeypatch.setenv("PATH", str(folder.bin))
    assert isinstance(found := resolve(folder.spec("tool")), Resolved)
    assert found.executable == path
    monkeypatch.delenv("PATH")
    assert isinstance(resolve(folder.spec("sh")), Resolved)


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    """A hook whose folder was removed since the scan does not start."""
    spec = librefang.parse(b"name: n\nevents: [agent:end]\ncommand: /bin/sh\n", str(tmp_path / "x/HOOK.yaml"))
    found = resolve(spec.specs[0])
    assert isinstance(found, Unresolved)
    assert (found.code, found.field) == ("missing_cwd", "cwd")


def test_a_check_says_each_thing_once_with_its_place(folder: Folder) -> None:
    """One diagnostic for a file, at its command: a warning if it cannot run, a notice if it was guessed."""
    path = str(folder.hook / "HOOK.yaml")
    specs = librefang.parse(b"name: n\nevents: ['*']\ncommand: ./gone.sh\n", path).specs
    (found,) = check(specs, str(folder.bin))
    assert (found.severity, found.code, found.path) == ("warning", "missing_command", path)
    assert (found.line, found.column, found.field) == (3, 10, "command")
    folder.program("tool", folder=folder.bin)
    specs = librefang.parse(b"name: n\nevents: ['*']\ncommand: tool\n", path).specs
    (found,) = check(specs, str(folder.bin))
    assert (found.severity, found.code, found.line) == ("info", "command_on_path", 3)
    folder.program("tool")
    assert check(specs, str(folder.bin)) == ()
