"""One plugin's worker: order, bounds, versions, and calls that never come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from broker.protocol.events import Event
from subscribers.dialects.prx_plugin import parse
from subscribers.hooks.outcome import NOTHING, Outcome
from subscribers.runner import wasm_worker
from subscribers.runner.wasm_loader import Loaded, LoadFailed
from subscribers.runner.wasm_worker import STUCK, Call, PluginWorker
from subscribers.sources.plugins_state import Plugin
from tests.integration.waiting import until

EVENT = Event.of("prx.lifecycle.error", 0, b"p" * 8, 1, 0, None, "agent", None, b"{}")


def plugin(version: str = "1", event: str = "error") -> Plugin:
    """A version of the plugin."""
    text = (
        f'[plugin]\nname = "p"\nversion = "{version}"\n'
        f'[[capabilities]]\ntype = "hook"\nevents = ["{event}"]\n'
    )
    manifest = parse(text.encode(), "plugin.toml").manifest
    assert manifest is not None
    return Plugin("p", "plugin.toml", manifest, (1,))


class Host:
    """Keeps whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def begin(self, event: Event) -> None:
        """Nothing to prepare."""

    def end(self) -> None:
        """Nothing to tell."""

    def close(self) -> None:
        self.closed = True


class Guest:
    """Does what the name of a call says: ``wait`` waits for the gate, ``stuck`` says so first."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.gate = threading.Event()
        self.interrupted = False

    def call(self, event: str, payload: str, on_stuck: Callable[[], None]) -> Outcome:
        if event == "stuck":
            on_stuck()
        if event in ("wait", "stuck"):
            assert self.gate.wait(60)
        status = "timeout" if self.interrupted else "ok"
        return Outcome(
            cast(Any, status), None, None, 0.0, NOTHING, NOTHING, f"{self.version} {event} {payload}"
        )

    def interrupt(self) -> None:
        self.interrupted = True
        self.gate.set()


class Loads:
    """Loads what it is told to; ``bad`` cannot be loaded, and ``odd`` fails in an unforeseen way."""

    def __init__(self, guest: type[Guest] = Guest) -> None:
        self.guest = guest
        self.loaded: list[Loaded] = []
        self.gate = threading.Event()
        self.gate.set()

    def load(self, plugin: Plugin) -> Loaded:
        assert self.gate.wait(60)
        if plugin.manifest.version == "bad":
            raise LoadFailed("it is bad")
        if plugin.manifest.version == "odd":
            raise RuntimeError("how odd")
        self.loaded.append(Loaded(plugin, cast(Any, self.guest(plugin.manifest.version)), cast(Any, Host())))
        return self.loaded[-1]

    def guests(self) -> list[Guest]:
        """Every guest that was made."""
        return [cast(Guest, loaded.guest) for loaded in self.loaded]


class Scene:
    """A worker with what it reports."""

    def __init__(self, queue: int = 10, version: str = "1", *, held: bool = False) -> None:
        self.loads = Loads()
        if held:
            self.loads.gate.clear()
        self.reports: list[tuple[str, str | None]] = []
        self.worker = PluginWorker(plugin(version), self.loads, self._report, queue)

    def _report(self, _plugin: Plugin, call: Call, outcome: Outcome, waited_s: float) -> None:
        assert waited_s >= 0
        self.reports.append((outcome.status, outcome.reason))

    def offer(self, name: str, body: bytes = b"{}") -> bool:
        """Offer a call."""
        return self.worker.offer(Call(EVENT, name, body, time.monotonic()))

    def reported(self, count: int) -> list[tuple[str, str | None]]:
        """The first so many reports, waiting for them."""
        until(lambda: len(self.reports) >= count, f"{count} reports, not {self.reports}")
        return self.reports[:count]

    def close(self) -> None:
        """End everything that may still wait."""
        self.loads.gate.set()
        self.worker.drain(0.0)
        for guest in self.loads.guests():
            guest.gate.set()
        until(lambda: self.worker.join(time.monotonic() + 1), "the worker's end")


Make = Callable[..., Scene]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes scenes, ended in order."""
    scenes: list[Scene] = []

    def made(*arguments: Any, **named: Any) -> Scene:
        scenes.append(Scene(*arguments, **named))
        return scenes[-1]

    yield made
    for scene in scenes:
        scene.close()


def test_calls_come_in_order_and_wait_until_the_plugin_is_loaded(make: Make) -> None:
    """What was offered while it was being compiled is done first."""
    scene = make(held=True)
    assert all(scene.offer("e", str(number).encode()) for number in range(3))
    assert not scene.worker.loaded
    assert scene.worker.waiting == 3
    scene.loads.gate.set()
    assert scene.reported(3) == [("ok", f"1 e {number}") for number in range(3)]
    assert scene.worker.loaded


def test_bytes_that_are_no_text_reach_it_as_text(make: Make) -> None:
    """A component takes Unicode only; what a foreign publisher sent is mended, not refused."""
    scene = make()
    scene.offer("e", b"\xff{}")
    assert scene.reported(1) == [("ok", "1 e \ufffd{}")]


