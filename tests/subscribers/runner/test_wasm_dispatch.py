"""Plugins that come and go: what is counted, and what is forgotten with them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

pytest.importorskip("wasmtime", reason="the extra wasm is not installed")

from broker.protocol.events import Event
from subscribers.runner.wasm_dispatch import PluginDispatcher
from subscribers.runner.wasm_subscriptions import Subscriptions
from tests.integration.waiting import until
from tests.subscribers.runner.test_wasm_worker import Guest, Loads, plugin

EVENT = Event.of("prx.lifecycle.error", 0, b"p" * 8, 1, 0, None, "agent", None, b"{}")


class Waiting(Guest):
    """Waits for its gate in each call, and cannot be interrupted."""

    def call(self, event: str, payload: str, on_stuck: Any) -> Any:
        return super().call("wait", payload, on_stuck)

    def interrupt(self) -> None:
        self.interrupted = True


class Scene:
    """A dispatcher with one plugin in force, whose first call is under way."""

    def __init__(self) -> None:
        self.loads = Loads(Waiting)
        self.subscriptions = Subscriptions()
        self.dispatcher = PluginDispatcher(self.loads, self.subscriptions, lambda *_: None, queue=10)
        self.dispatcher.use([plugin()])
        until(lambda: self.counters()["loaded"] == 1, "the plugin")
        self.dispatcher.dispatch(EVENT)
        until(lambda: self.counters()["runs_now"] == 1, "the first call")

    def counters(self) -> dict[str, Any]:
        """The counters of now."""
        return self.dispatcher.counters()

    def open(self) -> None:
        """Let every call come to its end."""
        for guest in self.loads.guests():
            guest.gate.set()


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A scene, ended in order."""
    found = Scene()
    yield found
    found.open()
    found.dispatcher.drain(0.0)
    until(lambda: found.dispatcher.join(time.monotonic() + 1), "the end of every worker")


def test_calls_that_wait_for_a_removed_plugin_are_counted(scene: Scene) -> None:
    """They are dropped: none of them is called or reported."""
    for _ in range(3):
        scene.dispatcher.dispatch(EVENT)
    scene.dispatcher.use([])
    until(lambda: scene.counters()["runs_dropped"] == 3, "the drops")
    assert scene.counters()["runs"] == {"dropped": 3}
    assert cast(Waiting, scene.loads.guests()[0]).interrupted


def test_calls_that_a_drain_gives_up_are_counted(scene: Scene) -> None:
    """The one under way is given up too, and is reported when it ends."""
    for _ in range(2):
        scene.dispatcher.dispatch(EVENT)
    assert scene.dispatcher.drain(time.monotonic() + 0.05) == 3
    assert scene.counters()["runs_dropped"] == 2


def test_what_the_last_call_of_a_removed_plugin_subscribes_to_is_forgotten(scene: Scene) -> None:
    """Not only when it is removed: its call may go on for a while and subscribe."""
    scene.dispatcher.use([])
    scene.subscriptions.add("p", "a.b")
    scene.counters()
    assert scene.subscriptions
    scene.open()
    until(lambda: scene.counters() and not scene.subscriptions, "the subscription's end")


def test_a_plugin_that_is_in_force_again_keeps_what_it_subscribed_to(scene: Scene) -> None:
    """The end of its predecessor's last call takes nothing away from it."""
    scene.dispatcher.use([])
    scene.dispatcher.use([plugin("2")])
    scene.subscriptions.add("p", "a.b")
    scene.open()
    until(lambda: scene.counters() and not scene.dispatcher._retired, "the predecessor's end")
    assert scene.subscriptions.plugins_for("a.b") == ["p"]


def test_an_event_that_is_asked_about_a_second_time_is_not_handed_over_again(scene: Scene) -> None:
    """The plugin gets the first phase; the second one neither waits for it nor is dropped."""
    scene.dispatcher.use([plugin("2", "tool_call")])
    for phase in (b"before", b"after"):
        payload = b'{"tool": "t", "phase": "%b"}' % phase
        scene.dispatcher.dispatch(replace(EVENT, topic="prx.lifecycle.tool_call", payload_bytes=payload))
    assert scene.counters()["runs_waiting"] == 1
