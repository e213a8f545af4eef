"""A broker that will not have us, a close in the middle of a publish, a wait that holds nobody up."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from broker.client import Publisher, Subscriber
from broker.client.tool import Tool
from broker.places import endpoints
from broker.protocol.control import encode_message
from broker.protocol.errors import ClosedError, QueueFull, RequestRefused, SpoolFull
from broker.protocol.topics import DEPTH_BYTES
from broker.testing import running_broker
from tests.integration.waiting import until

WORDS = "protocol version 1 is not 99; use the same prxbus release at both ends"


class StrictBroker:
    """A broker of another version: it binds the data plane, and answers every hello with a refusal."""

    def __init__(self, directory: Path) -> None:
        addresses = endpoints(str(directory))
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sockets = [self._context.socket(kind) for kind in (zmq.SUB, zmq.PUB, zmq.ROUTER)]
        for socket, address in zip(self._sockets, addresses[:3], strict=True):
            socket.linger = 0
            socket.bind(address)
        for depth in DEPTH_BYTES:
            self._sockets[0].subscribe(depth)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def _answer(self) -> None:
        control = self._sockets[2]
        while not self._stop.is_set():
            if control.poll(20):
                peer, *_ = control.recv_multipart()
                control.send_multipart([peer, encode_message("error", code="wrong_version", message=WORDS)])

    def close(self) -> None:
        """End it."""
        self._stop.set()
        self._thread.join(20)
        for socket in self._sockets:
            socket.close()
        self._context.term()


@pytest.fixture
def strict(runtime_dir: Path) -> Iterator[Path]:
    """The runtime directory of a broker that refuses us."""
    broker = StrictBroker(runtime_dir)
    yield runtime_dir
    broker.close()


def test_who_insists_on_a_bus_hears_that_it_refuses(strict: Path) -> None:
    """Subscriber, tool, and a publisher with on_absent other than drop raise what the broker said."""
    calls: list[Callable[[], object]] = [
        lambda: Publisher("me", runtime_dir=strict, on_absent="raise"),
        lambda: Publisher("me", runtime_dir=strict, on_absent="block"),
        lambda: Subscriber(["*"], runtime_dir=strict),
        lambda: Tool("me", runtime_dir=strict),
    ]
    for call in calls:
        with pytest.raises(RequestRefused, match="version 1 is not 99"):
            call()


def test_a_patient_publisher_that_is_refused_drops_and_counts(strict: Path) -> None:
    """With on_absent="drop" the agent works on; nothing counts as published after the refusal."""
    with Publisher("me", runtime_dir=strict) as agent:
        until(lambda: agent.publish("prx.x", {}) is False, "the refusal to arrive")
        before = agent.stats["published"]
        assert agent.publish("prx.x", {}) is False
        assert agent.stats["published"] == before
        assert agent.stats["dropped_absent"] >= 2
        with pytest.raises(RequestRefused, match="version 1 is not 99"):
            agent.publish_acknowledged("prx.x", {})


def test_closing_while_others_publish_is_a_closed_error_and_nothing_worse(runtime_dir: Path) -> None:
    """Threads that publish while the publisher is closed get ClosedError, twenty times over."""
    with running_broker(runtime_dir) as bus:
        for _ in range(20):
            agent = Publisher("me", runtime_dir=bus)
            ended: list[type[BaseException]] = []
            begun = threading.Barrier(4)

            def work(
                agent: Publisher = agent,
                ended: list[type[BaseException]] = ended,
                begun: threading.Barrier = begun,
            ) -> None:
                begun.wait(20)
                try:
                    while True:
                        agent.publish("prx.x", {})
                except Exception as error:
                    ended.append(type(error))

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            begun.wait(20)
            agent.close()
            for thread in threads:
                thread.join(20)
            assert ended == [ClosedError] * 3


def test_who_waits_for_room_holds_nobody_up(runtime_dir: Path) -> None:
    """While one thread waits with on_full="block", others go on, and close ends the wait."""
    with running_broker(runtime_dir) as bus:
        pid = int(Path(bus, "lock").read_text().split()[0])
        agent = Publisher("me", runtime_dir=bus, on_full="block", block_seconds=30)
        ended: list[type[BaseException]] = []

        def fill() -> None:
            try:
                while True:
                    agent.publish("prx.x", b'{"a":"' + b"x" * 60_000 + b'"}')
            except Exception as error:
                ended.append(type(error))

        os.kill(pid, signal.SIGSTOP)
        try:
            thread = threading.Thread(target=fill)
            thread.start()
            settled = [0, 0]

            def stands_still() -> bool:
                settled[:] = [settled[1], agent.stats["published"]]
                return settled[0] == settled[1] > 100

            until(stands_still, "the queue to be full")
            started = time.monotonic()
            assert agent.publish("prx.new", {}, depth=8) is False
            assert time.monotonic() - started < 5
            agent.close()
            thread.join(20)
            assert ended in ([ClosedError], [QueueFull])
            assert time.monotonic() - started < 20
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_tool_keeps_to_the_brokers_spool(runtime_dir: Path) -> None:
    """One-shot publishes obey the configured size of the spool, as every publisher does."""
    options = ("--spool-bytes", "100000")
    with running_broker(runtime_dir, options=options) as bus, Tool("me", runtime_dir=bus) as tool:
        tool.publish("prx.x", {"a": "x" * 90_000})
        with pytest.raises(SpoolFull, match="it holds 90,008 of at most 100,000 bytes"):
            tool.publish("prx.x", {"a": "x" * 90_000})


def test_a_large_event_that_is_too_deep_leaves_no_file(runtime_dir: Path) -> None:
    """Depth is looked at before a large payload is stored."""
    with running_broker(runtime_dir) as bus, Publisher("me", runtime_dir=bus) as agent:
        assert agent.publish("prx.x", {"a": "x" * 90_000}, depth=8) is False
        assert [name for name in os.listdir(f"{bus}/spool") if not name.startswith(".")] == []
