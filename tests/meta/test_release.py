"""What is released: one version, pinned dependencies, a wheel with two packages and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from broker.version import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
pytestmark = pytest.mark.timeout(240)  # a build, on a machine that is busy

NOT_IN_WHEEL = {"__pycache__"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, built from a copy so that this checkout stays as it is."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("broker", "subscribers", "tests", "benchmarks"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(place),
            str(source),
        ],
        check=True,
        capture_output=True,
        timeout=200,
    )
    (path,) = place.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_the_version_is_the_newest_entry_of_the_change_log() -> None:
    """The version in the code is the one that the change log describes first."""
    entries = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [entry for entry in entries if entry != "Unreleased"]
    assert released[0] == __version__


def test_every_dependency_is_pinned_inside_its_range() -> None:
    """Each dependency of each extra has one exact version in constraints.txt, which its range allows."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    wanted = list(PROJECT["dependencies"])
    for extra in PROJECT["optional-dependencies"].values():
        wanted += extra
    for requirement in map(Requirement, wanted):
        assert requirement.specifier, f"{requirement.name} has no range"
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier


def test_what_is_installed_here_is_what_is_pinned() -> None:
    """Every package that our extras bring in, at any depth, has a pin: nothing floats."""
    freeze = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "freeze", "--exclude-editable", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    pinned = set((ROOT / "constraints.txt").read_text().lower().replace("_", "-").splitlines())
    ours = _brought_in()
    floating = []
    for line in freeze.stdout.splitlines():
        name, _, version = line.partition("==")
        if canonicalize_name(name) in ours and f"{canonicalize_name(name)}=={version}" not in pinned:
            floating.append(line)
    assert floating == []


def _brought_in() -> set[str]:
    """The names of everything that prxbus with all its extras requires on this interpreter."""
    found: set[str] = set()
    todo = [Requirement(f"prxbus[{','.join(PROJECT['optional-dependencies'])}]")]
    while todo:
        requirement = todo.pop()
        extras = requirement.extras or {""}
        try:
            below = requires(requirement.name) or []
        except PackageNotFoundError:  # an extra that is not installed here
            continue
        for entry in map(Requirement, below):
            if entry.marker is None or any(entry.marker.evaluate({"extra": extra}) for extra in extras):
                name = canonicalize_name(entry.name)
                if name not in found or entry.extras:
                    found.add(name)
                    todo.append(entry)
    return found


def test_the_wheel_has_two_top_level_packages(wheel: zipfile.ZipFile) -> None:
    """The wheel holds broker, subscribers and their metadata: no test, no benchmark."""
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {"broker", "subscribers", f"prxbus-{__version__}.dist-info"}


def test_the_wheel_holds_every_file_of_its_packages(wheel: zipfile.ZipFile) -> None:
    """Every file of the two packages is in the wheel, type markers and data too, and no other file."""
    wanted = {
        str(path.relative_to(ROOT))
        for top in ("broker", "subscribers")
        for path in (ROOT / top).rglob("*")
        if path.is_file() and not NOT_IN_WHEEL & set(path.parts)
    }
    assert {"broker/py.typed", "subscribers/py.typed"} <= wanted
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == wanted


def test_the_wheel_describes_itself(wheel: zipfile.ZipFile) -> None:
    """The metadata names the version, the command, the verbs' entry point and the licence."""
    info = f"prxbus-{__version__}.dist-info"
    metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
    assert metadata["Name"] == "prxbus"
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "MIT"
    entry_points = wheel.read(f"{info}/entry_points.txt").decode()
    assert "prxbus = broker.cli.main:main" in entry_points
    assert "hooks = subscribers.cli.verbs:VERBS" in entry_points
    base = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    names = {Requirement(line).name for line in base}
    assert names == {"msgpack", "msgspec", "orjson", "pyzmq", "structlog"}
