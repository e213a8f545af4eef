"""Which hook files are in force, in which order, and why the others are not."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from subscribers.config.hook_files import HookFile
from subscribers.sources.codex_layers import (
    BITFUN_OFF,
    BITFUN_PROJECT_OFF,
    OFF,
    PROJECT_OFF,
    Layer,
    Scope,
    Switches,
    is_remote,
    is_within,
    layers,
    profile_of,
    run_once,
)
from subscribers.sources.codex_switches import BitFunSwitches, app_file, read_switches

ENVIRON = {"XDG_CONFIG_HOME": "/home/me/.config"}
FILES = (HookFile("/team/claude.json", "claude", False, "block"), HookFile("/w/more/hooks.json", None, True))


class Import(NamedTuple):
    """An enabled import."""

    id: str
    path: str
    profile: str
    wrong: str | None = None
    damage: str | None = None

    @property
    def snapshot(self) -> Import:
        """Itself."""
        return self

    def verify(self) -> str | None:
        """What is wrong with it."""
        return self.wrong


def imports(scope: Scope) -> list[Import]:
    """Two of each scope, in no order."""
    return [Import(f"{scope}-2", "/i/2", "claude"), Import(f"{scope}-1", f"/i/{scope}", "codex", "changed")]


def found(
    switches: Switches, app: BitFunSwitches | None = None, workspace: str | None = "/w"
) -> tuple[Layer, ...]:
    """The layers of a machine that has everything."""
    return layers("/c", workspace, switches, app or BitFunSwitches(), FILES, imports, ENVIRON)


def test_four_layers_in_the_pages_order() -> None:
    """The user's files and imports, then the project's files and imports; nothing hides anything."""
    everything = found(Switches(project=True, bitfun=True), BitFunSwitches(project=True))
    assert [(each.name, each.path, each.profile) for each in everything] == [
        ("user", "/c/hooks.json", "codex"),
        ("BitFun's user", "/home/me/.config/bitfun/config/hooks.json", "bitfun"),
        ("user, configured", "/team/claude.json", "claude"),
        ("user import user-1", "/i/user", "codex"),
        ("user import user-2", "/i/2", "claude"),
        ("project", "/w/.prxbus/hooks.json", "codex"),
        ("BitFun's project", "/w/.bitfun/config/hooks.json", "bitfun"),
        ("project, configured", "/w/more/hooks.json", "codex"),
        ("project import project-1", "/i/project", "codex"),
        ("project import project-2", "/i/2", "claude"),
    ]
    assert {each.off for each in everything} == {None}
    assert [each.scope for each in everything] == ["user"] * 5 + ["project"] * 5
    assert everything[2].on_failure == "block"
    assert everything[3].verify is not None
    assert everything[3].verify() == "changed"


@pytest.mark.parametrize(
    "switches, app, off",
    [
        (Switches(), BitFunSwitches(), [None, None, None, PROJECT_OFF, PROJECT_OFF, None]),
        (Switches(enabled=False), BitFunSwitches(), [OFF] * 6),
        (Switches(enabled=False, project=True), BitFunSwitches(enabled=False), [OFF] * 6),
        (Switches(project=True), BitFunSwitches(), [None] * 6),
    ],
)
def test_switches(switches: Switches, app: BitFunSwitches, off: list[str | None]) -> None:
    """One turns off everything, one a workspace's own files; its imports are switched one by one."""
    everything = found(switches, app)
    names = ("user", "user, configured", "user import user-1", "project", "project, configured")
    by_name = {each.name: each.off for each in everything}
    assert [by_name[name] for name in (*names, "project import project-1")] == off
    assert "BitFun's user" not in by_name


@pytest.mark.parametrize(
    "app, off",
    [
        (BitFunSwitches(), [None, BITFUN_PROJECT_OFF]),
        (BitFunSwitches(project=True), [None, None]),
        (BitFunSwitches(enabled=False, project=True), [BITFUN_OFF, BITFUN_OFF]),
    ],
)
def test_bitfuns_own_switches_count_for_its_places(app: BitFunSwitches, off: list[str | None]) -> None:
    """Its app.json switches its own files, whatever ours say of a workspace's."""
    for project in (True, False):
        everything = found(Switches(project=project, bitfun=True), app)
        assert [each.off for each in everything if each.name.startswith("BitFun")] == off


