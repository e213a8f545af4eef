"""A workspace's plugins over time: added, edited, broken, repaired and removed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from subscribers.dialects.prx_plugin import ParsedManifest, parse
from subscribers.sources import plugins_workspace
from subscribers.sources.plugins_workspace import PluginSet, WorkspacePlugins
from tests.integration.waiting import until

MANIFEST = '[plugin]\nname = "{}"\nversion = "1"\n[[capabilities]]\ntype = "hook"\nevents = ["{}"]\n'


class Told:
    """Keeps every set that it was told."""

    def __init__(self) -> None:
        self.sets: list[PluginSet] = []
        self.errors: list[Exception] = []

    def update(self, found: PluginSet) -> None:
        self.sets.append(found)

    def codes(self) -> list[str]:
        """The codes of the latest news."""
        return [diagnostic.code for diagnostic in self.sets[-1].news]


@pytest.fixture
def told() -> Told:
    """What the plugins tell."""
    return Told()


@pytest.fixture
def workspace(tmp_path: Path, told: Told) -> Iterator[WorkspacePlugins]:
    """The plugins of an empty workspace."""
    found = WorkspacePlugins(str(tmp_path), told.update, told.errors.append)
    yield found
    found.stop()


def write(tmp_path: Path, folder: str, name: str, event: str = "error", *, component: bool = True) -> Path:
    """A plugin as somebody saves it."""
    path = tmp_path / "plugins" / folder
    path.mkdir(parents=True, exist_ok=True)
    (path / "plugin.toml").write_text(MANIFEST.format(name, event))
    if component:
        (path / "plugin.wasm").write_bytes(b"\0asm")
    return path


def names(found: PluginSet) -> list[str]:
    """The names of the plugins in force."""
    return [plugin.manifest.name for plugin in found.plugins]


def test_an_empty_workspace_has_nothing_to_say(workspace: WorkspacePlugins, told: Told) -> None:
    """Without a folder there are no plugins, and that is no news."""
    assert workspace.load() == PluginSet()
    assert told.sets == []


def test_a_plugin_is_in_force_with_its_component(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told
) -> None:
    """It is told once, and its bytes can be had."""
    write(tmp_path, "a", "audit")
    (plugin,) = workspace.load().plugins
    assert (plugin.folder, plugin.manifest.name) == ("a", "audit")
    component = workspace.read_component(plugin)
    assert getattr(component, "text", None) == b"\0asm"
    workspace.load()
    assert len(told.sets) == 1


def test_a_broken_manifest_leaves_the_last_good_version_and_its_siblings(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told
) -> None:
    """What is wrong is said once; a good edit afterwards is a new version."""
    path = write(tmp_path, "a", "audit")
    write(tmp_path, "b", "other")
    before = workspace.load().plugins
    (path / "plugin.toml").write_text("[plugin")
    assert workspace.load().plugins == before
    assert told.codes() == ["kept_last_good", "not_toml"]
    workspace.load()
    assert len(told.sets) == 2
    (path / "plugin.toml").unlink()
    assert workspace.load().plugins == before
    assert told.codes() == ["kept_last_good", "no_manifest"]
    write(tmp_path, "a", "audit", "agent_end")
    after = workspace.load().plugins
    assert after[0].manifest.events.names == {"agent_end"}
    assert after[1] == before[1]


def test_a_manifest_that_was_never_good_is_not_loaded(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told
) -> None:
    """No manifest, a bad one, and a missing component each have their word."""
    (tmp_path / "plugins" / "empty").mkdir(parents=True)
    write(tmp_path, "bad", "../x")
    write(tmp_path, "late", "late", component=False)
    assert workspace.load().plugins == ()
    assert told.codes() == [
        "not_loaded",
        "bad_name",
        "not_loaded",
        "no_manifest",
        "not_loaded",
        "no_component",
    ]
    write(tmp_path, "late", "late")
    assert names(workspace.load()) == ["late"]
    assert told.codes() == []


def test_a_component_that_cannot_be_read_leaves_the_last_good_version(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told
) -> None:
    """A link in its place is refused by name; another file there is another version."""
    path = write(tmp_path, "a", "audit")
    (before,) = workspace.load().plugins
    (path / "plugin.wasm").unlink()
    (path / "plugin.wasm").symlink_to("/etc/hostname")
    assert workspace.load().plugins == (before,)
    assert told.codes() == ["kept_last_good", "symbolic_link"]
    (path / "plugin.wasm").unlink()
    (path / "plugin.wasm").write_bytes(b"\0asm2")
    (after,) = workspace.load().plugins
    assert after != before
    assert after.manifest == before.manifest


def test_a_folder_that_is_gone_takes_its_plugin_along(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told
) -> None:
    """And the others stay."""
    path = write(tmp_path, "a", "audit")
    write(tmp_path, "b", "other")
    workspace.load()
    path.rename(tmp_path / "away")
    assert names(workspace.load()) == ["other"]
    assert names(told.sets[-1]) == ["other"]


def test_a_name_belongs_to_one_plugin(workspace: WorkspacePlugins, tmp_path: Path, told: Told) -> None:
    """The first folder has it; when that is gone the other one takes over."""
    path = write(tmp_path, "a", "audit")
    write(tmp_path, "b", "audit")
    assert [plugin.folder for plugin in workspace.load().plugins] == ["a"]
    assert told.codes() == ["duplicate_name"]
    path.rename(tmp_path / "away")
    assert [plugin.folder for plugin in workspace.load().plugins] == ["b"]


def test_a_folder_that_cannot_be_seen_takes_nothing_away(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told
) -> None:
    """A link in its place is said, and what was in force stays."""
    write(tmp_path, "a", "audit")
    workspace.load()
    (tmp_path / "plugins").rename(tmp_path / "elsewhere")
    (tmp_path / "plugins").symlink_to("elsewhere")
    assert names(workspace.load()) == ["audit"]
    assert told.codes() == ["symbolic_link"]


def test_more_plugins_than_there_may_be_are_said(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beyond the limit are counted in one sentence."""
    monkeypatch.setattr("subscribers.sources.plugins.MAX_PLUGINS", 1)
    for name in ("a", "b", "c"):
        write(tmp_path, name, name)
    assert names(workspace.load()) == ["a"]
    assert "2 folders" in told.sets[-1].news[-1].message


