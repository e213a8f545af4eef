"""The broker as a client of its own data plane: it injects frames, and a canary proves the way is open.

Both sockets belong to the control loop. Decides when the data plane counts as working.
"""

from __future__ import annotations

from typing import Final

import zmq

from ..control.rates import Forwarded
from ..places import Endpoints
from ..protocol.limits import CONTROL_HWM
from ..protocol.topics import CANARY_KEY, DEPTH_BYTES
from .dataplane import INTERNAL

CANARIES_LOST: Final = 5
"""Ticks without a canary's return after which the data plane counts as dead."""


class InternalClient:
    """A publisher inside the process and a subscriber that comes in from outside.

    ``publisher`` and ``canaries`` are for a poller.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoints: Endpoints) -> None:
        self.publisher = context.socket(zmq.XPUB)
        self.publisher.set(zmq.XPUB_NODROP, 1)
        self.publisher.set(zmq.SNDHWM, CONTROL_HWM)
        self.publisher.set(zmq.LINGER, 0)
        self.publisher.connect(INTERNAL)
        self.canaries = context.socket(zmq.SUB)
        self.canaries.set(zmq.SNDHWM, 0)
        self.canaries.set(zmq.LINGER, 0)
        self.canaries.set(zmq.RECONNECT_IVL, 10)
        self.canaries.subscribe(CANARY_KEY)
        self.canaries.connect(endpoints.egress)
        self._admitted: set[bytes] = set()
        self._sent = 0
        self._back = 0
        self._lost = 0

    @property
    def ready(self) -> bool:
        """Whether the ingress has asked for all eight depths: what is injected from now on gets in."""
        return self._admitted.issuperset(DEPTH_BYTES)

    @property
    def seen(self) -> bool:
        """Whether a canary has come back."""
        return self._back > 0

    def inject(self, frame: bytes) -> bool:
        """Put a frame in; false when there is no room."""
        try:
            self.publisher.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            return False
        return True

    def send_canary(self) -> bool:
        """One more canary; false when so many in a row were lost that the data plane must be dead."""
        self._lost += 1
        self.inject_canary()
        return self._lost <= CANARIES_LOST

    def inject_canary(self) -> None:
        """Send a canary that nobody counts on."""
        if self.inject(CANARY_KEY):
            self._sent += 1

    def read(self) -> None:
        """Take in what has come on both sockets."""
        try:
            while True:
                subscription = self.publisher.recv(zmq.NOBLOCK)
                if subscription[:1] == b"\x01":
                    self._admitted.add(subscription[1:])
        except zmq.Again:
            pass
        try:
            while True:
                self.canaries.recv(zmq.NOBLOCK)
                self._back += 1
                self._lost = 0
        except zmq.Again:
            pass

    def without_canaries(self, totals: Forwarded) -> Forwarded:
        """``totals`` as they would be if nobody sent canaries."""
        size = len(CANARY_KEY)
        return Forwarded(
            max(0, totals.frames_in - self._sent),
            max(0, totals.bytes_in - self._sent * size),
            max(0, totals.frames_out - self._back),
            max(0, totals.bytes_out - self._back * size),
        )

    def close(self) -> None:
        """Close both sockets."""
        self.publisher.close()
        self.canaries.close()
