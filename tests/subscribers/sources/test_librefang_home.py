"""Which home there is, and which of its files are hooks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.sources import librefang_home
from subscribers.sources.librefang_home import find_home, hooks_folder, list_hooks, tree_signature


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The hooks of a home."""
    path = Path(hooks_folder(str(tmp_path)))
    path.mkdir()
    return path


def write(path: Path) -> str:
    """Some file; its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text("name: n\n")
    return str(path)


def remarks(root: Path) -> dict[str, str]:
    """What is said, by the path below the root."""
    return {os.path.relpath(d.path, root): d.code for d in list_hooks(str(root)).remarks}


def test_a_home_is_named_or_is_the_usual_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First what was said, then LIBREFANG_HOME, then ~/.librefang where it is there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert find_home(None, {}) is None
    (tmp_path / ".librefang").mkdir()
    assert find_home(None, {}) == str(tmp_path / ".librefang")
    assert find_home(None, {"LIBREFANG_HOME": ""}) == str(tmp_path / ".librefang")
    assert find_home(None, {"LIBREFANG_HOME": "/other"}) == "/other"
    assert find_home("mine", {"LIBREFANG_HOME": "/other"}) == str(tmp_path / "mine")
    assert find_home("~/mine", {}) == str(tmp_path / "mine")


def test_each_folder_with_the_file_is_a_hook_in_byte_order(root: Path) -> None:
    """Hidden folders and links to folders count, deeper ones do not, and the order is that of bytes."""
    expected = [write(root / name / "HOOK.yaml") for name in (".hidden", "B", "a", "é")]
    write(root / "a" / "deeper" / "HOOK.yaml")
    (root / "link").symlink_to(root / "a")
    expected.insert(3, str(root / "link" / "HOOK.yaml"))
    write(root / "README.md")
    listing = list_hooks(str(root))
    assert listing.files == tuple(expected)
    assert listing.remarks == ()


def test_a_home_without_hooks_has_none(tmp_path: Path) -> None:
    """A missing folder is no error."""
    assert list_hooks(hooks_folder(str(tmp_path))).files == ()


def test_what_looks_like_a_hook_file_and_is_none_is_said(root: Path) -> None:
    """Other spellings, a file without a folder, and a folder without a file; nothing of it is guessed."""
    write(root / "HOOK.yaml")
    write(root / "yml" / "HOOK.yml")
    write(root / "lower" / "hook.yaml")
    write(root / "both" / "HOOK.yaml")
    write(root / "both" / "Hook.YML")
    (root / "empty").mkdir()
    (root / "dangling").symlink_to("/nowhere")
    assert remarks(root) == {
        "HOOK.yaml": "misplaced_file",
        "yml/HOOK.yml": "misnamed_file",
        "lower/hook.yaml": "misnamed_file",
        "both/Hook.YML": "misnamed_file",
        "empty": "no_hook_file",
    }
    hints = {os.path.basename(d.path): d.hint for d in list_hooks(str(root)).remarks}
    assert hints["HOOK.yml"] == "rename it to HOOK.yaml"
    assert hints["Hook.YML"] == "only HOOK.yaml counts: remove it"


def test_a_hook_file_that_is_a_dangling_link_is_listed(root: Path) -> None:
    """Reading it says that there is nothing."""
    (root / "a").mkdir()
    (root / "a" / "HOOK.yaml").symlink_to("/nowhere")
    assert list_hooks(str(root)).files == (str(root / "a" / "HOOK.yaml"),)


def test_folders_beyond_the_limit_are_counted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones in order count; one remark tells of the rest."""
    monkeypatch.setattr(librefang_home, "MAX_HOOKS", 2)
    for name in "abcd":
        write(root / name / "HOOK.yaml")
    listing = list_hooks(str(root))
    assert len(listing.files) == 2
    (remark,) = listing.remarks
    assert (remark.code, "2 folders are not looked into" in remark.message) == ("too_many_hooks", True)


def test_a_folder_that_cannot_be_listed_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is read if it can be; the others are not concerned."""
    path = write(root / "a" / "HOOK.yaml")
    real = os.scandir

    def refuse(folder: str) -> object:
        if folder == str(root / "a"):
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert list_hooks(str(root)).files == (path,)
    assert remarks(root) == {"a": "unreadable_folder"}


def test_a_root_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    """Whoever scans has to know that nothing was seen."""
    (tmp_path / "hooks").write_text("")
    with pytest.raises(NotADirectoryError):
        list_hooks(str(tmp_path / "hooks"))
    assert tree_signature(str(tmp_path / "hooks")) is not None


def test_the_signature_tells_changes_apart(root: Path) -> None:
    """A new folder, a new file, an edit and a removal each change it; looking does not."""
    seen = [tree_signature(str(root))]
    assert tree_signature(str(root.parent / "nowhere")) is None
    (root / "a").mkdir()
    seen.append(tree_signature(str(root)))
    path = write(root / "a" / "HOOK.yaml")
    seen.append(tree_signature(str(root)))
    Path(path).write_text("longer than before\n")
    seen.append(tree_signature(str(root)))
    assert tree_signature(str(root)) == seen[-1]
    os.unlink(path)
    seen.append(tree_signature(str(root)))
    (root / "a" / "HOOK.yaml").symlink_to("/nowhere")
    seen.append(tree_signature(str(root)))
    assert len(set(seen[:4])) == 4
    assert seen[5] != seen[4]
