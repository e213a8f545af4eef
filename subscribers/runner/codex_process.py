"""The ``codex`` subscriber at work: hook files, a decider and an observer on the bus, and what runs handlers.

It is asked and observes only while there is a handler, and then about every event of the family, so that a
file that is edited counts from the next event on. Decides when that is, and how all of it ends. Refuses to
know what a hook file means and how an event is handled.
"""

from __future__ import annotations

import argparse
import os
import sysconfig
import tempfile
import threading
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from broker.client import Decider, Publisher
from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE
from broker.logs import get_logger
from broker.protocol.decisions import Failure
from broker.protocol.errors import shown
from broker.protocol.topics import LIFECYCLE

from ..config import files
from ..dialects.codex_events import BY_CANONICAL
from ..dialects.codex_profiles import PROFILES
from ..hooks.diagnostics import Diagnostic
from ..runtimes.deadlines import Deadlines
from ..runtimes.orphans import become_subreaper
from ..runtimes.pool import RunPool
from ..runtimes.reaper import Reaper
from ..runtimes.sandbox import Bubblewrap, Limits, SandboxUnavailable
from ..runtimes.spawn import seal
from ..sources.codex_documents import Configured, Documents, Places, Snapshot
from ..sources.codex_guards import GuardRecord
from ..sources.codex_layers import Imported, Scope, Switches, config_folder
from ..sources.import_places import ImportPlaces, import_root
from ..sources.import_store import EnabledImport, enabled_imports, store_signature
from ..sources.looking_watch import LookingWatcher
from . import service
from .codex_deciders import Deciders
from .codex_dispatch import CodexDispatcher
from .codex_runs import Runs, patterns_of
from .codex_service import NAME
from .codex_spill_files import SpillFiles
from .codex_telling import Teller
from .enclosure import open_sandbox
from .observer import Observer
from .reporting import log_diagnostics, publish_report
from .service import BUS_SECONDS, TURN_SECONDS

TOPICS: Final = tuple(f"{LIFECYCLE}{name}" for name in BY_CANONICAL)
"""Every event of the family."""

BACKGROUND_RUNS: Final = 32
"""Asynchronous handlers at once, of all sessions."""

ASYNC_AT_ONCE: Final = min(profile.async_at_once for profile in PROFILES.values())
"""Of them, those of one session: as many as each of the agents would have."""

PREPARING: Final = 4
"""Threads that take large payloads apart."""

LOAD_SECONDS: Final = 0.05
"""How long asks may wait in line for hook files that have changed."""

ENDED_SECONDS: Final = 1.0
"""How long the threads of runs that were ended may take to notice it."""

ERROR_CHARACTERS: Final = 300

log = get_logger("subscribers.codex")


