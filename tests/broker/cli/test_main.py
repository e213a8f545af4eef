"""How a command begins and ends."""

from __future__ import annotations

import argparse
import errno
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import broker
from broker.cli import main as module
from broker.cli.exits import TABLE, CommandError
from broker.cli.main import main
from broker.cli.verbs import OWN, Joined, Verb
from broker.protocol.errors import BusUnreachable
from broker.version import __version__

INSTALL = "pip install 'prxbus[run]'"

Join = Callable[..., None]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Join:
    """A function that joins a verb with the given way to run it, as another package would."""

    def joining(run: Callable[[argparse.Namespace], int], name: str = "walk", fault: str = "") -> None:
        verb = Verb(name, "take a walk", lambda parser: None, run)
        monkeypatch.setattr(module, "joined", lambda: Joined({name: verb}, [fault] if fault else []))

    return joining


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    """A run that ends with ``error``."""

    def run(options: argparse.Namespace) -> int:
        raise error

    return run


def test_help_lists_every_verb_and_exit_code(capsys: pytest.CaptureFixture[str], join: Join) -> None:
    """Our verbs and joined ones stand in one list, each with its summary."""
    join(lambda options: 0)
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for verb in OWN.values():
        assert f"  {verb.name:<11} {verb.summary}{' *' * verb.extra}\n" in text
    assert {verb.name for verb in OWN.values() if verb.extra} == {"top", "completion"}
    assert "* needs the extra 'run': pip install 'prxbus[run]'" in text
    assert "  walk        take a walk" in text
    for row in TABLE:
        assert row.meaning in text


def test_help_says_which_verbs_are_missing(capsys: pytest.CaptureFixture[str], join: Join) -> None:
    """A package whose verbs cannot be loaded is named, and the rest is there."""
    join(lambda options: 0, fault="the verbs of 'x' are missing: ImportError: y")
    assert main(["-h"]) == 0
    assert "the verbs of 'x' are missing: ImportError: y" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["schema", "--help"], ["help", "schema"], ["schema", "-h"]])
def test_each_verb_has_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It is asked for in any of the usual ways, goes to stdout and is no failure."""
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("usage: prxbus schema [-h] [--json] [EVENT]")


def test_help_alone_is_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    """``prxbus help`` is what it looks like."""
    assert main(["help"]) == 0
    assert "verbs (" in capsys.readouterr().out


def test_the_version_says_where_it_was_loaded_from(capsys: pytest.CaptureFixture[str]) -> None:
    """Release, package, Python."""
    assert main(["--version"]) == 0
    place = Path(str(broker.__file__)).parent
    assert capsys.readouterr().out.startswith(f"prxbus {__version__} from {place} (Python ")


@pytest.mark.parametrize(
    "arguments,message",
    [
        ([], "usage: prxbus VERB"),
        (["statsu"], "prxbus statsu: there is no verb 'statsu'; did you mean 'status'?"),
        (["tpa"], "did you mean 'tap'?"),
        (["version"], "the version is an option: 'prxbus --version'"),
        (["-V"], "prxbus: there is no option '-V'; did you mean 'prxbus --version'?"),
        (["--versoin"], "did you mean 'prxbus --version'?"),
        (["--json", "status"], "put it after the verb: 'prxbus VERB --json'"),
        (["walks"], "did you mean 'walk'?"),
        (["qqqqqq"], "there is no verb 'qqqqqq'; there are ask, bench, completion, pub, "),
        (["--json", "pub"], '"code": "usage"'),
        (["--runtime-dir", "/x", "pub"], "prxbus: option '--runtime-dir' comes before the verb"),
    ],
)
def test_what_is_no_command_is_a_usage_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], join: Join
) -> None:
    """It goes to stderr with exit code 2, and names what was probably meant."""
    join(lambda options: 0)
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_an_unknown_verb_tells_which_verbs_could_not_be_loaded(
    capsys: pytest.CaptureFixture[str], join: Join
) -> None:
    """The verb may be one of those."""
    join(lambda options: 0, fault="the verbs of 'x' are missing: ImportError: y")
    assert main(["fire"]) == 2
    assert "the verbs of 'x' are missing" in capsys.readouterr().err


def test_a_joined_verb_runs_with_its_options(join: Join) -> None:
    """It gets the runtime directory without asking for it, and its return value is the exit code."""
    seen: list[Any] = []

    def run(options: argparse.Namespace) -> int:
        seen.append((options.runtime_dir, gc.isenabled()))
        return 7

    join(run)
    assert main(["walk", "--runtime-dir", "/tmp/x"]) == 7
    assert seen == [("/tmp/x", True)]


@pytest.mark.parametrize(
    "error,code,line",
    [
        (BusUnreachable("no bus answers"), 3, "prxbus walk: no bus answers\n"),
        (CommandError("too tired"), 1, "prxbus walk: too tired\n"),
        (OSError(errno.EACCES, "Permission denied", "/x"), 1, "prxbus walk: Permission denied (/x)\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "prxbus walk: No space left on device\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
        (
            ModuleNotFoundError("No module named 'rich.live'", name="rich.live"),
            1,
            f"prxbus walk: needs the package 'rich', which the extra 'run' brings: {INSTALL}\n",
        ),
        (
            ModuleNotFoundError("No module named 're2'", name="re2"),
            1,
            f"prxbus walk: needs the package 're2', which the extra 'run' brings: {INSTALL}\n",
        ),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: BaseException,
    code: int,
    line: str,
    capsys: pytest.CaptureFixture[str],
    join: Join,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a user can cause is told in one line; an interrupt and a reader that has gone say nothing."""
    monkeypatch.setattr(module, "forget_stdout", lambda: None)
    join(raising(error))
    assert main(["walk"]) == code
    assert capsys.readouterr().err == line


def test_a_defect_is_not_hidden(join: Join) -> None:
    """An error that no user can cause keeps its traceback, a missing module of ours included."""
    for error in (ZeroDivisionError(), ModuleNotFoundError("no", name="broker.gone")):
        join(raising(error))
        with pytest.raises(type(error)):
            main(["walk"])


def test_json_makes_errors_json(capsys: pytest.CaptureFixture[str], join: Join) -> None:
    """Also those that are found before --json itself is parsed."""
    join(raising(BusUnreachable("no bus answers")))
    assert main(["walk", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["message"] == (
        "unrecognized arguments: --json; see 'prxbus walk --help'"
    )


@pytest.mark.parametrize("verb", ["ask", "pub", "tap", "status"])
def test_a_quick_verb_imports_nothing_heavy(verb: str) -> None:
    """Loading a verb and parsing its arguments leaves out every module that would make it slow."""
    program = (
        "import sys\n"
        "from broker.cli.main import main\n"
        f"main([{verb!r}, '--help'])\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    loaded = set(ran.stderr.split())
    heavy = {"structlog", "asyncio", "rich", "pydantic", "importlib.metadata", "shutil", "logging"}
    assert f"broker.cli.{verb}" in loaded
    assert not heavy & loaded


def test_pub_loads_neither_publisher_nor_subscriber() -> None:
    """An acknowledged publish speaks to the control plane alone, and needs no OpenSSL and no msgspec."""
    program = "import sys; from broker.cli import pub; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    loaded = set(ran.stdout.split())
    assert (
        not {"broker.client.publisher", "broker.client.subscriber", "hashlib", "msgspec", "secrets"} & loaded
    )
