"""Whole texts as private files: where they are, and how many."""

from __future__ import annotations

import stat
from pathlib import Path

from subscribers.runner.codex_spill_files import DIRECTORY, SpillFiles


def test_a_text_is_saved_for_this_user_alone(tmp_path: Path) -> None:
    """The text is written as it is, in a folder of its session; nobody else may look."""
    files = SpillFiles(str(tmp_path))
    path = Path(files.path("s/../1"))
    files.save(str(path), "whole \ud800 text")
    assert path.read_bytes() == "whole \ud800 text".encode("utf-8", "surrogatepass")
    assert path.parent.parent == tmp_path / DIRECTORY
    assert Path(files.path("s/../1")).parent == path.parent != Path(files.path("s2")).parent
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    files.close()
    assert not (tmp_path / DIRECTORY).exists()


def test_the_oldest_go_first(tmp_path: Path) -> None:
    """Their number and their bytes are bounded, and what went is counted; the newest always stays."""
    files = SpillFiles(str(tmp_path), files=2, total_bytes=10)
    paths = [files.path(session) for session in ("a", "a", "b", "b")]
    for path, text in zip(paths, ("1", "2", "3", "x" * 20), strict=True):
        files.save(path, text)
    assert [Path(path).exists() for path in paths] == [False, False, False, True]
    assert not Path(paths[0]).parent.exists()
    assert files.removed == 3


def test_what_an_earlier_process_left_is_removed(tmp_path: Path) -> None:
    """A process that was killed leaves nothing for ever."""
    old = tmp_path / DIRECTORY / "x" / "y.txt"
    old.parent.mkdir(parents=True)
    old.write_text("secret")
    SpillFiles(str(tmp_path))
    assert not old.exists()
