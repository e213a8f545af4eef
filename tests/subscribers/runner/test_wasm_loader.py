"""What a plugin is granted: what it asks for and the operator allows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from broker.protocol.events import Event
from subscribers.runner import wasm_loader
from subscribers.runner.wasm_loader import AT_ONCE, Allowed, Loaded, Loader, LoadFailed, Policy
from subscribers.runner.wasm_subscriptions import Subscriptions
from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.wasm_component import compile_component
from subscribers.sources.plugins_state import Plugin
from subscribers.sources.plugins_workspace import PluginSet, WorkspacePlugins
from tests.subscribers.runtimes.guests import ECHO, component
from tests.subscribers.runtimes.test_wasm_guest import SLEEPER

MANIFEST = """[plugin]
name = "p"
version = "1"
wasm = "p.wat"
[[capabilities]]
type = "hook"
events = ["*"]
"""
EVENT = Event.of("prx.lifecycle.error", 0, b"p" * 8, 1, 0, None, "agent", None, b"{}")


class Scene:
    """A workspace with one plugin, and what loads it."""

    def __init__(self, path: Path, deadlines: Deadlines) -> None:
        self.path = path
        self.deadlines = deadlines

    def load(self, more: str = "", text: str | None = None, allowed: Allowed = "none") -> Loaded:
        """The plugin of a manifest with ``more`` in it, loaded."""
        loader, plugin = self.prepared(more, text, allowed)
        return loader.load(plugin)

    def prepared(
        self, more: str = "", text: str | None = None, allowed: Allowed = "none"
    ) -> tuple[Loader, Plugin]:
        """What loads it, and the plugin of a manifest with ``more`` in it."""
        folder = self.path / "plugins" / "p"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "p.wat").write_text(component(ECHO) if text is None else text)
        (folder / "plugin.toml").write_text(MANIFEST + more)

        def nothing(found: PluginSet | Exception) -> None:
            """Nobody listens."""

        plugins = WorkspacePlugins(str(self.path), nothing, nothing)
        loader = Loader(
            plugins,
            Policy(allowed, 100, 20),
            Subscriptions(),
            self.deadlines,
            cache=None,
            state_dir=str(self.path / "state"),
            open_bus=lambda name: pytest.fail(f"{name} does not publish"),
        )
        (plugin,) = plugins.load().plugins
        return loader, plugin


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A workspace, and a clock for its plugin."""
    deadlines = Deadlines()
    yield Scene(tmp_path, deadlines)
    deadlines.close()


def test_a_plugin_is_loaded_with_the_limits_of_its_manifest(scene: Scene) -> None:
    """It answers, and its fuel is what the manifest says."""
    loaded = scene.load("[resources]\nmax_fuel = 10\n")
    assert "max_fuel" in (loaded.guest.call("e", "x").reason or "")
    assert scene.load().guest.call("e", "x").reason == "x"


@pytest.mark.parametrize(
    "more,allowed,why",
    [
        ('[permissions]\nrequired = ["wasi"]\n', "none", 'set wasm.allow = "wasi"'),
        ('[permissions]\nrequired = ["network"]\n', "filesystem", 'set wasm.allow = "network"'),
        ("[resources]\nmax_memory_mb = 101\n", "network", "wasm.memory_mb allows 100"),
        ("[resources]\nmax_kv_storage_mb = 21\n", "network", "wasm.kv_storage_mb allows 20"),
        (
            '[permissions]\nrequired = ["filesystem"]\nfilesystem_allowlist = ["absent"]\n',
            "filesystem",
            "absent is not there",
        ),
        (
            '[permissions]\nrequired = ["filesystem"]\nfilesystem_allowlist = ["out"]\n',
            "filesystem",
            "leads out of the workspace",
        ),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_to_do(
    scene: Scene, more: str, allowed: Allowed, why: str
) -> None:
    """A required permission, memory beyond the operator's bound, and folders that are not the workspace's."""
    (scene.path / "out").symlink_to("/")
    with pytest.raises(LoadFailed, match=why):
        scene.load(more, allowed=allowed)


@pytest.mark.may_leak("WASI has a runtime of its own, once a process")
def test_wasi_needs_both_the_manifest_and_the_operator(scene: Scene) -> None:
    """Either alone is not enough for a component that imports it."""
    asks = '[permissions]\noptional = ["wasi"]\n'
    for more, allowed in (("", "network"), (asks, "none")):
        with pytest.raises(LoadFailed, match="WASI is not granted"):
            scene.load(more, SLEEPER, allowed=allowed)  # type: ignore[arg-type]
    assert scene.load(asks, SLEEPER, allowed="wasi").guest.call("e", "").status == "ok"
    assert scene.load(asks, SLEEPER, allowed="network").guest.call("e", "").status == "ok"


def test_components_are_read_when_they_have_a_place(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bytes do not wait in memory: so many are read and compiled at once, however many are loaded."""
    at_once, most = 0, 0
    lock = threading.Lock()
    together = threading.Barrier(AT_ONCE)
    reads = WorkspacePlugins.read_component

    def read(self: WorkspacePlugins, plugin: Plugin) -> object:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        return reads(self, plugin)

    def compiled(*arguments: Any, **named: Any) -> object:
        nonlocal at_once
        together.wait(60)
        with lock:
            at_once -= 1
        return compile_component(*arguments, **named)

    loader, plugin = scene.prepared()
    monkeypatch.setattr(WorkspacePlugins, "read_component", read)
    monkeypatch.setattr(wasm_loader, "compile_component", compiled)
    with ThreadPoolExecutor(6) as pool:
        assert len(list(pool.map(loader.load, [plugin] * 6))) == 6
    assert (most, at_once) == (AT_ONCE, 0)


def test_a_component_that_is_gone_or_bad_is_said(scene: Scene) -> None:
    """The sentence names the file and what is wrong with it."""
    with pytest.raises(LoadFailed, match=r"its component p.wat: .* exports nothing, .*; export one"):
        scene.load(text="(component)")


def test_a_component_that_vanished_since_it_was_seen_is_said(tmp_path: Path, scene: Scene) -> None:
    """Between the look and the load it may be gone, or be something else."""
    scene.load()
    plugins = WorkspacePlugins(str(tmp_path), lambda _: None, lambda _: None)
    (plugin,) = plugins.load().plugins
    loader = Loader(
        plugins,
        Policy("none", 100, 20),
        Subscriptions(),
        scene.deadlines,
        cache=None,
        state_dir=str(tmp_path),
        open_bus=pytest.fail,
    )
    path = tmp_path / "plugins" / "p" / "p.wat"
    path.unlink()
    with pytest.raises(LoadFailed, match="it is gone"):
        loader.load(plugin)
    path.mkdir()
    with pytest.raises(LoadFailed, match="this is a folder"):
        loader.load(plugin)
