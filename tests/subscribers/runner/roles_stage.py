"""The hooks of roles without processes: a host that does what a table says, asks and events as values."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import orjson

from broker.protocol.envelope import PUBLISHER_BYTES
from broker.protocol.events import Event
from subscribers.hooks.module_hook import ModuleCall, ModuleHook, ModuleReturn
from subscribers.hooks.role_chain import Link, Phase, ordered
from subscribers.hooks.role_functions import RoleFunctions
from subscribers.hooks.role_sessions import Named, Scope
from subscribers.runner.roles_dispatch import RolesDispatcher
from subscribers.runner.roles_memory import Memory
from subscribers.runner.roles_set import InForce, RoleSet
from subscribers.runner.roles_store import RolesStore
from tests.subscribers.runner.fake_ask import SECONDS, FakeAsk

Does = Callable[[ModuleCall], ModuleReturn]


def ok(*injected: str, edit: Any = None) -> ModuleReturn:
    """A handler that came to its end."""
    return ModuleReturn("ok", edit, injected)


class FakeHosts:
    """Answers in a thread of its own, as a host's reader does; what has no entry is absent, and at once."""

    def __init__(self) -> None:
        self.does: dict[str, Does] = {}
        self.calls: list[tuple[str, ModuleCall]] = []
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def call(self, hook_id: str, call: ModuleCall, done: Callable[[ModuleReturn], None], /) -> None:
        """Call it, later."""
        does = self.does.get(hook_id)
        if does is None:
            done(ModuleReturn("absent", error="no such handler"))
            return
        self.calls.append((hook_id, call))
        self._queue.put(lambda: done(does(call)))

    def close(self) -> None:
        """End the thread."""
        self._queue.put(None)
        self._thread.join(SECONDS)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            job()


class Stage:
    """A dispatcher with everything around it; ``path`` is where it remembers."""

    def __init__(self, path: str, scope: Scope = "session") -> None:
        self.hosts = FakeHosts()
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.memory = Memory(RolesStore(path))
        self.dispatcher = RolesDispatcher(self.hosts, self.memory, self._publish, scope)
        self._roles: dict[str, tuple[str | None, RoleFunctions, list[Link]]] = {}
        self._events = 0

    def _publish(self, topic: str, payload: dict[str, Any], _event: Event) -> None:
        self.reports.append((topic, orjson.loads(orjson.dumps(payload))))

    def role(self, name: str, functions: RoleFunctions | None = None, title: str | None = None) -> None:
        """Have a role in force."""
        self._roles[name] = (title, functions or RoleFunctions(), [])
        self._use()

    def hook(
        self,
        names: str,
        events: str,
        does: Does | None,
        phase: Phase = "after",
        priority: float = 50,
        role: str = "coder",
        tools: frozenset[str] | None = None,
    ) -> None:
        """Have hooks in force; names and events with spaces between. ``does`` None: they have no handler."""
        if role not in self._roles:
            self.role(role)
        for name in names.split():
            link = Link(f"/{role}#{name}", name, role, frozenset(events.split()), phase, priority, tools)
            self._roles[role][2].append(link)
            if does is not None:
                self.hosts.does[link.id] = does
        self._use()

    def _use(self) -> None:
        roles = self._roles.items()
        self.dispatcher.roles = RoleSet(
            tuple(Named(name, title) for name, (title, _, _) in roles),
            tuple(functions for _, (_, functions, _) in roles),
            tuple(ordered(links) for _, (_, _, links) in roles),
            {
                link.id: InForce(link, ModuleHook(link.id, link.name, "/m.js", "d", None, name), 3)
                for name, (_, _, links) in roles
                for link in links
            },
        )

    def event(self, name: str, payload: Any, session: str | None = "s", cause: Event | None = None) -> Event:
        """An event of an agent's, or of a hook's that handles ``cause``."""
        self._events += 1
        body = payload if isinstance(payload, bytes) else orjson.dumps(payload)
        topic = name if "." in name else f"prx.lifecycle.{name}"
        depth, why = (0, None) if cause is None else (cause.depth + 1, cause.id)
        publisher, now = b"p" * PUBLISHER_BYTES, time.time_ns()
        return Event.of(topic, depth, publisher, self._events, now, session, "agent", why, body)

    def ask(
        self,
        name: str,
        payload: Any,
        session: str | None = "s",
        seconds: float = SECONDS,
        cause: Event | None = None,
    ) -> FakeAsk:
        """Ask about an event."""
        ask = FakeAsk(self.event(name, payload, session, cause), seconds)
        self.dispatcher.ask(ask)
        return ask

    def prompt(self, session: str = "s", **more: Any) -> list[str]:
        """The system prompt of a session, as the hooks of its role have it."""
        decision = self.ask("system_transform", {"system": ["base"], **more}, session).decision
        whole = decision.input if decision.updated_input is None else decision.updated_input
        return list(whole["system"])

    def runs(self) -> list[tuple[str, str, str | None]]:
        """What was reported of runs: hook, status and reason."""
        return [
            (p["hook"], p["status"], p["reason"]) for topic, p in self.reports if topic == "prx.hooks.run"
        ]

    def close(self) -> None:
        """End everything."""
        self.hosts.close()
        self.memory.close()
