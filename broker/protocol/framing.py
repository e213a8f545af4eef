"""Messages on a stream: each behind its length, four bytes, the highest first.

Decides where one message ends and how long it may be; what it says is :mod:`broker.protocol.control`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from .errors import DecodeError
from .limits import CONTROL_BYTES

LENGTH_BYTES: Final = 4

length_of: Final = Struct(">I").pack
"""The four bytes that go before a message of so many bytes."""


def framed(messages: Iterable[bytes]) -> bytes:
    """Messages as they stand in a stream."""
    return b"".join([part for each in messages for part in (length_of(len(each)), each)])


class Splitter:
    """Cuts what comes from one stream into messages."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now, in order.

        Raises :class:`DecodeError` for one that is empty or too long: nothing behind it can be found.
        """
        if not self._rest and int.from_bytes(data[:LENGTH_BYTES]) == len(data) - LENGTH_BYTES > 0:
            return [data[LENGTH_BYTES:]] if len(data) <= CONTROL_BYTES else self._cut(data)
        return self._cut(self._rest + data)

    def _cut(self, data: bytes) -> list[bytes]:
        messages: list[bytes] = []
        begin, end = 0, len(data)
        while end - begin >= LENGTH_BYTES:
            length = int.from_bytes(data[begin : begin + LENGTH_BYTES])
            if not 0 < length <= CONTROL_BYTES:
                raise DecodeError(
                    "size", f"a message of {length:,} bytes on a lane; 1 to {CONTROL_BYTES:,} are possible"
                )
            stop = begin + LENGTH_BYTES + length
            if stop > end:
                break
            messages.append(data[begin + LENGTH_BYTES : stop])
            begin = stop
        self._rest = data[begin:]
        return messages
