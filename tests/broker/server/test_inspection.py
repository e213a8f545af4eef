"""What a broker checks about itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.places import endpoints
from broker.server.inspection import Inspection, resident_bytes
from broker.server.lock import DirectoryLock

NAMES = ("ingress", "egress", "control")


@pytest.fixture
def place(runtime_dir: Path) -> Iterator[tuple[Path, DirectoryLock]]:
    """A directory with a lock and three sockets."""
    with DirectoryLock(str(runtime_dir)) as lock:
        for name in NAMES:
            bind(runtime_dir / f"{name}.sock")
        yield runtime_dir, lock


def bind(path: Path) -> None:
    """Leave a socket at ``path``."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def inspection(
    place: tuple[Path, DirectoryLock], memory: int = 2**40, descriptors: int = 10_000
) -> Inspection:
    """One that has noted the three sockets."""
    made = Inspection(place[1], endpoints(str(place[0])), memory, descriptors)
    assert made.fault() is None or memory == 0  # before the sockets are bound they cannot be missing
    made.note_sockets()
    return made


def test_all_is_well_while_everything_is_in_place(place: tuple[Path, DirectoryLock]) -> None:
    """With lock, sockets and memory as they should be there is no fault."""
    assert inspection(place).fault() is None


@pytest.mark.parametrize("name", NAMES)
def test_a_socket_that_was_taken_away_is_a_fault(place: tuple[Path, DirectoryLock], name: str) -> None:
    """A socket that is missing or is another one is named."""
    made = inspection(place)
    path = place[0] / f"{name}.sock"
    path.rename(place[0] / "kept")  # so that the new one has another inode
    assert f"{name}.sock" in str(made.fault())
    bind(path)
    assert f"{name}.sock" in str(made.fault())


def test_a_lock_that_was_taken_away_is_a_fault(place: tuple[Path, DirectoryLock]) -> None:
    """Without its lock another broker could start: this one has to end."""
    made = inspection(place)
    (place[0] / "lock").unlink()
    assert "lock" in str(made.fault())


def test_too_much_memory_is_a_fault(place: tuple[Path, DirectoryLock]) -> None:
    """A process that holds more than allowed says both numbers and the option."""
    assert "--memory-bytes" in str(inspection(place, memory=0).fault())


def test_usage_is_that_of_this_process(place: tuple[Path, DirectoryLock]) -> None:
    """Memory and descriptors are those of the process, with their limits."""
    usage = inspection(place, descriptors=9).usage()
    assert usage["memory_limit_bytes"] == 2**40
    assert usage["descriptors_limit"] == 9
    assert 2**20 < usage["memory_bytes"] < 2**40
    assert usage["memory_bytes"] == pytest.approx(resident_bytes(), rel=0.5)
    assert 0 < usage["descriptors"] <= len(os.listdir("/proc/self/fd")) + 5


def test_few_descriptors_are_warned_of_once(
    place: tuple[Path, DirectoryLock], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning comes when they run short, not at every tick, and again after they were enough."""
    warnings: list[str] = []
    monkeypatch.setattr("broker.server.inspection.log", Recorder(warnings))
    made = inspection(place, descriptors=1)
    made.usage()
    made.usage()
    assert len(warnings) == 1
    made._descriptors = 10_000
    made.usage()
    made._descriptors = 1
    made.usage()
    assert len(warnings) == 2


class Recorder:
    """A logger that only remembers."""

    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings

    def warning(self, event: str, **fields: object) -> None:
        """Remember the text."""
        self._warnings.append(event)
