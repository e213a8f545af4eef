"""What goes between the owner of a transform chain and the processes that run its functions.

A message is four bytes of length (big-endian) and one msgpack value, over a Unix stream socket. Decides
nothing but that; a reader waits until a deadline and not longer.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Final

import msgpack

MESSAGE_BYTES: Final = 134_217_728
"""Longest message (128 MiB): a tool's text of 64 MiB, and what belongs to it."""

_LENGTH_BYTES: Final = 4


class WireClosed(Exception):
    """The other side is gone, or does not speak this."""


def pack(message: object) -> bytes:
    """A message as it travels. Raises ValueError and TypeError for what msgpack cannot say."""
    body: bytes = msgpack.packb(message)
    if len(body) > MESSAGE_BYTES:
        raise ValueError(f"a message of {len(body):,} bytes; at most {MESSAGE_BYTES:,} can be sent")
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body


def send(connection: socket.socket, packed: bytes, deadline: float | None = None) -> None:
    """Send a packed message until ``deadline`` (monotonic). Raises TimeoutError and :class:`WireClosed`."""
    try:
        connection.settimeout(_left(deadline))
        connection.sendall(packed)
    except TimeoutError:
        raise
    except OSError as error:
        raise WireClosed(str(error)) from None


def receive(connection: socket.socket, deadline: float | None = None) -> Any:
    """The next message, waiting until ``deadline``. Raises TimeoutError and :class:`WireClosed`."""
    size = int.from_bytes(_read(connection, _LENGTH_BYTES, deadline), "big")
    if size > MESSAGE_BYTES:
        raise WireClosed(f"a message of {size:,} bytes was announced")
    try:
        return msgpack.unpackb(_read(connection, size, deadline), strict_map_key=False)
    except ValueError as error:
        raise WireClosed(f"a message is not msgpack: {error}") from None


def _read(connection: socket.socket, size: int, deadline: float | None) -> bytearray:
    data = bytearray(size)
    view, read = memoryview(data), 0
    while read < size:
        try:
            connection.settimeout(_left(deadline))
            count = connection.recv_into(view[read:])
        except TimeoutError:
            raise
        except OSError as error:
            raise WireClosed(str(error)) from None
        if not count:
            raise WireClosed("the other side has ended")
        read += count
    return data


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
