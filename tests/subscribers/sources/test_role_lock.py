"""A role against rolebox's lock file: proof, difference, and what cannot be verified."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from subscribers.dialects.rolebox_lock import digest
from subscribers.sources import role_integrity
from subscribers.sources.role_lock import LockCheck, check_lock, lock_path

UNVERIFIED = "the order of the files is JavaScript's, which only Node 20 or newer can tell"


class Installed:
    """A role that rolebox has installed, with its lock file."""

    def __init__(self, place: Path) -> None:
        self.environ = {"XDG_CONFIG_HOME": f"{place}/config", "XDG_DATA_HOME": f"{place}/data"}
        self.directory = place / "data" / "rolebox" / "roles" / "official" / "coder@1.0"
        self.directory.mkdir(parents=True)
        self.lock = place / "config" / "rolebox" / "rolebox.lock"
        self.lock.parent.mkdir(parents=True)

    def write(self, *files: str) -> None:
        """Put these files there, each holding its own name."""
        for name in files:
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / name).write_text(name)

    def locked(self, *order: str, integrity: str | None = None) -> None:
        """Record the hash of files in this order."""
        found = integrity or digest(order, lambda name: [name.encode()])
        entry = f"{{role: coder, registry: official, version: '1.0', integrity: {found}}}"
        self.lock.write_text(f"version: 1\nroles:\n  - {entry}\n")

    def check(self, sort: Sequence[str] | None = None) -> LockCheck | None:
        """What comes of it, where JavaScript sorts so."""
        return check_lock(str(self.directory), self.environ, lambda _: sort)


@pytest.fixture
def role(tmp_path: Path) -> Installed:
    """The role."""
    return Installed(tmp_path)


def test_a_role_as_it_was_installed_passes(role: Installed, tmp_path: Path) -> None:
    """Also by a link to it, as rolebox makes one for each agent; links in it are followed."""
    role.write("role.yaml", "hooks/a.js")
    (role.directory / "linked").symlink_to("hooks")
    (role.directory / "linked.js").symlink_to("hooks/a.js")
    (role.directory / "gone").symlink_to("nothing")
    order = ["hooks/a.js", "linked.js", "linked/a.js", "role.yaml"]
    chunks = {name: name for name in order} | {"linked.js": "hooks/a.js", "linked/a.js": "hooks/a.js"}
    role.locked(integrity=digest(order, lambda name: [chunks[name].encode()]))
    found = role.check()
    assert found is not None
    assert (found.passed, found.path) == (True, str(role.lock))
    (tmp_path / "coder").symlink_to(role.directory)
    assert check_lock(str(tmp_path / "coder"), role.environ, lambda _: None) == found


def test_a_role_that_differs_fails(role: Installed) -> None:
    """Where the order is beyond doubt, or Node has told it."""
    role.write("role.yaml", "hooks/a.js")
    role.locked("hooks/a.js", "role.yaml", "more")
    found = role.check()
    assert found is not None
    assert found.passed is False
    assert found.actual == digest(["hooks/a.js", "role.yaml"], lambda name: [name.encode()])
    role.write("README.md")
    unknown, known = role.check(), role.check(["README.md", "hooks/a.js", "role.yaml"])
    assert unknown is not None
    assert (unknown.passed, unknown.reason) == (None, UNVERIFIED)
    assert known is not None
    assert (known.passed, known.reason) == (False, None)


def test_an_order_that_gives_the_hash_is_proof(role: Installed) -> None:
    """By JavaScript, as in English, or by bytes: whichever was meant."""
    role.write("README.md", "hooks/a.js", "Z", "_x")
    for order in (
        ["_x", "hooks/a.js", "README.md", "Z"],
        ["README.md", "Z", "_x", "hooks/a.js"],
        ["Z", "hooks/a.js", "_x", "README.md"],
    ):
        role.locked(*order)
        found = role.check(["Z", "hooks/a.js", "_x", "README.md"])
        assert found is not None
        assert found.passed is True


def test_a_role_that_rolebox_did_not_install_has_no_entry(role: Installed, tmp_path: Path) -> None:
    """Nor has one without a lock file; a directory of the same name is another."""
    assert role.check() is None
    role.locked("x")
    (tmp_path / "coder").mkdir()
    assert check_lock(str(tmp_path / "coder"), role.environ, lambda _: None) is None


def test_a_lock_file_that_cannot_be_read_verifies_nothing(role: Installed) -> None:
    """Neither does another form of hash, nor a name that JavaScript cannot have."""
    role.write("role.yaml")
    role.lock.write_text("roles: [")
    found = role.check()
    assert found is not None
    assert (found.passed, found.locked) == (None, None)
    assert "line 2" in (found.reason or "")
    role.locked(integrity="md5-1")
    found = role.check()
    assert found is not None
    assert "not of the form" in (found.reason or "")
    role.locked("role.yaml")
    (Path(os.fsdecode(os.fsencode(role.directory) + b"/\xff"))).touch()
    found = role.check()
    assert found is not None
    assert (found.passed, found.reason) == (None, "a file's name is not UTF-8")
    role.lock.unlink()
    role.lock.mkdir()
    found = role.check()
    assert found is not None
    assert (found.passed, found.locked) == (None, None)


def test_files_without_end_are_not_gone_through(role: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that leads back ends somewhere, and so does a number of files, of empty folders, or of bytes."""
    role.write("role.yaml")
    (role.directory / "loop").symlink_to(".")
    role.locked("role.yaml")
    found = role.check()
    assert found is not None
    assert found.passed is False
    (role.directory / "loop").unlink()
    monkeypatch.setattr(role_integrity, "MAX_BYTES", 8)
    found = role.check()
    assert found is not None
    assert found.passed is None
    assert (found.reason or "").endswith("role.yaml there are more than 8 bytes")
    (role.directory / "empty").mkdir()
    for name in ("a", "b"):
        (role.directory / "empty" / name).symlink_to(".")
    found = role.check()
    assert found is not None
    assert (found.passed, found.reason) == (None, "there are more than 10,000 files")


def test_a_file_that_goes_meanwhile_verifies_nothing(role: Installed) -> None:
    """The reason names it."""
    role.write("role.yaml", "a.js")
    role.locked("a.js", "role.yaml")

    def sort(paths: Sequence[str]) -> Sequence[str]:
        (role.directory / "a.js").unlink()
        return sorted(paths)

    found = check_lock(str(role.directory), role.environ, sort)
    assert found is not None
    assert found.passed is None
    assert "a.js: No such file" in (found.reason or "")


def test_the_places_are_those_of_rolebox() -> None:
    """Its own variables first, then those of the desktop, then the home."""
    assert lock_path({"ROLEBOX_CONFIG_DIR": "/r", "XDG_CONFIG_HOME": "/x"}) == "/r/rolebox.lock"
    assert lock_path({"XDG_CONFIG_HOME": "/x"}) == "/x/rolebox/rolebox.lock"
    assert lock_path({"HOME": "/h"}) == "/h/.config/rolebox/rolebox.lock"
