"""The bytes of a frame: how an event and a batch are written, and what holds for parts of any frame.

    frame = depth byte '0'..'7' | topic (ASCII) | 0x00 | envelope (msgpack array of 8)
    envelope = [version, publisher id, sequence, time, session id, source, cause, payload]

The payload is JSON as bytes, or the claim of a payload that lies in the spool. The sender builds the array
from pieces that rarely change. How the value is read that a subscriber sees is decided in
:mod:`broker.protocol.events`, so that a command that publishes one event need not load it.

Knows no topic grammar beyond asking for it, loads no claim and judges no payload field.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgpack

from .errors import DecodeError, shown
from .limits import CLAIM_BYTES, CLAIM_HEAD_BYTES, FRAME_BYTES, PAYLOAD_BYTES
from .topics import BATCH_MARK, DEPTH_BYTES, is_topic

VERSION: Final = 1
PUBLISHER_BYTES: Final = 16
"""A publisher id: its start in ns since the epoch (8 bytes, big-endian), then 8 random bytes."""

MAX_TIME: Final = 2**63 - 1
MAX_SEQUENCE: Final = 2**63 - 1
"""The most that a signed 64-bit integer holds, so that every language can read them: the year 2262."""

_REFERENCE: Final = re.compile(r"[0-9a-z-]{1,96}", re.ASCII)
_ENVELOPE_HEAD: Final = b"\x98" + bytes([VERSION]) + b"\xc4" + bytes([PUBLISHER_BYTES])

_UINT64: Final = 0xCF
"""The msgpack tag before a sequence and a time."""

_pack_numbers: Final = struct.Struct(">QBQ").pack
pack_bin16: Final = struct.Struct(">BH").pack
pack_bin32: Final = struct.Struct(">BI").pack


class Claim:
    """A payload that lies in the spool: ``size`` in bytes, ``digest`` (SHA-256), ``reference``, ``head``.

    ``load`` is what a client puts in to fetch the bytes; without one, loading is a ClaimError.
    """

    __slots__ = ("digest", "head", "load", "reference", "size")

    def __init__(self, size: int, digest: bytes, reference: str, head: bytes) -> None:
        self.size = size
        self.digest = digest
        self.reference = reference
        self.head = head
        self.load: Any = None

    def fields(self) -> list[object]:
        """The claim as it travels."""
        return [self.size, self.digest, self.reference, self.head]


class Key(NamedTuple):
    """What stands before the NUL of a frame: its depth and the rest."""

    depth: int
    name: bytes


def event_head(depth: int, topic: str, publisher: bytes) -> bytes:
    """The bytes of a frame that stay the same for one depth, topic and publisher: all before the sequence."""
    return b"".join((DEPTH_BYTES[depth], topic.encode(), b"\0", _ENVELOPE_HEAD, publisher, b"\xcf"))


_ROW_BYTES: Final = 27
"""Of a row in a batch: array, index, sequence, time and the payload's header, at their longest."""


class Names:
    """Session id, source and cause as they stand in a frame, and how to write what lies around them.

    ``packed`` are their bytes; ``middle`` adds the tag of a payload whose length has two bytes. Of such an
    event ``layout`` packs and unpacks all between head and payload: sequence, ``0xCF``, time, middle, size.
    ``cost`` is what an event adds to a batch beside its payload, in bytes, at most.
    """

    __slots__ = ("cause", "cost", "layout", "middle", "packed", "session_id")

    def __init__(self, session_id: str | None, source: str, cause: str | None) -> None:
        """Takes its arguments as checked."""
        self.packed = b"".join(map(msgpack.packb, (session_id, source, cause)))
        self.middle = self.packed + b"\xc5"
        self.layout = struct.Struct(f">QBQ{len(self.middle)}sH")
        self.session_id = session_id
        self.cause = cause
        self.cost = len(self.packed) + _ROW_BYTES


def event_frame(head: bytes, sequence: int, time_ns: int, names: Names, content: bytes) -> bytes:
    """A whole frame; ``content`` is the payload with its msgpack header, or the packed claim."""
    return b"".join((head, _pack_numbers(sequence, _UINT64, time_ns), names.packed, content))


