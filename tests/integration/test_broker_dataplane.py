"""The proxy and the loop around it, driven from inside: how the broker notices that it cannot go on."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from broker.control.plane import ControlPlane
from broker.control.rates import Forwarded
from broker.places import Endpoints, endpoints
from broker.protocol.limits import (
    CONTROL_BYTES,
    CONTROL_HWM,
    EGRESS_HWM,
    FRAME_BYTES,
    PUBLISHER_HWM,
    SUBSCRIPTION_BYTES,
)
from broker.protocol.topics import CANARY_KEY, DEPTH_BYTES
from broker.server import loop as loop_module
from broker.server.closed import ClosedDeciders
from broker.server.dataplane import INTERNAL, DataPlane, pump, set_up_egress, set_up_ingress
from broker.server.internal import CANARIES_LOST, InternalClient
from broker.server.loop import ControlLoop, DataPlaneFailed, control_socket
from broker.server.processes import ProcessWatch
from tests.integration.waiting import until

Context = zmq.Context[zmq.Socket[bytes]]
EPOCH = b"e" * 16


@pytest.fixture
def context() -> Iterator[Context]:
    """A context that has to end by itself: every socket was closed."""
    made: Context = zmq.Context()
    yield made
    made.term()


@pytest.fixture
def place(runtime_dir: Path) -> Endpoints:
    """The addresses of a bus."""
    return endpoints(str(runtime_dir))


@pytest.fixture
def data(context: Context, place: Endpoints) -> Iterator[DataPlane]:
    """A data plane that runs."""
    made = DataPlane(context, place, EPOCH)
    made.start(settle=0.0)
    until(lambda: made.bound, "the proxy is bound")
    yield made
    assert made.close(20)


def admitted(publisher: zmq.Socket[bytes]) -> bool:
    """Wait until the ingress has asked for the eight depths."""
    seen: set[bytes] = set()
    while len(seen) < 8 and publisher.poll(30_000):
        seen.add(publisher.recv()[1:])
    return seen == set(DEPTH_BYTES)


def test_the_sockets_have_the_stated_bounds(context: Context) -> None:
    """Queues, sizes and lingering are those of the limits; only what bounds subscriptions is unbounded."""
    with (
        context.socket(zmq.SUB) as ingress,
        context.socket(zmq.PUB) as egress,
        control_socket(context) as router,
    ):
        set_up_ingress(ingress)
        set_up_egress(egress, EPOCH)
        assert ingress.get(zmq.MAXMSGSIZE) == FRAME_BYTES
        assert ingress.get(zmq.RCVHWM) == PUBLISHER_HWM
        assert ingress.get(zmq.SNDHWM) == 0
        assert egress.get(zmq.MAXMSGSIZE) == SUBSCRIPTION_BYTES
        assert egress.get(zmq.SNDHWM) == EGRESS_HWM
        assert egress.get(zmq.LINGER) in range(2_000)
        assert ingress.get(zmq.LINGER) == 0
        assert router.get(zmq.MAXMSGSIZE) == CONTROL_BYTES
        assert router.get(zmq.RCVHWM) in range(1, 1_000)
        assert router.get(zmq.SNDHWM) == CONTROL_HWM
        assert router.get(zmq.LINGER) in range(1_000)


def test_the_egress_is_bound_before_the_ingress(context: Context, place: Endpoints) -> None:
    """Subscribers can come back while publishers cannot yet."""
    data = DataPlane(context, place, EPOCH)
    data.start(settle=60.0)
    until(lambda: os.path.exists(place.egress.removeprefix("ipc://")), "the egress is bound")
    assert not os.path.exists(place.ingress.removeprefix("ipc://"))
    assert not data.bound
    began = time.monotonic()
    assert data.close(20)
    assert time.monotonic() - began < 20  # the pause does not delay an end


def test_counters_asked_for_too_often_do_not_stop_the_proxy(
    context: Context, place: Endpoints, data: DataPlane
) -> None:
    """However often the counters are asked for without reading them, events flow, and one answer comes."""
    with context.socket(zmq.XPUB) as publisher, context.socket(zmq.SUB) as subscriber:
        publisher.connect(place.ingress)
        subscriber.subscribe(b"0")
        subscriber.connect(place.egress)
        assert admitted(publisher)
        for _ in range(5_000):
            data.ask()

        def heard() -> bool:
            publisher.send(b"0a\0")
            return bool(subscriber.poll(20))

        until(heard, "events flow")
        assert data.steering.poll(30_000)
        assert isinstance(data.read(), Forwarded)
        assert data.read() is None
        data.ask()
        assert data.steering.poll(30_000)
        totals = data.read()
        assert totals is not None
        assert totals.frames_in >= totals.frames_out >= 1
        assert totals.bytes_in == 3 * totals.frames_in


def test_what_is_left_in_the_ingress_is_handed_on(context: Context) -> None:
    """Frames that wait when the proxy ends still go out, whole messages of several parts too."""
    with (
        context.socket(zmq.PAIR) as source,
        context.socket(zmq.PAIR) as ingress,
        context.socket(zmq.PAIR) as egress,
        context.socket(zmq.PAIR) as sink,
    ):
        ingress.bind("inproc://in")
        source.connect("inproc://in")
        egress.bind("inproc://out")
        sink.connect("inproc://out")
        for number in range(10):
            source.send_multipart([b"%d" % number, b"part"])
        assert pump(ingress, egress, 20.0) == 10
        assert [sink.recv_multipart() for _ in range(10)] == [[b"%d" % n, b"part"] for n in range(10)]
        source.send(b"x")
        assert pump(ingress, egress, 0.0) == 0  # its time is bounded


def test_a_proxy_that_cannot_bind_says_why(context: Context, place: Endpoints) -> None:
    """A path that cannot be bound ends the thread; the descriptor tells and the error is kept."""
    data = DataPlane(context, place._replace(egress="ipc:///nonexistent/egress.sock"), EPOCH)
    data.start(settle=0.0)
    assert select.select([data.descriptor], [], [], 20)[0]
    until(lambda: not data.running, "the thread has ended")
    assert isinstance(data.error, zmq.ZMQError)
    assert data.close(20)


class Running:
    """A control loop on a data plane, in this thread, with the pulse of its ticks in ``ticks``."""

    def __init__(self, context: Context, place: Endpoints, data: DataPlane) -> None:
        self.data = data
        self.ticks = 0
        self.fault: str | None = None
        self.at_tick: Callable[[], None] = lambda: None
        self.reading, self.writing = os.pipe()
        plane = ControlPlane(epoch=EPOCH, release="0", pid=1, now=time.monotonic(), limits={}, about={})
        self.watch = ProcessWatch(1_000)
        self.loop = ControlLoop(
            context,
            place,
            plane,
            data,
            self.watch,
            self.reading,
            frozenset({15}),
            self._inspect,
            ClosedDeciders(os.path.dirname(place.control.removeprefix("ipc://"))),
            lanes=10,
        )

    def _inspect(self) -> str | None:
        self.ticks += 1
        self.at_tick()
        return self.fault

    def close(self) -> None:
        """Close everything but the data plane."""
        self.loop.close()
        self.watch.__exit__()
        os.close(self.reading)
        os.close(self.writing)


@pytest.fixture
def running(
    context: Context, place: Endpoints, data: DataPlane, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    """A loop whose ticks come fast."""
    monkeypatch.setattr(loop_module, "TICK_SECONDS", 0.02)
    made = Running(context, place, data)
    yield made
    made.close()


def test_a_proxy_that_ends_unasked_ends_the_broker(running: Running) -> None:
    """When the proxy returns although nobody asked it to, the loop fails instead of serving on."""
    assert running.loop.start()

    def end_the_proxy() -> None:
        if running.ticks == 3:
            running.data.steering.send(b"TERMINATE")

    running.at_tick = end_the_proxy
    with pytest.raises(DataPlaneFailed, match="ended unasked"):
        running.loop.run()


def test_canaries_that_do_not_come_back_end_the_broker(running: Running) -> None:
    """When several in a row are lost the data plane counts as dead."""
    assert running.loop.start()
    deaf_since = []

    def lose_the_canaries() -> None:
        if running.ticks == 3:
            running.loop._client.canaries.unsubscribe(CANARY_KEY)
            deaf_since.append(running.ticks)

    running.at_tick = lose_the_canaries
    with pytest.raises(DataPlaneFailed, match="nothing through"):
        running.loop.run()
    assert running.ticks - deaf_since[0] >= CANARIES_LOST - 1


def test_a_late_canary_is_no_lost_one(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """While canaries come back the loop runs on, tick after tick, until it is asked to stop."""
    monkeypatch.setattr(loop_module, "TICK_SECONDS", 0.3)
    assert running.loop.start()

    def stop_after_many() -> None:
        if running.ticks == CANARIES_LOST + 3:
            os.write(running.writing, b"\x0f")

    running.at_tick = stop_after_many
    running.loop.run()
    assert running.loop.stop_requests == 1


def test_a_fault_that_is_found_ends_the_broker(running: Running) -> None:
    """What the inspection finds at a tick is the reason of the end."""
    assert running.loop.start()
    running.fault = "the moon is full"
    with pytest.raises(DataPlaneFailed, match="the moon is full"):
        running.loop.run()


def test_a_start_without_a_canary_fails(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data plane that lets nothing through from the start is an error, not a broker that seems ready."""
    monkeypatch.setattr(loop_module, "START_SECONDS", 0.2)
    running.loop._client.canaries.unsubscribe(CANARY_KEY)
    with pytest.raises(DataPlaneFailed, match="no canary"):
        running.loop.start()