class CodexProcess:
    """The hooks of the Codex family as a client of the bus. ``is_ready``: the ready line was printed."""

    def __init__(self, options: argparse.Namespace, *, is_ready: bool = False) -> None:
        seal()
        self._stop = threading.Event()
        self._rescan = threading.Event()
        self._options = options
        self._is_ready = is_ready
        self._workspace = None if options.workspace is None else os.path.abspath(options.workspace)
        self._flags = {"hooks.bitfun": options.bitfun, "hooks.strict": options.strict}
        self._environ = {k: v for k, v in os.environ.items() if k not in (DEPTH_VARIABLE, CAUSE_VARIABLE)}
        self._imports = ImportPlaces(import_root(None, os.environ), self._workspace)
        self._nowhere = tempfile.TemporaryDirectory(prefix="prxbus-codex-")
        self._sandbox: Bubblewrap | None = None
        self._said: tuple[Diagnostic, ...] = ()
        self._http_urls: str | None = None
        self._observer: Observer | None = None
        self._damaged: dict[Scope, tuple[EnabledImport, ...]] = {}
        self._reaper = Reaper(adopts=become_subreaper(), sealed=True)
        self._deadlines = Deadlines()
        self._pool = RunPool(total=options.runs, per_hook=options.runs_per_hook, queue=options.queue)
        self._preparing = RunPool(total=PREPARING, per_hook=PREPARING, queue=options.queue)
        self._background = RunPool(total=BACKGROUND_RUNS, per_hook=ASYNC_AT_ONCE, queue=options.queue)
        self._publisher = Publisher(
            NAME, runtime_dir=options.runtime_dir, on_absent="block", block_seconds=BUS_SECONDS
        )
        runtime_dir = self._publisher.runtime_dir
        self._teller = Teller(partial(publish_report, self._publisher, log))
        self._record = GuardRecord(runtime_dir)
        was_guarding = os.path.lexists(self._record.path)
        self._runs = Runs(self._reaper, self._deadlines)
        self._runs.gate = service.gate_of(options)
        self._spill = SpillFiles(runtime_dir)
        config = config_folder(os.environ)
        watched: tuple[str, ...] = (files.user_file(os.environ),)
        watched += () if self._workspace is None else (files.workspace_file(self._workspace),)
        self._documents = Documents(
            Places(config, self._workspace, watched, self._imported, self._imports_signature),
            self._configured,
            self._tell,
            self._environ,
            self._record.read(),
        )
        self._dispatcher = CodexDispatcher(
            self._documents,
            self._runs,
            self._teller,
            pool=self._pool,
            background=self._background,
            preparing=self._preparing,
            deadlines=self._deadlines,
            spill=self._spill,
            workspace=self._workspace,
            runtime_dir=runtime_dir,
            environ=self._environ,
        )
        self._deciders = Deciders(TOPICS, self._open, self._dispatcher.ask, was_guarding=was_guarding)
        self._watcher = LookingWatcher(self._documents.signature, self._look, self._failed)

    def run(self) -> None:
        """Serve until told to stop."""
        service.heed_signals(self._stop, self._rescan)
        self._enclose()
        self._documents.current()
        self._watcher.start()
        self._follow()
        if self._workspace is not None:
            with suppress(OSError):  # where most handlers start, which makes starting them cheaper
                os.chdir(self._workspace)
        if not self._is_ready:
            self._say_ready()
        while not self._stop.is_set():
            self._deciders.batch(TURN_SECONDS)
            self._teller.tick(time.monotonic())
            if self._rescan.is_set():
                self._rescan.clear()
                if self._runs.refusal is not None:
                    self._enclose()
                self._documents.look_again()
            self._follow()
        self._drain()

    def _follow(self) -> None:
        """Be asked, and observe, while there is a handler and a while longer: it may be back at once."""
        snapshot = self._documents.current(LOAD_SECONDS)
        has_handlers = bool(snapshot.handlers)
        if has_handlers and self._observer is None:
            self._observer = Observer(
                TOPICS, self._dispatcher.event, log, name=NAME, runtime_dir=self._options.runtime_dir
            )
        closed = frozenset(f"{LIFECYCLE}{name}" for name in snapshot.closed)
        now = time.monotonic()
        self._deciders.follow(now, closed, has_handlers=has_handlers, is_busy=self._is_busy())
        if not self._deciders.is_open and self._observer is not None:
            self._observer.close()
            self._observer = None

    def _open(self, failure: Failure, name: str, topics: tuple[str, ...], reports: bool) -> Decider:
        return Decider(
            topics,
            name=name,
            failure=failure,
            wait=BUS_SECONDS,
            report=self._counters if reports else None,
            runtime_dir=self._options.runtime_dir,
        )

    def _is_busy(self) -> bool:
        """Whether somebody may still wait for what is under way."""
        stats = (self._preparing.stats, self._pool.stats)
        return any(each.running or each.waiting for each in stats)

    def _drain(self) -> None:
        """Take nothing more, let runs end within their time, then end them; flush what was reported."""
        self._watcher.stop()
        if self._observer is not None:
            self._observer.close()
        self._deciders.hold()
        until = time.monotonic() + self._options.drain_seconds
        self._preparing.drain(self._options.drain_seconds)
        left = self._pool.drain(max(0.0, until - time.monotonic()))
        if left:
            log.warning("runs were ended early", runs=left, budget_s=self._options.drain_seconds)
        self._reaper.close(time.monotonic())  # what runs in the background ends with its session
        for pool in (self._preparing, self._pool, self._background):
            pool.drain(ENDED_SECONDS)
        self._deciders.close()
        self._teller.tick(float("inf"))
        self._deadlines.close()
        if self._sandbox is not None:
            self._sandbox.close()
        self._spill.close()
        self._publisher.close()
        self._nowhere.cleanup()

    # -- what is in force ---------------------------------------------------------------------

    def _configured(self) -> Configured | None:
        """What the configuration says now; None, and said, where it has faults."""
        loaded = files.load(os.environ, self._flags, self._workspace)
        if loaded.diagnostics:
            if loaded.diagnostics != self._said:
                for diagnostic in loaded.diagnostics:
                    log.error(diagnostic.render(), kept="what held before goes on to hold")
            self._said = loaded.diagnostics
            return None
        self._said = ()
        hooks = loaded.settings.hooks
        self._runs.http_urls = patterns_of(hooks.http_urls)
        switches = Switches(hooks.enabled, hooks.project_hooks_enabled, hooks.bitfun, hooks.strict)
        return Configured(switches, loaded.hook_files)

    def _imported(self, scope: Scope) -> Sequence[Imported]:
        found = enabled_imports(scope, self._imports)
        for diagnostic in found.diagnostics:
            log.error(diagnostic.render())
        self._damaged[scope] = found.damaged
        return *found.imports, *found.damaged

    def _imports_signature(self) -> Hashable:
        """What changes when an import does, or one that is damaged: it may be whole again."""
        damaged = (each.snapshot.signature() for found in self._damaged.values() for each in found)
        stores = (store_signature("user", self._imports), store_signature("project", self._imports))
        return *stores, *damaged

    def _enclose(self) -> None:
        """Have every command enclosed as configured, or none run where that cannot be done."""
        options = self._options
        limits = Limits(options.sandbox_memory_bytes, options.sandbox_processes, options.sandbox_file_bytes)
        place = self._workspace or self._nowhere.name
        try:
            self._sandbox = open_sandbox(options.sandbox, place, limits, sysconfig.get_path("scripts"))
        except SandboxUnavailable as error:
            self._runs.refusal = f"hooks.sandbox is {options.sandbox}, which cannot be used here: {error}"
            log.error("no hooks run", reason=self._runs.refusal)
        else:
            self._runs.refusal = None
            self._runs.enclose = None if self._sandbox is None else self._sandbox.enclose

    # -- what is told -------------------------------------------------------------------------

    def _look(self) -> None:
        self._documents.current()

    def _tell(self, snapshot: Snapshot, fresh: tuple[Diagnostic, ...]) -> None:
        """Log what is in force, and what is new to say."""
        for state in snapshot.states:
            if state.status != "absent":
                log.info(
                    "hooks of the Codex family",
                    layer=state.layer.name,
                    path=state.layer.path,
                    profile=state.layer.profile,
                    status=state.status,
                    handlers=state.handlers,
                )
        try:
            self._record.write(snapshot.guarded)
        except OSError as error:
            log.error("what fails closed could not be recorded", path=self._record.path, error=str(error))
        log_diagnostics(log, fresh)

    def _counters(self) -> dict[str, Any]:
        pool, background, preparing = self._pool.stats, self._background.stats, self._preparing.stats
        return {
            "hooks": len(self._documents.snapshot.handlers),
            "runs": dict(self._dispatcher.outcomes),
            "runs_now": pool.running + background.running,
            "runs_waiting": pool.waiting + background.waiting,
            "runs_dropped": pool.dropped + background.dropped + preparing.dropped,
            **self._dispatcher.others,
            "contexts_dropped": self._dispatcher.sessions.dropped,
            "reports_dropped": self._teller.dropped,
            "ending": self._reaper.stats.ending,
        }

    def _say_ready(self) -> None:
        snapshot = self._documents.snapshot
        refusal = self._runs.refusal
        handlers = len(snapshot.handlers) if refusal is None else 0
        facts: dict[str, Any] = {"handlers": handlers}
        if self._options.sandbox != "none":
            facts |= {"sandbox": self._options.sandbox, "refusal": refusal}
        service.say_ready(NAME, **facts)

    def _failed(self, error: Exception) -> None:
        log.error("looking at hook files failed", error=shown(error, ERROR_CHARACTERS))
