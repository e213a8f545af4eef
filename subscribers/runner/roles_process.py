"""The hooks of roles as a client of the bus: what is in force, who is asked, and what is told.

Decides when a change of the files is in force (once its modules are loaded; what cannot be used leaves what
was there), and the order of an end: nothing more is taken, hooks under way get their time, each is disposed
once.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from broker.client import Decider, Publisher
from broker.logs import get_logger
from broker.protocol.errors import shown
from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic
from ..hooks.module_plan import State
from ..runtimes.node_program import NodeMissing, find_node
from ..sources.role_directories import LoadedRole
from ..sources.role_watch import RolesWatch
from . import service
from .observer import Observer
from .report_queue import ReportQueue
from .reporting import log_diagnostics, publish_report
from .roles_dispatch import FUNCTIONS_TOPIC, RolesDispatcher
from .roles_hosts import RolesHosts, languages
from .roles_memory import Memory
from .roles_reports import hook_log, log_missing, log_state
from .roles_set import NOTHING, InForce, RoleSet, role_set
from .roles_store import FILE_NAME, open_store
from .service import BUS_SECONDS

NAME: Final = "roles"
PATTERNS: Final = (f"{LIFECYCLE}*", FUNCTIONS_TOPIC)

LOAD_SECONDS: Final = 25.0
"""How long modules may take to load before the process is ready, or a change in force, without them."""

TURN_SECONDS: Final = 0.1
"""Longest wait for the bus before other things are looked at."""

HOLD_SECONDS: Final = 1.0
"""How long the broker may take to cease asking."""

DISPOSE_SECONDS: Final = 3.0
"""How long the hooks may take to be disposed."""

ERROR_CHARACTERS: Final = 300

log = get_logger("subscribers.roles")


class RolesProcess:
    """Roles, their hosts, and the bus."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._stop = threading.Event()
        self._rescan = threading.Event()
        self._publisher = Publisher(
            NAME, runtime_dir=options.runtime_dir, on_absent="block", block_seconds=BUS_SECONDS
        )
        self._reports = ReportQueue(partial(publish_report, self._publisher, log), self._publisher.together)
        self._node = find_node(options.node, os.environ)
        self._known: dict[str, InForce] = {}
        self._hosts = RolesHosts(
            self._node,
            workers=options.workers,
            memory_mb=options.memory_mb,
            runtime_dir=self._publisher.runtime_dir,
            log_level=options.log_level,
            on_log=self._on_log,
            on_inject=self._on_inject,
            on_state=self._on_state,
        )
        path = os.path.join(self._publisher.runtime_dir, FILE_NAME)
        self._memory = Memory(open_store(path))
        self._dispatcher = RolesDispatcher(self._hosts, self._memory, self._reports.add, options.scope)
        self._said: frozenset[Diagnostic] = frozenset()
        self._applying = threading.Lock()
        self._standing = threading.Lock()
        self._watch = RolesWatch(options.role, self._apply, self._failed, languages=languages(self._node))

    def run(self) -> None:
        """Serve until told to stop."""
        service.heed_signals(self._stop, self._rescan)
        self._apply(self._watch.roles)
        observer = Observer(
            [f"{LIFECYCLE}*"],
            self._dispatcher.event,
            log,
            name=NAME,
            runtime_dir=self._options.runtime_dir,
        )
        decider = Decider(
            PATTERNS,
            name=NAME,
            wait=BUS_SECONDS,
            report=self._counters,
            runtime_dir=self._options.runtime_dir,
        )
        self._watch.start()
        self._say_ready()
        while not self._stop.is_set():
            for ask in decider.batch(timeout=TURN_SECONDS):
                self._dispatcher.ask(ask)
            self._dispatcher.tick(time.monotonic())
            if self._rescan.is_set():
                self._rescan.clear()
                threading.Thread(target=self._look_again, name="rescan", daemon=True).start()
        self._drain(decider, observer)

    def _drain(self, decider: Decider, observer: Observer) -> None:
        """Take nothing more, let hooks under way end within their time, dispose all, flush what is told."""
        self._watch.stop()
        observer.close()
        decider.hold()
        until = time.monotonic() + HOLD_SECONDS
        while not decider.held and time.monotonic() < until:
            for ask in decider.batch(timeout=0.05):
                self._dispatcher.ask(ask)
        self._dispatcher.tick(float("inf"))
        until = time.monotonic() + self._options.drain_seconds
        while self._dispatcher.lanes.running and time.monotonic() < until:
            time.sleep(0.01)
        if self._dispatcher.lanes.running:
            log.warning("events were given up", sessions=self._dispatcher.lanes.running)
        with self._applying:
            self._hosts.close(DISPOSE_SECONDS)
        self._dispatcher.tick(float("inf"))
        decider.close()
        self._memory.close()
        self._reports.close()
        self._publisher.close()

    # -- what is in force ---------------------------------------------------------------------

    def _apply(self, roles: tuple[LoadedRole, ...]) -> None:
        """Have these roles in force, once their modules are loaded."""
        with self._applying:
            if self._stop.is_set():
                return
            before, after = self._dispatcher.roles, role_set(roles, self._options.timeout)
            self._say_new(roles)
            for missing in sorted(set(after.missing) - set(before.missing)):
                log_missing(missing)
            self._known = {**before.hooks, **after.hooks}
            self._hosts.load(after.modules)
            if not self._settled():
                log.warning("modules take long to load; the others do without them")
            self._dispatcher.roles = after
            if after != before or before is NOTHING:
                self._say_in_force(roles, after)

    def _settled(self) -> bool:
        """Wait for the modules, unless we are to end; whether they are loaded, or cannot be."""
        until = time.monotonic() + LOAD_SECONDS
        while not self._hosts.settle(TURN_SECONDS):
            if self._stop.is_set() or time.monotonic() > until:
                return False
        return True

    def _look_again(self) -> None:
        """Somebody has asked to look at all files, and is told what there is, also if nothing has changed."""
        before = self._dispatcher.roles
        self._watch.rescan()
        if self._dispatcher.roles is before:
            self._say_in_force(self._watch.roles, before)

    def _say_in_force(self, roles: tuple[LoadedRole, ...], after: RoleSet) -> None:
        if isinstance(self._node, NodeMissing) and any(said.code == "no_runtime" for said in self._said):
            log.warning("hooks in JavaScript do not run", reason=self._node.reason)
        loaded, refused = self._counts(after)
        log.info(
            "roles are in force",
            roles=[role.name for role in roles if not role.role.refused],
            hooks=loaded,
            refused=refused,
        )

    def _counts(self, roles: RoleSet) -> tuple[int, int]:
        """Hooks that can be called, and those that cannot."""
        states = self._hosts.states()
        loaded = sum(
            hook_id in states and (states[hook_id].name == "loaded" or states[hook_id].kept)
            for hook_id in roles.hooks
        )
        return loaded, len(roles.hooks) - loaded + len(roles.missing) + roles.bad_hooks

    def _say_new(self, roles: tuple[LoadedRole, ...]) -> None:
        diagnostics = [said for role in roles for said in role.diagnostics]
        log_diagnostics(log, (said for said in diagnostics if said not in self._said))
        self._said = frozenset(diagnostics)

    def _failed(self, error: Exception) -> None:
        log.error("looking at the roles failed", error=shown(error, ERROR_CHARACTERS))

    # -- what the hosts say -------------------------------------------------------------------

    def _on_log(self, hook_id: str, level: str, message: str, fields: Mapping[str, Any], /) -> None:
        hook = self._known.get(hook_id)
        if hook is not None:
            hook_log(hook, level, message, fields)

    def _on_inject(self, hook_id: str, session_id: str | None, text: str, /) -> None:
        hook = self._known.get(hook_id)  # not only those in force: onLoad may inject, too
        self._dispatcher.injected("a hook" if hook is None else hook.link.name, session_id, text)

    def _on_state(self, hook_id: str, state: State, /) -> None:
        hook = self._known.get(hook_id)
        with self._standing:
            out = self._dispatcher.out - {hook_id}
            self._dispatcher.out = out | {hook_id} if state.name == "quarantined" else out
        if hook is not None:
            log_state(hook, state)

    # -- what is told -------------------------------------------------------------------------

    def _counters(self) -> dict[str, Any]:
        roles = self._dispatcher.roles
        loaded, refused = self._counts(roles)
        states = self._hosts.states().values()
        return {
            "hooks": loaded,
            "roles": len(roles.named),
            "refused": refused,
            "quarantined": sum(state.name == "quarantined" for state in states),
            **self._dispatcher.counters(),
            "reports_dropped": self._reports.dropped,
            **self._hosts.counters(),
        }

    def _say_ready(self) -> None:
        roles = self._dispatcher.roles
        loaded, refused = self._counts(roles)
        service.say_ready(
            NAME,
            roles=len(roles.named),
            roles_refused=roles.refused,
            role_hooks=loaded,
            role_hooks_refused=refused,
        )