def test_a_file_that_is_named_twice_runs_once(tmp_path: Path) -> None:
    """It runs where it comes first, links followed, under the stricter policy; the other place says so.

    A place that is switched off does not count.
    """
    own = tmp_path / "hooks.json"
    own.write_text("{}")
    link = tmp_path / "link.json"
    link.symlink_to(own)
    off = Layer("off", str(own), "codex", "user", OFF)
    first = Layer("user", str(own), "codex", "user")
    again = Layer("user, configured", str(link), "codex", "user", None, "block")
    other = Layer("project", "/w/hooks.json", "codex", "project")
    once = run_once([off, first, again, other])
    assert once[0] is off
    assert (once[1].off, once[1].on_failure) == (None, "block")
    assert once[2].off == f"it is a file that runs already, and runs once: user, {own}"
    assert once[3] is other


def test_without_a_workspace_there_is_the_users_own() -> None:
    """Nobody has named a workspace: nothing of one is in force."""
    everything = found(Switches(project=True), workspace=None)
    assert {each.scope for each in everything} == {"user"}


@pytest.mark.parametrize(
    "text, switches, codes",
    [
        (None, (True, False), []),
        ("{}", (True, False), []),
        ('{"app": {"hooks": {"project_hooks_enabled": true}}}', (True, True), []),
        ('{"app": {"hooks": {"enabled": false, "other": 1}}}', (False, False), []),
        (
            '{"app": {"hooks": {"enabled": "true", "project_hooks_enabled": 1}}}',
            (False, False),
            ["app.hooks.enabled", "app.hooks.project_hooks_enabled"],
        ),
        ('{"app": []}', (True, False), ["app"]),
        ('{"app": {"hooks": null}}', (True, False), ["hooks"]),
        ("{", (True, False), [None]),
    ],
)
def test_bitfuns_app_json(
    tmp_path: Path, text: str | None, switches: tuple[bool, bool], codes: list[str | None]
) -> None:
    """What it does not say has its default; a value of the wrong type is off; every fault is told."""
    path = tmp_path / "app.json"
    if text is not None:
        path.write_text(text)
    app = read_switches(str(path))
    assert ((app.enabled, app.project), [each.field for each in app.diagnostics]) == (switches, codes)


def test_an_app_json_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A folder of that name switches off nothing but a project's hooks."""
    app = read_switches(str(tmp_path))
    assert (app.enabled, app.project, len(app.diagnostics)) == (True, False, 1)
    assert app_file(ENVIRON) == "/home/me/.config/bitfun/config/app.json"
    assert app_file({}).endswith("/bitfun/config/app.json")


@pytest.mark.parametrize(
    "place, remote",
    [
        ("ssh://build/srv", True),
        ("vscode-remote://ssh-remote+host/srv", True),
        ("host:/srv/shop", True),
        ("me@host:/srv", True),
        ("/srv/shop", False),
        ("file:///srv", False),
        ("C:/Windows", False),
        ("a/b:/c", False),
        ("/a:/b", False),
        ("host:", False),
        ("a b://c", False),
        ("", False),
    ],
)
def test_a_remote_folder_is_known_by_how_it_is_written(place: str, remote: bool) -> None:
    """URLs and host:/path are another machine's; everything else is taken for ours."""
    assert is_remote(place) is remote


def test_a_folder_lies_in_another_through_links_too(tmp_path: Path) -> None:
    """Links are followed; a name that only begins alike is another folder."""
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "really").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    real = str(tmp_path / "real")
    assert is_within(str(tmp_path / "link" / "deep"), real)
    assert is_within(real, real)
    assert not is_within(str(tmp_path / "really"), real)
    assert is_within("/x", "/")


@pytest.mark.parametrize(
    "path, profile",
    [
        ("/x/.claude/team/settings.json", "claude"),
        ("/x/.bitfun/config/hooks.json", "bitfun"),
        ("/x/hooks.json", "codex"),
    ],
)
def test_the_profile_of_a_configured_file(path: str, profile: str) -> None:
    """It is what the path says, and Codex's where that says nothing."""
    assert profile_of(path) == profile
