"""The lanes: stream connections for asks and answers beside the control socket.

A lane begins with its name and goes on with control messages, each behind its length. Plain Unix sockets and
not ZeroMQ's, because an ask waits for every hand-over: here none goes through another thread, and the end
of a connection is noticed at once. Decides who may connect and what a slow reader may leave waiting; what the
messages lead to is the control plane's.
"""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Mapping
from typing import Final

from ..logs import get_logger
from ..protocol.control import KEY_BYTES, LANE_BYTES
from ..protocol.errors import DecodeError
from ..protocol.framing import LENGTH_BYTES, Splitter, length_of

WAITING_BYTES: Final = 16_777_216
"""What may wait for one lane that does not read; beyond it messages are dropped and counted."""

CHUNK: Final = 262_144
"""Bytes that are read from one lane before the next gets its turn."""

BACKLOG: Final = 512
_SENDING: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL

log = get_logger("broker.lanes")

Heard = tuple[bytes, bytes | None]
"""A lane and one message; an empty message: the lane has just been named; None: it has ended."""


class Lanes:
    """The lanes of one broker, at most ``limit`` at once; ``epoll`` tells when something came."""

    def __init__(self, path: str, limit: int, epoll: select.epoll) -> None:
        self._path = path
        self._limit = limit
        self._epoll = epoll
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listening = -1
        self._spare = _spare()
        self._connections: dict[int, _Connection] = {}
        self._named: dict[bytes, _Connection] = {}
        self._of: dict[bytes, set[bytes]] = {}  # a peer's lanes by its key
        self._full: dict[_Connection, None] = {}  # with something to send

    def __contains__(self, lane: bytes) -> bool:
        return lane in self._named

    def open(self) -> None:
        """Take connections from now on; raises OSError."""
        self._listener.bind(self._path)
        self._listener.listen(BACKLOG)
        self._listening = self._listener.fileno()
        self._epoll.register(self._listener, select.EPOLLIN)

    def take(self, ready: Mapping[int, int]) -> list[Heard]:
        """What has come, a piece of each lane that is among the descriptors ``ready`` with their events."""
        found: list[Heard] = []
        for descriptor, events in ready.items():
            connection = self._connections.get(descriptor)
            if connection is None:
                if descriptor == self._listening:
                    self._accept()
                continue
            if events & select.EPOLLOUT:
                connection.blocked = False
                self._full[connection] = None
            if events & ~select.EPOLLOUT:
                self._read(connection, found)
        return found

    def put(self, lane: bytes, data: bytes) -> bool:
        """Keep ``data`` for ``lane`` until :meth:`flush`; false when too much waits for it already."""
        connection = self._named[lane]
        if connection.waiting > WAITING_BYTES:
            return False
        connection.letters += (length_of(len(data)), data)
        connection.waiting += len(data) + LENGTH_BYTES
        self._full[connection] = None
        return True

    def flush(self) -> None:
        """Send what waits, as far as there is room."""
        while self._full:
            connection, _ = self._full.popitem()
            if not connection.blocked:
                self._send(connection)

    def cut(self, key: bytes) -> None:
        """End the lanes of the peer ``key``: it is registered no longer."""
        for lane in list(self._of.get(key, ())):
            self._end(self._named[lane])

    def close(self) -> None:
        """End them all."""
        for connection in list(self._connections.values()):
            self._end(connection)
        self._listener.close()
        if self._spare >= 0:
            os.close(self._spare)

    # -- parts ------------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                made, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._turn_away():
                    continue
                return  # a connection that has ended already, or nobody waits: who does tries again
            if len(self._connections) >= self._limit:
                log.warning("a lane was refused", lanes=len(self._connections), limit=self._limit)
                made.close()
                continue
            made.setblocking(False)
            self._connections[made.fileno()] = _Connection(made)
            self._epoll.register(made, select.EPOLLIN)

    def _turn_away(self) -> bool:
        """Without a descriptor left, a connection would wait for ever and keep us awake: end it.

        The kernel says that no descriptor is left before it looks whether anybody waits.
        """
        if self._spare < 0:
            return False
        os.close(self._spare)
        try:
            self._listener.accept()[0].close()
        except OSError:
            return False
        finally:
            self._spare = _spare()
        log.warning("a lane was refused: no descriptor is left", lanes=len(self._connections))
        return True

    def _read(self, connection: _Connection, found: list[Heard]) -> None:
        try:
            data = connection.socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose(connection, found)
            return
        try:
            messages = connection.splitter.feed(data)
        except DecodeError as error:
            log.warning("a lane was ended", reason=str(error))
            self._lose(connection, found)
            return
        if not connection.lane and messages:
            if not self._name(connection, messages.pop(0)):
                self._end(connection)
                return
            found.append((connection.lane, b""))
        found += [(connection.lane, each) for each in messages]

    def _name(self, connection: _Connection, lane: bytes) -> bool:
        """Its first message is its name. Who comes back is not shut out by its own old connection."""
        if not KEY_BYTES < len(lane) <= LANE_BYTES or not lane[0]:
            log.warning("a lane was ended", reason=f"its name is no name: {lane[:LANE_BYTES]!r}")
            return False
        before = self._named.get(lane)
        if before is not None:
            self._end(before)
        connection.lane = lane
        self._named[lane] = connection
        self._of.setdefault(lane[:KEY_BYTES], set()).add(lane)
        return True

    def _send(self, connection: _Connection) -> None:
        data = connection.rest or b"".join(connection.letters)
        if not connection.rest:
            connection.letters.clear()
        try:
            sent = connection.socket.send(data, _SENDING)
        except BlockingIOError:
            sent = 0
        except OSError:  # its end will be read
            connection.letters.clear()
            connection.rest = b""
            return
        connection.waiting -= sent
        connection.rest = data[sent:]
        blocked = bool(connection.rest)
        if blocked or connection.watched:
            self._epoll.modify(connection.socket, select.EPOLLIN | (select.EPOLLOUT if blocked else 0))
        connection.blocked = connection.watched = blocked
        if connection.letters and not blocked:
            self._full[connection] = None

    def _lose(self, connection: _Connection, found: list[Heard]) -> None:
        lane = connection.lane
        self._end(connection)
        if lane:
            found.append((lane, None))

    def _end(self, connection: _Connection) -> None:
        lane = connection.lane
        if self._named.get(lane) is connection:
            del self._named[lane]
            lanes = self._of[lane[:KEY_BYTES]]
            lanes.discard(lane)
            if not lanes:
                del self._of[lane[:KEY_BYTES]]
        self._full.pop(connection, None)
        del self._connections[connection.socket.fileno()]
        self._epoll.unregister(connection.socket)
        connection.socket.close()


class _Connection:
    """One connection: unnamed until its first message.

    ``letters`` wait to be sent behind ``rest``, ``waiting`` bytes together. ``blocked``: there is no room
    now; ``watched``: room is waited for.
    """

    __slots__ = ("blocked", "lane", "letters", "rest", "socket", "splitter", "waiting", "watched")

    def __init__(self, made: socket.socket) -> None:
        self.socket = made
        self.splitter = Splitter()
        self.lane = b""
        self.letters: list[bytes] = []
        self.rest = b""
        self.waiting = 0
        self.blocked = False
        self.watched = False


def _spare() -> int:
    """A descriptor to give up when there is no other."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
