"""What is said of a message that is no message, and how such messages are counted."""

from __future__ import annotations

from collections import Counter

import msgpack

from ..protocol.envelope import VERSION
from ..protocol.errors import BusError, DecodeError, VersionMismatch
from .bounds import REASONS


def read_head(data: bytes) -> tuple[int | None, int]:
    """Version and request number of ``data``, as far as they can be made out: None and 0 where not.

    A message of another version may be built in any way behind its version, and a malformed one
    may still say which request it was; whoever waits for the answer should get one.
    """
    version = None
    unpacker = msgpack.Unpacker()
    unpacker.feed(data[:1024])
    try:
        length = unpacker.read_array_header()
        version = unpacker.unpack()
        unpacker.skip()
        request = unpacker.unpack() if length > 2 else 0
    except Exception:  # the unpacker raises many kinds, some of them its own
        request = 0
    known = type(version) is int and -(2**31) < version < 2**31
    valid = type(request) is int and 0 <= request < 2**63
    return (version if known else None), (request if valid else 0)


def explain(error: DecodeError, version: int | None) -> DecodeError:
    """``error``, or the better explanation that the message is of another version."""
    if version is None or version == VERSION or isinstance(error, VersionMismatch):
        return error
    return VersionMismatch(version, VERSION)


class Refusals:
    """How many messages were refused, by reason. The number of reasons is bounded."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, error: BusError) -> None:
        """One more like ``error``."""
        reason = error.reason if isinstance(error, DecodeError) else error.code
        if reason not in self.counts and len(self.counts) >= REASONS:
            reason = "other"
        self.counts[reason] += 1
