"""What a person meets who runs `make` for the first time, also on a machine that has too little."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUP = ROOT / ".ci" / "setup"
TOOLS = ("sh", "dirname", "env", "make", "sed", "expand", "rm", "touch")


@pytest.fixture
def programs(tmp_path: Path, require_tool: Callable[[str], str]) -> Path:
    """A directory that is the whole PATH: the shell's basic tools and no Python."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for tool in TOOLS:
        (directory / tool).symlink_to(require_tool(tool))
    return directory


def fake_python(directory: Path, name: str, *, new_enough: bool, ensurepip: bool) -> None:
    """A program that answers the set-up's two questions as a Python of that kind would."""
    directory.joinpath(name).write_text(
        "#!/bin/sh\n"
        'case "$2" in\n'
        f"    *ensurepip*) exit {0 if ensurepip else 1} ;;\n"
        f"    *version_info*) exit {0 if new_enough else 1} ;;\n"
        "esac\n"
        'echo "started: $0 $*"; exit 7\n'
    )
    directory.joinpath(name).chmod(0o755)


def set_up(programs: Path, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the set-up for a new environment, with nothing but ``programs`` to find."""
    return subprocess.run(
        [str(programs / "sh"), str(SETUP), str(tmp_path / "venv"), "run"],
        env={"PATH": str(programs), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_without_python_the_set_up_says_what_to_install(programs: Path, tmp_path: Path) -> None:
    """No Python at all, or one that is too old: the message names the version and how to choose another."""
    without = set_up(programs, tmp_path)
    fake_python(programs, "python3", new_enough=False, ensurepip=True)
    too_old = set_up(programs, tmp_path)
    for run in (without, too_old):
        assert run.returncode == 1
        assert "no Python 3.11 or newer" in run.stderr
        assert "PYTHON=" in run.stderr


def test_without_ensurepip_the_set_up_names_the_package(programs: Path, tmp_path: Path) -> None:
    """A Python that cannot make environments is reported with the package that Debian keeps apart."""
    fake_python(programs, "python3", new_enough=True, ensurepip=False)
    run = set_up(programs, tmp_path)
    assert run.returncode == 1
    assert "python3 cannot make virtual environments" in run.stderr
    assert "apt-get install python3-venv" in run.stderr


def test_the_set_up_takes_the_first_python_that_will_do(programs: Path, tmp_path: Path) -> None:
    """An old python3 and one without ensurepip are passed over for one that is good."""
    fake_python(programs, "python3", new_enough=False, ensurepip=True)
    fake_python(programs, "python3.13", new_enough=True, ensurepip=False)
    fake_python(programs, "python3.12", new_enough=True, ensurepip=True)
    run = set_up(programs, tmp_path)
    assert f"+ python3.12 -m venv --clear {tmp_path}/venv" in run.stdout
    assert run.returncode == 7  # the fake's own exit: a failing venv ends the set-up


def test_a_named_python_is_the_only_candidate(programs: Path, tmp_path: Path) -> None:
    """$PYTHON chooses the interpreter even where python3 would do."""
    fake_python(programs, "python3", new_enough=True, ensurepip=True)
    fake_python(programs, "mine", new_enough=True, ensurepip=True)
    run = set_up(programs, tmp_path, PYTHON="mine")
    assert "+ mine -m venv" in run.stdout


def test_without_packages_the_set_up_says_how_to_go_on(tmp_path: Path) -> None:
    """When pip cannot install, the message after pip's own says how to work without a network."""
    pip = tmp_path / "venv" / "bin" / "python"
    pip.parent.mkdir(parents=True)
    pip.write_text('#!/bin/sh\n[ "$2" != pip ]\n')
    pip.chmod(0o755)
    run = subprocess.run(
        [str(SETUP), str(tmp_path / "venv"), "run"], capture_output=True, text=True, timeout=30, check=False
    )
    assert run.returncode == 1
    assert "PIP_FIND_LINKS" in run.stderr


def test_make_alone_lists_every_target(require_tool: Callable[[str], str]) -> None:
    """`make` without a target prints each target with what it does, and starts nothing."""
    run = subprocess.run(
        [require_tool("make")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env=_outside(),
    )
    listed = set(re.findall(r"^  (\w+) +\S", run.stdout, re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed == set(phony.split())


def test_make_passes_the_pages_on_as_an_absolute_path(
    tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """PRXBUS_PAGES may be relative to the checkout; tests get it absolute, and a wrong one is refused."""
    (tmp_path / "checkout").mkdir()
    (tmp_path / "some pages").mkdir()
    shutil.copy(ROOT / "Makefile", tmp_path / "checkout")
    with (tmp_path / "checkout" / "Makefile").open("a") as makefile:
        makefile.write('\nshow:\n\t@echo "$$PRXBUS_PAGES"\n')

    def show(pages: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [require_tool("make"), "show"],
            cwd=tmp_path / "checkout",
            env={**_outside(), "PRXBUS_PAGES": pages},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    assert show("../some pages").stdout == f"{tmp_path.resolve()}/some pages\n"
    refused = show("../none")
    assert refused.returncode == 2
    assert "PRXBUS_PAGES=../none is not a directory" in refused.stderr


def _outside() -> dict[str, str]:
    """The environment without what an outer make hands down."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS", "PRXBUS_"))
    }


ROOM = '[[tool.prxbus.rooms]]\ncode = "{0}"\ntests = "tests/{0}"\n'


@pytest.mark.timeout(240)
def test_the_coverage_gate_judges_each_room_alone(tmp_path: Path) -> None:
    """A room short of a branch, without tests or gone fails the gate by name; full and empty rooms pass."""
    (tmp_path / "pyproject.toml").write_text(
        "".join(ROOM.format(name) for name in ("full", "short", "untested", "gone", "empty"))
    )
    for name in ("full", "short", "untested"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('"""A room."""\n')
        (tmp_path / name / f"{name}_sign.py").write_text(
            "def sign(n: int) -> int:\n    if n > 0:\n        return 1\n    return -1\n"
        )
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "__init__.py").write_text('"""A room to come."""\n')
    for name, values in (("full", "(2, 0)"), ("short", "(2,)")):
        (tmp_path / "tests" / name).mkdir(parents=True)
        (tmp_path / "tests" / name / f"test_{name}.py").write_text(
            f"from {name}.{name}_sign import sign\n"
            f"def test_it():\n    assert all(sign(n) for n in {values})\n"
        )
    run = subprocess.run(
        [sys.executable, "-P", str(ROOT / ".ci" / "coverage_rooms.py"), str(tmp_path)],
        env={**os.environ, "JOBS": "0", "PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    verdicts = re.findall(r"^([a-z]+): (.*)$", run.stdout, re.MULTILINE)
    assert [room for room, _ in verdicts] == ["empty", "short", "untested", "gone"]
    assert "5 rooms, 3 short" in run.stdout
