"""The control loop: the only thread that touches the control socket and everything beside the proxy.

Takes messages to the control plane, performs its actions, watches over the data plane, and drains
on request. Decides when the broker must end; decides no answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import zmq

from ..control.actions import Action, Forget, Inject, Measure, Send, Watch
from ..control.plane import ControlPlane
from ..logs import get_logger
from ..places import Endpoints
from ..protocol.control import KEY_BYTES
from ..protocol.errors import DecodeError
from ..protocol.limits import CONTROL_BYTES, CONTROL_HWM
from .closed import ClosedDeciders
from .dataplane import DataPlane
from .internal import InternalClient
from .lanes import Lanes
from .processes import ProcessWatch
from .readiness import Readiness

TICK_SECONDS: Final = 1.0
MESSAGES_AT_ONCE: Final = 500
"""Control messages that are handled before everything else gets its turn."""

UNREAD: Final = 256
"""Control messages of one peer that wait to be handled: 256 MB of the largest. Then that peer waits."""

WRITE_SECONDS: Final = 0.1
"""Shortest pause between two writings of the deciders that fail closed."""

TOGETHER: Final = 16
"""Messages of lanes whose consequences are sent together; with more all would wait for all."""

HELLO: Final = b"hello"
HEAD_BYTES: Final = 16
"""Where the kind of a message stands, however it is encoded. Only of a hello the process is looked up."""

SENDING: Final = zmq.NOBLOCK | zmq.SNDMORE

HOLD_SECONDS: Final = 2.0
"""How long a drain waits for the publishers to fall silent."""

STILL_SECONDS: Final = 0.2
"""Counters that have not moved for so long have come to rest."""

START_SECONDS: Final = 15.0
CANARY_SECONDS: Final = 0.05

log = get_logger("broker.loop")


class DataPlaneFailed(Exception):
    """The data plane ended unasked or lets nothing through: only a new process helps."""


class ControlLoop:
    """Runs one broker from the moment its lock is held.

    ``signals`` is a descriptor from which the numbers of signals can be read (a wake-up descriptor).
    ``inspect`` is called at each tick; it returns why the broker cannot go on, or None. ``lanes`` is how many
    there may be at once.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        endpoints: Endpoints,
        plane: ControlPlane,
        data: DataPlane,
        watch: ProcessWatch,
        signals: int,
        stopping: frozenset[int],
        inspect: Callable[[], str | None],
        closed: ClosedDeciders,
        lanes: int,
    ) -> None:
        self._endpoints = endpoints
        self._plane = plane
        self._data = data
        self._watch = watch
        self._signals = signals
        self._stopping = stopping
        self._inspect = inspect
        self._closed = closed
        self._written = plane.asks.changes
        self._next_write = 0.0
        self._client = InternalClient(context, endpoints)
        self._router = control_socket(context)
        self._receive = super(zmq.Socket, self._router).recv
        self._transmit = super(zmq.Socket, self._router).send
        self._readiness = Readiness()
        self._lanes = Lanes(endpoints.lanes.removeprefix("ipc://"), lanes, self._readiness.epoll)
        self._next_tick = 0.0
        self.stop_requests = 0
        self._steering = self._readiness.add(data.steering)
        self._publisher = self._readiness.add(self._client.publisher)
        self._canaries = self._readiness.add(self._client.canaries)
        for descriptor in (data.descriptor, watch.descriptor, signals):
            self._readiness.add(descriptor)
        self._messages = -1  # the control socket's descriptor, once it is open
        self._busy = False  # more messages came while one was handled

    def start(self) -> bool:
        """Wait until a canary has come through, then open the control plane; false: asked to stop instead.

        Raises :class:`DataPlaneFailed` when there is none within 15 seconds.
        """
        deadline = time.monotonic() + START_SECONDS
        while not self._client.seen:
            if self._client.ready:
                self._client.inject_canary()
                self._readiness.used(self._publisher)
            self._wait(CANARY_SECONDS)
            if self.stop_requests:
                return False
            if time.monotonic() > deadline:
                raise DataPlaneFailed(f"no canary came through the data plane in {START_SECONDS:g} s")
        self._router.bind(self._endpoints.control)
        self._lanes.open()
        self._messages = self._readiness.add(self._router)
        return True

    def run(self) -> None:
        """Serve until asked to stop. Raises :class:`DataPlaneFailed`."""
        while not self.stop_requests:
            turn = self._next_turn()
            self._wait(max(0.0, turn - time.monotonic()))
            now = time.monotonic()
            self._write_closed(now)
            if now < turn:
                continue
            self._perform(self._plane.due(now))
            if now >= self._next_tick:
                self._next_tick = now + TICK_SECONDS
                self._tick(now)

    def drain(self) -> None:
        """Ask publishers to hold; wait until nothing comes in any more, 2 s at most or until asked again."""
        self._closed.remove()
        self._perform(self._plane.hold())
        began = moved = time.monotonic()
        before = None
        while (now := time.monotonic()) < began + HOLD_SECONDS and self.stop_requests < 2:
            self._measure()
            self._wait(STILL_SECONDS / 4)
            current = self._plane.rates.latest
            if current != before:
                before, moved = current, now
            elif now - moved >= STILL_SECONDS:
                return
        log.warning("publishers did not fall silent in time; what they still send is lost")

    def close(self) -> None:
        """Close the sockets; those of the proxy are its own business."""
        self._lanes.flush()
        self._lanes.close()
        self._readiness.close()
        self._client.close()
        self._router.close()

    # -- parts ----------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Handle whatever comes within ``seconds``, or at once what is there."""
        self._lanes.flush()
        ready = self._readiness.wait(seconds)
        self._take_lanes(ready)
        if self._messages in ready:
            self._take_messages()
        else:
            self._busy = False
        if self._data.descriptor in ready:
            self._check_data_plane()
        if self._signals in ready:
            self._take_signals()
        if self._watch.descriptor in ready:
            now = time.monotonic()
            for peer in self._watch.ended():
                self._perform(self._plane.gone(peer, now))
        if self._publisher in ready or self._canaries in ready:
            self._client.read()
            self._readiness.used(self._publisher)
            self._readiness.used(self._canaries)
        if self._steering in ready:
            totals = self._data.read()
            self._readiness.used(self._steering)
            if totals is not None:
                totals = self._client.without_canaries(totals)
                self._perform(self._plane.measured(totals, time.monotonic()))

    def _write_closed(self, now: float) -> None:
        """Keep the deciders that fail closed on disk: the next broker is to miss those that are not back."""
        changes = self._plane.asks.changes
        if changes != self._written and now >= self._next_write:
            self._written = changes
            self._next_write = now + WRITE_SECONDS
            self._closed.write(self._plane.asks.closed)

    def _next_turn(self) -> float:
        due = self._plane.next_due
        return self._next_tick if due is None else min(due, self._next_tick)

    def _tick(self, now: float) -> None:
        self._readiness.used(self._publisher)
        if not self._client.send_canary():
            raise DataPlaneFailed("the data plane lets nothing through any more")
        reason = self._inspect()
        if reason is not None:
            raise DataPlaneFailed(reason)
        self._measure()
        self._perform(self._plane.tick(now))

    def _measure(self) -> None:
        self._data.ask()
        self._readiness.used(self._steering)

    def _check_data_plane(self) -> None:
        os.read(self._data.descriptor, 16)
        if self._data.error is not None:
            raise DataPlaneFailed(f"the proxy failed: {self._data.error}") from self._data.error
        if not self._data.running:
            raise DataPlaneFailed("the proxy ended unasked")

    def _take_signals(self) -> None:
        """SIGUSR1 asks for a line in the log, the others for the end."""
        for number in os.read(self._signals, 4096):
            if number in self._stopping:
                self.stop_requests += 1
        log.info("signal", stopping=self.stop_requests > 0, **self._plane.summary())

    def _take_lanes(self, ready: Mapping[int, int]) -> None:
        """Handle a piece of every lane that is ready, and send what waits for lanes."""
        now = time.monotonic()
        for number, (lane, data) in enumerate(self._lanes.take(ready), 1):
            if data is None:
                self._perform(self._plane.gone(lane, now, "disconnected"))
            else:
                self._perform(self._plane.handle(lane, data, now))
            if not number % TOGETHER:
                self._lanes.flush()
        self._lanes.flush()

    def _take_messages(self) -> None:
        """Handle what is there: one message, or many while they keep coming."""
        for _ in range(MESSAGES_AT_ONCE if self._busy else 1):
            try:
                peer = self._receive(zmq.NOBLOCK)
            except zmq.Again:
                break
            self._take_message(peer)
        self._busy = True  # until a wait finds none
        self._readiness.used(self._messages)

    def _take_message(self, peer: bytes) -> None:
        now = time.monotonic()
        part = self._router.recv(zmq.NOBLOCK, copy=False)  # a ROUTER's messages come whole
        parts = 1
        while part.more:
            part = self._router.recv(zmq.NOBLOCK, copy=False)
            parts += 1
        if parts == 1:
            data = part.bytes
            pid = process_of(part) if HELLO in data[:HEAD_BYTES] else None
            actions = self._plane.handle(peer, data, now, pid)
        else:
            error = DecodeError("parts", f"a control message is one frame, not {parts}")
            actions = self._plane.refuse(peer, 0, error)
        self._perform(actions)

    def _perform(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Send(peer, data):
                    self._send(peer, data)
                case Inject():
                    self._readiness.used(self._publisher)
                    self._perform(self._plane.injected(action, self._client.inject(action.frame)))
                case Watch(peer, pid):
                    if not self._watch.watch(peer, pid):
                        self._perform(self._plane.gone(peer, time.monotonic()))
                case Forget(peer):
                    self._watch.forget(peer)
                    self._lanes.cut(peer)
                case Measure():
                    self._measure()

    def _send(self, peer: bytes, data: bytes) -> None:
        if peer in self._lanes:
            if not self._lanes.put(peer, data):
                self._plane.dropped += 1
            return
        if len(peer) > KEY_BYTES:  # a lane that has ended meanwhile
            self._perform(self._plane.gone(peer, time.monotonic(), "disconnected"))
            return
        try:
            self._transmit(peer, SENDING)
            self._transmit(data, zmq.NOBLOCK)
        except zmq.Again:
            self._plane.dropped += 1
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self._perform(self._plane.gone(peer, time.monotonic(), "disconnected"))


def control_socket(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    """The control plane's ROUTER. A peer that is gone or does not read is an error, not a silent loss."""
    socket = context.socket(zmq.ROUTER)
    socket.set(zmq.MAXMSGSIZE, CONTROL_BYTES)
    socket.set(zmq.SNDHWM, CONTROL_HWM)
    socket.set(zmq.RCVHWM, UNREAD)
    socket.set(zmq.ROUTER_MANDATORY, 1)
    socket.set(zmq.ROUTER_HANDOVER, 1)  # who comes back is not shut out by its own old connection
    socket.set(zmq.LINGER, 200)
    return socket


def process_of(frame: zmq.Frame) -> int | None:
    """The process at the other end of an ipc connection, by the kernel's word; None where it gives none.

    libzmq puts SO_PEERCRED of the connection into the peer's address: ``host:uid:gid:pid``.
    """
    try:
        _, _, _, pid = str(frame.get("Peer-Address")).rsplit(":", 3)
        return int(pid)
    except (zmq.ZMQError, ValueError):
        return None
