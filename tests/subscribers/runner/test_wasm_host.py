"""What a plugin finds outside: bounded in each call, and of the event that it handles."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from broker.protocol.errors import ClosedError, TopicError
from broker.protocol.events import Event
from subscribers.runner import wasm_host
from subscribers.runner.wasm_host import LINE_CHARACTERS, LINES, PUBLISHED, PluginHost
from subscribers.runner.wasm_subscriptions import PER_PLUGIN, Subscriptions
from subscribers.runtimes.wasm_imports import Refused
from subscribers.runtimes.wasm_keys import KeyValues

EVENT = Event.of("prx.lifecycle.error", 3, b"p" * 8, 1, 0, "s1", "agent", None, b"{}")


class Bus:
    """Keeps what was published."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, object, dict[str, str | int | None]]] = []
        self.error: Exception | None = None
        self.closed = False

    def publish(
        self,
        topic: str,
        payload: Mapping[str, Any] | bytes,
        *,
        session_id: str | None = None,
        depth: int | None = None,
        caused_by: str | None = None,
    ) -> bool:
        if self.error is not None:
            raise self.error
        named = {"session_id": session_id, "depth": depth, "caused_by": caused_by}
        self.sent.append((topic, payload, named))
        return False

    def close(self) -> None:
        self.closed = True


class Scene:
    """A host with its bus and its keys."""

    def __init__(self, path: Path, most: int = 1_000) -> None:
        self.bus = Bus()
        self.subscriptions = Subscriptions()
        self.opened: list[str] = []
        self.host = PluginHost(
            "p", {"topic": "x"}, self.subscriptions, lambda: self._keys(path, most), self._open_bus
        )

    def _keys(self, path: Path, most: int) -> KeyValues:
        self.opened.append("keys")
        return KeyValues(str(path), most)

    def _open_bus(self) -> Bus:
        self.opened.append("bus")
        return self.bus


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A host that handles an event of depth 3."""
    found = Scene(tmp_path / "keys")
    found.host.begin(EVENT)
    return found


class Log:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, dict[str, object]]] = []

    def _say(self, level: str, message: str, facts: dict[str, object]) -> None:
        self.said.append((level, message, facts))

    def debug(self, message: str, **facts: object) -> None:
        self._say("debug", message, facts)

    def info(self, message: str, **facts: object) -> None:
        self._say("info", message, facts)

    def warning(self, message: str, **facts: object) -> None:
        self._say("warning", message, facts)

    def error(self, message: str, **facts: object) -> None:
        self._say("error", message, facts)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """The operator's log."""
    found = Log()
    monkeypatch.setattr(wasm_host, "log", found)
    return found


def test_what_it_publishes_is_one_level_deeper_and_caused_by_its_event(scene: Scene) -> None:
    """Session, depth and cause come from the event; a drop for depth is no error for the plugin."""
    scene.host.publish("a.b", '{"x": "ä"}')
    assert scene.bus.sent == [
        ("a.b", '{"x": "ä"}'.encode(), {"session_id": "s1", "depth": 4, "caused_by": EVENT.id})
    ]
    scene.host.close()
    assert scene.bus.closed


def test_what_the_bus_refuses_is_the_plugins_error(scene: Scene) -> None:
    """A bad topic, a closed bus, and no event at all."""
    scene.bus.error = TopicError("no such topic")
    with pytest.raises(Refused, match="no such topic"):
        scene.host.publish("a b", "{}")
    scene.bus.error = ClosedError("closed")
    with pytest.raises(Refused, match="being closed"):
        scene.host.publish("a", "{}")
    scene.host.end()
    with pytest.raises(Refused, match="no event"):
        scene.host.publish("a", "{}")


