"""The hash of a role's files: what counts, and what cannot be hashed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from subscribers.sources import role_integrity
from subscribers.sources.role_integrity import NoIntegrity, integrity_of


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """A role with a file in a folder, a hidden one and a link."""
    found = tmp_path / "coder"
    (found / "hooks").mkdir(parents=True)
    (found / "role.yaml").write_text("name: x\n")
    (found / "hooks" / "a.js").write_text("a")
    (found / ".env").write_text("secret")
    (found / "link").symlink_to("role.yaml")
    return found


def test_the_hash_is_what_the_form_says(role: Path) -> None:
    """Each entry with its kind, the length of its path, the path and a digest, in the order of bytes."""
    entries = [
        (b"f", b".env", b"secret"),
        (b"f", b"hooks/a.js", b"a"),
        (b"l", b"link", b"role.yaml"),
        (b"f", b"role.yaml", b"name: x\n"),
    ]
    expected = hashlib.sha256()
    for kind, path, content in entries:
        expected.update(kind + len(path).to_bytes(8, "big") + path + hashlib.sha256(content).digest())
    found = integrity_of(str(role))
    assert found.hash == f"prxbus1-{expected.hexdigest()}"
    assert sorted(found.files) == [".env", "hooks/a.js", "link", "role.yaml"]
    assert found.files["hooks/a.js"] == f"f:{hashlib.sha256(b'a').hexdigest()}"


def test_every_change_is_another_hash(role: Path, tmp_path: Path) -> None:
    """A byte, a name, a place, a link's target, an empty file, a pipe; not a time, a mode or a git folder."""
    seen = [integrity_of(str(role)).hash]

    def changed() -> bool:
        seen.append(integrity_of(str(role)).hash)
        return seen[-1] not in seen[:-1]

    (role / "hooks" / "a.js").write_text("b")
    assert changed()
    (role / "hooks" / "a.js").rename(role / "a.js")
    assert changed()
    (role / "link").unlink()
    (role / "link").symlink_to("a.js")
    assert changed()
    (role / "empty").touch()
    assert changed()
    os.mkfifo(role / "pipe")
    assert changed()
    before = seen[-1]
    os.utime(role / "a.js", (0, 0))
    (role / "a.js").chmod(0o700)
    (role / ".git").mkdir()
    (role / ".git" / "index").write_text("x")
    (tmp_path / "alias").symlink_to(role)
    assert integrity_of(str(tmp_path / "alias")).hash == before
    (role / "hooks" / ".git").mkdir()
    (role / "hooks" / ".git" / "b.js").write_text("x")
    assert changed()


def test_bytes_cannot_move_from_one_file_to_the_next(tmp_path: Path) -> None:
    """Paths and contents are kept apart, as rolebox's own form does not."""
    for name, files in (
        ("one", {"a": "x", "b": "y"}),
        ("two", {"a": "xb\0y"}),
        ("three", {"ab": "", "c": ""}),
    ):
        (tmp_path / name).mkdir()
        for path, content in files.items():
            (tmp_path / name / path).write_text(content)
    assert len({integrity_of(str(tmp_path / name)).hash for name in ("one", "two", "three")}) == 3


def test_modules_elsewhere_count(role: Path, tmp_path: Path) -> None:
    """By their absolute paths; one of the role itself counts once."""
    outside = tmp_path / "outside.js"
    outside.write_text("x")
    modules = [os.path.realpath(outside), os.path.realpath(role / "hooks" / "a.js")]
    first = integrity_of(str(role), modules)
    assert first.files[str(outside)] == f"m:{hashlib.sha256(b'x').hexdigest()}"
    assert len(first.files) == 5
    outside.write_text("y")
    assert integrity_of(str(role), modules).hash != first.hash
    (role / ".git").mkdir()
    hidden = role / ".git" / "b.js"
    hidden.write_text("x")
    assert str(hidden) in integrity_of(str(role), [*modules, os.path.realpath(hidden)]).files


def test_names_that_are_no_text_count(role: Path) -> None:
    """The hash takes their bytes, the list shows them."""
    (Path(os.fsdecode(os.fsencode(role) + b"/\xff"))).touch()
    assert "\\xff" in integrity_of(str(role)).files


def test_what_cannot_be_read_as_a_whole_has_no_hash(role: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory, no module, too many files or bytes: the reason names it."""
    with pytest.raises(NoIntegrity, match=r"none: No such file"):
        integrity_of(str(role / "none"))
    with pytest.raises(NoIntegrity, match=r"/none\.js: No such file"):
        integrity_of(str(role), ["/none.js"])
    monkeypatch.setattr(role_integrity, "MAX_BYTES", 10)
    with pytest.raises(NoIntegrity, match="more than 10 bytes"):
        integrity_of(str(role))
    monkeypatch.setattr(role_integrity, "MAX_FILES", 3)
    (role / ".env").unlink()
    (role / "role.yaml").unlink()
    (role / "b").touch()
    (role / "c").touch()
    with pytest.raises(NoIntegrity, match="more than 3 files"):
        integrity_of(str(role))
