"""The other limit: a PUB socket straight to SUB sockets over ipc, no broker in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import zmq

from . import Server
from .raw_proxy import _QUEUE, RawProxy


class RawPubSub(RawProxy):
    """As `RawProxy`, but the publisher binds what the subscribers connect to."""

    name = "raw_pubsub"
    label = "raw PUB/SUB, no broker"

    @contextmanager
    def serve(self, directory: str) -> Iterator[Server]:
        """There is no server; the directory holds the publisher's socket."""
        yield Server(f"ipc://{directory}", None)

    def _attach_publisher(self, socket: zmq.Socket[bytes], address: str) -> None:
        socket.sndhwm = _QUEUE
        socket.bind(f"{address}/out.sock")


CONTENDER = RawPubSub()
