"""Work that may block, off the event loop, with a deadline.

A deadline that passes ends the wait, not the work: a thread cannot be stopped, so every work has bounds of
its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from .problems import Problem

SECONDS: Final = 25.0
"""Longer than any edit or request to the broker waits by itself."""

T = TypeVar("T")


class Blocking:
    """Runs functions in at most ``threads`` threads; ``queue`` more may wait, beyond it they are refused."""

    def __init__(self, threads: int, queue: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._most = threads + queue
        self._inside = 0

    async def run(self, function: Callable[[], T], seconds: float = SECONDS) -> T:
        """What ``function`` returns or raises; raises :class:`Problem` when there is no room or no time."""
        if self._inside >= self._most:
            raise Problem(
                503, "busy", "too many requests of this kind are under way", headers={"retry-after": "1"}
            )
        self._inside += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, function)
        future.add_done_callback(self._done)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(future)
        except TimeoutError:
            raise Problem(
                503,
                "timeout",
                f"it was not done within {seconds:g} s; it may still be",
                headers={"retry-after": "1"},
            ) from None

    def close(self) -> None:
        """Wait for what is under way."""
        self._executor.shutdown(cancel_futures=True)

    def _done(self, future: asyncio.Future[T]) -> None:
        self._inside -= 1
        if not future.cancelled():
            future.exception()  # of who did not wait for it any more
