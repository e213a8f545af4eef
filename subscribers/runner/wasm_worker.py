"""One plugin at work: a queue of its own, a thread of its own, one call at a time.

Decides what happens to a plugin's calls: they wait in order, bounded in number and bytes, and what finds no
room is dropped and counted. A new version is loaded beside the one that works and takes over between two
calls; when it cannot be loaded the old one goes on. A call that is stuck in the host is reported and left to
itself, and the plugin goes on in another thread, so many times. Refuses to know where events come from.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from broker.logs import get_logger
from broker.protocol.errors import shown
from broker.protocol.events import Event

from ..hooks.outcome import NOTHING, Outcome
from ..sources.plugins_state import Plugin
from .wasm_loader import Loaded, LoadFailed

QUEUE_BYTES: Final = 67_108_864
"""Bytes of payloads that may wait for one plugin; one call always may."""

STUCK: Final = 4
"""Calls that may be stuck at the same time before a plugin is called no longer."""

log = get_logger("subscribers.wasm")


class Call(NamedTuple):
    """One event for one plugin. ``name`` and ``body`` are what the component gets."""

    event: Event
    name: str
    body: bytes
    arrived: float


class GivenUp(NamedTuple):
    """Calls that did not come to their end: those that waited, and the one that was under way."""

    waiting: int
    running: int


Report = Callable[[Plugin, Call, Outcome, float], None]
"""Told of each call: plugin, call, outcome, and the seconds that it had waited."""


class Loads(Protocol):
    """What makes a component ready to be called."""

    def load(self, plugin: Plugin) -> Loaded:
        """The plugin, ready; raises :class:`LoadFailed`."""


@dataclass(slots=True)
class _Turn:
    """What one thread of a worker is doing; a thread whose turn is over ends."""

    call: Call | None = None
    loaded: Loaded | None = None
    began: float = 0.0


class PluginWorker:
    """Calls one plugin. Thread-safe."""

    def __init__(self, plugin: Plugin, loads: Loads, report: Report, queue: int) -> None:
        self.name = plugin.manifest.name
        self._plugin = plugin  # whose events are listened for
        self._loads = loads
        self._report = report
        self._room = queue
        self._changed = threading.Condition()
        self._queue: deque[Call] = deque()
        self._bytes = 0
        self._wanted = plugin
        self._loading = False
        self._next: Loaded | None = None
        self._refusal: str | None = None
        self._ending = False
        self._turn = _Turn()
        self._thread = self._start_thread()
        self._abandoned: list[threading.Thread] = []
        self._start_loading()

    # -- from outside -------------------------------------------------------------------------

    def takes(self, event: str) -> bool:
        """Whether the version in force asks for the lifecycle event of this bare name."""
        return self._plugin.manifest.events.match(event)

    @property
    def waiting(self) -> int:
        """Calls in the queue."""
        return len(self._queue)

    @property
    def stuck(self) -> int:
        """Calls that were given up and still go on."""
        self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
        return len(self._abandoned)

    @property
    def running(self) -> bool:
        """Whether a call is under way."""
        return self._turn.call is not None

    @property
    def loaded(self) -> bool:
        """Whether a version is in force."""
        return self._turn.loaded is not None or self._next is not None

    def offer(self, call: Call) -> bool:
        """Have the plugin called soon; False when there is no room: the caller counts the drop."""
        with self._changed:
            is_full = len(self._queue) >= self._room
            is_full = is_full or (bool(self._queue) and self._bytes + len(call.body) > QUEUE_BYTES)
            if is_full or self._ending:
                return False
            self._queue.append(call)
            self._bytes += len(call.body)
            self._changed.notify_all()
            return True

    def replace(self, plugin: Plugin) -> None:
        """Load another version and let it take over."""
        with self._changed:
            self._wanted = plugin
            if self._refusal is not None:
                self._refusal = None
                self._plugin = plugin
        self._start_loading()

    def drain(self, deadline: float) -> GivenUp:
        """Take nothing more, let what waits be done until ``deadline`` (monotonic), then end it.

        Returns what was given up: what waited is never called nor reported, the caller counts it.
        """
        with self._changed:
            self._ending = True
            self._changed.notify_all()
            self._changed.wait_for(self._is_idle, max(0.0, deadline - time.monotonic()))
            left = GivenUp(len(self._queue), int(self.running))
            self._queue.clear()
            self._changed.notify_all()
            loaded = self._turn.loaded
        if any(left) and loaded is not None:
            loaded.guest.interrupt()
        return left

    def join(self, deadline: float) -> bool:
        """Wait for the threads to end after :meth:`drain`; whether all have."""
        self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            return not self._thread.is_alive() and not self._loading and not self.stuck

    # -- loading ------------------------------------------------------------------------------

    def _start_loading(self) -> None:
        with self._changed:
            if self._loading:
                return  # whoever loads sees that another version is wanted
            self._loading = True
        threading.Thread(target=self._load, name=f"load {self.name}", daemon=True).start()

    def _load(self) -> None:
        while True:
            plugin = self._wanted
            failure: str | None = None
            loaded: Loaded | None = None
            try:
                loaded = self._loads.load(plugin)
            except LoadFailed as error:
                failure = str(error)
            except Exception as error:  # a library's surprise is this plugin's alone
                failure = shown(error, 300)
            with self._changed:
                if plugin is self._wanted:
                    self._loading = False
                    self._take_over(plugin, loaded, failure)
                    self._changed.notify_all()
                    return

    def _take_over(self, plugin: Plugin, loaded: Loaded | None, failure: str | None) -> None:
        """Have the loaded version be the next one, or say why it is not. The lock is held."""
        facts = {"plugin": self.name, "path": plugin.path}
        if loaded is not None:
            self._next, self._plugin, self._refusal = loaded, plugin, None
            log.info("a plugin is loaded", **facts, version=plugin.manifest.version)
        elif self.loaded:
            log.error("a plugin cannot be loaded; its last good version goes on", **facts, reason=failure)
        else:
            self._refusal = failure
            log.error("a plugin cannot be loaded", **facts, reason=failure)

    # -- calling ------------------------------------------------------------------------------

    def _start_thread(self) -> threading.Thread:
        turn = self._turn
        thread = threading.Thread(target=self._work, args=(turn,), name=f"plugin {self.name}", daemon=True)
        thread.start()
        return thread

    def _is_idle(self) -> bool:
        return not self._queue and self._turn.call is None

    def _is_news(self) -> bool:
        has_work = bool(self._queue) and (self.loaded or self._refusal is not None)
        return self._next is not None or has_work or (self._ending and not self._queue)

    def _work(self, turn: _Turn) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: turn is not self._turn or self._is_news())
                if turn is not self._turn:
                    return
                before = turn.loaded if self._next is not None else None
                if self._next is not None:
                    turn.loaded, self._next = self._next, None
                if self._queue:
                    turn.call = self._queue.popleft()
                    self._bytes -= len(turn.call.body)
                    turn.began = time.monotonic()
            if before is not None:
                before.host.close()
            if turn.call is not None:
                if not self._finish(turn, self._run(turn, turn.call)):
                    return
            elif self._ending:
                if turn.loaded is not None:
                    turn.loaded.host.close()
                return

    def _run(self, turn: _Turn, call: Call) -> Outcome:
        loaded = turn.loaded
        if loaded is None:
            return Outcome.not_started(f"the plugin is not loaded: {self._refusal}")
        loaded.host.begin(call.event)
        text = call.body.decode("utf-8", "replace")
        outcome = loaded.guest.call(call.name, text, lambda: self._on_stuck(turn, call))
        loaded.host.end()
        return outcome

    def _finish(self, turn: _Turn, outcome: Outcome) -> bool:
        """Report a call that is over; False when it had been given up before."""
        with self._changed:
            call, turn.call = turn.call, None
            if turn is not self._turn:
                if turn.loaded is not None:
                    turn.loaded.host.close()
                return False
            self._changed.notify_all()
        assert call is not None
        plugin = self._plugin if turn.loaded is None else turn.loaded.plugin
        self._report(plugin, call, outcome, turn.began - call.arrived)
        return True

    def _on_stuck(self, turn: _Turn, call: Call) -> None:
        """A call goes on in the host although its time is over: give it up, and go on without it."""
        with self._changed:
            if turn is not self._turn or turn.call is not call or turn.loaded is None:
                return
            plugin = turn.loaded.plugin
            self._abandoned.append(self._thread)
            self._turn = _Turn()
            if self.stuck >= STUCK:
                self._refusal = (
                    f"{self.stuck} of its calls are stuck in the host; edit it to have it loaded again"
                )
                log.error("a plugin is called no longer", plugin=self.name, reason=self._refusal)
        seconds = time.monotonic() - turn.began
        reason = "it is stuck in the host, where it cannot be interrupted"
        outcome = Outcome("timeout", None, None, seconds, NOTHING, NOTHING, reason)
        self._report(plugin, call, outcome, turn.began - call.arrived)
        with self._changed:
            self._thread = self._start_thread()
            self._changed.notify_all()
        if self._refusal is None:
            self._start_loading()
