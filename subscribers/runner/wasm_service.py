"""The ``wasm`` subscriber: a process that calls a workspace's WASM plugins for the events of the bus.

    python -P -m subscribers.runner.wasm_service --workspace DIR [--runtime-dir DIR]

It prints one JSON line when it is ready; plugins are still being compiled then, and their events wait.
SIGTERM or SIGINT: no event is taken any more, calls get their time, reports are flushed, exit 0. SIGHUP: the
folder ``plugins`` is looked at again.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from typing import Any, Final

from broker.client import Publisher, Subscriber
from broker.logs import get_logger
from broker.protocol.errors import BusError
from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE

from ..runtimes.deadlines import Deadlines
from ..runtimes.wasm_engine import prepare_cache
from ..sources.plugins_workspace import PluginSet, WorkspacePlugins
from . import service
from .reporting import log_diagnostics, publish_report
from .reports import DEAD_LETTER_TOPIC
from .service import BUS_SECONDS, TURN_SECONDS
from .wasm_dispatch import PluginDispatcher
from .wasm_host import Bus
from .wasm_loader import LEVELS, Loader, Policy
from .wasm_subscriptions import Subscriptions

NAME: Final = "wasm"
END_SECONDS: Final = 2.0
"""How long a call may take to end when it is interrupted."""

QUEUE: Final = 1_024
"""Events that may wait for one plugin."""

MEMORY_MB: Final = 1_024
"""Most memory that a manifest may ask for."""

KV_STORAGE_MB: Final = 64
"""Most room for keys and values that a manifest may ask for."""

LOGGED_CHARACTERS: Final = 300
"""Characters of an error in the log; the report has more."""

log = get_logger("subscribers.wasm")


class WasmService:
    """One workspace's plugins as a client of the bus."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._stop = threading.Event()
        self._rescan = threading.Event()
        self._drain_seconds: float = options.drain_seconds
        self._runtime_dir: str | None = options.runtime_dir
        self._subscriptions = Subscriptions()
        self._deadlines = Deadlines()
        self._plugins = WorkspacePlugins(
            options.workspace, self._tell, self._failed, service.gate_of(options)
        )
        loader = Loader(
            self._plugins,
            Policy(options.allow, options.memory_mb, options.kv_storage_mb),
            self._subscriptions,
            self._deadlines,
            cache=_cache(options.cache_dir),
            state_dir=options.state_dir or _state_dir(),
            open_bus=self._open_bus,
        )
        self._dispatcher = PluginDispatcher(loader, self._subscriptions, self._publish, queue=options.queue)
        self._publisher = Publisher(
            NAME, runtime_dir=options.runtime_dir, on_absent="block", block_seconds=BUS_SECONDS
        )
        self._events = Subscriber(
            [f"{LIFECYCLE}*"],
            name=NAME,
            wait=BUS_SECONDS,
            report=self._dispatcher.counters,
            runtime_dir=options.runtime_dir,
        )
        self._others = threading.Thread(target=self._serve_others, name="other topics", daemon=True)

    def run(self) -> bool:
        """Serve until told to stop; whether everything has ended, so that the process may end in order."""
        service.heed_signals(self._stop, self._rescan)
        self._plugins.load()
        self._plugins.start()
        self._others.start()
        self._say_ready()
        while not self._stop.is_set():
            for event in self._events.batch(timeout=TURN_SECONDS):
                self._dispatcher.dispatch(event)
            if self._rescan.is_set():
                self._rescan.clear()
                self._look_again()
        return self._drain()

    def _look_again(self) -> None:
        try:
            self._plugins.load()
        except Exception as error:  # as while the folder is watched: what is in force goes on
            self._failed(error)

    def _drain(self) -> bool:
        """Take nothing more, let calls end within their budget, then end them; flush what was reported."""
        self._events.close()
        self._plugins.stop()
        left = self._dispatcher.drain(time.monotonic() + self._drain_seconds)
        if left:
            log.warning("calls were given up", calls=left, budget_s=self._drain_seconds)
        has_ended = self._dispatcher.join(time.monotonic() + END_SECONDS)
        self._others.join(END_SECONDS)
        self._publisher.close()
        if has_ended:
            self._deadlines.close()
        return has_ended

    def _serve_others(self) -> None:
        """Hand over the events that plugins have subscribed to themselves, while there are such plugins."""
        while not self._stop.is_set():
            if not self._subscriptions.wait(some=True, timeout=TURN_SECONDS):
                continue
            try:
                with Subscriber(["*"], name=f"{NAME}-topics", runtime_dir=self._runtime_dir) as events:
                    while self._subscriptions and not self._stop.is_set():
                        for event in events.batch(timeout=TURN_SECONDS):
                            self._dispatcher.dispatch_other(event)
            except BusError as error:
                log.warning("other topics cannot be followed just now", error=str(error))
                self._stop.wait(1.0)

    def _open_bus(self, plugin: str) -> Bus:
        """A publisher of the plugin's own: never waits for a bus, and refuses what is too large."""
        return Publisher(f"{NAME}/{plugin}", runtime_dir=self._runtime_dir, oversize="reject")

    def _publish(self, topic: str, payload: dict[str, Any], event: Event) -> None:
        """Publish a report; a dead letter stands in the log too."""
        if topic == DEAD_LETTER_TOPIC:
            facts = {"hook": payload["hook"], "on": payload["event"], "status": payload["status"]}
            reason = (payload["reason"] or "")[:LOGGED_CHARACTERS]
            log.warning("a plugin's call failed", **facts, reason=reason)
        publish_report(self._publisher, log, topic, payload, event)

    def _tell(self, found: PluginSet) -> None:
        names = [plugin.manifest.name for plugin in found.plugins]
        log.info("plugins are in force", path=self._plugins.folder, plugins=names)
        log_diagnostics(log, found.news)
        self._dispatcher.use(found.plugins)

    def _failed(self, error: Exception) -> None:
        log.error("looking at the plugins failed", path=self._plugins.folder, error=repr(error))

    def _say_ready(self) -> None:
        plugins = len(self._plugins.current.plugins)
        service.say_ready(NAME, plugins=plugins)


