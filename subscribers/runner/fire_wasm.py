"""Calls a plugin for one event without a bus: loaded afresh, with keys of its own that are gone afterwards.

It decides what a plugin finds in place of the bus and of its stored keys. What it may do is the loader's.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, Final

import orjson

from broker.protocol.errors import BusError, SchemaError, shown
from broker.protocol.events import Event

from ..config.schema import Wasm
from ..dialects import prx
from ..hooks.firing import Published
from ..hooks.outcome import NOTHING, Outcome
from ..runtimes.deadlines import Deadlines
from ..runtimes.wasm_engine import prepare_cache
from ..sources.plugins_state import Plugin
from ..sources.plugins_workspace import WorkspacePlugins
from .views import lifecycle_event, view
from .wasm_loader import Loader, LoadFailed, Policy
from .wasm_subscriptions import Subscriptions


class _Recorder:
    """Stands for the bus and keeps what is published."""

    def __init__(self) -> None:
        self.published: list[Published] = []

    def publish(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        session_id: str | None = None,  # noqa: ARG002 - the bus's own signature
        depth: int | None = None,  # noqa: ARG002
        caused_by: str | None = None,  # noqa: ARG002
    ) -> bool:
        """Take an event."""
        if isinstance(payload, bytes):
            try:
                payload = orjson.loads(payload)
            except orjson.JSONDecodeError as error:
                raise SchemaError(f"payload is not JSON: {error}") from None
        self.published.append(Published(topic, payload))
        return True

    def close(self) -> None:
        """There is nothing to let go of."""


CALL_THREAD: Final = "call plugin"
"""The thread that calls; it is left behind when a call is stuck in the host."""


def call(path: str, workspace: str, event: Event, settings: Wasm) -> tuple[Outcome, tuple[Published, ...]]:
    """Call the plugin whose manifest lies at ``path``; what came of it, and what it published."""
    plugins = WorkspacePlugins(workspace, lambda _set: None, lambda _error: None)
    plugin = next((plugin for plugin in plugins.load().plugins if plugin.path == path), None)
    if plugin is None:
        return Outcome.not_started("the plugin is not loaded; prxbus check says why"), ()
    recorder = _Recorder()
    deadlines = Deadlines()
    try:
        with tempfile.TemporaryDirectory(prefix="prxbus-fire-", ignore_cleanup_errors=True) as state:
            loader = Loader(
                plugins,
                Policy(settings.allow, settings.memory_mb, settings.kv_storage_mb),
                Subscriptions(),
                deadlines,
                cache=_cache(settings.cache_dir),
                state_dir=state,
                open_bus=lambda _name: recorder,
            )
            outcome = _Calling(loader, plugin, event).outcome()
    finally:
        deadlines.close()
    return outcome, tuple(recorder.published)


class _Calling:
    """One call in a thread of its own, because one that sleeps inside WASI cannot be interrupted."""

    def __init__(self, loader: Loader, plugin: Plugin, event: Event) -> None:
        self._loader = loader
        self._plugin = plugin
        self._event = event
        self._over = threading.Event()
        self._outcomes: list[Outcome] = []

    def outcome(self) -> Outcome:
        """The outcome, when the call is over or stuck."""
        thread = threading.Thread(target=self._work, name=CALL_THREAD, daemon=True)
        thread.start()
        self._over.wait()
        if self._outcomes:
            thread.join()
            return self._outcomes[0]
        seconds = self._plugin.manifest.max_execution_time_ms / 1_000
        return Outcome(
            "timeout", None, None, seconds, NOTHING, NOTHING, "it is stuck outside of its own code"
        )

    def _work(self) -> None:
        try:
            self._outcomes.append(self._call())
        except Exception as error:  # a library's surprise is this plugin's alone
            self._outcomes.append(Outcome.not_started(shown(error, 300)))
        self._over.set()

    def _call(self) -> Outcome:
        name = lifecycle_event(self._event.topic)
        assert name is not None  # a plugin's patterns are for lifecycle events
        try:
            body = prx.envelope(view(prx.NAME, name, self._event))
            loaded = self._loader.load(self._plugin)
        except (BusError, LoadFailed) as error:
            return Outcome.not_started(str(error))
        loaded.host.begin(self._event)
        try:
            return loaded.guest.call(name, body.decode("utf-8", "replace"), self._over.set)
        finally:
            loaded.host.end()
            loaded.host.close()


def _cache(directory: str | None) -> str | None:
    """Where the runner keeps compiled code; None where it cannot be kept."""
    try:
        if directory is None:
            from platformdirs import user_cache_dir

            directory = os.path.join(user_cache_dir("prxbus"), "wasm")
        return prepare_cache(directory)
    except OSError:
        return None
