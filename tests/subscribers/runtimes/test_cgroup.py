"""Control groups are made where that is allowed, hold their bound, and are removed, a crash's too."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path

import pytest

from subscribers.runtimes.cgroup import Groups, NoGroups


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that behaves as the kernel's: a new group comes with its files, and goes with them."""
    mkdir, rmdir = os.mkdir, os.rmdir

    def make(path: str) -> None:
        mkdir(path)
        Path(path, "pids.max").touch()

    def remove(path: str) -> None:
        if Path(path, "busy").exists():
            raise OSError(16, "Device or resource busy")
        Path(path, "pids.max").unlink()
        rmdir(path)

    monkeypatch.setattr(os, "mkdir", make)
    monkeypatch.setattr(os, "rmdir", remove)
    return tmp_path


def test_a_group_has_its_bound(place: Path) -> None:
    """The number of processes is written into a new group, which is removed when it is given back."""
    groups = Groups([str(place)])
    path = groups.make(7)
    assert Path(path, "pids.max").read_text() == "7"
    groups.remove(path)
    assert list(place.iterdir()) == []


def test_a_group_that_is_still_used_is_removed_later(place: Path) -> None:
    """A group whose last process is not gone yet goes when another is made, or at the end."""
    groups = Groups([str(place)])
    first, second = groups.make(1), groups.make(1)
    for path in (first, second):
        Path(path, "busy").touch()
        groups.remove(path)
    Path(first, "busy").unlink()
    groups.remove(groups.make(1))
    assert [str(path) for path in place.iterdir()] == [second]
    soon = threading.Timer(0.05, Path(second, "busy").unlink)
    soon.start()
    groups.close()
    soon.join()
    assert list(place.iterdir()) == []


def test_closing_does_not_wait_for_ever(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group whose process cannot be ended is left to the next process that makes groups."""
    monkeypatch.setattr("subscribers.runtimes.cgroup.CLOSE_S", 0.05)
    groups = Groups([str(place)])
    path = groups.make(1)
    Path(path, "busy").touch()
    groups.remove(path)
    groups.close()
    assert Path(path).exists()


def test_a_crash_leaves_nothing_for_long(place: Path) -> None:
    """Groups of processes that are gone are removed by the next one; those of living ones stay."""
    gone, alive = place / "prxbus-999999999-0", place / f"prxbus-{os.getpid()}-77"
    other = place / "system.slice"
    for path in (gone, alive, other):
        os.mkdir(str(path))
    Groups([str(place)])
    assert {path.name for path in place.iterdir()} == {alive.name, other.name}


def test_groups_of_an_earlier_process_with_the_same_pid_are_passed_over(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are removed where nothing is in them; a new group gets the next number that is free."""
    monkeypatch.setattr("subscribers.runtimes.cgroup._numbers", itertools.count())
    groups = Groups([str(place)])
    left = [place / f"prxbus-{os.getpid()}-{number}" for number in (1, 2)]
    for path in left:
        os.mkdir(str(path))
    (left[1] / "busy").touch()
    assert groups.make(1) == str(place / f"prxbus-{os.getpid()}-3")
    assert [path.exists() for path in left] == [False, True]
    monkeypatch.setattr("subscribers.runtimes.cgroup.LEFTOVERS", 1)
    os.mkdir(f"{place}/prxbus-{os.getpid()}-4")
    with pytest.raises(FileExistsError, match="1 groups of earlier processes are in the way"):
        groups.make(1)


def test_where_none_can_be_made_the_reason_is_told(tmp_path: Path) -> None:
    """A place that is missing, or that has no such controller, is named with its error."""
    with pytest.raises(NoGroups, match="no control group can be made in /nonexistent: No such file"):
        Groups(["/nonexistent"])
    with pytest.raises(NoGroups, match="No such file"):
        Groups([str(tmp_path)])  # a folder without the kernel's files
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NoGroups, match="no controller"):
        Groups([])
