"""From a version of a plugin to its component at work.

Decides what a plugin is granted: what its manifest asks for and the operator allows. Refuses to know when a
plugin is loaded and called.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ..dialects.prx_plugin import Manifest
from ..runtimes.deadlines import Deadlines
from ..runtimes.wasm_component import BadComponent, Compiled, compile_component
from ..runtimes.wasm_guest import CallLimits, Guest, Wasi
from ..runtimes.wasm_keys import KeyValues
from ..sources.hook_source import Content, Unreadable
from ..sources.plugins_state import Plugin
from ..sources.plugins_workspace import WorkspacePlugins
from .wasm_host import Bus, PluginHost
from .wasm_subscriptions import Subscriptions

Allowed = Literal["none", "wasi", "filesystem", "network"]
"""What the operator allows: each word brings those before it along."""

LEVELS: Final[tuple[Allowed, ...]] = ("none", "wasi", "filesystem", "network")

AT_ONCE: Final = 2
"""Components that are read and compiled at the same time, first come first served."""

_MIB: Final = 1_048_576


class LoadFailed(Exception):
    """A plugin that cannot run; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator decides: ``allowed`` of WASI, and the most that a manifest may ask for."""

    allowed: Allowed
    memory_mb: int
    kv_storage_mb: int


class Loaded:
    """A plugin that can be called: its version, its guest and its host."""

    def __init__(self, plugin: Plugin, guest: Guest, host: PluginHost) -> None:
        self.plugin = plugin
        self.guest = guest
        self.host = host


class Loader:
    """Makes guests of plugins. Thread-safe.

    ``cache`` is where compiled code is kept, None: nowhere. ``state_dir`` holds the keys of the plugins.
    ``open_bus`` makes a publisher for the plugin of a name.
    """

    def __init__(
        self,
        plugins: WorkspacePlugins,
        policy: Policy,
        subscriptions: Subscriptions,
        deadlines: Deadlines,
        *,
        cache: str | None,
        state_dir: str,
        open_bus: Callable[[str], Bus],
    ) -> None:
        self._plugins = plugins
        self._policy = policy
        self._subscriptions = subscriptions
        self._deadlines = deadlines
        self._cache = cache
        self._open_bus = open_bus
        workspace = hashlib.sha256(os.fsencode(plugins.workspace)).hexdigest()[:16]
        self._state_dir = os.path.join(state_dir, workspace)
        self._slots = threading.Semaphore(AT_ONCE)

    def load(self, plugin: Plugin) -> Loaded:
        """Read, compile and link a plugin; takes up to many seconds. Raises :class:`LoadFailed`."""
        manifest = plugin.manifest
        for what, wanted, setting, most in (
            ("memory", manifest.max_memory_mb, "memory_mb", self._policy.memory_mb),
            ("keys and values", manifest.max_kv_storage_mb, "kv_storage_mb", self._policy.kv_storage_mb),
        ):
            if wanted > most:
                raise LoadFailed(
                    f"it wants {wanted} MiB of {what}, and the setting wasm.{setting} allows {most}"
                )
        wasi = self._wasi(manifest)
        with self._slots:  # before it is read: components are large, and many plugins may be loaded at once
            compiled = self._compile(plugin, wasi)
        host = self._host(manifest)
        limits = CallLimits(
            manifest.max_memory_mb * _MIB, manifest.max_execution_time_ms / 1_000, manifest.max_fuel
        )
        guest = Guest(compiled, host, limits, self._deadlines, wasi=wasi, on_fresh=host.fresh)
        return Loaded(plugin, guest, host)

    def _compile(self, plugin: Plugin, wasi: Wasi | None) -> Compiled:
        manifest = plugin.manifest
        component = self._plugins.read_component(plugin)
        if not isinstance(component, Content):
            why = component.message if isinstance(component, Unreadable) else "it is gone"
            raise LoadFailed(f"its component {manifest.wasm} cannot be read: {why}")
        try:
            return compile_component(
                component.text,
                fuel=manifest.max_fuel is not None,
                cache=self._cache,
                wasi=wasi is not None,
                network=wasi is not None and wasi.network,
            )
        except BadComponent as error:
            hint = "" if error.hint is None else f"; {error.hint}"
            raise LoadFailed(f"its component {manifest.wasm}: {error}{hint}") from None

    def _host(self, manifest: Manifest) -> PluginHost:
        path = os.path.join(self._state_dir, f"{manifest.name}.sqlite3")
        return PluginHost(
            manifest.name,
            manifest.config,
            self._subscriptions,
            lambda: KeyValues(path, manifest.max_kv_storage_mb * _MIB),
            lambda: self._open_bus(manifest.name),
        )

    def _wasi(self, manifest: Manifest) -> Wasi | None:
        """What of WASI the plugin gets; None: nothing. Raises :class:`LoadFailed` when it needs more."""
        allowed = LEVELS[1 : LEVELS.index(self._policy.allowed) + 1]
        for name in manifest.required:
            if name not in allowed:
                raise LoadFailed(
                    f'it needs the permission "{name}", which is not allowed; to allow it, set '
                    f'wasm.allow = "{name}" in prxbus.toml'
                )
        granted = {*manifest.required, *(name for name in manifest.optional if name in allowed)}
        if not granted:
            return None
        folders = manifest.folders if "filesystem" in granted else ()
        return Wasi(tuple((self._folder(name), name) for name in folders), network="network" in granted)

    def _folder(self, name: str) -> str:
        """A folder of the workspace, as it really is; raises :class:`LoadFailed` where it leads out of it."""
        root = os.path.realpath(self._plugins.workspace)
        path = os.path.realpath(os.path.join(root, name))
        if not path.startswith(root + os.sep):
            raise LoadFailed(f"its folder {name} leads out of the workspace")
        if not os.path.isdir(path):
            raise LoadFailed(f"its folder {name} is not there")
        return path
