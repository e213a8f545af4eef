"""Looking at a workspace's plugins: bounded, without links, never blocking."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.dialects.prx_plugin_rules import MAX_FILE_BYTES, MAX_PLUGINS
from subscribers.sources import plugins
from subscribers.sources.hook_source import Absent, Content, Unreadable


def add(workspace: Path, name: str, manifest: str = "x = 1\n") -> Path:
    """A plugin's folder with a manifest."""
    folder = workspace / "plugins" / name
    folder.mkdir(parents=True)
    (folder / "plugin.toml").write_text(manifest)
    return folder


def code(reading: object) -> str:
    """The code of something that cannot be read."""
    assert isinstance(reading, Unreadable)
    return reading.code


def test_the_folders_of_plugins_are_listed_in_order(tmp_path: Path) -> None:
    """Folders count; files, hidden folders and the absence of all of it do not."""
    assert plugins.look(str(tmp_path)) == plugins.Listing()
    for name in ("b", "a", ".git"):
        add(tmp_path, name)
    (tmp_path / "plugins" / "README").write_text("")
    assert plugins.look(str(tmp_path)) == plugins.Listing(("a", "b"))


def test_there_are_so_many_plugins_and_no_more(tmp_path: Path) -> None:
    """The rest is counted."""
    for index in range(MAX_PLUGINS + 2):
        (tmp_path / "plugins" / f"p{index:03}").mkdir(parents=True)
    listing = plugins.look(str(tmp_path))
    assert (len(listing.names), listing.left_out) == (MAX_PLUGINS, 2)


def test_a_manifest_and_a_component_are_read_with_their_digest(tmp_path: Path) -> None:
    """The component may lie in a folder of the plugin's."""
    folder = add(tmp_path, "a")
    (folder / "build").mkdir()
    (folder / "build" / "x.wasm").write_bytes(b"\0asm")
    manifest = plugins.read_manifest(str(tmp_path), "a")
    assert isinstance(manifest, Content)
    assert manifest.text == b"x = 1\n"
    component = plugins.read_component(str(tmp_path), "a", "build/x.wasm")
    assert isinstance(component, Content)
    assert component.text == b"\0asm"
    signature = plugins.component_signature(str(tmp_path), "a", "build/x.wasm")
    assert isinstance(signature, tuple)
    assert signature[2] == 4


def test_what_is_not_there_is_absent(tmp_path: Path) -> None:
    """No folder, no manifest, no component: none of it is an error of the system."""
    add(tmp_path, "a")
    assert plugins.read_manifest(str(tmp_path), "b") == Absent()
    assert plugins.read_component(str(tmp_path), "a", "x.wasm") == Absent()
    assert plugins.component_signature(str(tmp_path), "a", "x/y.wasm") is None


def test_a_link_to_itself_hides_no_plugin(tmp_path: Path) -> None:
    """It is named as any other link, and the folders beside it are listed."""
    add(tmp_path, "a")
    (tmp_path / "plugins" / "x").symlink_to("x")
    assert plugins.look(str(tmp_path)) == plugins.Listing(("a", "x"))
    assert code(plugins.read_manifest(str(tmp_path), "x")) == "symbolic_link"


def test_nothing_is_read_through_a_link(tmp_path: Path) -> None:
    """Neither plugins itself, nor a plugin, nor its manifest, nor what is on the way to its component."""
    elsewhere = add(tmp_path / "other", "a")
    (elsewhere / "x.wasm").write_bytes(b"\0asm")
    workspace = tmp_path / "workspace"
    folder = add(workspace, "b")
    (workspace / "plugins" / "link").symlink_to(elsewhere)
    (workspace / "plugins" / "dangling").symlink_to("nowhere")
    assert plugins.look(str(workspace)).names == ("b", "link")
    assert code(plugins.read_manifest(str(workspace), "link")) == "symbolic_link"
    (folder / "plugin.toml").unlink()
    (folder / "plugin.toml").symlink_to(elsewhere / "plugin.toml")
    assert code(plugins.read_manifest(str(workspace), "b")) == "symbolic_link"
    (folder / "y.wasm").symlink_to(elsewhere / "x.wasm")
    (folder / "build").symlink_to(elsewhere)
    for wasm in ("y.wasm", "build/x.wasm"):
        assert code(plugins.read_component(str(workspace), "b", wasm)) == "symbolic_link"
        assert code(plugins.component_signature(str(workspace), "b", wasm)) == "symbolic_link"
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "plugins").symlink_to(workspace / "plugins")
    fault = plugins.look(str(linked)).fault
    assert fault is not None
    assert fault.code == "symbolic_link"


def test_a_look_never_blocks_and_never_reads_more_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pipes and folders are no files; what is too large is refused by its size."""
    folder = add(tmp_path, "a", "#" * (MAX_FILE_BYTES + 1))
    assert code(plugins.read_manifest(str(tmp_path), "a")) == "file_too_large"
    os.mkfifo(folder / "pipe.wasm")
    (folder / "folder.wasm").mkdir()
    (folder / "big.wasm").write_bytes(b"x" * 100)
    monkeypatch.setattr(plugins, "MAX_WASM_BYTES", 99)
    for wasm, wanted in (
        ("pipe.wasm", "not_a_file"),
        ("folder.wasm", "not_a_file"),
        ("big.wasm", "file_too_large"),
    ):
        assert code(plugins.read_component(str(tmp_path), "a", wasm)) == wanted
        assert code(plugins.component_signature(str(tmp_path), "a", wasm)) == wanted


def test_a_name_too_long_is_a_reading_too(tmp_path: Path) -> None:
    """What the system refuses becomes a value with its words."""
    add(tmp_path, "a")
    assert code(plugins.read_component(str(tmp_path), "a", "x" * 300)) == "unreadable"
    assert code(plugins.component_signature(str(tmp_path), "a", "x" * 300)) == "unreadable"