def test_one_call_publishes_and_writes_so_much(scene: Scene, log: Log) -> None:
    """Beyond it publishing is refused, lines are counted; the next call may again."""
    for _ in range(PUBLISHED):
        scene.host.publish("a", "{}")
    with pytest.raises(Refused, match=f"{PUBLISHED} events"):
        scene.host.publish("a", "{}")
    for number in range(LINES + 5):
        scene.host.log("error", f"{number} " + "x" * 3_000)
    scene.host.end()
    *lines, (level, message, facts) = log.said
    assert [line.split()[0] for _, line, _ in lines] == [str(number) for number in range(LINES)]
    assert {len(line) for _, line, _ in lines} == {LINE_CHARACTERS}
    assert lines[0][2] == {"plugin": "p", "event_id": EVENT.id}
    assert (level, message, facts) == (
        "warning",
        "a plugin wrote too much",
        {"plugin": "p", "lines_left_out": 5},
    )
    scene.host.begin(EVENT)
    scene.host.publish("a", "{}")


def test_what_it_says_has_its_level(scene: Scene, log: Log) -> None:
    """Levels of the interface become those of the log; what it prints is a line too."""
    for level in ("trace", "debug", "info", "warn", "error"):
        scene.host.log(level, "x")
    scene.host.end()
    scene.host.wrote(b"printed \xff\n")
    assert [level for level, _, _ in log.said] == ["debug", "debug", "info", "warning", "error", "info"]
    assert log.said[-1][1:] == ("printed \ufffd", {"plugin": "p", "event_id": None})


def test_keys_are_opened_when_they_are_needed(scene: Scene) -> None:
    """A plugin that keeps nothing has no file; what does not fit is its error."""
    assert scene.host.config() == {"topic": "x"}
    assert scene.opened == []
    scene.host.kv_set("k", b"v")
    assert scene.host.kv_get("k") == b"v"
    assert scene.host.kv_keys("") == ["k"]
    assert scene.host.kv_delete("k")
    with pytest.raises(Refused, match="no room"):
        scene.host.kv_set("k", b"v" * 1_000)
    assert scene.opened == ["keys"]
    scene.host.close()
    with pytest.raises(sqlite3.ProgrammingError):
        scene.host.kv_get("k")


def test_broken_keys_are_said(tmp_path: Path, log: Log) -> None:
    """They are put aside, the plugin goes on, and the operator is told where they are."""
    path = tmp_path / "keys"
    path.write_bytes(b"no database" * 100)
    scene = Scene(path)
    assert scene.host.kv_get("k") is None
    ((level, _, facts),) = log.said
    assert (level, facts) == ("error", {"plugin": "p", "path": f"{path}.broken"})
    scene.host.close()


def test_subscriptions_are_bounded_and_end_with_the_instance(scene: Scene) -> None:
    """Bad patterns and reports are refused; numbers are the plugin's own; a fresh instance has none."""
    number = scene.host.subscribe("weather.*")
    assert scene.subscriptions.plugins_for("weather.update") == ["p"]
    assert scene.subscriptions.plugins_for("prx.hooks.run") == []
    for pattern, why in (("weather*", "whole segment"), ("prx.hooks.*", "not given"), ("", "empty")):
        with pytest.raises(Refused, match=why):
            scene.host.subscribe(pattern)
    with pytest.raises(Refused, match="no subscription"):
        scene.subscriptions.remove("other", number)
    scene.host.unsubscribe(number)
    assert not scene.subscriptions
    with pytest.raises(Refused, match="no subscription"):
        scene.host.unsubscribe(number)
    for _ in range(PER_PLUGIN):
        scene.host.subscribe("*")
    with pytest.raises(Refused, match=f"{PER_PLUGIN} subscriptions"):
        scene.host.subscribe("a")
    assert scene.subscriptions.plugins_for("prx.hooks.run") == []
    assert scene.subscriptions.wait(some=True, timeout=0)
    scene.host.fresh()
    assert scene.subscriptions.wait(some=False, timeout=0)
    assert scene.subscriptions.plugins_for("a") == []
