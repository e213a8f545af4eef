"""What no file of the project may contain."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Each pattern is written so that it does not match itself.
FORBIDDEN = {
    "the address of a package index": (
        r"py[p]i\.(org|python)|python[h]osted|/simp[l]e/|registry\.npm[j]s|crates\.[i]o/"
        r"|--(extra-)?index-[u]rl|PIP_(EXTRA_)?INDEX_[U]RL"
    ),
    "a path of one machine": r"/[r]oot/\w|/[w]ork/\w|/Use[r]s/\w|/hom[e]/(?!(user|dev|agent|me|you)\b)\w",
}


def files(require_tool: Callable[[str], str]) -> list[Path]:
    """The files that belong to the project: tracked, or new and not ignored."""
    git = require_tool("git")
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    run = subprocess.run(
        [git, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=30,
        check=True,
    )
    paths = [ROOT / name for name in run.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_project_names_no_place_of_its_making(what: str, require_tool: Callable[[str], str]) -> None:
    """No file holds the address of a package index or a path that exists on one machine only."""
    pattern = re.compile(FORBIDDEN[what])
    found = []
    listed = files(require_tool)
    assert ROOT / "pyproject.toml" in listed
    for path in listed:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:  # a picture
            continue
        found += [
            f"{path.relative_to(ROOT)}:{n}: {line}" for n, line in enumerate(lines, 1) if pattern.search(line)
        ]
    assert found == []


@pytest.mark.parametrize(
    "what,text",
    [
        ("the address of a package index", "https://py" + "pi.org/"),
        ("the address of a package index", "pip install --index-" + "url x"),
        ("the address of a package index", "https://host/simp" + "le/"),
        ("a path of one machine", "/hom" + "e/ana/shop"),
        ("a path of one machine", "see /roo" + "t/notes"),
    ],
)
def test_such_text_is_found(what: str, text: str) -> None:
    """The patterns match what they are for."""
    assert re.search(FORBIDDEN[what], text)
