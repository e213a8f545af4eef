"""One lane to the broker: a stream connection with a name, and control messages behind their lengths.

Decides nothing: it connects, sends, waits and says when the other end is gone. Apart from its sender's and
its receiver's, each call is for one thread at a time.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import suppress
from struct import pack
from typing import Final

from ..protocol.errors import DecodeError
from ..protocol.framing import Splitter, framed

CHUNK: Final = 65_536
"""Bytes that are read at once."""

SEND_SECONDS: Final = 1
"""How long a broker that does not read may keep us. Then the stream is cut in a message, and ended."""

_PEEK: Final = socket.MSG_PEEK | socket.MSG_DONTWAIT


class Stream:
    """A connection to the socket at ``path`` for the lane ``name``; the constructor raises OSError."""

    def __init__(self, path: str, name: bytes) -> None:
        self._splitter = Splitter()
        self._wait_ms = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, pack("ll", SEND_SECONDS, 0))
            self._socket.connect(path)
            self.send((name,))
        except BaseException:
            self._socket.close()
            raise
        self._receive = self._socket.recv

    def fileno(self) -> int:
        """The descriptor, for a poller; -1 once closed."""
        return self._socket.fileno()

    @property
    def alive(self) -> bool:
        """Whether a broker is at the other end; what it has said is left to be received."""
        try:
            return self._socket.recv(1, _PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def send(self, messages: Iterable[bytes]) -> None:
        """Send them in order; raises OSError when nobody is there, or nobody reads."""
        self._socket.sendall(framed(messages))

    def send_now(self, data: bytes | memoryview) -> int:
        """Send as much of ``data``, framed already, as there is room for: so many bytes; raises OSError."""
        try:
            return self._socket.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def receive(self, milliseconds: int) -> list[bytes]:
        """The messages that came, none after ``milliseconds``; raises OSError when nobody is there."""
        if milliseconds != self._wait_ms:
            self._wait_ms = milliseconds
            wait = pack("ll", milliseconds // 1_000, milliseconds % 1_000 * 1_000)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)
        try:
            return self._split(self._receive(CHUNK))
        except BlockingIOError:
            return []

    def receive_now(self) -> list[bytes]:
        """The messages that are there; raises OSError when nobody is there any more."""
        try:
            return self._split(self._receive(CHUNK, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return []

    def end(self) -> None:
        """Have whoever waits in :meth:`receive` hear that it is over."""
        with suppress(OSError):  # it is over
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the descriptor back. Safe to call twice."""
        self._socket.close()

    def _split(self, data: bytes) -> list[bytes]:
        if not data:
            raise ConnectionResetError("the broker has ended the lane")
        try:
            return self._splitter.feed(data)
        except DecodeError as error:
            raise ConnectionResetError(str(error)) from None
