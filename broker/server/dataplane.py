"""The data plane: a steerable SUB/PUB proxy in a thread of its own, in C, without the GIL.

Decides socket options and the order in which things begin and end; knows nothing of what a frame
means beyond its first byte. SUB and PUB, because XSUB/XPUB would hand every subscription
upstream, and hostile ones end such a broker. Only the proxy's thread touches its two sockets.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from contextlib import suppress
from typing import Final

import zmq

from ..control.rates import Forwarded
from ..places import Endpoints
from ..protocol.limits import EGRESS_HWM, FRAME_BYTES, PUBLISHER_HWM, SUBSCRIPTION_BYTES
from ..protocol.topics import DEPTH_BYTES, WELCOME
from .threads import start_without_signals

INTERNAL: Final = "inproc://prxbus-ingress"
"""Where the broker's own publisher connects."""

SETTLE_SECONDS: Final = 0.3
"""Subscribers get this long to come back before publishers may: less is lost in a restart."""

LINGER_MS: Final = 1_000
"""How long the egress tries to deliver what is queued when it closes."""

PUMP_SECONDS: Final = 1.0
"""How long the ingress is read after the proxy has ended."""

_STEERING: Final = "inproc://prxbus-steering"
_COUNTERS: Final = struct.Struct("=Q")


class DataPlane:
    """The proxy between ``endpoints.ingress`` and ``endpoints.egress``, begun by :meth:`start`.

    ``settle`` is the pause between binding the two, in seconds. ``descriptor`` is readable when
    the proxy is bound and again, for good, when it has ended; ``error`` then says why if it failed.
    All methods are for one thread.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoints: Endpoints, epoch: bytes) -> None:
        self.error: Exception | None = None
        self.bound = False
        self._context = context
        self._endpoints = endpoints
        self._epoch = epoch
        self._asked = False
        self._ending = threading.Event()
        self.descriptor, self._signal = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.steering = context.socket(zmq.PAIR)
        self.steering.set(zmq.SNDHWM, 0)
        self.steering.set(zmq.RCVHWM, 0)
        self.steering.set(zmq.LINGER, 0)
        self.steering.bind(_STEERING)
        self._thread: threading.Thread | None = None

    def start(self, settle: float = SETTLE_SECONDS) -> None:
        """Bind the sockets, ``settle`` seconds apart, and forward."""
        self._thread = threading.Thread(target=self._run, args=(settle,), name="prxbus-proxy", daemon=True)
        start_without_signals(self._thread)

    @property
    def running(self) -> bool:
        """Whether the thread has begun and not ended."""
        return self._thread is not None and self._thread.is_alive()

    def ask(self) -> None:
        """Ask for the counters, unless an answer is outstanding: unread ones would stop the proxy."""
        if not self._asked and self.bound:
            self._asked = True
            self.steering.send(b"STATISTICS", zmq.NOBLOCK)

    def read(self) -> Forwarded | None:
        """The counters, if they have come since :meth:`ask`."""
        try:
            parts = self.steering.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None
        if len(parts) != 8:  # the empty reply to TERMINATE
            return None
        self._asked = False
        numbers = [_COUNTERS.unpack(part)[0] for part in parts]
        return Forwarded(numbers[0], numbers[1], numbers[6], numbers[7])

    def end(self) -> None:
        """Stop forwarding: what has come in so far is handed on, then the sockets close."""
        if not self._ending.is_set():
            self._ending.set()
            with suppress(zmq.Again):  # it has ended by itself meanwhile
                self.steering.send(b"TERMINATE", zmq.NOBLOCK)

    def close(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for the end; false when it has not come."""
        self.end()
        if self._thread is not None:
            self._thread.join(timeout)
        ended = not self.running
        if ended:
            self.steering.close()
            os.close(self.descriptor)
            os.close(self._signal)
        return ended

    # -- in the proxy's thread --------------------------------------------------------------

    def _run(self, settle: float) -> None:
        sockets: list[zmq.Socket[bytes]] = []
        try:
            self._forward(sockets, settle)
        except Exception as error:  # whatever it was ends the broker, which says it
            self.error = error
        finally:
            for socket in sockets:
                socket.close()
            os.write(self._signal, b"e")

    def _forward(self, sockets: list[zmq.Socket[bytes]], settle: float) -> None:
        ingress = self._context.socket(zmq.SUB)
        egress = self._context.socket(zmq.PUB)
        steered = self._context.socket(zmq.PAIR)
        sockets += [ingress, egress, steered]
        set_up_egress(egress, self._epoch)
        set_up_ingress(ingress)
        for name in (zmq.SNDHWM, zmq.RCVHWM, zmq.LINGER):
            steered.set(name, 0)
        steered.connect(_STEERING)
        egress.bind(self._endpoints.egress)
        if self._ending.wait(settle):
            return
        ingress.bind(INTERNAL)
        ingress.bind(self._endpoints.ingress)
        self.bound = True
        os.write(self._signal, b"b")
        zmq.proxy_steerable(ingress, egress, None, steered)
        if self._ending.is_set():
            pump(ingress, egress, PUMP_SECONDS)


def set_up_ingress(socket: zmq.Socket[bytes]) -> None:
    """A SUB for publishers: admits the eight depths and nothing larger than a frame may be."""
    socket.set(zmq.MAXMSGSIZE, FRAME_BYTES)
    socket.set(zmq.RCVHWM, PUBLISHER_HWM)
    socket.set(zmq.SNDHWM, 0)  # bounds subscriptions only, and drops them silently
    socket.set(zmq.LINGER, 0)
    for depth in DEPTH_BYTES:
        socket.subscribe(depth)


def set_up_egress(socket: zmq.Socket[bytes], epoch: bytes) -> None:
    """A PUB for subscribers: greets each with the broker's epoch, admits only short subscriptions."""
    socket.set(zmq.MAXMSGSIZE, SUBSCRIPTION_BYTES)
    socket.set(zmq.SNDHWM, EGRESS_HWM)
    socket.set(zmq.LINGER, LINGER_MS)
    socket.setsockopt(zmq.XPUB_WELCOME_MSG, WELCOME + epoch)


def pump(ingress: zmq.Socket[bytes], egress: zmq.Socket[bytes], seconds: float) -> int:
    """Hand on what is left in ``ingress``, for at most ``seconds``; returns the number of frames."""
    deadline = time.monotonic() + seconds
    pumped = 0
    while time.monotonic() < deadline:
        try:
            parts = ingress.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            break
        egress.send_multipart(parts, zmq.NOBLOCK, copy=False)
        pumped += 1
    return pumped
