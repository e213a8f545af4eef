"""The application over a workspace of its own, without bus and socket, for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from starlette.testclient import TestClient

from broker.client import aio
from subscribers.dialects.base import EventView
from subscribers.hooks.outcome import Captured, Outcome
from subscribers.hooks.spec import HookSpec
from subscribers.http.access import Gate
from subscribers.http.application import build_application
from subscribers.http.ask_api import SOURCE, AskApi
from subscribers.http.blocking import Blocking
from subscribers.http.bus_api import BusApi
from subscribers.http.event_stream import Streams
from subscribers.http.guard import Guard
from subscribers.http.hooks_api import HooksApi
from subscribers.http.metrics import Metrics
from subscribers.sources.hook_store import HookStore

PORT = 16_831
ADDRESS = f"http://127.0.0.1:{PORT}"
TOKEN = "test-token-0123456789"
LETTER = {"Authorization": f"Bearer {TOKEN}"}
NOW = 1_774_080_000.0
TODAY = "2026-03-21T08:00:00Z"


STATUS: dict[str, Any] = {
    "version": "test",
    "runtime_dir": "none",
    "workspace": None,
    "hooks": 0,
    "hooks_problem": None,
    "http": {},
    "broker": None,
    "problem": "there is no bus in this test",
}


class RecordingTrial:
    """Keeps what it was asked to run, and runs nothing."""

    def __init__(self) -> None:
        self.asked: list[tuple[HookSpec, EventView]] = []

    def run(self, spec: HookSpec, view: EventView) -> Outcome:
        """Tell of a run that failed."""
        self.asked.append((spec, view))
        return Outcome("failed", 3, None, 0.0125, Captured(b"out\xff", b"", 4), Captured(b"err", b"", 3))


class Scene:
    """The application and what it stands on."""

    def __init__(
        self, workspace: Path, state: Path, runtime_dir: Path, *, attempts: int, named: bool
    ) -> None:
        self.workspace = workspace
        self.now = NOW
        self.trial = RecordingTrial()
        self.metrics = Metrics()
        self.pools = [Blocking(2, 8, "test") for _ in range(3)]
        store = HookStore(str(workspace), str(state), "/usr/bin", now=lambda: self.now)
        self.hooks = HooksApi(
            store if named else None,
            self.trial if named else None,
            self.pools[0],
            self.pools[1],
            lambda: int(NOW * 1e9),
        )
        streams = Streams(runtime_dir)
        self.bus = BusApi(runtime_dir, streams, self.metrics, self.pools[2], lambda: STATUS)
        self.asks = AskApi(aio.Publisher(SOURCE, runtime_dir=runtime_dir))
        self.app: Guard = build_application(self.hooks, self.bus, self.asks, Gate(TOKEN, attempts), PORT)
        self.client = TestClient(self.app, ADDRESS, raise_server_exceptions=False, headers=LETTER)

    def write(self, document: Any) -> str:
        """Save a hooks.json; its text."""
        text = document if isinstance(document, str) else json.dumps(document, indent=2)
        (self.workspace / "hooks.json").write_text(text)
        return text

    def read(self) -> Any:
        """What hooks.json says."""
        return orjson.loads((self.workspace / "hooks.json").read_bytes())

    def problem(self, answer: Any) -> tuple[int, str, str | None]:
        """Status, code and field of an answer that must be a whole problem document."""
        document = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert document["status"] == answer.status_code
        assert document["type"] == f"urn:prxbus:problem:{document['code']}"
        assert document["title"]
        assert document["detail"]
        return answer.status_code, document["code"], document.get("field")


@contextmanager
def scene(tmp_path: Path, *, attempts: int = 5, named: bool = True) -> Iterator[Scene]:
    """A scene in new folders; its threads end with it."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    found = Scene(workspace, tmp_path / "state", tmp_path / "no-bus", attempts=attempts, named=named)
    try:
        with found.client:
            yield found
    finally:
        for pool in found.pools:
            pool.close()
