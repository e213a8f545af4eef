"""An event and the plugins that are called for it, and what is said about each call.

Decides which plugins get an event and in what words, and keeps one worker for each plugin in force. No event,
whatever its bytes, keeps the next one from being handled. Knows no socket: events come in as values and
reports go out through a function.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from broker.logs import get_logger
from broker.protocol.errors import BusError, shown
from broker.protocol.events import Event

from ..dialects import prx
from ..dialects.base import EventView
from ..hooks.outcome import Outcome
from ..hooks.role_phase import is_second_phase
from ..hooks.spec import HookSpec
from ..sources.plugins_state import Plugin
from .reports import reports
from .views import lifecycle_event, view
from .wasm_subscriptions import Subscriptions
from .wasm_worker import Call, Loads, PluginWorker

ERROR_CHARACTERS: Final = 300
"""Longest text of an unexpected error in a report or in the log."""

log = get_logger("subscribers.wasm")

Publish = Callable[[str, dict[str, Any], Event], None]
"""Publishes a report: topic, payload and the event that it is about. Raises nothing."""


class PluginDispatcher:
    """Calls the plugins in force for the events it is given. ``queue``: events that may wait for each."""

    def __init__(self, loads: Loads, subscriptions: Subscriptions, publish: Publish, *, queue: int) -> None:
        self._loads = loads
        self._subscriptions = subscriptions
        self._publish = publish
        self._queue = queue
        self._lock = threading.Lock()
        self._outcomes: dict[str, int] = {}
        self._workers: dict[str, PluginWorker] = {}
        self._in_force: dict[str, Plugin] = {}
        self._retired: list[PluginWorker] = []

    def use(self, plugins: Sequence[Plugin]) -> None:
        """Have these plugins be in force; one that changed goes on as it was until it is loaded again."""
        wanted = {plugin.manifest.name: plugin for plugin in plugins}
        with self._lock:
            for name in [name for name in self._workers if name not in wanted]:
                worker = self._workers.pop(name)
                self._in_force.pop(name)
                self._subscriptions.forget(name)
                self._retired.append(worker)
                # What waits for it is given up: whoever removes a plugin wants it to stop.
                threading.Thread(
                    target=self._end, args=(worker, 0.0), name=f"end {name}", daemon=True
                ).start()
            for name, plugin in wanted.items():
                worker_of = self._workers.get(name)
                if worker_of is None:
                    self._workers[name] = PluginWorker(plugin, self._loads, self._report, self._queue)
                elif plugin != self._in_force[name]:
                    worker_of.replace(plugin)
                self._in_force[name] = plugin

    def dispatch(self, event: Event) -> None:
        """Hand a lifecycle event to every plugin that asks for it; returns without waiting for any.

        Raises nothing on account of an event: what cannot be handled is counted and logged.
        """
        name = lifecycle_event(event.topic)
        workers = [] if name is None else [worker for worker in self._current() if worker.takes(name)]
        if name is not None and workers:
            self._hand_over(event, name, name, workers)

    def dispatch_other(self, event: Event) -> None:
        """Hand an event to the plugins that have subscribed to its topic from inside, once to each."""
        names = self._subscriptions.plugins_for(event.topic)
        if not names:
            return
        bare = lifecycle_event(event.topic)
        workers = [
            worker
            for worker in self._current()
            if worker.name in names and (bare is None or not worker.takes(bare))
        ]
        if workers:
            self._hand_over(event, event.topic, bare, workers)

    def drain(self, deadline: float) -> int:
        """Take nothing more and let calls end until ``deadline`` (monotonic); how many were given up."""
        with self._lock:
            workers = list(self._workers.values())
        return sum(self._end(worker, deadline) for worker in workers)

    def join(self, deadline: float) -> bool:
        """Wait for what is left to end; whether all of it has."""
        with self._lock:
            workers = [*self._workers.values(), *self._retired]
        ended = [worker.join(deadline) for worker in workers]  # each of them, whatever became of the others
        return all(ended)

    def counters(self) -> dict[str, Any]:
        """What the broker's status shows of this process."""
        with self._lock:
            workers = list(self._workers.values())
            self._forget_ended()
            outcomes = dict(self._outcomes)
        return {
            "hooks": len(workers),
            "loaded": sum(worker.loaded for worker in workers),
            "runs": outcomes,
            "runs_now": sum(worker.running for worker in workers),
            "runs_waiting": sum(worker.waiting for worker in workers),
            "runs_dropped": outcomes.get("dropped", 0),
            "stuck": sum(worker.stuck for worker in (*workers, *self._retired)),
        }

    def _end(self, worker: PluginWorker, deadline: float) -> int:
        """End a worker, and count what waited for it and is given up; how many calls are."""
        given_up = worker.drain(deadline)
        if given_up.waiting:
            self._count("dropped", given_up.waiting)
        return sum(given_up)

    def _forget_ended(self) -> None:
        """Let go of removed plugins whose last call has ended, with what that call subscribed to. Locked.

        Where the name is in force again, the first instance of the new plugin has that forgotten.
        """
        for worker in [worker for worker in self._retired if worker.join(0.0)]:
            self._retired.remove(worker)
            if worker.name not in self._workers:
                self._subscriptions.forget(worker.name)

    def _current(self) -> list[PluginWorker]:
        with self._lock:
            return list(self._workers.values())

    def _hand_over(self, event: Event, said: str, name: str | None, workers: list[PluginWorker]) -> None:
        try:
            if is_second_phase(event):
                return
            body = prx.envelope(_view(event, name))
        except Exception as error:  # anybody may publish anything; the next events are not to suffer for it
            self._count("unreadable", len(workers))
            why = str(error) if isinstance(error, BusError) else shown(error, ERROR_CHARACTERS)
            log.error("an event could not be handled", id=event.id, error=why)
            outcome = Outcome.not_started(f"its payload cannot be had: {why}")
            for worker in workers:
                plugin = self._in_force.get(worker.name)
                if plugin is not None:
                    self._tell(plugin, event, said, outcome, 0.0)
            return
        call = Call(event, said, body, time.monotonic())
        for worker in workers:
            if not worker.offer(call):
                self._count("dropped")

    def _report(self, plugin: Plugin, call: Call, outcome: Outcome, waited_s: float) -> None:
        self._count(outcome.status)
        self._tell(plugin, call.event, call.name, outcome, waited_s)

    def _tell(self, plugin: Plugin, event: Event, name: str, outcome: Outcome, waited_s: float) -> None:
        for topic, payload in reports(_spec(plugin, name), event, outcome, waited_s):
            self._publish(topic, payload, event)

    def _count(self, status: str, count: int = 1) -> None:
        with self._lock:
            self._outcomes[status] = self._outcomes.get(status, 0) + count


def _view(event: Event, name: str | None) -> EventView:
    """A lifecycle event as a shell hook sees it; any other one as it is, by its topic."""
    if name is not None:
        return view(prx.NAME, name, event)
    return EventView(event.topic, event.payload_bytes, event.session_id, event.time_ns, event.depth, event.id)


def _spec(plugin: Plugin, event: str) -> HookSpec:
    """A plugin's call in the shape that reports have for every hook."""
    manifest = plugin.manifest
    return HookSpec(
        id=f"plugin:{manifest.name}",
        dialect=prx.NAME,
        path=plugin.path,
        line=None,
        event=event,
        command=manifest.wasm,
        args=(),
        env={},
        cwd=None,
        timeout_s=manifest.max_execution_time_ms / 1_000,
        grace_s=0.0,
        stdin=False,
    )
