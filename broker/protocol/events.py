"""One event as one frame, both ways.

    frame = depth byte '0'..'7' | topic (ASCII) | 0x00 | envelope (msgpack array of 8)
    envelope = [version, publisher id, sequence, time, session id, source, cause, payload]

The payload is JSON as bytes, or the claim of a payload that lies in the spool. The sender builds
the array from pieces that rarely change; a reader takes any msgpack that means the same.

This module decides what an event looks like and refuses everything else with
:class:`DecodeError`, never another exception. It knows no topic grammar beyond asking for it,
loads no claim and judges no payload field.
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgpack
import orjson

from .errors import ClaimError, DecodeError, SchemaError, VersionMismatch, shown
from .limits import (
    CAUSE_BYTES,
    CLAIM_BYTES,
    CLAIM_HEAD_BYTES,
    DEPTHS,
    FRAME_BYTES,
    PAYLOAD_BYTES,
    SESSION_ID_BYTES,
    SOURCE_BYTES,
)
from .topics import DEPTH_BYTES, is_topic

VERSION: Final = 1
PUBLISHER_BYTES: Final = 16
"""A publisher id: its start in ns since the epoch (8 bytes, big-endian), then 8 random bytes."""

MAX_TIME: Final = 2**63 - 1
MAX_SEQUENCE: Final = 2**63 - 1
"""The most that a signed 64-bit integer holds, so that every language can read them: the year 2262."""

_REFERENCE: Final = re.compile(r"[0-9a-z-]{1,96}", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
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


class Event(NamedTuple):
    """One event as a subscriber sees it: an immutable value, its payload decoded when asked for.

    ``publisher_id`` is 16 bytes, ``time_ns`` is ns since the epoch (UTC) and ``content`` the payload's JSON
    bytes or its claim. ``sequence`` numbers the events of its publisher and topic, from 1;
    ``caused_by`` is the id of the event whose handling published this one.
    """

    topic: str
    depth: int
    publisher_id: bytes
    sequence: int
    time_ns: int
    session_id: str | None
    source: str
    caused_by: str | None
    content: bytes | Claim

    @property
    def publisher(self) -> str:
        """The publisher's id, 32 hex digits."""
        return self.publisher_id.hex()

    @property
    def time(self) -> datetime:
        """When it was published, to the microsecond, in UTC."""
        return _EPOCH + timedelta(microseconds=self.time_ns // 1000)

    @property
    def id(self) -> str:
        """``publisher:topic:sequence``, unique."""
        return f"{self.publisher_id.hex()}:{self.topic}:{self.sequence}"

    @property
    def claim(self) -> Claim | None:
        """The claim, when the payload travels by claim check."""
        return self.content if type(self.content) is Claim else None

    @property
    def payload_bytes(self) -> bytes:
        """The payload as the publisher's JSON bytes.

        Raises :class:`ClaimExpired` or :class:`ClaimCorrupt` when it cannot be fetched whole.
        """
        content = self.content
        if type(content) is bytes:
            return content
        assert type(content) is Claim
        if content.load is None:
            raise ClaimError(f"payload {content.reference} lies in a spool that this reader was not given")
        loaded: bytes = content.load(content)
        return loaded

    @property
    def payload(self) -> dict[str, Any]:
        """The payload as a new dict at each access.

        Raises :class:`SchemaError` when the publisher sent bytes that are not a JSON object,
        and what :attr:`payload_bytes` raises.
        """
        try:
            value = orjson.loads(self.payload_bytes)
        except orjson.JSONDecodeError as error:
            raise SchemaError(f"payload of {self.id} is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise SchemaError(f"payload of {self.id} is {type(value).__name__}, not an object")
        return value

    def __repr__(self) -> str:
        return f"<Event {self.id} depth={self.depth} source={self.source!r}>"


class Key(NamedTuple):
    """What stands before the NUL of a frame: its depth and the rest."""

    depth: int
    name: bytes


def event_head(depth: int, topic: str, publisher: bytes) -> bytes:
    """The bytes of a frame that stay the same for one depth, topic and publisher: all before the sequence."""
    return b"".join((DEPTH_BYTES[depth], topic.encode(), b"\0", _ENVELOPE_HEAD, publisher, b"\xcf"))


_ROW_BYTES: Final = 27
"""Of a row in a batch: array, index, sequence, time and the payload's header, at their longest."""


class Names(NamedTuple):
    """Session id, source and cause as they stand in a frame, and how to write what lies around them.

    ``packed`` are their bytes; ``middle`` adds the tag of a payload whose length has two bytes. Of such an
    event ``layout`` packs and unpacks all between head and payload: sequence, ``0xCF``, time, middle, size.
    ``cost`` is what an event adds to a batch beside its payload, in bytes, at most.
    """

    packed: bytes
    middle: bytes
    layout: struct.Struct
    session_id: str | None
    cause: str | None
    cost: int


def event_names(session_id: str | None, source: str, cause: str | None) -> Names:
    """The names of an event; taken as checked."""
    packed = b"".join(map(msgpack.packb, (session_id, source, cause)))
    layout = struct.Struct(f">QBQ{len(packed) + 1}sH")
    return Names(packed, packed + b"\xc5", layout, session_id, cause, len(packed) + _ROW_BYTES)


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
    head, names = event_head(depth, topic, publisher), event_names(session_id, source, cause)
    return event_frame(head, sequence, time_ns, names, body)


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


@lru_cache(1_024)
def topic_of(name: bytes) -> str:
    """The topic that a key's name is; raises :class:`DecodeError`."""
    text = name.decode("ascii", "replace")
    if not is_topic(text):
        raise DecodeError("topic", f"{name[:300]!r} is not a topic")
    return text


def unpack(body: bytes) -> Any:
    """One msgpack value; raises :class:`DecodeError` for anything that is not exactly one."""
    try:
        return msgpack.unpackb(body)
    except Exception as error:  # the unpacker raises many kinds, some of them its own
        raise DecodeError("msgpack", f"not one msgpack value: {type(error).__name__} {error}") from None


def decode_event(frame: bytes) -> Event:
    """The event in ``frame``; raises :class:`DecodeError` (or :class:`VersionMismatch`) only."""
    end = frame.find(b"\0")
    depth = frame[0] - 0x30 if end > 0 and len(frame) <= FRAME_BYTES else -1
    if not 0 <= depth < DEPTHS:
        split_key(frame)  # which says what is wrong
    return event_of(topic_of(frame[1:end]), depth, unpack(frame[end + 1 :]))


def event_of(topic: str, depth: int, fields: Any) -> Event:
    """The event that a decoded envelope means, every field checked.

    Raises :class:`DecodeError` that names the field, and :class:`VersionMismatch`.
    """
    if type(fields) is not list or not fields:
        raise DecodeError("envelope", "the envelope is not a msgpack array")
    if type(fields[0]) is not int or fields[0] != VERSION:
        raise VersionMismatch(fields[0], VERSION)
    if len(fields) != 8:
        raise DecodeError("envelope", f"the envelope has {len(fields)} fields, not 8")
    _, publisher, sequence, time_ns, session_id, source, cause, payload = fields
    if type(publisher) is not bytes or len(publisher) != PUBLISHER_BYTES:
        raise _malformed("publisher", publisher)
    if type(sequence) is not int or not 1 <= sequence <= MAX_SEQUENCE:
        raise _malformed("sequence", sequence)
    if type(time_ns) is not int or not 0 <= time_ns <= MAX_TIME:
        raise _malformed("time", time_ns)
    if session_id is not None and not is_text(session_id, SESSION_ID_BYTES):
        raise _malformed("session id", session_id)
    if not is_text(source, SOURCE_BYTES):
        raise _malformed("source", source)
    if cause is not None and not is_text(cause, CAUSE_BYTES):
        raise _malformed("cause", cause)
    content = check_payload(payload)
    return Event(topic, depth, publisher, sequence, time_ns, session_id, source, cause, content)


def check_payload(payload: Any) -> bytes | Claim:
    """A payload field as bytes or as a claim; raises :class:`DecodeError`."""
    if type(payload) is bytes:
        if len(payload) > PAYLOAD_BYTES:
            raise _malformed("payload", payload)
        return payload
    if type(payload) is not list or len(payload) != 4:
        raise _malformed("payload", payload)
    size, digest, reference, head = payload
    if type(size) is not int or not 0 <= size <= CLAIM_BYTES:
        raise _malformed("claim size", size)
    if type(digest) is not bytes or len(digest) != 32:
        raise _malformed("claim digest", digest)
    if not is_reference(reference):
        raise _malformed("claim reference", reference)
    if type(head) is not bytes or len(head) > CLAIM_HEAD_BYTES:
        raise _malformed("claim head", head)
    return Claim(size, digest, reference, head)


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


def _malformed(name: str, value: object) -> DecodeError:
    return DecodeError("envelope", f"{name} is {shown(value, 120)}")