def _cache(directory: str | None) -> str | None:
    """Where compiled code is kept; None, and a word in the log, where it cannot be."""
    try:
        if directory is None:
            from platformdirs import user_cache_dir

            directory = os.path.join(user_cache_dir("prxbus"), "wasm")
        return prepare_cache(directory)
    except OSError as error:
        log.warning("compiled plugins are not kept", error=str(error))
        return None


def _state_dir() -> str:
    from platformdirs import user_state_dir

    return os.path.join(user_state_dir("prxbus"), "plugins")


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 1: failed)."""
    parser = service.parser("wasm_service")
    parser.add_argument("--workspace", required=True)
    service.add_trusted(parser)
    parser.add_argument("--queue", type=int, default=QUEUE, help="events that may wait for one plugin")
    service.add_drain(parser)
    parser.add_argument("--memory-mb", type=int, default=MEMORY_MB, help="most that a manifest may ask for")
    parser.add_argument(
        "--kv-storage-mb", type=int, default=KV_STORAGE_MB, help="most that a manifest may ask for"
    )
    parser.add_argument("--allow", choices=LEVELS, default=LEVELS[0], help="what of WASI may be granted")
    parser.add_argument("--cache-dir", help="where compiled code is kept")
    parser.add_argument("--state-dir", help="where plugins' keys are kept")
    options = parser.parse_args(argv)
    return service.run(options, lambda: _serve(options), log)


def _serve(options: argparse.Namespace) -> None:
    if not WasmService(options).run():
        # A thread is still in a plugin, or compiles one: to unwind it would end the process with SIGABRT.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
