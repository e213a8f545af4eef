"""Files of records: kept, read again, and not believed when others can write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.sources import record_files
from subscribers.sources.record_files import RecordFiles, RecordUnusable


@pytest.fixture
def records(tmp_path: Path) -> RecordFiles:
    """Records of nobody else."""
    return RecordFiles("things", str(tmp_path / "state"), "things are recorded: remove some")


def test_a_record_is_kept_until_it_is_removed(records: RecordFiles, tmp_path: Path) -> None:
    """A second one takes its place; a link to a directory has that one's; nobody else may look at it."""
    path = records.path_of(str(tmp_path))
    assert (records.read(path, 9), records.paths(), records.remove(path)) == (None, [], False)
    records.write(path, b"one")
    records.write(path, b"two")
    assert (records.read(path, 9), records.paths()) == (b"two", [path])
    assert Path(path).stat().st_mode & 0o777 == 0o600
    (tmp_path / "alias").symlink_to(tmp_path)
    assert records.path_of(str(tmp_path / "alias")) == path != records.path_of(str(tmp_path / "x"))
    assert records.remove(path)
    assert (records.read(path, 9), records.paths()) == (None, [])


def test_a_record_that_others_can_write_does_not_count(records: RecordFiles, tmp_path: Path) -> None:
    """The next one has its own mode, and does not lie where a link leads; nor may its folder be open."""
    path = records.path_of("/somewhere")
    records.write(path, b"one")
    os.chmod(path, 0o666)
    with pytest.raises(RecordUnusable, match=r"\.json does not count: others can change it"):
        records.read(path, 9)
    records.write(path, b"two")
    assert Path(path).stat().st_mode & 0o777 == 0o600
    os.rename(path, tmp_path / "moved")
    os.symlink(tmp_path / "moved", path)
    with pytest.raises(RecordUnusable, match="it is a link"):
        records.read(path, 9)
    records.write(path, b"three")
    assert (records.read(path, 9), (tmp_path / "moved").read_bytes()) == (b"three", b"two")
    os.chmod(records.folder, 0o777)
    with pytest.raises(RecordUnusable, match="state does not count"):
        records.read(path, 9)


def test_what_cannot_be_read_or_written_says_why(
    records: RecordFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder in the place of a record, a file in that of the records, a large record, one too many."""
    path = records.path_of("/somewhere")
    records.write(path, b"one")
    with pytest.raises(RecordUnusable, match="more than 2 bytes"):
        records.read(path, 2)
    monkeypatch.setattr(record_files, "RECORDS", 1)
    with pytest.raises(RecordUnusable, match="1 things are recorded: remove some"):
        records.write(records.path_of("/elsewhere"), b"two")
    records.remove(path)
    os.mkdir(path)
    with pytest.raises(RecordUnusable, match="a folder"):
        records.read(path, 9)
    (tmp_path / "file").touch()
    other = RecordFiles("things", str(tmp_path / "file"), "")
    with pytest.raises(RecordUnusable, match="File exists"):
        other.write(other.path_of("/somewhere"), b"one")
    with pytest.raises(RecordUnusable, match="cannot be listed"):
        other.paths()
