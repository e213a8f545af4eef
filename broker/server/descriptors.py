"""How many clients this process can hold open.

libzmq aborts the process when a descriptor for an ipc connection is refused, so the soft limit is
raised to the hard one. That moves the abort and does not remove it: a supervisor restarts.
"""

from __future__ import annotations

import resource
from typing import Final

FEW_DESCRIPTORS: Final = 4_096
"""Below this many a busy machine can run out of them."""

OWN_DESCRIPTORS: Final = 64
"""Descriptors that the broker keeps for itself."""

PER_CLIENT: Final = 3
"""A client's data connection, its control connection, and the watch on its process."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit on descriptors to the hard one; returns what holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def clients_for(descriptors: int) -> int:
    """How many clients fit into ``descriptors``."""
    return max(0, (descriptors - OWN_DESCRIPTORS) // PER_CLIENT)
