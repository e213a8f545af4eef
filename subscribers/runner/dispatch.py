"""One event end to end: match, render, run, report.

Decides what is run for an event and what is said about it afterwards; each run has its own payload
file. Every run that could not be started or did not fit is counted, and no event, whatever its
bytes, keeps the next one from being handled. Knows no socket: events come in as values and reports
go out through a function.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from broker.logs import get_logger
from broker.protocol.errors import BusError, shown
from broker.protocol.events import Event

from ..dialects.base import Dialect, EventView, Place
from ..hooks.invocation import Invocation
from ..hooks.outcome import Outcome
from ..hooks.plan import Plan
from ..hooks.role_phase import is_second_phase
from ..hooks.spec import HookSpec
from ..runtimes.child import run
from ..runtimes.payload_files import PayloadFiles
from ..runtimes.pool import RunPool
from ..runtimes.reaper import Reaper
from ..runtimes.spawn import StartFailed
from ..sources.resolve import Resolved, Unresolved
from .reports import reports
from .views import lifecycle_event, view

ERROR_CHARACTERS: Final = 300
"""Longest text of an unexpected error in a report or in the log."""

log = get_logger("subscribers.dispatch")

Publish = Callable[[str, dict[str, Any], Event], None]
"""Publishes a report: topic, payload and the event that it is about."""


class Hooks(Protocol):
    """A set of hooks that may change between two events."""

    @property
    def workspace(self) -> str:
        """Absolute path of the workspace."""

    @property
    def plan(self) -> Plan:
        """The hooks in force now."""

    def resolve(self, spec: HookSpec) -> Resolved | Unresolved:
        """Where the spec's program and folder are now."""


Release = Callable[[], None]
Enclose = Callable[[Invocation, tuple[str, ...]], tuple[Invocation, Release]]
"""Puts an invocation that can read these files into a sandbox; raises StartFailed and OSError."""


class Dispatcher:
    """Runs the hooks of one source, such as a workspace, for the events it is given.

    Several may share a pool, a reaper and a store of payload files.

    ``enclose``: the sandbox of every run, None for none. ``refusal`` set: no hook runs, for this reason.

    ``outcomes`` counts runs by status, with ``dropped`` for those that found no room and
    ``unreadable`` for events whose payload could not be had.
    """

    def __init__(
        self,
        hooks: Hooks,
        dialect: Dialect,
        *,
        pool: RunPool,
        reaper: Reaper,
        files: PayloadFiles,
        publish: Publish,
        runtime_dir: str,
        prxbus_folder: str,
        enclose: Enclose | None = None,
    ) -> None:
        self.refusal: str | None = None
        self.enclose = enclose
        self.outcomes: dict[str, int] = {}
        self._hooks = hooks
        self._dialect = dialect
        self._pool = pool
        self._reaper = reaper
        self._files = files
        self._publish = publish
        self._runtime_dir = runtime_dir
        self._prxbus_folder = prxbus_folder
        self._lock = threading.Lock()

    def dispatch(self, event: Event) -> None:
        """Start (or queue, or drop and count) every hook of ``event``; returns without waiting for any.

        Raises nothing on account of an event: what cannot be handled is counted and logged.
        """
        try:
            self._dispatch(event)
        except Exception as error:  # anybody may publish anything; the next events are not to suffer for it
            self._count("unreadable")
            log.error("an event could not be handled", id=event.id, error=shown(error, ERROR_CHARACTERS))

    def _dispatch(self, event: Event) -> None:
        name = lifecycle_event(event.topic)
        specs = () if name is None else self._hooks.plan.for_event(name)
        if name is None or not specs:
            return
        try:
            if is_second_phase(event):
                return
            seen = view(self._dialect.NAME, name, event)
            body = self._dialect.envelope(seen)
            seen = replace(seen, payload_bytes=b"")  # it stands in the envelope: one copy waits, not two
        except Exception as error:  # a payload may be bad in more ways than the bus has errors for
            self._count("unreadable", len(specs))
            why = str(error) if isinstance(error, BusError) else shown(error, ERROR_CHARACTERS)
            outcome = Outcome.not_started(f"its payload cannot be had: {why}")
            for spec in specs:
                self._report(spec, event, outcome, 0.0)
            return
        arrived = time.monotonic()
        for spec in specs:
            if not self._pool.submit(spec.key, self._job(spec, event, seen, body, arrived), body):
                self._count("dropped")

    def _job(
        self, spec: HookSpec, event: Event, seen: EventView, body: bytes, arrived: float
    ) -> Callable[[], None]:
        def job() -> None:
            waited_s = time.monotonic() - arrived
            outcome = self.run_once(spec, seen, body)
            self._count(outcome.status)
            self._report(spec, event, outcome, waited_s)

        return job

    def run_once(self, spec: HookSpec, seen: EventView, body: bytes) -> Outcome:
        """Run one hook now, with its own payload file and sandbox; blocks until there is an outcome.

        ``body``: the envelope, whose payload ``seen`` need not hold any more.
        """
        if self.refusal is not None:
            return Outcome.not_started(self.refusal)
        found = self._hooks.resolve(spec)
        if isinstance(found, Unresolved):
            return Outcome.not_started(
                found.message if found.hint is None else f"{found.message}; {found.hint}"
            )
        path = ""
        if self._dialect.needs_file(body):
            try:
                path = self._files.write(body)
            except OSError as error:
                return Outcome.not_started(f"its payload file cannot be written: {error.strerror or error}")
        place = Place(
            workspace=self._hooks.workspace,
            runtime_dir=self._runtime_dir,
            payload_file=path,
            prxbus_folder=self._prxbus_folder,
            executable=found.executable,
            cwd=found.cwd,
            command_args=found.args,
            environ=os.environ,
        )
        invocation = self._dialect.render(spec, seen, place, body)
        release: Release | None = None
        if self.enclose is not None:
            try:
                readable = (path, self._runtime_dir) if path else (self._runtime_dir,)
                invocation, release = self.enclose(invocation, readable)
            except (StartFailed, OSError) as error:
                self._forget(path)
                return Outcome.not_started(str(error))

        def over() -> None:
            self._forget(path)
            if release is not None:
                release()

        return run(invocation, self._reaper, on_end=over)

    def _forget(self, path: str) -> None:
        if path:
            self._files.remove(path)

    def _report(self, spec: HookSpec, event: Event, outcome: Outcome, waited_s: float) -> None:
        for topic, payload in reports(spec, event, outcome, waited_s):
            self._publish(topic, payload, event)

    def _count(self, status: str, count: int = 1) -> None:
        with self._lock:
            self.outcomes[status] = self.outcomes.get(status, 0) + count
