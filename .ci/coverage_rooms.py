"""Each sans-IO room must reach every branch from its own unit tests alone.

Usage: coverage_rooms.py [ROOT]. The rooms are [[tool.prxbus.rooms]] in ROOT/pyproject.toml, each with the
directory of its code and that of its tests. Exit 1 and the missing lines when one falls short. A room that
holds only the docstring of its package passes, and is said to be empty; one that is missing does not, so
that a renamed room cannot lose its gate.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path


def main(root: Path) -> int:
    """Measure every room of ``root``, whatever the others give; 1 when one falls short, else 0."""
    rooms = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["prxbus"]["rooms"]
    faults = [fault for room in rooms if (fault := _fault(root, room["code"], room["tests"]))]
    print("", *faults, sep="\n")
    print(f"{len(rooms)} rooms, {len(faults)} short of full branch coverage")
    return 1 if faults else 0


def _fault(root: Path, code: str, tests: str) -> str | None:
    """What is wrong with one room, or None."""
    if not (root / code).is_dir():
        return f"{code}: there is no such room"
    if _is_empty(root / code):
        print(f"{code}: empty, nothing to measure", flush=True)
        return None
    if not (root / tests).is_dir():
        return f"{code}: it has code, but no tests in {tests}"
    status = _measure(root, code, tests)
    return None if status == 0 else f"{code}: not every branch is reached from {tests}, or a test failed"


def _is_empty(room: Path) -> bool:
    """Whether no module of the room has a statement beside its docstring."""
    for path in room.rglob("*.py"):
        tree = ast.parse(path.read_text())
        if len(tree.body) > (ast.get_docstring(tree) is not None):
            return False
    return True


def _measure(root: Path, code: str, tests: str) -> int:
    """Run the room's tests under coverage; pytest's exit status, which is 5 when there was no test."""
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-n", os.environ.get("JOBS", "auto")]
    command += ["--maxprocesses", "8", "--cov", code, "--cov-branch", "--cov-report", "term-missing"]
    command += ["--cov-fail-under", "100", tests]
    print("+", *command, flush=True)
    with tempfile.TemporaryDirectory() as place:
        environment = {
            **os.environ,
            "COVERAGE_FILE": str(Path(place) / "data"),
            "PRXBUS_HYPOTHESIS": "branches",
        }
        return subprocess.run(command, cwd=root, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1])))
