"""Completion scripts."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import shtab

from broker.cli.completion import SHELLS, command_tree
from broker.cli.main import main
from broker.cli.verbs import OWN, Verb


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_a_script_with_every_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Joined verbs are in it too."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for verb in (*OWN, "up"):
        assert verb in script


def test_a_shell_that_shtab_cannot_write_for_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An older shtab has no fish: the error says what it has."""
    monkeypatch.setattr(shtab, "SUPPORTED_SHELLS", ["bash", "zsh"])
    assert main(["completion", "fish"]) == 1
    assert "cannot write for fish, only for bash, zsh" in capsys.readouterr().err


def test_another_shell_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The ones that are known are listed."""
    assert main(["completion", "ksh"]) == 2
    assert "'ksh' (choose from 'bash', 'zsh', 'fish', 'tcsh')" in capsys.readouterr().err


def test_a_directory_completes_to_directories() -> None:
    """Options whose value is a directory say so to the shell, in joined verbs too."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--workspace")

    up = Verb("up", "start", add_arguments, lambda options: 0)
    tree = command_tree({"up": up})
    (branches,) = (a for a in tree._actions if isinstance(a, argparse._SubParsersAction))
    actions = {action.dest: action for action in branches.choices["up"]._actions}
    assert getattr(actions["workspace"], "complete", None) == shtab.DIRECTORY
    assert getattr(actions["runtime_dir"], "complete", None) == shtab.DIRECTORY


@pytest.mark.parametrize(
    "words,expected",
    [("prxbus st", {"status"}), ("prxbus pub --re", {"--retain"}), ("prxbus completion z", {"zsh"})],
)
def test_bash_completes_with_the_script(
    words: str,
    expected: set[str],
    tmp_path: Path,
    require_tool: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A real bash that has loaded the script offers what fits."""
    bash = require_tool("bash")
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion.bash"
    script.write_text(capsys.readouterr().out)
    ask = (
        'source "$1"; read -ra COMP_WORDS <<< "$2"; COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ));'
        'function=$(complete -p prxbus | sed "s/.*-F \\([^ ]*\\).*/\\1/"); $function; echo "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(
        [bash, "--norc", "-c", ask, "bash", str(script), words],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    assert set(ran.stdout.split()) == expected, ran.stderr


@pytest.mark.parametrize(
    "shell,ask,expected",
    [
        ("fish", "source $argv[1]; complete -C 'prxbus st'", "status"),
        ("fish", "source $argv[1]; complete -C 'prxbus pub --re'", "--retain"),
        ("tcsh", "source $argv[1]; complete prxbus", "status"),
        (
            "zsh",
            'autoload -U compinit; compinit -u -D; eval "$(<$1)"; print -r -- ${_comps[prxbus]}',
            "_shtab_prxbus",
        ),
    ],
)
def test_other_shells_load_their_script(
    shell: str,
    ask: str,
    expected: str,
    tmp_path: Path,
    require_tool: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """fish completes with it; tcsh and zsh take it without a complaint and know the command."""
    program = require_tool(shell)
    assert main(["completion", shell]) == 0
    script = tmp_path / f"completion.{shell}"
    script.write_text(capsys.readouterr().out)
    alone = {"fish": ["--no-config"], "tcsh": ["-f"], "zsh": ["-f"]}[shell]
    if shell == "tcsh":
        argv = [program, *alone, "-c", ask.replace("$argv[1]", str(script))]
    else:
        argv = [program, *alone, "-c", ask, *(["zsh"] if shell == "zsh" else []), str(script)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=50, check=True, cwd=tmp_path)
    assert expected in ran.stdout
    assert ran.stderr == ""


def test_without_shtab_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a base install the verb is listed and says what it needs."""
    import builtins

    imported = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "shtab":
            raise ModuleNotFoundError("No module named 'shtab'", name="shtab")
        return imported(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["completion", "bash"]) == 1
    assert "needs the package 'shtab', which the extra 'run' brings" in capsys.readouterr().err
