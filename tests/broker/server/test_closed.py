"""The file in which a broker writes down which deciders fail closed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from broker.control.asks import ClosedDecider
from broker.server.closed import NAME, ClosedDeciders

GUARD = ClosedDecider("guard", 3, ("prx.lifecycle.*", "a.b"))


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """The file is its owner's alone, and each writing replaces it whole."""
    kept = ClosedDeciders(str(tmp_path))
    assert kept.read() == []
    kept.write([GUARD, ClosedDecider("other", 0, ("x",))])
    kept.write([GUARD])
    assert ClosedDeciders(str(tmp_path)).read() == [GUARD]
    assert stat.S_IMODE(os.stat(tmp_path / NAME).st_mode) == 0o600
    assert os.listdir(tmp_path) == [NAME]


def test_nobody_leaves_no_file(tmp_path: Path) -> None:
    """Without deciders that fail closed there is nothing to keep, and removing nothing is no error."""
    kept = ClosedDeciders(str(tmp_path))
    kept.write([GUARD])
    kept.write([])
    kept.remove()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}x",
        "7",
        "[7]",
        '[{"name": "x"}]',
        '[{"name": 5, "priority": 0, "patterns": ["x"]}]',
        '[{"name": "x", "priority": true, "patterns": ["x"]}]',
        '[{"name": "x", "priority": 0, "patterns": ["a..b"]}]',
        '[{"name": "x", "priority": 0, "patterns": 5}]',
    ],
)
def test_what_is_no_such_file_is_passed_over(tmp_path: Path, text: str) -> None:
    """A file that was damaged stops no broker."""
    (tmp_path / NAME).write_text(text)
    assert ClosedDeciders(str(tmp_path)).read() == []


def test_a_disk_that_refuses_stops_nobody(tmp_path: Path) -> None:
    """What cannot be written or removed is logged."""
    (tmp_path / f"{NAME}.new").mkdir()
    (tmp_path / NAME).mkdir()
    kept = ClosedDeciders(str(tmp_path))
    kept.write([GUARD])
    kept.remove()
    assert kept.read() == []
