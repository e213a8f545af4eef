"""Fresh publisher ids.

Decides how an id is drawn; what it means on the wire is :mod:`broker.protocol.events`'s. Not from
``secrets``: that module loads OpenSSL, which costs every short command a twentieth of its life.
"""

from __future__ import annotations

import os
import time


def new_publisher() -> bytes:
    """A fresh publisher id: now in ns since the epoch, then 8 random bytes."""
    return time.time_ns().to_bytes(8, "big") + os.urandom(8)
