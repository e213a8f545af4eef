"""The plugins of one workspace, kept up to date: folders, manifests, states and a watch put together.

It decides the order of things: look, advance each plugin, find names that two of them claim, tell. It refuses
to know who runs the plugins. Whether the workspace is trusted was decided before one of these exists.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.protocol.errors import shown

from ..dialects.prx_plugin import parse
from ..dialects.prx_plugin_rules import FILE_NAME, MAX_PLUGINS
from ..hooks.diagnostics import Diagnostic
from . import plugins
from .discover import Signature, signature
from .hook_source import Content, Reading, Unreadable
from .plugins_state import Plugin, PluginState, advance, unusable
from .watch import LOOK_S, WatchThread

if TYPE_CHECKING:
    from .trust_gate import TrustGate


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What is in force: the plugins in the order of their folders, and everything new there is to say."""

    plugins: tuple[Plugin, ...] = ()
    news: tuple[Diagnostic, ...] = ()


class WorkspacePlugins(WatchThread):
    """Loads a workspace's plugins and follows them.

    ``on_update`` is called with the new set whenever there is something new to say, in the thread that found
    it: the caller's in :meth:`load`, the watcher's after :meth:`start`. ``on_error`` gets what it raises in
    the watcher's thread. ``gate`` is asked about every file that is read, where the workspace is trusted as
    it was recorded.
    """

    def __init__(
        self,
        workspace: str,
        on_update: Callable[[PluginSet], None],
        on_error: Callable[[Exception], None],
        gate: TrustGate | None = None,
    ) -> None:
        self._gate = gate
        self.workspace = os.path.abspath(workspace)
        self.folder = plugins.folder_of(workspace)
        self.current = PluginSet()
        self._states: dict[str, PluginState] = {}
        self._said: tuple[Diagnostic, ...] = ()
        self._on_update = on_update
        self._on_error = on_error
        self._lock = threading.RLock()
        self._seen = self._snapshot()
        super().__init__("watch plugins")

    def load(self) -> PluginSet:
        """Look at everything now and take what is new; the set that is in force afterwards."""
        with self._lock:
            listing = plugins.look(self.workspace)
            before = self._states
            if listing.fault is None:  # a folder that cannot be read just now takes no plugin away
                self._states = {name: self._advanced(name) for name in listing.names}
            news = [
                diagnostic
                for name, state in self._states.items()
                if state is not before.get(name)
                for diagnostic in state.diagnostics
            ]
            in_force, general = self._without_doubles()
            general = (*self._about(listing), *general)
            if general != self._said:
                news.extend(general)
                self._said = general
            if news or in_force != self.current.plugins:
                self.current = PluginSet(in_force, tuple(news))
                self._on_update(self.current)
            return self.current

    def read_component(self, plugin: Plugin) -> Reading:
        """The bytes of a plugin's component, now."""
        path = os.path.join(self.folder, plugin.folder, plugin.manifest.wasm)
        return self._allowed(
            path, plugins.read_component(self.workspace, plugin.folder, plugin.manifest.wasm)
        )

    def _advanced(self, name: str) -> PluginState:
        """The state of one folder, now. Whatever goes wrong there is that folder's alone."""
        path = os.path.join(self.folder, name, FILE_NAME)
        state = self._states.get(name) or PluginState(name, path)
        try:
            return self._follow(name, state, path)
        except Exception as error:  # anything may be written there, and every other plugin is to go on
            return unusable(state, Unreadable("unreadable", f"reading it failed: {shown(error)}", None))

    def _follow(self, name: str, state: PluginState, path: str) -> PluginState:
        reading = self._allowed(path, plugins.read_manifest(self.workspace, name))
        if not isinstance(reading, Content):
            return unusable(state, reading)
        component = None if state.wasm is None else self._look_at(name, state.wasm)
        if (reading.digest, component) == state.seen:
            return state
        parsed = parse(reading.text, path)
        wasm = state.wasm if parsed.manifest is None else parsed.manifest.wasm
        component = None if wasm is None else self._look_at(name, wasm)
        return advance(state, reading.digest, parsed, component)

    def _allowed(self, path: str, reading: Reading) -> Reading:
        """What was read of a file, unless that is not what was trusted."""
        if self._gate is None or not isinstance(reading, Content):
            return reading
        why = self._gate.of_content(path, reading.digest)
        return reading if why is None else Unreadable("trust_changed", why, None)

    def _look_at(self, name: str, wasm: str) -> Signature | Unreadable:
        return plugins.component_signature(self.workspace, name, wasm)

    def _without_doubles(self) -> tuple[tuple[Plugin, ...], tuple[Diagnostic, ...]]:
        found: dict[str, Plugin] = {}
        said: list[Diagnostic] = []
        for plugin in (state.plugin for state in self._states.values() if state.plugin is not None):
            first = found.setdefault(plugin.manifest.name, plugin)
            if first is not plugin:
                message = f"{first.path} has this name already: the plugin is not loaded"
                said.append(_error("duplicate_name", plugin.path, message, "give it another name"))
        return tuple(found.values()), tuple(said)

    def _about(self, listing: plugins.Listing) -> tuple[Diagnostic, ...]:
        if listing.fault is not None:
            fault = listing.fault
            return (_error(fault.code, self.folder, fault.message, fault.hint),)
        if listing.left_out:
            message = f"{listing.left_out} folders are not looked at: there may be {MAX_PLUGINS}"
            return (_error("too_many_plugins", self.folder, message, "move some of them elsewhere"),)
        return ()

    def _snapshot(self) -> Signature:
        """Everything that a load would look at, from outside, as numbers."""
        numbers: list[int] = []
        for name in plugins.look(self.workspace).names:
            folder = os.path.join(self.folder, name)
            state = self._states.get(name)
            paths = [FILE_NAME] if state is None or state.wasm is None else [FILE_NAME, state.wasm]
            numbers.append(zlib.crc32(name.encode("utf-8", "surrogateescape")))
            for path in paths:
                numbers.extend(signature(os.path.join(folder, path)) or (0,))
        return tuple(numbers)

    def _watch(self) -> None:
        """Look twice a second: what changes there is a handful of files, and renames of whole folders."""
        while not self._stop.wait(LOOK_S):
            if self._snapshot() != self._seen and self._rested(self._snapshot) is not None:
                self._settle()

    def _settle(self) -> None:
        try:
            self.load()
            self._seen = self._snapshot()  # not the one before: manifests may name other components now
            self.load()  # what changed between the two is in force, what changes now is seen as new
        except Exception as error:
            self._on_error(error)


def _error(code: str, path: str, message: str, hint: str | None) -> Diagnostic:
    return Diagnostic("error", code, path, None, None, None, message, hint)
