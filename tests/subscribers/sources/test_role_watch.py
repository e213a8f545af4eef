"""Roles that are followed: what a change does, and what breaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from subscribers.sources.role_directories import LoadedRole
from subscribers.sources.role_watch import RolesWatch
from tests.integration.waiting import until
from tests.subscribers.sources.role_scene import ROLE, codes, write_role


class Told:
    """What a watch told."""

    def __init__(self) -> None:
        self.roles: list[tuple[LoadedRole, ...]] = []
        self.errors: list[Exception] = []

    def watch(self, *directories: Path) -> RolesWatch:
        """A watch that tells here."""
        named = [str(directory) for directory in directories]
        return RolesWatch(named, self.roles.append, self.errors.append, environ={"WHO": "me"})


@pytest.fixture
def role(tmp_path: Path) -> Path:
    """A role with modules and functions."""
    return write_role(tmp_path)


def test_a_change_of_anything_is_in_force_after_a_scan(role: Path) -> None:
    """role.yaml, a module, a module that comes, a function; a scan without a change tells nothing."""
    told = Told()
    watch = told.watch(role)
    (first,) = watch.roles
    watch.rescan()
    assert told.roles == []
    (role / "hooks" / "a.js").write_text("export default { onLoad() {} }\n")
    watch.rescan()
    (changed,) = watch.roles
    assert [a == b for a, b in zip(first.modules, changed.modules, strict=True)] == [False, True, False]
    assert changed.role is first.role
    (role / "hooks" / "gone.js").write_text("export default {}\n")
    (role / "functions" / "plan.md").write_text("Plan first.\n")
    watch.rescan()
    assert [len(told.roles), len(watch.roles[0].modules)] == [2, 4]
    assert watch.roles[0].functions[0].text == "Plan first."
    (role / "role.yaml").write_text(ROLE.replace("  custom:\n", "  custom:\n    - {name: new}\n"))
    watch.rescan()
    assert watch.roles[0].modules == told.roles[1][0].modules


def test_a_file_that_breaks_keeps_what_it_said(role: Path) -> None:
    """The last good hooks stay in force with modules as they are now, until it is good, gone or foreign."""
    told = Told()
    watch = told.watch(role)
    (role / "role.yaml").write_text("hooks: [")
    watch.rescan()
    (kept,) = watch.roles
    assert (kept.kept, len(kept.modules), codes(kept)) == (True, 3, ["not_yaml", "kept"])
    (role / "hooks" / "a.js").unlink()
    watch.rescan()
    assert [module.name for module in watch.roles[0].modules] == ["py"]
    (role / "role.yaml").write_text("apiVersion: v1\nkind: Role\n")
    watch.rescan()
    assert (watch.roles[0].modules, watch.roles[0].role.foreign) == ((), True)
    (role / "role.yaml").write_text("hooks: [")
    watch.rescan()
    assert (watch.roles[0].modules, watch.roles[0].kept) == ((), False)
    (role / "role.yaml").write_text(ROLE)
    watch.rescan()
    assert (len(watch.roles[0].modules), watch.roles[0].kept) == (1, False)
    (role / "role.yaml").unlink()
    watch.rescan()
    assert (watch.roles[0].modules, codes(watch.roles[0])) == ((), ["no_role"])


def test_changes_are_followed_once_they_rest(role: Path, tmp_path: Path) -> None:
    """A module that changes, and a role whose directory comes later, are told without being asked for."""
    told = Told()
    watch = told.watch(role, tmp_path / "later")
    watch.start()
    try:
        (role / "hooks" / "a.js").write_text("export default { onLoad() {} }\n")
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "role.yaml").write_text("name: Later\nprompt: x\n")
        until(lambda: watch.roles[1].name == "Later", "the second role")
        until(lambda: told.roles and told.roles[-1] == watch.roles, "the callback")
    finally:
        watch.stop()
    assert told.errors == []


def test_roles_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    """Each is said, and none of them is read."""
    (tmp_path / "r65").mkdir()
    (tmp_path / "r65" / "role.yaml").write_text(ROLE)
    roles = Told().watch(*(tmp_path / f"r{n}" for n in range(66))).roles
    assert [codes(role) for role in roles] == [["no_directory"]] * 64 + [["too_many_roles"]] * 2
    assert [(role.id, role.role.refused, role.hooks) for role in roles[64:]] == [
        ("r64", True, ()),
        ("r65", True, ()),
    ]
