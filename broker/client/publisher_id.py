"""Fresh publisher ids, and names of connections.

Decides how an id is drawn; what it means on the wire is :mod:`broker.protocol.events`'s. Not from
``secrets``: that module loads OpenSSL, which costs every short command a twentieth of its life.
"""

from __future__ import annotations

import os
import time

from ..protocol.control import KEY_BYTES


def new_publisher() -> bytes:
    """A fresh publisher id: now in ns since the epoch, then 8 random bytes."""
    return time.time_ns().to_bytes(8, "big") + os.urandom(8)


def new_key() -> bytes:
    """A fresh name for a control connection that has lanes."""
    return b"p" + os.urandom(KEY_BYTES - 1)
