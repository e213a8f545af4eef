"""The limit for one event a frame in Python: the product's envelope and nothing else.

Each event is one `msgpack.packb`, one send, one receive and one `msgpack.unpackb` over libzmq's own proxy.
Nothing is checked, numbered by topic, locked, counted or matched. What this does not reach, no client can
that sends each event by itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import msgpack
import orjson
import zmq

from ..board import Tally
from ..pace import Pace, drive
from ..traffic import Traffic
from .raw_proxy import RawProxy, prefix_of

_BURST = 256  # frames received before the tally is told


class BareEnvelope(RawProxy):
    """The raw proxy's sockets; the envelope is packed and unpacked, as a client has to."""

    name = "bare_envelope"
    label = "bare envelope"

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """See `Contender.send`."""
        context = zmq.Context()
        socket = context.socket(zmq.PUB)
        self._attach_publisher(socket, address)
        key, fields = traffic.topic.encode() + b"\0", traffic.fields if traffic.as_dict else {}
        publisher, numbers = os.urandom(16), count(1)
        send, packb, dumps, now = socket.send, msgpack.packb, orjson.dumps, time.time_ns

        def send_bytes(payload: bytes, times: int) -> None:
            for _ in range(times):
                send(key + packb([1, publisher, next(numbers), now(), None, "bare", None, payload]))

        def send_dict(_payload: bytes, times: int) -> None:
            for _ in range(times):
                send(key + packb([1, publisher, next(numbers), now(), None, "bare", None, dumps(fields)]))

        drive(pace, send_dict if traffic.as_dict else send_bytes, traffic.payload)
        socket.close(linger=1000)
        context.term()
        return {}

    def count(self, address: str, patterns: Sequence[str], as_dict: bool, tally: Tally) -> dict[str, Any]:
        """See `Contender.count`."""
        context = zmq.Context()
        socket = self._subscriber(context, address, [prefix_of(pattern) for pattern in patterns])
        decode: Callable[[bytes], object] = orjson.loads if as_dict else len
        receive, poll, dont_wait, unpackb = socket.recv, socket.poll, zmq.DONTWAIT, msgpack.unpackb
        while not tally.done:
            if not poll(100):
                continue
            received = 0
            try:
                for received in range(_BURST):  # noqa: B007
                    frame = receive(dont_wait)
                    decode(unpackb(frame[frame.index(b"\0") + 1 :])[7])
                received = _BURST
            except zmq.Again:
                pass
            tally.add(received)
        socket.close(linger=0)
        context.term()
        return {}

    def each(self, address: str, topic: str, take: Callable[[bytes], None], tally: Tally) -> None:
        """See `Contender.each`."""
        super().each(address, topic, lambda body: take(msgpack.unpackb(body)[7]), tally)


CONTENDER = BareEnvelope()
