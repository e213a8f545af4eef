"""The connections of the API: how many there are, and how long one may ask nothing or take nothing.

The server's own protocol waits for a request's head, and for an answer to be taken, as long as the other end
likes. Here both have a deadline, after which the connection is cut. It refuses to know what is asked and who
asks.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS: Final = 512
"""Connections at a time; one more is closed at once."""

OWN_DESCRIPTORS: Final = 384
"""Descriptors that streams, requests to the bus, edits and test runs may need beside the connections."""

FEWEST: Final = 16

REQUEST_SECONDS: Final = 10.0
"""Longest time from a connection, or the first byte of a further request, to the end of that one's head."""

SEND_SECONDS: Final = 30.0
"""Longest time for which the other end may leave bytes of an answer untaken."""


def room_for(descriptors: int) -> int:
    """How many connections a process has that may hold so many descriptors."""
    return max(FEWEST, min(CONNECTIONS, descriptors - OWN_DESCRIPTORS))


class Deadline:
    """Calls ``end`` when it is not stopped within ``seconds``."""

    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        self._seconds = seconds
        self._end = end
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to count, unless that has begun."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._end)

    def stop(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Connection(H11Protocol):
    """One connection with its two deadlines."""

    _asking: Deadline
    _sending: Deadline

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as its base
        """It is there; from now on a request is due."""
        super().connection_made(transport)
        self._asking = Deadline(REQUEST_SECONDS, transport.abort)
        self._sending = Deadline(SEND_SECONDS, transport.abort)
        if len(self.connections) > room_for(resource.getrlimit(resource.RLIMIT_NOFILE)[0]):
            transport.abort()
            return
        # Every untaken byte is told, so that closing waits for the other end no longer than sending does.
        transport.set_write_buffer_limits(0)
        self._asking.start()

    def data_received(self, data: bytes) -> None:
        """Bytes came: of a head, or of the body of a request that is being answered."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._asking.stop()
        else:
            self._asking.start()

    def pause_writing(self) -> None:
        """Bytes of an answer lie here."""
        super().pause_writing()
        self._sending.start()

    def resume_writing(self) -> None:
        """All bytes were taken."""
        super().resume_writing()
        self._sending.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._asking.stop()
        self._sending.stop()
        super().connection_lost(exc)
