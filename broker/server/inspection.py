"""What the broker checks about itself at each tick: its sockets, its lock, its memory.

Decides what it cannot go on with. A broker whose paths were taken away serves those it has and is
unreachable for everybody else; one that takes all the memory harms the machine. Both end, and the
supervisor starts a new one.
"""

from __future__ import annotations

import os
from typing import Final

from ..logs import get_logger
from ..places import Endpoints
from .lock import DirectoryLock

DESCRIPTORS_SHORT: Final = 0.9
"""Part of all descriptors in use beyond which somebody should know."""

log = get_logger("broker.inspection")

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Inspection:
    """``memory`` is the most that the process may hold, in bytes; ``descriptors`` are all it can have."""

    def __init__(self, lock: DirectoryLock, endpoints: Endpoints, memory: int, descriptors: int) -> None:
        self._lock = lock
        self._paths = [address.removeprefix("ipc://") for address in endpoints]
        self._memory = memory
        self._descriptors = descriptors
        self._warned = False
        self._sockets: list[tuple[int, int] | None] = []

    def note_sockets(self) -> None:
        """The sockets are bound: they shall stay what they are."""
        self._sockets = [_identity(path) for path in self._paths]

    def usage(self) -> dict[str, int]:
        """What status says of the process; a warning goes to the log when descriptors run short."""
        held = len(os.listdir("/proc/self/fd"))
        short = held > self._descriptors * DESCRIPTORS_SHORT
        if short and not self._warned:
            log.warning("descriptors run short", open=held, limit=self._descriptors)
        self._warned = short
        return {
            "memory_bytes": resident_bytes(),
            "memory_limit_bytes": self._memory,
            "descriptors": held,
            "descriptors_limit": self._descriptors,
        }

    def fault(self) -> str | None:
        """Why the broker cannot go on, or None."""
        if not self._lock.in_place:
            return f"the lock {self._lock.path!r} was removed or replaced"
        for path, noted in zip(self._paths, self._sockets, strict=False):
            if _identity(path) != noted:
                return f"the socket {path!r} was removed or replaced"
        held = resident_bytes()
        if held > self._memory:
            return f"{held:,} bytes of memory are held and {self._memory:,} allowed (--memory-bytes)"
        return None


def resident_bytes() -> int:
    """Physical memory that this process holds."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
