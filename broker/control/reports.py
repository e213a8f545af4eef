"""What a peer may report of itself, and how it is kept.

A report is a map from a counter's name to a number or to a small map of numbers. It is kept
packed, so that its size is known to the byte; of a long map only the largest entries stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgpack

from ..protocol.envelope import is_text
from ..protocol.errors import DecodeError, LimitExceeded
from .bounds import REPORT_BYTES, REPORT_ENTRIES, REPORT_NAMES

_NAME_BYTES = 320


def pack_report(counters: Mapping[Any, Any]) -> bytes:
    """``counters`` as kept.

    Raises :class:`DecodeError` for a name or value of another kind and :class:`LimitExceeded`
    for a report that is too large.
    """
    if len(counters) > REPORT_NAMES:
        raise LimitExceeded(f"a report of {len(counters):,} counters; at most {REPORT_NAMES} are kept")
    kept: dict[str, Any] = {}
    for name, value in counters.items():
        _check_name(name)
        if type(value) is dict:
            kept[name] = _largest(name, value)
            if len(value) > REPORT_ENTRIES:
                kept[f"{name}_omitted"] = len(value) - REPORT_ENTRIES
        else:
            kept[name] = _number(name, value)
    packed = bytes(msgpack.packb(kept))
    if len(packed) > REPORT_BYTES:
        raise LimitExceeded(f"a report of {len(packed):,} bytes; at most {REPORT_BYTES:,} are kept")
    return packed


def unpack_report(packed: bytes) -> dict[str, Any]:
    """The counters of a report as kept; none of an empty one."""
    counters: dict[str, Any] = msgpack.unpackb(packed) if packed else {}
    return counters


def _largest(name: str, value: Mapping[Any, Any]) -> dict[str, int | float]:
    for key, number in value.items():
        _check_name(key)
        _number(name, number)
    return dict(sorted(value.items(), key=lambda entry: -entry[1])[:REPORT_ENTRIES])


def _number(name: str, value: object) -> int | float:
    if type(value) is int or (type(value) is float and isfinite(value)):
        return value
    raise DecodeError("report", f"counter {name!r} is {repr(value)[:80]}, not a number or a map of numbers")


def _check_name(name: object) -> None:
    if not is_text(name, _NAME_BYTES):
        raise DecodeError("report", f"a counter's name is {repr(name)[:80]}, not a short string")
