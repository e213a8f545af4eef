"""One event as a subscriber sees it, and how it is read from a frame (see :mod:`broker.protocol.envelope`).

A reader takes any msgpack that means the same as what our own publishers write.

This module decides what an event looks like and refuses everything else with
:class:`DecodeError`, never another exception. It knows no topic grammar beyond asking for it,
loads no claim and judges no payload field.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import orjson

from .envelope import (
    MAX_SEQUENCE,
    MAX_TIME,
    PUBLISHER_BYTES,
    VERSION,
    Claim,
    check_payload,
    is_text,
    malformed,
    split_key,
    topic_of,
    unpack,
)
from .errors import ClaimError, DecodeError, SchemaError, VersionMismatch
from .json_object import read_far_numbers
from .limits import (
    CAUSE_BYTES,
    DEPTHS,
    FRAME_BYTES,
    PAYLOAD_BYTES,
    SESSION_ID_BYTES,
    SOURCE_BYTES,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


_read_object: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Origin(msgspec.Struct, frozen=True, gc=False):
    """What the events of one publisher and depth share."""

    depth: int
    publisher_id: bytes
    source: str


class _Absent:
    """What no row of a batch holds."""


if TYPE_CHECKING:
    _Topic = str
    _Origin = Origin
else:  # as rows of a batch are read: an index for a topic, and no origin. Whoever reads them fills both in.
    _Topic = Annotated[int, msgspec.Meta(ge=0)]
    _Origin = _Absent

_Sequence = Annotated[int, msgspec.Meta(ge=1, le=MAX_SEQUENCE)]
_Time = Annotated[int, msgspec.Meta(ge=0, le=MAX_TIME)]

_read_envelope: Final = msgspec.msgpack.Decoder(
    tuple[int, bytes, _Sequence, _Time, str | None, str, str | None, bytes]
).decode

_SHORT_SESSION_ID: Final = SESSION_ID_BYTES // 4
_SHORT_SOURCE: Final = SOURCE_BYTES // 4
_SHORT_CAUSE: Final = CAUSE_BYTES // 4
"""Characters that take no more bytes than there may be, whatever they are."""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One event as a subscriber sees it: an immutable value, its payload decoded when asked for.

    ``time_ns`` is ns since the epoch (UTC) and ``payload_bytes`` the payload as the publisher's JSON.
    ``sequence`` numbers the events of its publisher and topic, from 1; ``caused_by`` is the id of the event
    whose handling published this one. Its fields but the last are in the order of a batch's rows, which
    become events in one call.
    """

    topic: _Topic
    sequence: _Sequence
    time_ns: _Time
    session_id: str | None
    caused_by: str | None
    payload_bytes: bytes
    origin: _Origin = None  # type: ignore[assignment]

    @classmethod
    def of(
        cls,
        topic: str,
        depth: int,
        publisher_id: bytes,
        sequence: int,
        time_ns: int,
        session_id: str | None,
        source: str,
        caused_by: str | None,
        content: bytes | Claim,
    ) -> Event:
        """The event of these parts, taken as checked; ``content`` is the payload or its claim."""
        origin = Origin(depth, publisher_id, source)
        if isinstance(content, Claim):
            return ClaimedEvent(topic, sequence, time_ns, session_id, caused_by, b"", origin, content)
        return Event(topic, sequence, time_ns, session_id, caused_by, content, origin)

    def parts(self) -> tuple[str, int, bytes, int, int, str | None, str, str | None, bytes | Claim]:
        """What :meth:`of` makes it of again."""
        origin = self.origin
        return (
            self.topic,
            origin.depth,
            origin.publisher_id,
            self.sequence,
            self.time_ns,
            self.session_id,
            origin.source,
            self.caused_by,
            self.claim or self.payload_bytes,
        )

    @property
    def depth(self) -> int:
        """How many hooks led to it, one by the other; 0 for what an agent did by itself."""
        return self.origin.depth

    @property
    def publisher_id(self) -> bytes:
        """The publisher's id, 16 bytes."""
        return self.origin.publisher_id

    @property
    def source(self) -> str:
        """Who published it, as it calls itself."""
        return self.origin.source

    @property
    def publisher(self) -> str:
        """The publisher's id, 32 hex digits."""
        return self.origin.publisher_id.hex()

    @property
    def time(self) -> datetime:
        """When it was published, to the microsecond, in UTC."""
        return _EPOCH + timedelta(microseconds=self.time_ns // 1000)

    @property
    def id(self) -> str:
        """``publisher:topic:sequence``, unique."""
        return f"{self.origin.publisher_id.hex()}:{self.topic}:{self.sequence}"

    @property
    def claim(self) -> Claim | None:
        """The claim, when the payload travels by claim check."""
        return None

    @property
    def size(self) -> int:
        """Bytes of the payload, wherever it is."""
        return len(self.payload_bytes)

    @property
    def inline(self) -> bytes:
        """The payload's bytes if they came with the event, else none."""
        return self.payload_bytes

    @property
    def payload(self) -> dict[str, Any]:
        """The payload as a new dict at each access. Numbers beyond a double are read as Python reads them.

        Raises :class:`SchemaError` when the publisher sent bytes that are not a JSON object,
        and what ``payload_bytes`` raises.
        """
        data = self.payload_bytes
        try:
            return _read_object(data)
        except Exception:  # of several kinds: no JSON, another value, far numbers, or nested very deeply
            return self._read_with_care(data)

    def _read_with_care(self, data: bytes) -> dict[str, Any]:
        """What the quick reader does not take: read it all the same, or say what is wrong."""
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            value = read_far_numbers(data)
            if value is None:
                raise SchemaError(f"payload of {self.id} is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise SchemaError(f"payload of {self.id} is {type(value).__name__}, not an object")
        return value

    def __repr__(self) -> str:
        return f"<Event {self.id} depth={self.depth} source={self.source!r}>"


class ClaimedEvent(Event, frozen=True, gc=False):
    """An event whose payload lies in the spool; ``payload_bytes`` fetches it.

    That raises :class:`ClaimExpired` or :class:`ClaimCorrupt` when it cannot be fetched whole.
    """

    claim: Claim = None  # type: ignore[assignment]  # always there: `Event.of` puts it in

    @property  # type: ignore[misc]  # the field of its base is empty
    def payload_bytes(self) -> bytes:
        """The payload as the publisher's JSON, from the spool."""
        claim = self.claim
        if claim.load is None:
            raise ClaimError(f"payload {claim.reference} lies in a spool that this reader was not given")
        loaded: bytes = claim.load(claim)
        return loaded

    @property
    def size(self) -> int:
        """Bytes of the payload, in the spool."""
        return self.claim.size

    @property
    def inline(self) -> bytes:
        """Nothing: the payload did not come with the event."""
        return b""


read_rows: Final = msgspec.msgpack.Decoder(list[Event]).decode
"""Reads the rows of a batch as events without an origin, the index of their topic in its place.

Raises an exception of msgspec's for anything but rows of the right types and ranges.
"""


def decode_event(frame: bytes) -> Event:
    """The event in ``frame``; raises :class:`DecodeError` (or :class:`VersionMismatch`) only."""
    end = frame.find(b"\0")
    depth = frame[0] - 0x30 if end > 0 and len(frame) <= FRAME_BYTES else -1
    if not 0 <= depth < DEPTHS:
        split_key(frame)  # which says what is wrong
    topic = topic_of(frame[1:end])
    try:
        version, publisher, sequence, time_ns, session_id, source, cause, payload = _read_envelope(
            memoryview(frame)[end + 1 :]
        )
    except Exception:  # of several kinds: it is a claim, or malformed
        return event_of(topic, depth, unpack(frame[end + 1 :]))
    if (
        version != VERSION
        or len(publisher) != PUBLISHER_BYTES
        or len(payload) > PAYLOAD_BYTES
        or len(source) > _SHORT_SOURCE
        or (session_id is not None and len(session_id) > _SHORT_SESSION_ID)
        or (cause is not None and len(cause) > _SHORT_CAUSE)
    ):
        return event_of(topic, depth, unpack(frame[end + 1 :]))
    return Event(topic, sequence, time_ns, session_id, cause, payload, Origin(depth, publisher, source))


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
        raise malformed("publisher", publisher)
    if type(sequence) is not int or not 1 <= sequence <= MAX_SEQUENCE:
        raise malformed("sequence", sequence)
    if type(time_ns) is not int or not 0 <= time_ns <= MAX_TIME:
        raise malformed("time", time_ns)
    if session_id is not None and not is_text(session_id, SESSION_ID_BYTES):
        raise malformed("session id", session_id)
    if not is_text(source, SOURCE_BYTES):
        raise malformed("source", source)
    if cause is not None and not is_text(cause, CAUSE_BYTES):
        raise malformed("cause", cause)
    content = check_payload(payload)
    if type(content) is bytes:
        return Event(topic, sequence, time_ns, session_id, cause, content, Origin(depth, publisher, source))
    return Event.of(topic, depth, publisher, sequence, time_ns, session_id, source, cause, content)
