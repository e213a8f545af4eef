"""The limit: libzmq's own proxy between plain sockets over ipc. No envelope, no check, no sequence, no
count of what is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
import zmq

from ..board import Tally
from ..pace import Pace, drive
from ..roles import Role, wait_until
from ..traffic import Traffic
from . import Server

_QUEUE = 20_000  # frames; more than any window, so that the limit is measured without loss
_BURST = 256  # frames received before the tally is told


class RawProxy:
    """SUB bound at the front, PUB bound at the back, `zmq.proxy` in a process of its own."""

    name = "raw_proxy"
    label = "raw zmq.proxy"

    def missing(self) -> str | None:
        """Never: pyzmq is a dependency of the product."""
        return None

    @contextmanager
    def serve(self, directory: str) -> Iterator[Server]:
        """See `Contender.serve`."""
        proxy = Role("raw proxy", _forward, directory)
        try:
            wait_until(lambda: os.path.exists(f"{directory}/out.sock"), "the proxy's sockets exist")
            yield Server(f"ipc://{directory}", proxy.pid)
        finally:
            proxy.end(timeout=0)

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        """See `Contender.send`."""
        context = zmq.Context()
        socket = context.socket(zmq.PUB)
        self._attach_publisher(socket, address)
        send_frames(socket, traffic, pace)
        socket.close(linger=1000)
        context.term()
        return {}

    def count(self, address: str, patterns: Sequence[str], as_dict: bool, tally: Tally) -> dict[str, Any]:
        """See `Contender.count`."""
        context = zmq.Context()
        socket = self._subscriber(context, address, [prefix_of(pattern) for pattern in patterns])
        if as_dict:
            _count_dicts(socket, tally)
        else:
            _count_frames(socket, tally)
        socket.close(linger=0)
        context.term()
        return {}

    def each(self, address: str, topic: str, take: Callable[[bytes], None], tally: Tally) -> None:
        """See `Contender.each`."""
        context = zmq.Context()
        socket = self._subscriber(context, address, [prefix_of(topic)])
        skip = len(topic) + 1
        while not tally.done:
            if socket.poll(100):
                take(socket.recv()[skip:])
                tally.add(1)
        socket.close(linger=0)
        context.term()

    def _attach_publisher(self, socket: zmq.Socket[bytes], address: str) -> None:
        socket.sndhwm = _QUEUE
        socket.connect(f"{address}/in.sock")

    def _subscriber(
        self, context: zmq.Context[zmq.Socket[bytes]], address: str, prefixes: Sequence[bytes]
    ) -> zmq.Socket[bytes]:
        socket = context.socket(zmq.SUB)
        socket.rcvhwm = _QUEUE
        socket.sndhwm = 0  # bounds subscriptions only; with the default of 1,000 some of them would vanish
        for prefix in prefixes:
            socket.subscribe(prefix)
        socket.connect(f"{address}/out.sock")
        return socket


def prefix_of(pattern: str) -> bytes:
    """The byte prefix that libzmq compares: up to the star, or the whole topic with its terminator."""
    return (pattern[:-1] if pattern.endswith("*") else pattern + "\0").encode()


def send_frames(socket: zmq.Socket[bytes], traffic: Traffic, pace: Pace) -> None:
    """Publish `topic NUL payload` in one frame; the dict variant encodes on every send."""
    key = traffic.topic.encode() + b"\0"
    fields = traffic.fields if traffic.as_dict else {}

    def send_bytes(payload: bytes, times: int) -> None:
        frame = key + payload
        for _ in range(times):
            socket.send(frame)

    def send_dict(_payload: bytes, times: int) -> None:
        for _ in range(times):
            socket.send(key + orjson.dumps(fields))

    drive(pace, send_dict if traffic.as_dict else send_bytes, traffic.payload)


def _count_frames(socket: zmq.Socket[bytes], tally: Tally) -> None:
    receive, poll, dont_wait = socket.recv, socket.poll, zmq.DONTWAIT
    while not tally.done:
        if not poll(100):
            continue
        received = 0
        try:
            for received in range(_BURST):  # noqa: B007
                receive(dont_wait)
            received = _BURST
        except zmq.Again:
            pass
        tally.add(received)


def _count_dicts(socket: zmq.Socket[bytes], tally: Tally) -> None:
    receive, poll, dont_wait, decode = socket.recv, socket.poll, zmq.DONTWAIT, orjson.loads
    while not tally.done:
        if not poll(100):
            continue
        received = 0
        try:
            for received in range(_BURST):  # noqa: B007
                decode(receive(dont_wait).split(b"\0", 1)[1])
            received = _BURST
        except zmq.Again:
            pass
        tally.add(received)


def _forward(directory: str) -> None:
    context = zmq.Context()
    front, back = context.socket(zmq.SUB), context.socket(zmq.PUB)
    front.rcvhwm = back.sndhwm = _QUEUE
    front.subscribe(b"")
    front.bind(f"ipc://{directory}/in.sock")
    back.bind(f"ipc://{directory}/out.sock")
    zmq.proxy(front, back)


CONTENDER = RawProxy()
