"""Work that may block, off the event loop, with a deadline.

A deadline that passes ends the wait, not the work: a thread cannot be stopped, so every work has bounds of
its own, and what it opened after all is given back.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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

    async def run(
        self,
        function: Callable[[], T],
        seconds: float = SECONDS,
        discard: Callable[[T], object] | None = None,
    ) -> T:
        """What ``function`` returns or raises; raises :class:`Problem` when there is no room or no time.

        ``discard`` gets, in a thread too, what was returned when nobody waited for it any more.
        """
        if self._inside >= self._most:
            raise Problem(
                503, "busy", "too many requests of this kind are under way", headers={"retry-after": "1"}
            )
        self._inside += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, function)
        future.add_done_callback(self._done)
        is_taken = False
        try:
            async with asyncio.timeout(seconds):
                found = await asyncio.shield(future)
            is_taken = True
            return found
        except TimeoutError:
            raise Problem(
                503,
                "timeout",
                f"it was not done within {seconds:g} s; it may still be",
                headers={"retry-after": "1"},
            ) from None
        finally:
            if discard is not None and not is_taken:
                future.add_done_callback(functools.partial(self._discard, discard))

    def close(self) -> None:
        """Wait for what is under way."""
        self._executor.shutdown(cancel_futures=True)

    def _discard(self, discard: Callable[[T], object], future: asyncio.Future[T]) -> None:
        if not future.cancelled() and future.exception() is None:
            with suppress(RuntimeError):  # closed: the process ends, and what is open with it
                self._executor.submit(discard, future.result())

    def _done(self, future: asyncio.Future[T]) -> None:
        self._inside -= 1
        if not future.cancelled():
            future.exception()  # of who did not wait for it any more
