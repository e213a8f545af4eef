"""A host of hook modules and a role directory, for the tests of this folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from subscribers.hooks.module_hook import Handler, ModuleCall, ModuleHook, ModuleReturn
from subscribers.hooks.module_plan import State
from subscribers.runtimes.module_host import ModuleHost
from tests.integration.waiting import until

PATIENCE_S = 30.0


class Pending:
    """A call under way."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._returns: list[ModuleReturn] = []

    def done(self, returned: ModuleReturn) -> None:
        """Take what came of it."""
        self._returns.append(returned)
        self._told.set()

    @property
    def is_over(self) -> bool:
        """Whether it has been told of."""
        return self._told.is_set()

    def result(self) -> ModuleReturn:
        """What came of it; told once, and in time."""
        assert self._told.wait(PATIENCE_S), "nobody told of a call"
        assert len(self._returns) == 1
        return self._returns[0]


class ModuleScene:
    """A host, what its hooks say, and the folder of their modules."""

    def __init__(self, folder: Path, argv: Sequence[str], *, board: bool = True) -> None:
        self.folder = folder
        self.logs: list[tuple[str, str, str, Mapping[str, Any]]] = []
        self.injected: list[tuple[str, str | None, str]] = []
        self.told: list[tuple[str, State]] = []
        self._wanted: dict[str, ModuleHook] = {}
        self._versions = 0
        self.host = ModuleHost(
            argv,
            {**os.environ, "PRXBUS_API_TOKEN": "secret"},
            name="test",
            board=board,
            on_log=lambda *facts: self.logs.append(facts),
            on_inject=lambda *facts: self.injected.append(facts),
            on_state=lambda *facts: self.told.append(facts),
        )

    def write(self, name: str, source: str) -> Path:
        """Write a file of the role directory."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def want(self, hook_id: str, file: str | None = None, config: Any = None) -> None:
        """Want a hook, or what has become of it, beside those that are wanted already."""
        self._versions += 1
        told = None if config is None else orjson.dumps(config).decode()
        path = str(self.folder / (file or f"{hook_id}.py"))
        self._wanted[hook_id] = ModuleHook(hook_id, hook_id.upper(), path, str(self._versions), told, "role")
        self.host.load(self._wanted.values())

    def unwant(self, *hook_ids: str) -> None:
        """Want these no longer."""
        for hook_id in hook_ids:
            del self._wanted[hook_id]
        self.host.load(self._wanted.values())

    def settled(self) -> Mapping[str, State]:
        """How all hooks stand when nothing is being loaded any more."""
        assert self.host.settle(PATIENCE_S)
        return self.host.states()

    def hook(self, hook_id: str, source: str, config: Any = None) -> State:
        """Write a hook, want it, and wait until it stands."""
        self.write(f"{hook_id}.py", source)
        self.want(hook_id, config=config)
        return self.settled()[hook_id]

    def begin(
        self,
        hook_id: str,
        handler: Handler = "onToolBefore",
        given: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = PATIENCE_S,
        session: str | None = "s1",
        caused: tuple[int, str | None] = (0, None),
    ) -> Pending:
        """Begin a call. ``caused``: depth and cause of what it publishes."""
        pending = Pending()
        given = {"tool": "Bash", "args": {}} if given is None else given
        call = ModuleCall(handler, orjson.dumps(given), session, "coder", timeout_s, *caused)
        self.host.call(hook_id, call, pending.done)
        return pending

    def call(
        self,
        hook_id: str,
        handler: Handler = "onToolBefore",
        given: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = PATIENCE_S,
        session: str | None = "s1",
    ) -> ModuleReturn:
        """Call a handler and wait."""
        return self.begin(hook_id, handler, given, timeout_s=timeout_s, session=session).result()

    def wait_for(self, hook_id: str, name: str) -> State:
        """Wait until a hook stands in this way."""
        until(lambda: self.host.states()[hook_id].name == name, f"{hook_id} to be {name}")
        return self.host.states()[hook_id]

    def said(self, hook_id: str, text: str) -> tuple[str, str, str, Mapping[str, Any]]:
        """Wait for a record in a hook's log, and return it."""

        def found() -> list[tuple[str, str, str, Mapping[str, Any]]]:
            return [record for record in self.logs if record[0] == hook_id and text in record[2]]

        until(found, f"{text!r} in the log of {hook_id}; there is {self.logs}")
        return found()[0]
