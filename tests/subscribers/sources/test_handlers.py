"""Where handlers in Python are found, and when there may be something new."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from subscribers.sources import handlers
from subscribers.sources.handlers import HandlerUnit, digest, find, first_file
from subscribers.sources.handlers_watch import HandlersWatch

DEADLINE_S = 20.0


def write(path: Path, text: str = "") -> Path:
    """A file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def names(found: handlers.Found) -> list[tuple[str, str]]:
    """Name and origin of every unit."""
    return [(unit.name, unit.origin) for unit in found.units]


def test_a_workspaces_files_and_packages_are_units(tmp_path: Path) -> None:
    """In the order of their names; not what begins with _ or ., other files, folders without a start."""
    folder = tmp_path / ".prxbus" / "handlers"
    for name in (
        "b.py",
        "a.py",
        "_rules.py",
        ".a.py.swp",
        ".hidden.py",
        "notes.txt",
        "data/x.json",
        "pack/__init__.py",
    ):
        write(folder / name)
    os.symlink("loop.py", folder / "loop.py")
    found = find(str(tmp_path), [], installed=False)
    assert names(found) == [("a.py", "workspace"), ("b.py", "workspace"), ("pack", "workspace")]
    assert found.diagnostics == ()
    assert find(None, [], installed=False) == handlers.Found()
    assert find(str(tmp_path / "empty"), [], installed=False) == handlers.Found()


def test_named_files_and_folders_are_units(tmp_path: Path) -> None:
    """A file, a folder of files, a package; each once, under a name of its own."""
    one = write(tmp_path / "one" / "guard.py")
    write(tmp_path / "two" / "guard.py")
    write(tmp_path / "pack" / "__init__.py")
    paths = [str(one), str(tmp_path / "one"), str(tmp_path / "two"), str(tmp_path / "pack")]
    found = find(None, paths, installed=False)
    expected = [("guard.py", "named"), (os.path.join("two", "guard.py"), "named"), ("pack", "named")]
    assert names(found) == expected
    assert first_file(found.units[0]) == str(one)
    assert first_file(found.units[2]) == str(tmp_path / "pack" / "__init__.py")


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """A path that is gone, and one that is no Python: one remark each, and the others are found."""
    other = write(tmp_path / "run.sh")
    good = write(tmp_path / "good.py")
    found = find(None, [str(tmp_path / "gone"), str(other), str(good)], installed=False)
    assert names(found) == [("good.py", "named")]
    assert [fault.code for fault in found.diagnostics] == ["missing", "not_python"]


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A file in its place is no folder of handlers."""
    write(tmp_path / ".prxbus" / "handlers")
    found = find(str(tmp_path), [], installed=False)
    assert [fault.code for fault in found.diagnostics] == ["unreadable"]


def test_there_may_be_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a process: those beyond the bound are left out, and that is said."""
    monkeypatch.setattr(handlers, "MAX_UNITS", 2)
    for number in range(4):
        write(tmp_path / f"h{number}.py")
    found = find(None, [str(tmp_path)], installed=False)
    assert len(found.units) == 2
    assert "2 of 4 files are not loaded" in found.diagnostics[0].message


def test_installed_packages_offer_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their entry points, each name once, only when asked for."""
    info = tmp_path / "corp-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: corp\nVersion: 1.0\n")
    write(info / "entry_points.txt", "[prxbus.handlers]\nb = corp.b\na = corp.a\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = [unit for unit in find(None, [], installed=True).units if unit.path.startswith("corp.")]
    assert found == [
        HandlerUnit("a (installed)", "corp.a", "installed", "a"),
        HandlerUnit("b (installed)", "corp.b", "installed", "b"),
    ]
    assert first_file(found[0]) is None
    assert find(None, [], installed=False).units == ()


def test_a_digest_tells_content_apart(tmp_path: Path) -> None:
    """Other content, another file, or none: another digest; the same again: the same."""
    one, two = write(tmp_path / "1.py", "a"), write(tmp_path / "2.py", "b")
    files = [str(one), str(two)]
    first = digest(files)
    assert digest(reversed(files)) == first
    one.touch()
    assert digest(files) == first
    one.write_text("c")
    second = digest(files)
    one.unlink()
    os.mkfifo(one)
    third = digest(files)
    one.unlink()
    assert len({first, second, third, digest(files), digest([str(two)])}) == 5


@pytest.fixture
def changes() -> threading.Semaphore:
    """Released at each change."""
    return threading.Semaphore(0)


@pytest.fixture
def watching(tmp_path: Path, changes: threading.Semaphore) -> Callable[[], HandlersWatch]:
    """A watch for the folder of the test."""
    return lambda: HandlersWatch(str(tmp_path), [], changes.release, installed=False)


def test_an_edit_a_new_file_and_a_deletion_are_noticed(
    tmp_path: Path, changes: threading.Semaphore, watching: Callable[[], HandlersWatch]
) -> None:
    """Each is told once it has come to rest; also of a file that a unit was loaded from, wherever it lies."""
    folder = tmp_path / ".prxbus" / "handlers"
    path, elsewhere = write(folder / "a.py", "1"), write(tmp_path / "elsewhere.py", "1")
    watch = watching()
    watch.follow("a.py", [str(path), str(elsewhere)])
    before = watch.digest_of("a.py", str(path))
    watch.start()
    try:
        for change in (
            lambda: path.write_text("22"),
            lambda: elsewhere.write_text("22"),
            lambda: write(folder / "b.py"),
            (folder / "b.py").unlink,
        ):
            while changes.acquire(blocking=False):
                pass
            change()
            assert changes.acquire(timeout=DEADLINE_S)
        assert watch.digest_of("a.py", str(path)) != before
        assert [unit.name for unit in watch.find().units] == ["a.py"]
        watch.forget("a.py")
        assert watch.digest_of("a.py", None) == digest([])
    finally:
        watch.stop()


def test_a_watch_that_was_not_started_stops(watching: Callable[[], HandlersWatch]) -> None:
    """There is no thread to wait for."""
    watching().stop()
