"""Records of trust on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.hooks.trust_record import Record
from subscribers.sources.record_files import RecordUnusable
from subscribers.sources.trust_store import TrustStore

FILES = {"hooks.json": "0" * 64}


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    """An empty store."""
    return TrustStore(str(tmp_path / "state" / "trust"))


def record(workspace: Path, digit: str = "0") -> Record:
    """A record of one file."""
    workspace.mkdir(exist_ok=True)
    return Record(os.path.realpath(workspace), "2026-01-02T03:04:05Z", {"hooks.json": digit * 64})


def test_a_record_is_kept_for_its_user_alone_until_it_is_removed(store: TrustStore, tmp_path: Path) -> None:
    """It is found by a link to the workspace too, replaced whole, and gone once it is removed."""
    workspace = tmp_path / "w"
    assert store.read(str(workspace)) is None
    assert not store.remove(str(workspace))
    store.write(record(workspace))
    store.write(record(workspace, "1"))
    (tmp_path / "link").symlink_to(workspace)
    assert store.read(str(tmp_path / "link")) == record(workspace, "1")
    path = store.path_of(str(workspace))
    assert (os.stat(path).st_mode & 0o777, os.stat(store.folder).st_mode & 0o777) == (0o600, 0o700)
    assert list(store.records()) == [record(workspace, "1")]
    assert store.remove(str(workspace))
    assert store.read(str(workspace)) is None
    assert list(store.records()) == []


def test_a_record_that_others_may_write_does_not_count(store: TrustStore, tmp_path: Path) -> None:
    """Nor does one in such a folder, or a link; trusting anew puts it right."""
    workspace = tmp_path / "w"
    store.write(record(workspace))
    path = store.path_of(str(workspace))
    os.chmod(path, 0o666)
    with pytest.raises(RecordUnusable, match="others can change it"):
        store.read(str(workspace))
    assert [str(each).endswith("or it is a link") for each in store.records()] == [True]
    store.write(record(workspace))
    assert store.read(str(workspace)) == record(workspace)
    os.rename(path, tmp_path / "moved.json")
    os.symlink(tmp_path / "moved.json", path)
    with pytest.raises(RecordUnusable, match="link"):
        store.read(str(workspace))
    store.write(record(workspace, "1"))
    assert "0000" in (tmp_path / "moved.json").read_text()
    os.chmod(store.folder, 0o777)
    with pytest.raises(RecordUnusable, match="others can change it"):
        store.read(str(workspace))


@pytest.mark.parametrize("text", [b"{", b"[]", b"x" * 1_048_577])
def test_a_damaged_record_is_said_and_replaced(store: TrustStore, tmp_path: Path, text: bytes) -> None:
    """It counts as unusable, not as none; trusting anew writes a good one."""
    workspace = tmp_path / "w"
    store.write(record(workspace))
    Path(store.path_of(str(workspace))).write_bytes(text)
    with pytest.raises(RecordUnusable):
        store.read(str(workspace))
    store.write(record(workspace))
    assert store.read(str(workspace)) == record(workspace)


def test_the_record_of_another_folder_does_not_count(store: TrustStore, tmp_path: Path) -> None:
    """A record that was copied to another's name is refused."""
    store.write(record(tmp_path / "a"))
    os.rename(store.path_of(str(tmp_path / "a")), store.path_of(str(tmp_path / "b")))
    with pytest.raises(RecordUnusable, match="another folder"):
        store.read(str(tmp_path / "b"))


def test_records_never_lie_in_the_workspace_that_they_speak_for(store: TrustStore, tmp_path: Path) -> None:
    """What a workspace holds must not be able to say that it is trusted."""
    with pytest.raises(RecordUnusable, match="inside of"):
        store.write(record(tmp_path))
    assert not os.path.exists(store.folder)


def test_the_number_of_records_is_bounded(
    store: TrustStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace more is refused; one that is known may be recorded again."""
    monkeypatch.setattr("subscribers.sources.record_files.RECORDS", 1)
    store.write(record(tmp_path / "a"))
    with pytest.raises(RecordUnusable, match="remove some"):
        store.write(record(tmp_path / "b"))
    store.write(record(tmp_path / "a", "1"))


def test_too_many_files_are_not_recorded(store: TrustStore, tmp_path: Path) -> None:
    """And nothing is written."""
    many = Record(str(tmp_path / "w"), "", {f"{n}": "0" * 64 for n in range(2_001)})
    with pytest.raises(RecordUnusable, match="nothing was recorded: there are 2,001 files"):
        store.write(many)
    assert list(store.records()) == []


def test_a_store_that_cannot_be_had_is_said(tmp_path: Path) -> None:
    """A file where the folder should be is an error with its path."""
    (tmp_path / "file").touch()
    (tmp_path / "w").mkdir()
    store = TrustStore(str(tmp_path / "file"))
    for call in (lambda: store.write(record(tmp_path / "w")), lambda: list(store.records())):
        with pytest.raises(RecordUnusable, match="file"):
            call()
