"""What the ``python`` subscriber and its workers say to each other: lines of JSON over a pair of sockets.

    to a worker      {"do": "share", "directory": ...}   another version is coming: claim events from now on
                     {"do": "alone"}                     it has not come, or has taken over: claim no longer
                     {"do": "retire", "after_ns": ...}   it is in service since then: finish, and end
    from a worker    {"is": "loaded" | "refused" | "idle", ...}   what came of loading its file
                     {"is": "ready", "at_ns": ...}      in service: it gets everything published since then
                     {"is": "sharing" | "alone"}        does as it was told
                     {"is": "retired"}                  takes nothing more
                     {"is": "condemned", ...}           a handler does not end

The end of the stream without such an order tells a worker that the one that started it is gone. Decides the
form. Refuses to know what follows from a message.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

LINE_BYTES: Final = 1_048_576
"""Longest message."""


class Channel:
    """One end. Sending is thread-safe; for reading there is one thread."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._lock = threading.Lock()
        self._rest = b""
        self.descriptor = end.fileno()

    def send(self, message: Mapping[str, Any]) -> bool:
        """Say something; False when nobody is there to hear it, or has been hearing for too long."""
        line = _line(message)
        with self._lock:
            try:
                self._socket.sendall(line)
            except OSError:
                return False
        return True

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the other end says, until it is gone."""
        while (found := self.receive(None)) is not None:
            yield from found

    def receive(self, flags: int | None) -> list[dict[str, Any]] | None:
        """What has come; None when the other end is gone. ``flags`` MSG_DONTWAIT: without waiting."""
        try:
            data = self._socket.recv(65_536, flags or 0)
        except (BlockingIOError, TimeoutError):
            return []
        except OSError:
            return None
        if not data or len(self._rest) > LINE_BYTES:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [message for message in map(_read, lines) if message is not None]

    def end(self) -> None:
        """Say that there is nothing more to say."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def end_reading(self) -> None:
        """Have :meth:`messages` end, as if the other end were gone; for a signal handler."""
        try:
            self._socket.shutdown(socket.SHUT_RD)
        except OSError:
            return

    def close(self) -> None:
        """Let go of it."""
        self._socket.close()


def _line(message: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(message, default=repr) + b"\n"
    except orjson.JSONEncodeError:  # a lone surrogate, as the name of a file may have it
        return json.dumps(message, default=repr).encode() + b"\n"


def _read(line: bytes) -> dict[str, Any] | None:
    """A message, or None for what is none: user code may write to any descriptor."""
    try:
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            message = json.loads(line)  # which knows lone surrogates
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None
