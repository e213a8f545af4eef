"""A guarded look at a file: its bytes, or in words why not; never a wait, never too much."""

import hashlib
import os
import socket
from pathlib import Path

import pytest

from subscribers.dialects import prx
from subscribers.sources.discover import hook_file, read, signature
from subscribers.sources.hook_source import Absent, Content, Unreadable


def test_the_file_of_a_workspace_is_named_by_the_dialect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PRX hooks lie in hooks.json at the top of the workspace; the path is absolute."""
    monkeypatch.chdir(tmp_path)
    assert hook_file("ws/", prx) == str(tmp_path / "ws" / "hooks.json")


def test_a_file_is_read_with_its_digest(tmp_path: Path) -> None:
    """Content comes with the SHA-256 of its bytes, an empty file too."""
    path = tmp_path / "hooks.json"
    for text in (b"{}", b"", b"\0\xff"):
        path.write_bytes(text)
        assert read(str(path), 100) == Content(text, hashlib.sha256(text).hexdigest())


def test_the_limit_is_inclusive(tmp_path: Path) -> None:
    """A file of exactly the limit is read, one more byte is refused."""
    path = tmp_path / "hooks.json"
    path.write_bytes(b"x" * 10)
    assert isinstance(read(str(path), 10), Content)
    found = read(str(path), 9)
    assert isinstance(found, Unreadable)
    assert found.code == "file_too_large"


def test_an_endless_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A sparse file of a terabyte costs no more than the limit."""
    path = tmp_path / "hooks.json"
    with path.open("wb") as file:
        file.truncate(2**40)
    found = read(str(path), 1_000)
    assert isinstance(found, Unreadable)
    assert found.code == "file_too_large"


def test_no_file_is_absent(tmp_path: Path) -> None:
    """A missing file, a missing folder and a link that leads nowhere are all absence."""
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("hooks.json", "folder/hooks.json", "dangling"):
        assert read(str(tmp_path / name), 100) == Absent()
        assert signature(str(tmp_path / name)) is None


def test_a_link_is_followed(tmp_path: Path) -> None:
    """A link to a file elsewhere reads as that file."""
    (tmp_path / "real").write_bytes(b"{}")
    (tmp_path / "hooks.json").symlink_to(tmp_path / "real")
    assert read(str(tmp_path / "hooks.json"), 100) == read(str(tmp_path / "real"), 100)


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    """A named pipe that nobody writes to is refused at once, as are folders and sockets."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, what in (("pipe", "a pipe"), ("folder", "a folder")):
        found = read(str(tmp_path / name), 100)
        assert isinstance(found, Unreadable)
        assert found.code == "not_a_file"
        assert what in found.message


def test_a_socket_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel refuses to open is told in its words."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("hooks.json")
        found = read("hooks.json", 100)
    assert isinstance(found, Unreadable)
    assert (found.code, found.hint) == ("unreadable", None)


def test_a_loop_of_links_is_told(tmp_path: Path) -> None:
    """A link to itself cannot be read, and looking at it from outside raises nothing either."""
    (tmp_path / "hooks.json").symlink_to("hooks.json")
    found = read(str(tmp_path / "hooks.json"), 100)
    assert isinstance(found, Unreadable)
    assert found.code == "unreadable"
    assert signature(str(tmp_path / "hooks.json")) is not None


def test_a_forbidden_file_asks_for_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of somebody else is unreadable, and the hint says what to change."""

    def forbidden(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", forbidden)
        found = read(str(tmp_path / "hooks.json"), 100)
    assert found == Unreadable(
        "unreadable", "the file cannot be read: Permission denied", "let this user read it"
    )


def test_an_error_while_reading_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails in the middle is a reading too, and the file is closed again."""
    (tmp_path / "hooks.json").write_bytes(b"{}")

    def failing(*_: object) -> os.stat_result:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", failing)
        found = read(str(tmp_path / "hooks.json"), 100)
    assert found == Unreadable("unreadable", "the file cannot be read: Input/output error", None)


def test_a_signature_changes_with_the_file(tmp_path: Path) -> None:
    """Writing, replacing and deleting a file change what it looks like; looking does not."""
    path = tmp_path / "hooks.json"
    seen = {signature(str(path))}
    path.write_bytes(b"{}")
    seen.add(signature(str(path)))
    path.write_bytes(b"{ }")
    seen.add(signature(str(path)))
    (tmp_path / "new").write_bytes(b"{ }")
    (tmp_path / "new").rename(path)
    seen.add(signature(str(path)))
    assert len(seen) == 4
    assert signature(str(path)) in seen
