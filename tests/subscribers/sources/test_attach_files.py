"""An agent's settings file: read, replaced whole, kept aside, and no secret where it would be committed."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from subscribers.sources import attach_files
from subscribers.sources.attach_files import (
    Unwritable,
    changing,
    find_place,
    read_settings,
    replace_settings,
    why_committed,
)
from subscribers.sources.import_sources import Homes

HOMES = Homes("/home/user", "/home/user/.claude", "/home/user/.codex")


@pytest.mark.parametrize(
    "agent,project,path,shared",
    [
        ("claude-code", None, "/home/user/.claude/settings.json", False),
        ("claude-code", "/shop", "/shop/.claude/settings.local.json", False),
        ("codex", None, "/home/user/.codex/hooks.json", False),
        ("codex", "/shop", "/shop/.codex/hooks.json", True),
    ],
)
def test_each_agent_has_its_place(agent: str, project: str | None, path: str, shared: bool) -> None:
    """Of a project the local file where there is one."""
    place = find_place(agent, HOMES, project)
    assert (place.agent, place.path, place.shared) == (agent, path, shared)


def test_a_file_is_replaced_whole_and_its_old_self_kept(tmp_path: Path) -> None:
    """Through a link, with its mode; the copy is this user's alone; a file that was not there has none."""
    state, real, link = tmp_path / "state", tmp_path / "dotfiles" / "settings", tmp_path / "home" / "settings"
    real.parent.mkdir()
    link.parent.mkdir()
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    text, looked = read_settings(str(link))
    assert text == b"old"
    with changing(str(state)):
        copy = replace_settings(str(link), b"new", looked, str(state))
    assert copy is not None
    assert (real.read_bytes(), Path(copy).read_bytes(), link.is_symlink()) == (b"new", b"old", True)
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (real, copy, Path(copy).parent)] == [
        *(0o640, 0o600, 0o700)
    ]
    fresh = tmp_path / "new" / "folder" / "settings"
    assert read_settings(str(fresh)) == (None, None)
    assert replace_settings(str(fresh), b"new", None, str(state)) is None
    assert (fresh.read_bytes(), stat.S_IMODE(fresh.stat().st_mode)) == (b"new", 0o600)
    assert sorted(os.listdir(fresh.parent)) == ["settings"]


def test_what_somebody_else_saved_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    """The file is what they made of it, and the error says so."""
    path = tmp_path / "settings"
    path.write_bytes(b"old")
    _, looked = read_settings(str(path))
    path.write_bytes(b"theirs")
    with pytest.raises(Unwritable, match="changed by somebody else"):
        replace_settings(str(path), b"ours", looked, str(tmp_path / "state"))
    assert path.read_bytes() == b"theirs"


def test_what_is_no_file_is_not_read_and_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder, a pipe, one that is too large, a folder that is a file: each is told by its path."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 11)
    monkeypatch.setattr(attach_files, "SETTINGS_BYTES", 10)
    for name in ("", "pipe", "large"):
        with pytest.raises(Unwritable, match=str(tmp_path)):
            read_settings(str(tmp_path / name))
    with pytest.raises(Unwritable, match="cannot be written"):
        replace_settings(str(tmp_path / "large" / "settings"), b"{}", None, str(tmp_path / "state"))
    with pytest.raises(Unwritable, match="large"), changing(str(tmp_path / "large")):
        raise AssertionError


def test_copies_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first."""
    monkeypatch.setattr(attach_files, "BACKUPS", 3)
    path = tmp_path / "settings"
    for number in range(6):
        path.write_text(str(number))
        replace_settings(str(path), b"new", read_settings(str(path))[1], str(tmp_path))
    kept = sorted((tmp_path / attach_files.BACKUP_FOLDER).iterdir())
    assert [copy.read_text() for copy in kept] == ["3", "4", "5"]


def test_a_file_that_git_would_take_is_known(
    tmp_path: Path, require_tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tracked, or in a checkout and not ignored; also through a link, and where there is no git to ask."""
    git = require_tool("git")
    shop = tmp_path / "shop"
    local = shop / ".claude" / "settings.local.json"
    assert why_committed(str(local)) is None
    shop.mkdir()

    def run(*words: str) -> None:
        subprocess.run([git, "-C", str(shop), *words], check=True, capture_output=True, timeout=30)

    run("init", "-q")
    assert "not ignored" in (why_committed(str(local)) or "")
    link = tmp_path / "link"
    link.symlink_to(local)
    assert "not ignored" in (why_committed(str(link)) or "")
    (shop / ".gitignore").write_text("*.local.json\n")
    assert why_committed(str(local)) is None
    local.parent.mkdir()
    local.write_text("{}")
    run("add", "-f", "--", str(local))
    assert "tracked" in (why_committed(str(local)) or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not ignored" in (why_committed(str(shop / "other.local.json")) or "")