def test_a_start_can_be_broken_off(running: Running) -> None:
    """A signal while the canary is out ends the start without an error; other signals do not."""
    running.loop._client.canaries.unsubscribe(CANARY_KEY)
    os.write(running.writing, b"\x0a")
    thread = threading.Thread(target=lambda: os.write(running.writing, b"\x0f"))
    thread.start()
    assert not running.loop.start()
    thread.join()


def test_what_cannot_be_injected_is_said(context: Context, place: Endpoints) -> None:
    """When nobody empties the queue of the broker's own publisher it fills, and then refuses."""
    with context.socket(zmq.SUB) as stuck:
        stuck.bind(INTERNAL)
        for depth in DEPTH_BYTES:
            stuck.subscribe(depth)
        client = InternalClient(context, place)
        try:

            def asked_for() -> bool:
                stuck.poll(1)  # an inproc socket says what it subscribes when its thread looks at it
                client.read()
                return client.ready

            until(asked_for, "all depths were asked for")
            assert not client.seen
            injected = 0
            while client.inject(b"0a\0"):
                injected += 1
            assert CONTROL_HWM <= injected <= 2 * CONTROL_HWM
        finally:
            client.close()


def test_the_brokers_own_canaries_are_not_counted(running: Running) -> None:
    """On an idle bus the counters stay at zero although canaries pass all the time."""
    assert running.loop.start()

    def stop_after_some() -> None:
        if running.ticks == 4:
            os.write(running.writing, b"\x0f")

    running.at_tick = stop_after_some
    running.loop.run()
    totals = running.loop._plane.rates.latest
    assert totals is not None
    assert totals.frames_in <= 2  # one may be on its way while the counters are read
    assert totals.frames_out <= 2
