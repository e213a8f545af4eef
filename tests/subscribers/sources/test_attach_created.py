"""Files that attaching made, and their folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.sources.attach_created import FILE_NAME, forget, is_made, remember, take_away
from subscribers.sources.attach_files import Unwritable
from subscribers.sources.discover import signature


def test_a_file_is_known_until_it_is_gone_or_forgotten(tmp_path: Path) -> None:
    """Also through a link; one that is gone is remembered no longer than until the next is made."""
    paths = [tmp_path / name / "settings" for name in ("a", "\udcff", "c")]
    for path in paths[:2]:
        remember(str(path), str(tmp_path))
        path.parent.mkdir()
        path.touch()
    (tmp_path / "link").symlink_to(paths[0])
    assert is_made(str(tmp_path / "link"), str(tmp_path))
    forget(str(paths[0]), str(tmp_path))
    paths[1].unlink()
    remember(str(paths[2]), str(tmp_path))
    assert [is_made(str(path), str(tmp_path)) for path in paths] == [False, False, True]


def test_what_somebody_else_saved_meanwhile_stays(tmp_path: Path) -> None:
    """It is told, and still known; so is what cannot be removed."""
    path = tmp_path / "new" / "settings"
    remember(str(path), str(tmp_path))
    with pytest.raises(Unwritable, match="cannot be removed"):
        take_away(str(path), signature(str(path)), str(tmp_path))
    path.parent.mkdir()
    path.write_text("ours")
    looked = signature(str(path))
    path.write_text("theirs now")
    with pytest.raises(Unwritable, match="changed by somebody else"):
        take_away(str(path), looked, str(tmp_path))
    assert (path.read_text(), is_made(str(path), str(tmp_path))) == ("theirs now", True)


@pytest.mark.parametrize("content", ["{", "[]", "\udcff", '{"/x": 5}', '{"/x": [5]}'])
def test_a_record_that_is_none_of_ours_counts_for_nothing(tmp_path: Path, content: str) -> None:
    """No file is taken for one that we made, and the next record is written over it."""
    (tmp_path / FILE_NAME).write_bytes(content.encode(errors="surrogateescape"))
    assert not is_made("/x", str(tmp_path))
    remember(str(tmp_path / "settings"), str(tmp_path))
    assert is_made(str(tmp_path / "settings"), str(tmp_path))