def payload_header(size: int) -> bytes:
    """The msgpack header of a payload of ``size`` bytes."""
    return pack_bin16(0xC5, size) if size < 65_536 else pack_bin32(0xC6, size)


def encode_event(
    topic: str,
    publisher: bytes,
    sequence: int,
    time_ns: int,
    payload: bytes | Claim,
    *,
    session_id: str | None = None,
    source: str = "",
    cause: str | None = None,
    depth: int = 0,
) -> bytes:
    """One event as one frame. The arguments are taken as checked."""
    body = (
        payload_header(len(payload)) + payload
        if isinstance(payload, bytes)
        else msgpack.packb(payload.fields())
    )
    head, names = event_head(depth, topic, publisher), Names(session_id, source, cause)
    return event_frame(head, sequence, time_ns, names, body)


def batch_opening(depth: int, channel: str, publisher: bytes, source: str, topics: Sequence[str]) -> bytes:
    """A batch up to its events: ``channel`` is the namespace of all ``topics``; taken as checked."""
    key = DEPTH_BYTES[depth] + BATCH_MARK + channel.encode() + b"\0"
    head = map(msgpack.packb, (VERSION, publisher, source, list(topics)))
    return key + b"\x95" + b"".join(head)


def split_key(frame: bytes) -> tuple[Key, int]:
    """The key of ``frame`` and the offset of what follows it; raises :class:`DecodeError`."""
    if len(frame) > FRAME_BYTES:
        raise DecodeError("size", f"a frame of {len(frame):,} bytes; at most {FRAME_BYTES:,} are allowed")
    end = frame.find(b"\0")
    if end < 0:
        raise DecodeError("key", "no NUL byte ends the key")
    depth = frame[0] - 0x30
    if not 0 <= depth < len(DEPTH_BYTES):
        raise DecodeError("depth", f"the first byte {frame[:1]!r} is not a depth '0'..'7'")
    return Key(depth, frame[1:end]), end + 1


def unpack(body: bytes) -> Any:
    """One msgpack value; raises :class:`DecodeError` for anything that is not exactly one."""
    try:
        return msgpack.unpackb(body)
    except Exception as error:  # the unpacker raises many kinds, some of them its own
        raise DecodeError("msgpack", f"not one msgpack value: {type(error).__name__} {error}") from None


def is_text(value: object, limit: int) -> bool:
    """Whether ``value`` is a string of at most ``limit`` bytes in UTF-8."""
    if type(value) is not str or len(value) > limit:
        return False
    if value.isascii():
        return True
    try:
        return len(value.encode()) <= limit
    except UnicodeEncodeError:
        return False


def is_reference(value: object) -> bool:
    """Whether ``value`` can name a claim: a file name of 1..96 of ``0-9 a-z -``, so never a path."""
    return type(value) is str and _REFERENCE.fullmatch(value) is not None


def publisher_started(publisher: bytes) -> int:
    """When a publisher began, ns since the epoch, as its id says."""
    return int.from_bytes(publisher[:8], "big")


@lru_cache(1_024)
def topic_of(name: bytes) -> str:
    """The topic that a key's name is; raises :class:`DecodeError`."""
    text = name.decode("ascii", "replace")
    if not is_topic(text):
        raise DecodeError("topic", f"{name[:300]!r} is not a topic")
    return text


def check_payload(payload: Any) -> bytes | Claim:
    """A payload field as bytes or as a claim; raises :class:`DecodeError`."""
    if type(payload) is bytes:
        if len(payload) > PAYLOAD_BYTES:
            raise malformed("payload", payload)
        return payload
    if type(payload) is not list or len(payload) != 4:
        raise malformed("payload", payload)
    size, digest, reference, head = payload
    if type(size) is not int or not 0 <= size <= CLAIM_BYTES:
        raise malformed("claim size", size)
    if type(digest) is not bytes or len(digest) != 32:
        raise malformed("claim digest", digest)
    if not is_reference(reference):
        raise malformed("claim reference", reference)
    if type(head) is not bytes or len(head) > CLAIM_HEAD_BYTES:
        raise malformed("claim head", head)
    return Claim(size, digest, reference, head)


def malformed(name: str, value: object) -> DecodeError:
    """What to raise when the field ``name`` of an envelope holds ``value``."""
    return DecodeError("envelope", f"{name} is {shown(value, 120)}")