def test_a_folder_that_fails_in_an_unforeseen_way_is_that_folders_alone(
    workspace: WorkspacePlugins, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said once, the other plugins are in force, and its next manifest is read."""

    def fails(text: bytes, path: str) -> ParsedManifest:
        if b"odd" in text:
            raise RecursionError("how odd")
        return parse(text, path)

    monkeypatch.setattr(plugins_workspace, "parse", fails)
    write(tmp_path, "a", "odd")
    write(tmp_path, "b", "good")
    assert names(workspace.load()) == ["good"]
    assert told.codes() == ["not_loaded", "unreadable"]
    workspace.load()
    assert len(told.sets) == 1
    write(tmp_path, "a", "even")
    assert names(workspace.load()) == ["even", "good"]


def test_edits_are_followed(workspace: WorkspacePlugins, tmp_path: Path, told: Told) -> None:
    """A plugin that appears, changes, gets another component and goes is noticed each time."""
    workspace.load()
    workspace.start()
    path = write(tmp_path, "a", "audit")
    until(lambda: names(workspace.current) == ["audit"], "the plugin")
    first = workspace.current.plugins
    write(tmp_path, "a", "audit", "agent_end")
    until(lambda: workspace.current.plugins != first, "the edit")
    second = workspace.current.plugins
    (path / "plugin.wasm").write_bytes(b"\0asm and more")
    until(lambda: workspace.current.plugins != second, "the component")
    path.rename(tmp_path / "away")
    until(lambda: workspace.current.plugins == (), "its end")
    assert told.errors == []


def test_an_error_while_telling_does_not_end_the_watch(tmp_path: Path) -> None:
    """It is handed over, and the next change is told."""
    told: list[PluginSet] = []
    errors: list[Exception] = []
    second = threading.Event()

    def update(found: PluginSet) -> None:
        told.append(found)
        if len(told) == 1:
            raise OSError("no")
        second.set()

    found = WorkspacePlugins(str(tmp_path), update, errors.append)
    found.start()
    try:
        write(tmp_path, "a", "audit")
        until(lambda: bool(errors), "the error")
        write(tmp_path, "b", "other")
        assert second.wait(20)
        assert str(errors[0]) == "no"
    finally:
        found.stop()
