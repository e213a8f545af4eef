"""What of a workspace can run code, or decides what runs."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from subscribers.sources.trust_files import Listing, look

MANIFEST = '[plugin]\nname = "x"\nversion = "1"\n[[capabilities]]\ntype = "hook"\nevents = ["error"]\n'
FAMILY = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": 'sh "$CLAUDE_PROJECT_DIR"/s.sh'}]}]}}
CONFIG = '[[transform]]\ncommand = ["./t.sh", "--rules=rules.json"]\n[[hook_file]]\npath = "team.json"\n'


def write(path: Path, text: str = "x") -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A user without configuration."""
    return {"PRXBUS_CONFIG_DIR": str(tmp_path / "config"), "HOME": str(tmp_path / "home")}


def test_everything_that_runs_or_decides_is_listed(workspace: Path, environ: dict[str, str]) -> None:
    """Hook files, settings, handlers with their neighbours, plugins, and the files that commands name."""
    action = {"command": "./a.sh", "args": ["in.txt", "/etc/hostname", "absent"]}
    write(workspace / "hooks.json", json.dumps({"hooks": {"error": [action]}}))
    write(workspace / ".prxbus" / "config.toml", CONFIG)
    write(workspace / ".prxbus" / "hooks.json", json.dumps(FAMILY))
    write(workspace / "team.json", json.dumps(FAMILY).replace("s.sh", "team.sh"))
    write(workspace / ".bitfun" / "config" / "hooks.json", json.dumps(FAMILY).replace("s.sh", "b.sh"))
    write(workspace / ".prxbus" / "handlers" / "x.py")
    write(workspace / ".prxbus" / "handlers" / "__pycache__" / "_y.pyc")
    write(workspace / "plugins" / "p" / "plugin.toml", MANIFEST)
    write(workspace / "plugins" / "p" / "plugin.wasm")
    write(workspace / "plugins" / "p" / "README.md")
    write(workspace / ".claude" / "settings.json", json.dumps(FAMILY).replace("s.sh", "unused.sh"))
    named = ("a.sh", "in.txt", "s.sh", "team.sh", "b.sh", "t.sh", "rules.json", "unused.sh")
    for name in named:
        write(workspace / name, name).chmod(0o755)
    listing = look(str(workspace), environ)
    assert listing.faults == ()
    assert listing.roles() == {
        ".bitfun/config/hooks.json": "hooks",
        ".prxbus/config.toml": "config",
        ".prxbus/handlers/__pycache__/_y.pyc": "handlers",
        ".prxbus/handlers/x.py": "handlers",
        ".prxbus/hooks.json": "hooks",
        "hooks.json": "prx",
        "plugins/p/plugin.toml": "plugin",
        "plugins/p/plugin.wasm": "plugin",
        "team.json": "hooks",
        **dict.fromkeys(named[:-1], "command"),
    }
    assert listing.digests()["s.sh"] == hashlib.sha256(b"s.sh").hexdigest()


def test_an_empty_workspace_has_nothing(workspace: Path, environ: dict[str, str]) -> None:
    """Nothing is listed, and nothing is wrong."""
    assert look(str(workspace), environ)[1:3] == ((), ())


def test_links_are_followed_inside_only(workspace: Path, tmp_path: Path, environ: dict[str, str]) -> None:
    """Inside, the content counts; a file to be read outside is a fault; a program's link is told."""
    outside = write(tmp_path / "elsewhere" / "tool.sh")
    outside.chmod(0o755)
    actions = [{"command": "./inner"}, {"command": "./outer"}]
    write(workspace / "real.json", json.dumps({"hooks": {"error": actions}}))
    (workspace / "hooks.json").symlink_to("real.json")
    write(workspace / "real.sh").chmod(0o755)
    (workspace / "inner").symlink_to("real.sh")
    (workspace / "outer").symlink_to(outside)
    listing = look(str(workspace), environ)
    files = {file.path: file for file in listing.files}
    assert listing.faults == ()
    assert files["inner"].sha256 == hashlib.sha256(b"x").hexdigest()
    assert (files["inner"].link, files["outer"].link) == (None, str(outside))
    (workspace / "outer").unlink()
    (workspace / "outer").symlink_to("/bin/sh")
    assert look(str(workspace), environ).digests()["outer"] != files["outer"].sha256
    (workspace / ".prxbus" / "handlers").mkdir(parents=True)
    (workspace / ".prxbus" / "handlers" / "x.py").symlink_to(outside)
    (fault,) = look(str(workspace), environ).faults
    assert f"a link out of the workspace, to {outside}" in fault.message


def faults(listing: Listing) -> str:
    """What is wrong, in one text."""
    return "\n".join(f"{path}: {message}" for path, message in listing.faults)


def test_what_cannot_be_read_whole_cannot_be_trusted(
    workspace: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    """Pipes, dead links, folders that are links, and files elsewhere are faults; nothing blocks."""
    write(tmp_path / "elsewhere" / "hooks.json", json.dumps(FAMILY))
    write(workspace / ".prxbus" / "config.toml", '[[hook_file]]\npath = "../elsewhere/hooks.json"\n')
    os.mkfifo(workspace / "hooks.json")
    handlers = workspace / ".prxbus" / "handlers"
    handlers.mkdir()
    (handlers / "gone.py").symlink_to("nowhere.py")
    write(handlers / "pack" / "__init__.py")
    (handlers / "again").symlink_to("pack")
    write(handlers / os.fsdecode(b"\xff.py"))
    (workspace / "plugins").symlink_to(tmp_path / "elsewhere")
    found = look(str(workspace), environ)
    told = faults(found)
    assert "hooks.json: it is no regular file" in told
    assert "elsewhere/hooks.json: it lies outside of the workspace" in told
    assert "gone.py: it cannot be read: No such file or directory" in told
    assert "handlers/again: it is no regular file" in told
    assert ".py: its name is too long, or not UTF-8" in told
    assert "plugins: this is, or lies behind, a symbolic link" in told
    assert found.roles() == {".prxbus/config.toml": "config", ".prxbus/handlers/pack/__init__.py": "handlers"}


def test_a_folder_of_handlers_that_is_a_link_is_a_fault(
    workspace: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    """It is not gone through."""
    write(tmp_path / "elsewhere" / "x.py")
    (workspace / ".prxbus").mkdir()
    (workspace / ".prxbus" / "handlers").symlink_to(tmp_path / "elsewhere")
    listing = look(str(workspace), environ)
    assert listing.files == ()
    assert "a link out of the workspace" in faults(listing)


def test_a_configuration_that_is_a_pipe_blocks_nobody(workspace: Path, environ: dict[str, str]) -> None:
    """It is a fault, and the rest is looked at."""
    (workspace / ".prxbus").mkdir()
    os.mkfifo(workspace / ".prxbus" / "config.toml")
    assert "config.toml: it is no regular file" in faults(look(str(workspace), environ))


def test_numbers_and_sizes_are_bounded(
    workspace: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many files or folders, and too many bytes, make a workspace that cannot be trusted."""
    handlers = workspace / ".prxbus" / "handlers"
    for name in ("a", "b", "c"):
        write(handlers / name / "x.py", "12345678")
    module = "subscribers.sources.trust_files"
    for limit, value, words in (
        ("FILES", 2, "more than 2 files"),
        ("FOLDERS", 2, "more than 2 folders"),
        ("FILE_BYTES", 7, "more than 7 bytes"),
        ("TOTAL_BYTES", 20, "or all have 20"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.{limit}", value)
            assert words in faults(look(str(workspace), environ))
    assert look(str(workspace), environ).faults == ()