def test_what_finds_no_room_is_dropped(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is bounded in number and in bytes; one call always may wait."""
    scene = make(2)
    scene.offer("wait")
    until(lambda: scene.worker.running, "the first call")
    assert [scene.offer("e") for _ in range(4)] == [True, True, False, False]
    wide = make()
    wide.offer("wait")
    until(lambda: wide.worker.running, "the first call")
    monkeypatch.setattr(wasm_worker, "QUEUE_BYTES", 10)
    assert [wide.offer("e", b"x" * 11), wide.offer("e", b"x")] == [True, False]
    for each in (scene, wide):
        each.loads.guests()[0].gate.set()
    scene.reported(3)
    wide.reported(2)
    assert wide.offer("e", b"x")


def test_a_new_version_takes_over_between_two_calls(make: Make) -> None:
    """A call under way is finished by the old version, whose host is then closed; patterns change with it."""
    scene = make()
    scene.offer("wait")
    until(lambda: scene.worker.running, "the first call")
    scene.worker.replace(plugin("2", "agent_end"))
    until(lambda: len(scene.loads.loaded) == 2, "the second version")
    scene.offer("e")
    scene.loads.guests()[0].gate.set()
    assert scene.reported(2) == [("ok", "1 wait {}"), ("ok", "2 e {}")]
    assert cast(Host, scene.loads.loaded[0].host).closed
    assert scene.worker.takes("agent_end")
    assert not scene.worker.takes("error")


@pytest.mark.parametrize("version", ["bad", "odd"])
def test_a_version_that_cannot_be_loaded_leaves_the_one_in_force(make: Make, version: str) -> None:
    """And the next good one takes over."""
    scene = make()
    scene.offer("e")
    scene.reported(1)
    scene.loads.gate.clear()
    scene.worker.replace(plugin(version, "agent_end"))
    scene.loads.gate.set()
    scene.offer("e")
    assert scene.reported(2)[1] == ("ok", "1 e {}")
    scene.worker.replace(plugin("2", "agent_end"))
    until(lambda: scene.worker.takes("agent_end"), "the second version")


def test_a_plugin_that_was_never_good_reports_why_nothing_runs(make: Make) -> None:
    """Its calls are not started, with the reason, until a version can be loaded."""
    scene = make(version="bad")
    scene.offer("e")
    assert scene.reported(1) == [("not_started", "the plugin is not loaded: it is bad")]
    scene.worker.replace(plugin("2", "agent_end"))
    assert scene.worker.takes("agent_end")
    until(lambda: scene.worker.loaded, "the good version")
    scene.offer("e")
    assert scene.reported(2)[1] == ("ok", "2 e {}")


def test_versions_that_come_while_one_is_loaded_are_not_all_loaded(make: Make) -> None:
    """The latest is what counts; what was loaded meanwhile is thrown away."""
    scene = make(held=True)
    for version in ("2", "3", "4"):
        scene.worker.replace(plugin(version))
    scene.loads.gate.set()
    scene.offer("e")
    assert scene.reported(1) == [("ok", "4 e {}")]
    assert [guest.version for guest in scene.loads.guests()] == ["1", "4"]


def test_a_call_that_is_stuck_is_left_behind(make: Make) -> None:
    """It is reported once, the plugin goes on with a fresh component, and the thread ends at last."""
    scene = make()
    scene.offer("stuck")
    scene.offer("e")
    reports = scene.reported(2)
    assert reports[0][0] == "timeout"
    assert "stuck in the host" in (reports[0][1] or "")
    assert reports[1] == ("ok", "1 e {}")
    assert scene.worker.stuck == 1
    scene.loads.guests()[0].gate.set()
    until(lambda: scene.worker.stuck == 0, "the thread's end")
    assert cast(Host, scene.loads.loaded[0].host).closed
    assert len(scene.reports) == 2


def test_a_plugin_that_is_stuck_again_and_again_is_called_no_longer(make: Make) -> None:
    """Threads are not left behind without end; an edit gives it another try."""
    scene = make()
    for _ in range(STUCK):
        scene.offer("stuck")
    scene.reported(STUCK)
    until(lambda: scene.worker.stuck == STUCK, "the last one")
    scene.offer("e")
    status, reason = scene.reported(STUCK + 1)[-1]
    assert status == "not_started"
    assert f"{STUCK} of its calls are stuck" in (reason or "")
    scene.worker.replace(plugin("2"))
    until(lambda: scene.worker.loaded, "the new version")
    scene.offer("e")
    assert scene.reported(STUCK + 2)[-1] == ("ok", "2 e {}")


def test_draining_lets_what_waits_be_done(make: Make) -> None:
    """Nothing more is taken, everything that was is finished, and its host is closed."""
    scene = make()
    for number in range(5):
        scene.offer("e", str(number).encode())
    assert scene.worker.drain(time.monotonic() + 30) == (0, 0)
    assert scene.worker.join(time.monotonic() + 30)
    assert len(scene.reports) == 5
    assert not scene.offer("e")
    assert cast(Host, scene.loads.loaded[0].host).closed


def test_draining_ends_what_takes_too_long(make: Make) -> None:
    """The call is interrupted and reported, what waits is given up and told apart from it."""
    scene = make()
    scene.offer("wait")
    until(lambda: scene.worker.running, "the first call")
    for _ in range(3):
        scene.offer("e")
    assert scene.worker.drain(time.monotonic() + 0.05) == (3, 1)
    assert scene.worker.join(time.monotonic() + 30)
    assert scene.reports == [("timeout", "1 wait {}")]
