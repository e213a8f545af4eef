"""A dispatcher of the Codex family with everything around it, and stand-ins for runs and asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from broker.protocol.decisions import Answer
from broker.protocol.envelope import PUBLISHER_BYTES
from broker.protocol.events import Event
from subscribers.config.hook_files import HookFile
from subscribers.hooks.outcome import Captured, Outcome
from subscribers.runner.codex_dispatch import CodexDispatcher
from subscribers.runner.codex_invocation import Scene
from subscribers.runner.codex_process import ASYNC_AT_ONCE
from subscribers.runner.codex_runs import Runs
from subscribers.runner.codex_selection import Chosen
from subscribers.runner.codex_spill_files import SpillFiles
from subscribers.runner.codex_telling import Teller
from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.pool import RunPool
from subscribers.runtimes.reaper import Reaper
from subscribers.sources.codex_documents import Configured, Documents, Places
from subscribers.sources.codex_layers import Switches
from tests.subscribers.runner.fake_ask import SECONDS, FakeAsk


def printed(text: str, *, exit_code: int = 0, stderr: str = "") -> Outcome:
    """The outcome of a command that printed this."""
    out, err = text.encode(), stderr.encode()
    captured = Captured(out, b"", len(out)), Captured(err, b"", len(err))
    return Outcome("failed" if exit_code else "ok", exit_code, None, 0.01, *captured)


def block(reason: str) -> Outcome:
    """The outcome of a command that blocks."""
    return printed("", exit_code=2, stderr=reason)


class FakeRuns(Runs):
    """Runs nothing: what each command says is in a table."""

    def __init__(self, commands: dict[str, Callable[[], Outcome]]) -> None:
        super().__init__(Reaper(), Deadlines())
        self.commands = commands
        self.unwanted: int | None = None
        self.ran: list[tuple[str, bytes, float, Scene]] = []

    def run(self, chosen: Chosen, scene: Scene, timeout_s: float, unwanted: int | None = None) -> Outcome:
        """What the table says."""
        self.unwanted = unwanted
        self.ran.append((chosen.handler.command, chosen.body, timeout_s, scene))
        return self.commands[chosen.handler.command]()

    def close(self) -> None:
        """End the threads of the parts that are never used."""
        self._reaper.close(time.monotonic())
        self._deadlines.close()


class Stage:
    """A dispatcher with everything around it."""

    def __init__(self, root: Path, **pool: int) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self.workspace.mkdir()
        self.files: list[HookFile] = []
        self.strict = False
        self.commands: dict[str, Callable[[], Outcome]] = {}
        self.runs = FakeRuns(self.commands)
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.reported = threading.Condition()
        self.teller = Teller(self._publish)
        self.pool = RunPool(**pool)
        self.background = RunPool(per_hook=ASYNC_AT_ONCE)
        self.preparing = RunPool(total=1)
        self.deadlines = Deadlines()
        self.spill = SpillFiles(str(root))
        self.documents = Documents(
            Places(str(root), str(self.workspace)),
            lambda: Configured(Switches(project=True, strict=self.strict), tuple(self.files)),
            lambda *_: None,
            {"XDG_CONFIG_HOME": str(root)},
        )
        self.dispatcher = CodexDispatcher(
            self.documents,
            self.runs,
            self.teller,
            pool=self.pool,
            background=self.background,
            preparing=self.preparing,
            deadlines=self.deadlines,
            spill=self.spill,
            workspace=str(self.workspace),
            runtime_dir=str(root),
            environ={"HOME": str(root)},
        )
        self._events = 0

    def _publish(self, topic: str, payload: dict[str, Any], _event: Event) -> None:
        with self.reported:
            self.reports.append((topic, orjson.loads(orjson.dumps(payload))))
            self.reported.notify_all()

    def file(self, profile: str, event: str, *handlers: dict[str, Any], **group: Any) -> None:
        """A hook file of the user's with one group of handlers."""
        path = self.root / f"{len(self.files)}.json"
        self.files.append(HookFile(str(path), profile, False))  # type: ignore[arg-type]
        self._write(path, event, handlers, group)

    def project(self, event: str, *handlers: dict[str, Any]) -> None:
        """The workspace's own hook file."""
        self._write(self.workspace / ".prxbus" / "hooks.json", event, handlers, {})

    def _write(
        self, path: Path, event: str, handlers: tuple[dict[str, Any], ...], group: dict[str, Any]
    ) -> None:
        path.parent.mkdir(exist_ok=True)
        whole = [{"type": "command", **handler} for handler in handlers]
        path.write_bytes(orjson.dumps({"hooks": {event: [{**group, "hooks": whole}]}}))
        self.documents.current()

    def says(self, command: str, said: Outcome | Callable[[], Outcome]) -> dict[str, Any]:
        """A handler whose command comes to that."""
        self.commands[command] = said if callable(said) else lambda: said
        return {"command": command}

    def event(self, name: str, payload: Any, session: str | None = "s") -> Event:
        """An event of an agent's."""
        self._events += 1
        body = payload if isinstance(payload, bytes) else orjson.dumps(payload)
        key = b"p" * PUBLISHER_BYTES
        return Event.of(
            f"prx.lifecycle.{name}", 0, key, self._events, time.time_ns(), session, "agent", None, body
        )

    def ask(self, name: str, payload: Any, seconds: float = SECONDS, session: str | None = "s") -> FakeAsk:
        """Ask about an event, and wait for the answer."""
        ask = FakeAsk(self.event(name, payload, session), seconds)
        self.dispatcher.ask(ask)
        return ask.wait()

    def reports_of(self, topic: str, count: int) -> list[dict[str, Any]]:
        """The first ``count`` reports of a topic, waiting for them."""
        with self.reported:
            found: list[dict[str, Any]] = []

            def enough() -> bool:
                found[:] = [payload for each, payload in self.reports if each == topic]
                return len(found) >= count

            assert self.reported.wait_for(enough, SECONDS), found
            return found

    def close(self) -> None:
        """End every thread."""
        for pool in (self.preparing, self.pool, self.background):
            pool.drain(SECONDS)
        self.deadlines.close()
        self.runs.close()


def only(ask: FakeAsk) -> Answer:
    """The one answer that an ask was given."""
    assert ask.answers is not None
    (answer,) = ask.answers
    return answer


BASH = {"tool": "Bash", "arguments": {"command": "ls"}}
