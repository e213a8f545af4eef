"""Waiting for many things at once: descriptors, and ZeroMQ sockets by their descriptors.

A ZeroMQ socket's descriptor tells that something has happened, not what; any use of the socket may take
that word away while messages are left. So whoever uses a socket says so (:meth:`Readiness.used`), and it is
looked at before the next wait. Cheaper than ``zmq.Poller``, which looks at every socket each time. Decides
nothing but what is ready.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Any, Final

import zmq

_EVENTS: Final = int(zmq.EVENTS)
_READABLE: Final = int(zmq.POLLIN)


class Readiness:
    """What to wait for. Sockets and descriptors are known by their descriptors.

    ``epoll`` is what is waited on: who has many descriptors that come and go may enter them there.
    """

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self._sockets: dict[int, Callable[[int], Any]] = {}
        self._used: set[int] = set()

    def add(self, source: zmq.Socket[bytes] | int) -> int:
        """Wait for ``source`` too; its descriptor."""
        if isinstance(source, int):
            self.epoll.register(source, select.EPOLLIN)
            return source
        descriptor = int(source.fd)
        self.epoll.register(descriptor, select.EPOLLIN)
        self._sockets[descriptor] = super(zmq.Socket, source).get
        self._used.add(descriptor)
        return descriptor

    def used(self, descriptor: int) -> None:
        """The socket with this descriptor was read from or sent on."""
        self._used.add(descriptor)

    def wait(self, seconds: float) -> dict[int, int]:
        """The descriptors of what is ready within ``seconds`` with their events (``select.EPOLLIN``...)."""
        ready = {each: _READABLE for each in self._used if self._sockets[each](_EVENTS) & _READABLE}
        self._used.clear()
        for descriptor, events in self.epoll.poll(0 if ready else seconds):
            look = self._sockets.get(descriptor)
            if look is None or look(_EVENTS) & _READABLE:
                ready[descriptor] = events
        return ready

    def close(self) -> None:
        """Wait no longer; what was waited for is the callers'."""
        self.epoll.close()
