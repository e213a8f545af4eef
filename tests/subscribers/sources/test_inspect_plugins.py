"""Plugins compared with what is on this machine: their components, and what the operator allows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from subscribers.config.layers import Configured
from subscribers.config.schema import Settings
from subscribers.hooks.explanation import Explained
from subscribers.sources.hook_source import Absent, Content, Unreadable
from subscribers.sources.inspect_plugins import explain_plugin, read_plugin
from subscribers.sources.inspect_world import World, not_loaded

MANIFEST = (
    '[plugin]\nname = "x"\nversion = "1"\n[[capabilities]]\ntype = "hook"\nevents = ["error", "eror"]\n'
)


def world(settings: Mapping[str, Any] | None = None, *, has_wasmtime: bool = True) -> World:
    """A machine with these settings."""
    configured = Configured(Settings.model_validate(settings or {}), {}, ())
    return World("/nowhere", {}, lambda _workspace: configured, has_wasmtime, not_loaded)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a plugin and its component."""
    (tmp_path / "plugins" / "a").mkdir(parents=True)
    (tmp_path / "plugins" / "a" / "plugin.wasm").write_bytes(b"\0asm")
    return tmp_path


def plugin(
    workspace: Path, here: World, text: str = MANIFEST, name: str = "plugins/a/plugin.toml"
) -> Explained:
    """A manifest explained."""
    return explain_plugin(text.encode(), str(workspace / name), str(workspace), here)


def test_a_plugin_with_its_component_is_alive(workspace: Path) -> None:
    """Good patterns fire, and the component is told as a path; a pattern that matches nothing stays dead."""
    good, bad = plugin(workspace, world()).handlers
    assert (good.status, good.executable) == ("ok", f"{workspace}/plugins/a/plugin.wasm")
    assert bad.status == "dead"


OBSTACLES: list[tuple[str, dict[str, Any], str, str]] = [
    # what the manifest adds, settings, status, code
    ("[resources]\nmax_memory_mb = 2048", {}, "refused", "over_limit"),
    ("[resources]\nmax_kv_storage_mb = 100", {}, "refused", "over_limit"),
    ('[permissions]\nrequired = ["network"]', {}, "refused", "not_allowed"),
    ('[permissions]\nrequired = ["network"]', {"wasm": {"allow": "filesystem"}}, "refused", "not_allowed"),
    ("", {"wasm": {"enabled": False}}, "skipped", "disabled"),
]


@pytest.mark.parametrize("added,settings,status,code", OBSTACLES)
def test_what_the_operator_does_not_allow_is_refused(
    workspace: Path, added: str, settings: dict[str, Any], status: str, code: str
) -> None:
    """A plugin that wants more than the settings allow is not loaded, and all its patterns say so."""
    first, second = plugin(workspace, world(settings), MANIFEST + added).handlers
    assert first.status == status
    assert [d.code for d in first.diagnostics] == [code]
    assert [d.code for d in second.diagnostics] == ["unknown_event", code]


@pytest.mark.parametrize("allowed", ["wasi", "filesystem", "network"])
def test_what_the_operator_allows_is_granted(workspace: Path, allowed: str) -> None:
    """Each level of the setting brings those before it along."""
    text = MANIFEST + '[permissions]\nrequired = ["wasi"]'
    assert plugin(workspace, world({"wasm": {"allow": allowed}}), text).handlers[0].status == "ok"


def test_a_plugin_needs_a_component_and_the_extra(workspace: Path) -> None:
    """Without its component, or without wasmtime, no pattern fires; a link is no component."""
    found = plugin(workspace, world(has_wasmtime=False)).handlers[0]
    assert (found.status, [d.code for d in found.diagnostics]) == ("dead", ["missing_extra"])
    (workspace / "plugins" / "a" / "plugin.wasm").unlink()
    found = plugin(workspace, world()).handlers[0]
    assert (found.status, [d.code for d in found.diagnostics]) == ("dead", ["no_component"])
    (workspace / "plugins" / "a" / "plugin.wasm").symlink_to("/bin/sh")
    found = plugin(workspace, world()).handlers[0]
    assert (found.status, [d.code for d in found.diagnostics]) == ("refused", ["symbolic_link"])


def test_a_manifest_outside_of_plugins_is_dead(workspace: Path) -> None:
    """A plugin runs from a folder of a workspace's plugins and from nowhere else."""
    found = plugin(workspace, world(), name="a/plugin.toml").handlers[0]
    assert (found.status, [d.code for d in found.diagnostics]) == ("dead", ["not_in_plugins"])


def test_a_manifest_that_cannot_be_used_is_only_read(workspace: Path) -> None:
    """Of a refused manifest no component is looked for."""
    found = plugin(workspace, world(), "[plugin]")
    assert found.refused
    assert found.handlers == ()


def test_a_manifest_is_read_as_the_runner_reads_it(workspace: Path) -> None:
    """In a folder of plugins a link is refused; elsewhere links are followed."""
    place = workspace / "plugins" / "a" / "plugin.toml"
    assert isinstance(read_plugin(str(place)), Absent)
    (workspace / "real.toml").write_text(MANIFEST)
    place.symlink_to(workspace / "real.toml")
    assert isinstance(read_plugin(str(place)), Unreadable)
    (workspace / "plugin.toml").symlink_to(workspace / "real.toml")
    assert isinstance(read_plugin(str(workspace / "plugin.toml")), Content)


def test_a_core_module_is_no_component(workspace: Path) -> None:
    """The usual slip of building is told before anything is loaded."""
    (workspace / "plugins" / "a" / "plugin.wasm").write_bytes(b"\0asm\x01\0\0\0rest")
    found = plugin(workspace, world()).handlers[0]
    assert (found.status, [d.code for d in found.diagnostics]) == ("dead", ["core_module"])
