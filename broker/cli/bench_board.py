"""Two numbers that the processes of ``prxbus bench`` share: events received, and whether to stop.

A file in memory that both map; each number has one writer. Decides their places, nothing else.
"""

from __future__ import annotations

import mmap
import os
from types import TracebackType
from typing import Self


class Board:
    """The shared numbers in the file ``path``, which is made when it is missing."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, 16)
            self._map = mmap.mmap(descriptor, 16)
        finally:
            os.close(descriptor)
        self._numbers = memoryview(self._map).cast("Q")

    @property
    def received(self) -> int:
        """Events that the subscriber has received."""
        return self._numbers[0]

    @received.setter
    def received(self, number: int) -> None:
        self._numbers[0] = number

    @property
    def stopped(self) -> bool:
        """Whether the subscriber is to end."""
        return bool(self._numbers[1])

    def stop(self) -> None:
        """Tell the subscriber to end."""
        self._numbers[1] = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._numbers.release()
        self._map.close()
