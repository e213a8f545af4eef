"""Messages of the control plane: what a client and the broker tell each other beside the events.

    message = msgpack array [version, kind, request, body]

``request`` is a number that a reply repeats (0: no reply is expected). ``body`` is a map. The table
below is the whole language: each kind with its fields. Unknown fields pass, so that a newer peer
can say more; a missing or mistyped field is refused by name.

This module decides what a well-formed message is; what follows from one is decided in
:mod:`broker.control`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgpack

from .envelope import VERSION, unpack
from .errors import DecodeError, VersionMismatch, shown
from .limits import CONTROL_BYTES

ROLES: Final = ("publisher", "subscriber", "decider", "tool")
"""What a peer can be. A decider answers asks; a tool only has requests (status, one-shot publish)."""

KEY_BYTES: Final = 16
"""Bytes of the name that a client gives its control connection: its routing id, the first byte not 0. A
*lane* of it, a stream connection for asks, is named by the same bytes and some more."""

LANE_BYTES: Final = 48
"""Longest name of a lane."""

DECIDER_LANE: Final = b"\x01"
"""Ends the name of the lane on which a decider is sent asks. Once it is there, the decider is asked."""

FIELDS: Final[Mapping[str, Mapping[str, type | tuple[type, ...]]]] = {
    # client to broker
    "hello": {
        "role": str,  # one of ROLES
        "name": str,
        "pid": int,
        "release": str,  # the client's prxbus release
        "patterns": list,  # what a subscriber asks for, else empty
        "batches": bool,  # decodes batches
        "publisher": (bytes, type(None)),  # a publisher's current id
        # a decider's priority (int, 0) and failure (open, or closed) may be left out
    },
    "probe": {"inbox": str},  # send '0$inbox.<inbox>' NUL through the data plane; no reply
    "publish": {"frame": bytes, "retain": bool},  # answered by published or error
    "beacon": {"frame": bytes},  # injected; no reply
    "retained": {"patterns": list, "after": int},  # answered by values
    "report": {"counters": dict},  # name -> number or small map; no reply
    "status": {},  # answered by status_is
    "ask": {"frame": bytes, "timeout_ms": int},  # from a lane; answered by answered or error
    "cancel": {},  # from the same lane and with the number of an ask: nobody waits for it; no reply
    # numbered as the asked that it answers; error: why the decider failed, and answers do not count
    "answer": {"answers": (bytes, list), "error": (str, type(None))},
    "bye": {},  # no reply
    # broker to client
    "welcome": {
        "epoch": bytes,  # 16 bytes, new at each start of the broker
        "release": str,
        "pid": int,
        "limits": dict,  # name -> number
        "batches": bool,  # every registered subscriber decodes batches
    },
    "batches": {"batches": bool},  # that has changed
    "published": {"matching": int},  # subscribers whose patterns match
    "values": {"frames": list, "next": (int, type(None))},  # next: ask again after it
    "status_is": {"status": dict},
    "asked": {"frame": bytes, "left_ms": int},  # to a decider's lane; answered by answer
    "deciding": {},  # to a decider's lane: what comes after it, its last hello led to
    "cancelled": {},  # numbered as an asked: nobody waits for its answer
    "answered": {"heard": list},  # one row for each decider, in declared order
    "error": {"code": str, "message": str},
    "hold": {},  # the broker drains: send nothing until the next welcome
}
"""Every kind of message and the fields that its body must have."""


_CHECKED: Final[Mapping[str, tuple[tuple[str, tuple[type, ...]], ...]]] = {
    kind: tuple((name, types if isinstance(types, tuple) else (types,)) for name, types in fields.items())
    for kind, fields in FIELDS.items()
}

_pack: Final = msgpack.Packer(use_bin_type=True).pack
"""One for all: making one costs three times as much as packing. It runs no Python, so that nobody comes
between, as long as what is packed is of plain types."""


class Message(NamedTuple):
    """One control message: its ``kind``, the number of its ``request`` and its ``body``."""

    kind: str
    request: int
    body: dict[str, Any]


def encode_message(kind: str, request: int = 0, /, **body: Any) -> bytes:
    """One control message as bytes; the arguments are taken as checked."""
    return bytes(_pack([VERSION, kind, request, body]))


def decode_message(data: bytes) -> Message:
    """The message in ``data``; raises :class:`DecodeError` (or :class:`VersionMismatch`) only."""
    if len(data) > CONTROL_BYTES:
        raise DecodeError("size", f"a control message of {len(data):,} bytes; at most {CONTROL_BYTES:,}")
    fields = unpack(data)
    if type(fields) is not list or not fields:
        raise DecodeError("control", "a control message is a msgpack array")
    if type(fields[0]) is not int or fields[0] != VERSION:
        raise VersionMismatch(fields[0], VERSION)
    if len(fields) != 4:
        raise DecodeError("control", "a control message is [version, kind, request, body]")
    _, kind, request, body = fields
    if type(kind) is not str or kind not in FIELDS:
        raise DecodeError("kind", f"{shown(kind)} is not a kind of control message")
    if type(request) is not int or not 0 <= request < 2**63:
        raise DecodeError("control", f"request number {shown(request)} of {kind!r} is not a number from 0 up")
    if type(body) is not dict:
        raise DecodeError("control", f"the body of {kind!r} is not a map")
    for name, types in _CHECKED[kind]:
        try:
            value = body[name]
        except KeyError:
            raise DecodeError("control", f"{kind!r} lacks its field {name!r}") from None
        if type(value) not in types:
            raise DecodeError("control", f"field {name!r} of {kind!r} is a {type(value).__name__}")
    return Message(kind, request, body)
