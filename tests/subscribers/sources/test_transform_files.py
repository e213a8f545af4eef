"""Which files of handlers may hold a transform at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from subscribers.sources.handlers import HandlerUnit
from subscribers.sources.transform_files import may_transform


def unit(path: Path) -> HandlerUnit:
    """A file or folder as a unit."""
    return HandlerUnit(path.name, str(path), "workspace")


def test_a_file_needs_the_word(tmp_path: Path) -> None:
    """A file in which nothing is called transform is none of ours."""
    (tmp_path / "guard.py").write_text("from subscribers.handlers import decide\n")
    (tmp_path / "redact.py").write_text("import subscribers.handlers as h\n@h.transform\ndef f(e, c): ...\n")
    assert not may_transform(unit(tmp_path / "guard.py"))
    assert may_transform(unit(tmp_path / "redact.py"))


def test_a_package_may_have_the_word_in_any_of_its_files(tmp_path: Path) -> None:
    """All files below a package's folder are looked at."""
    inner = tmp_path / "package" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text("")
    (inner / "notes.txt").write_text("transform")
    assert not may_transform(unit(tmp_path / "package"))
    (inner / "deep.py").write_text("from subscribers.handlers import transform\n")
    assert may_transform(unit(tmp_path / "package"))


def test_what_cannot_be_read_may_hold_one(tmp_path: Path) -> None:
    """Loading will say what is wrong with it."""
    assert may_transform(unit(tmp_path / "gone.py"))


def test_an_entry_point_is_judged_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of Python, a package, one that is not there, and one whose source nobody has."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name, text in {"quiet_one": "", "loud_one": "# transform\n"}.items():
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / f"{name}_package").mkdir()
        (tmp_path / f"{name}_package" / "__init__.py").write_text(text)
    found = {
        module: may_transform(HandlerUnit("n", f"{module}:object", "installed", "n"))
        for module in (
            "quiet_one",
            "loud_one",
            "quiet_one_package",
            "loud_one_package",
            "not_there",
            "not_there.inside",
            "itertools",
        )
    }
    assert [module for module, may in found.items() if not may] == ["quiet_one", "quiet_one_package"]
