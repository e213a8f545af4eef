"""What the hook command of an attached agent says and is told, in bytes: the other half of its own module.

    PXH1 | 3 lengths | head | environment | payload       one request
    exit code | 2 lengths | stdout | stderr               one reply

The head is dialect, policy, milliseconds and directory, with NULs between. Lengths and the exit code are four
bytes, the highest first. Pure: bytes come in and go out as values.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

MAGIC: Final = b"PXH1"
_LENGTHS_AT: Final = len(MAGIC)
_PARTS_AT: Final = _LENGTHS_AT + 3 * 4

HEAD_BYTES: Final = 8_192
"""Longest head: a path has at most 4,096 bytes."""

ENVIRONMENT_BYTES: Final = 4_194_304
PAYLOAD_BYTES: Final = 67_108_864
_MOST: Final = (HEAD_BYTES, ENVIRONMENT_BYTES, PAYLOAD_BYTES)


class BadRequest(Exception):
    """Bytes that are no request of this form; the text says why."""


class Request(NamedTuple):
    """One event of an agent. ``closed``: no answer is to block it. ``seconds`` are left of its time.

    ``environment`` is the agent's, ``NAME=VALUE`` with NULs between, and may be empty.
    """

    dialect: str
    closed: bool
    seconds: float
    directory: str
    environment: bytes
    payload: bytes


class Reply(NamedTuple):
    """What the hook command puts out, and how it ends."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""

    def encode(self) -> bytes:
        """The reply as it travels."""
        sizes = (self.exit_code, len(self.stdout), len(self.stderr))
        return b"".join((*(size.to_bytes(4, "big") for size in sizes), self.stdout, self.stderr))


ABSENT: Final = Reply(75)
"""No bus is there (75 is EX_TEMPFAIL of sysexits.h): the hook command does as if nobody had listened."""


class RequestReader:
    """Puts one request together from the pieces in which it arrives."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._need = _PARTS_AT

    def feed(self, data: bytes) -> Request | None:
        """The request when it is whole; None while it is not. Raises :class:`BadRequest`."""
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._need:
            return None
        whole = b"".join(self._parts)
        self._parts = [whole]
        head, environment, payload = _lengths(whole)
        self._need = _PARTS_AT + head + environment + payload
        return None if self._size < self._need else _request(whole, head, environment, payload)


def decode_request(content: bytes) -> Request:
    """The request that ``content`` is, whole. Raises :class:`BadRequest`."""
    request = RequestReader().feed(content)
    if request is None:
        raise BadRequest(f"a request that ends after {len(content):,} bytes")
    return request


def _lengths(whole: bytes) -> tuple[int, int, int]:
    if whole[:_LENGTHS_AT] != MAGIC:
        raise BadRequest(f"it begins with {whole[:_LENGTHS_AT]!r}, not {MAGIC!r}")
    head, environment, payload = (
        int.from_bytes(whole[at : at + 4], "big") for at in range(_LENGTHS_AT, _PARTS_AT, 4)
    )
    for size, most in zip((head, environment, payload), _MOST, strict=True):
        if size > most:
            raise BadRequest(f"a part of {size:,} bytes, where {most:,} are possible")
    return head, environment, payload


def _request(whole: bytes, head: int, environment: int, payload: int) -> Request:
    if len(whole) > _PARTS_AT + head + environment + payload:
        raise BadRequest("more bytes than it announces")
    variables_at = _PARTS_AT + head
    payload_at = variables_at + environment
    fields = whole[_PARTS_AT:variables_at].split(b"\0")
    if len(fields) != 4:
        raise BadRequest(f"its head has {len(fields)} fields, not 4")
    dialect, policy, milliseconds, directory = fields
    digits = milliseconds.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 12 or policy not in (b"open", b"closed"):
        raise BadRequest(f"its head says {policy[:20]!r} and {milliseconds[:20]!r}")
    return Request(
        dialect.decode("ascii", "replace"),
        policy == b"closed",
        int(milliseconds) / 1e3,
        os.fsdecode(directory),
        whole[variables_at:payload_at],
        whole[payload_at:],
    )
