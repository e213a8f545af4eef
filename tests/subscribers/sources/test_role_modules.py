"""Where a hook's module is: inside of the role's directory, or wherever an absolute path says."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from subscribers.sources.role_modules import (
    Languages,
    Module,
    NoModule,
    find_inside,
    place_of,
    resolve_module,
)


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """A role's directory with modules, and files beside it."""
    found = tmp_path / "coder"
    (found / "hooks" / "folder.js").mkdir(parents=True)
    for name in ("check.js", "check.py", "check.ts", "check.cts", "check.mjs", "notes.txt"):
        (found / "hooks" / name).write_text(f"// {name}\n")
    (tmp_path / "outside.js").write_text("// outside\n")
    (tmp_path / "coder-2").mkdir()
    (tmp_path / "coder-2" / "near.js").write_text("// near\n")
    return found


def found(role: Path, written: str, languages: Languages | None = None) -> Module:
    """The module that a hook of the role names so."""
    module = resolve_module(str(role), written, languages or Languages())
    assert isinstance(module, Module), module
    return module


def refused(role: Path, written: str, languages: Languages | None = None) -> NoModule:
    """Why a hook of the role has no module of that name."""
    reason = resolve_module(str(role), written, languages or Languages())
    assert isinstance(reason, NoModule), reason
    return reason


def test_a_relative_path_is_one_of_the_role(role: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the current directory is; the digest is that of the bytes."""
    monkeypatch.chdir("/")
    module = found(role, "hooks/check.js")
    assert module.path == os.path.realpath(role / "hooks" / "check.js")
    assert module.digest == hashlib.sha256(b"// check.js\n").hexdigest()
    assert module.language == "javascript"
    assert found(role, "hooks/../hooks/./check.py").language == "python"
    monkeypatch.chdir(role)
    assert found(Path(), "hooks/check.js") == module
    assert place_of(".", "hooks/check.js") == str(role / "hooks" / "check.js")


def test_an_absolute_path_may_lead_anywhere(role: Path, tmp_path: Path) -> None:
    """Also by links."""
    (tmp_path / "link.js").symlink_to(tmp_path / "outside.js")
    assert found(role, str(tmp_path / "link.js")).path == os.path.realpath(tmp_path / "outside.js")


def test_a_relative_path_may_not_leave_the_role(role: Path, tmp_path: Path) -> None:
    """Neither by dots, nor by a link to a file or a folder, nor to a folder whose name begins the same."""
    (role / "hooks" / "link.js").symlink_to(tmp_path / "outside.js")
    (role / "away").symlink_to(tmp_path / "coder-2")
    for written in ("../outside.js", "hooks/../../outside.js", "../coder-2/near.js", "..", "."):
        reason = refused(role, written)
        assert reason.code == "outside_role", written
        assert reason.hint == "put the file into it, or write its absolute path"
    for written in ("hooks/link.js", "away/near.js"):
        assert "by a link" in refused(role, written).message


def test_links_within_a_role_are_followed(role: Path, tmp_path: Path) -> None:
    """Also where the role's own directory is a link."""
    (role / "hooks" / "same.js").symlink_to("check.js")
    (tmp_path / "alias").symlink_to(role)
    assert found(tmp_path / "alias", "hooks/same.js") == found(role, "hooks/check.js")


def test_a_file_that_is_not_there_is_told_with_the_one_that_was_meant(role: Path) -> None:
    """The place that was looked at is named, and what lies there under a similar name."""
    reason = refused(role, "hooks/chek.js")
    assert reason.code == "missing_module"
    assert str(role / "hooks" / "chek.js") in reason.message
    assert reason.hint == 'did you mean "hooks/check.js"?'
    assert refused(role, "hooks/chek.ts").hint == 'did you mean "hooks/check.ts"?'
    assert "correct the path" in (refused(role, "hooks/k.js").hint or "")
    assert "correct the path" in (refused(role, "hooks/zzzz").hint or "")
    assert "correct the path" in (refused(role, "none/check.js").hint or "")
    assert "absolute path" in (refused(role, "~/check.js").hint or "")
    assert refused(role, "hooks/check.js/x").code == "missing_module"


def test_a_link_that_leads_nowhere_is_told(role: Path) -> None:
    """With the place that it names."""
    (role / "dead.js").symlink_to("gone.js")
    assert "is a link to" in refused(role, "dead.js").message


def test_only_a_regular_file_with_a_known_ending_is_a_module(role: Path) -> None:
    """Folders, pipes, other endings and paths that cannot be spelled are told apart."""
    os.mkfifo(role / "pipe.js")
    assert refused(role, "hooks/folder.js").message == '"hooks/folder.js" is a folder, not a file'
    assert "a pipe" in refused(role, "pipe.js").message
    assert refused(role, "hooks/notes.txt").code == "unknown_suffix"
    assert refused(role, "x" * 300 + ".js").code == "unreadable_module"
    assert refused(role, "a\0.js").code == "unreadable_module"


def test_a_module_of_any_size_is_no_module(role: Path) -> None:
    """Its own file has at most four megabytes."""
    with open(role / "large.js", "wb") as file:
        file.truncate(4_194_305)
    assert refused(role, "large.js").code == "unreadable_module"


def test_a_language_that_cannot_be_run_here_is_the_reason(role: Path) -> None:
    """Without Node no JavaScript, with an old one no TypeScript; Python always."""
    without = Languages(javascript="needs Node 20 or newer", typescript="unused")
    for name in ("check.js", "check.mjs", "check.ts"):
        hint = "install one, or name it with the setting roles.node; the role's other hooks run without it"
        told = NoModule("no_runtime", "needs Node 20 or newer", hint)
        assert refused(role, f"hooks/{name}", without) == told
    assert found(role, "hooks/check.py", without).language == "python"
    old = Languages(typescript="this Node cannot run TypeScript")
    assert refused(role, "hooks/check.cts", old).message == "this Node cannot run TypeScript"
    assert found(role, "hooks/check.js", old).language == "javascript"
    assert refused(role, "hooks/none.ts", without).code == "missing_module"


def test_a_file_that_goes_meanwhile_is_told(role: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the reading."""
    monkeypatch.setattr("subscribers.sources.role_modules.find_inside", lambda *_: str(role / "gone.js"))
    assert refused(role, "gone.js").code == "missing_module"


def test_find_inside_asks_for_no_ending(role: Path) -> None:
    """Other files of a role are found by the same rule."""
    assert find_inside(str(role), "hooks/notes.txt") == os.path.realpath(role / "hooks" / "notes.txt")
