"""Control messages for whoever exchanges many, as on lanes: read and written in fewer steps.

The language is that of :mod:`broker.protocol.control`, which also decides what is well formed: whatever is
not taken here is left to it. A command that exchanges a few messages does without, for it would load more
than it saves. Maps inside a body may have keys that are no strings; what they stand for is refused by whoever
reads it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from .control import FIELDS, Message
from .control import decode_message as decode_with_care
from .envelope import VERSION
from .limits import CONTROL_BYTES

_KINDS: Final = ("ask", "cancel", "answer", "asked", "cancelled", "answered")
"""What an ask leads to."""

_TYPES: Final = {
    kind: tuple(
        (name, frozenset(types if isinstance(types, tuple) else (types,)))
        for name, types in FIELDS[kind].items()
    )
    for kind in _KINDS
}

_Request = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_read: Final = msgspec.msgpack.Decoder(tuple[int, str, _Request, dict[str, Any]]).decode
_write: Final = msgspec.msgpack.Encoder().encode


def encode_message(kind: str, request: int = 0, /, **body: Any) -> bytes:
    """See :func:`broker.protocol.control.encode_message`."""
    return _write((VERSION, kind, request, body))


def decode_message(data: bytes) -> Message:
    """See :func:`broker.protocol.control.decode_message`."""
    try:
        version, kind, request, body = _read(data)
        for name, types in _TYPES[kind]:
            if type(body[name]) not in types:
                return decode_with_care(data)
    except Exception:  # of several kinds: no msgpack, another type, another kind, a field that is missing
        return decode_with_care(data)
    if version != VERSION or len(data) > CONTROL_BYTES:
        return decode_with_care(data)
    return Message(kind, request, body)
