"""A signal handler that publishes or raises in the middle of a publish, and what else comes in between."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from broker.client import Publisher, Subscriber, aio
from broker.client.core.batching import Batch
from broker.protocol.envelope import event_frame
from broker.protocol.errors import TopicError
from broker.testing import StubPublisher, running_broker
from tests.integration.waiting import until

TOPIC = "prx.x"


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """The runtime directory of a running broker."""
    with running_broker(runtime_dir) as directory:
        yield directory


@pytest.fixture
def agent(bus: str) -> Iterator[Publisher]:
    """A publisher that waits for room."""
    with Publisher("me", runtime_dir=bus, on_absent="block", on_full="block") as publisher:
        yield publisher


@pytest.fixture
def events(bus: str) -> Iterator[Subscriber]:
    """Who hears everything."""
    with Subscriber(["prx.*"], runtime_dir=bus) as subscriber:
        yield subscriber


class Once:
    """Does ``first`` before or after the first call of ``then``, and ``then`` alone from the second on."""

    def __init__(self, then: Callable[..., Any], first: Callable[[], object], *, after: bool = False) -> None:
        self._then = then
        self._first: Callable[[], object] | None = first
        self._after = after

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        first, self._first = self._first, None
        if first is None or self._after:
            answer = self._then(*arguments, **named)
            if first is not None:
                first()
            return answer
        first()
        return self._then(*arguments, **named)


def interrupt() -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


def received(events: Subscriber, count: int) -> list[int]:
    """The numbers in the next ``count`` events."""
    found: list[int] = []
    while len(found) < count:
        batch = events.batch(timeout=20)
        assert batch, events.stats
        found += [event.payload["n"] for event in batch]
    return found


class Lock:
    """A lock whose ``acquire`` is interrupted once: as soon as the lock is taken, or before it is."""

    def __init__(self, *, taken: bool) -> None:
        self.real = threading.RLock()
        self.acquire = Once(self.real.acquire, interrupt, after=taken)
        self.release = self.real.release

    def __enter__(self) -> None:
        self.real.acquire()

    def __exit__(self, *_error: object) -> None:
        self.real.release()


@pytest.mark.parametrize("taken", [True, False])
def test_an_interrupt_leaves_no_lock_behind(
    agent: Publisher, monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    """Other threads publish as before, wherever Ctrl-C has come."""
    lock = Lock(taken=taken)
    with monkeypatch.context() as patch:
        patch.setattr(agent, "_lock", lock)
        with pytest.raises(KeyboardInterrupt):
            agent.publish(TOPIC, {"n": 1})
        free: list[bool] = []
        thread = threading.Thread(target=lambda: free.append(lock.real.acquire(timeout=20)))
        thread.start()
        thread.join()
        assert free == [True]


def test_an_interrupted_frame_is_not_lost(
    agent: Publisher, events: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was gathered leaves with the next flush when Ctrl-C came while it was packed."""
    frame = Once(Batch.frame, interrupt)
    monkeypatch.setattr(Batch, "frame", lambda batch: frame(batch))  # noqa: PLW0108 - a method
    with agent.together():
        agent.publish(TOPIC, {"n": 1})
        with pytest.raises(KeyboardInterrupt):
            agent.flush()
    assert received(events, 1) == [1]
    assert events.stats["missed"] == 0


@pytest.mark.parametrize("size", [10, 70_000])
def test_a_handler_that_publishes_does_not_change_the_order(
    agent: Publisher, events: Subscriber, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """An event whose frame is being made takes the number after that of a signal handler's event."""
    agent.publish(TOPIC, {"n": 0})
    names = agent._known_names[None]
    payload = {"n": 2, "text": "x" * size}
    if size < 70_000:
        layout = names.layout

        class Layout:
            pack = Once(layout.pack, lambda: agent.publish(TOPIC, {"n": 1}))

        monkeypatch.setattr(names, "layout", Layout)
    else:
        made = Once(event_frame, lambda: agent.publish(TOPIC, {"n": 1}))
        monkeypatch.setattr("broker.client.outlet.event_frame", made)
    agent.publish(TOPIC, payload)
    assert received(events, 3) == [0, 1, 2]
    assert (events.stats["late"], events.stats["missed"]) == (0, 0)


def test_what_waited_for_room_goes_by_the_id_of_now(
    agent: Publisher, events: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event whose publisher id was renewed while it waited is numbered and counted under the new one."""
    agent.publish(TOPIC, {"n": 0})
    outlet, numbering = agent._outlet, agent._numbering

    def no_room() -> None:
        raise zmq.Again

    def renew() -> None:
        numbering.renew(bytes(16))
        agent._streams = numbering.streams

    monkeypatch.setattr(outlet, "_send", Once(outlet._send, no_room))
    monkeypatch.setattr(outlet, "_pause", Once(outlet._pause, renew))
    assert agent.publish(TOPIC, {"n": 1})
    first, second = (events.batch(1, timeout=20)[0] for _ in range(2))
    assert (second.publisher_id, second.sequence) == (bytes(16), 1)
    assert first.publisher_id != second.publisher_id
    assert agent.stats["published"] == 2


def test_the_rest_of_together_leaves_once_there_is_room(
    agent: Publisher, events: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to publish again for it, and it does not wait for the next beacon."""
    outlet = agent._outlet

    def no_room() -> None:
        raise zmq.Again

    with agent.together():
        agent.publish(TOPIC, {"n": 1})
        monkeypatch.setattr(outlet, "_send", Once(outlet._send, no_room))
    assert outlet._flusher is not None
    until(lambda: outlet.gathering.batch is None, "the rest has left")
    assert received(events, 1) == [1]


def test_a_refusal_comes_without_a_history(agent: Publisher) -> None:
    """What is wrong with a topic is one error, not two."""
    with pytest.raises(TopicError) as caught:
        agent.publish("no topic", {})
    assert caught.value.__context__ is None


def test_every_publisher_takes_the_same_arguments() -> None:
    """Code that is right with a stub is right with the bus, blocking or not."""
    parameters = [
        [*inspect.signature(kind.publish).parameters.values()]
        for kind in (Publisher, aio.Publisher, StubPublisher)
    ]
    assert parameters[0] == parameters[1] == parameters[2]
