"""The event loop of one hook, in a thread of its own: what blocks it holds up nobody else.

Decides that it begins with the first asynchronous handler, and lasts until the hook is disposed, so that
tasks that a handler leaves behind go on. Refuses to know what runs on it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final

END_S: Final = 1.0
"""Seconds that tasks may take to end when they are cancelled at the end."""

BLOCKED_S: Final = 1.0
"""Seconds after which a loop that does not even cancel is not waited for."""

OnError = Callable[[str, BaseException | None], None]
"""Told of what nobody else is: an exception in a task that nobody awaits, or in a callback."""


class NoThread(Exception):
    """The process has no room for one more thread, or a hook has spoilt how they are started."""


class HookLoop:
    """An event loop. Thread-safe. Whatever needs it raises :class:`NoThread` where there can be none."""

    def __init__(self, name: str, on_error: OnError) -> None:
        self._name = name
        self._on_error = on_error
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def soon(self, callback: Callable[[], object]) -> None:
        """Have ``callback`` called on the loop. Raises RuntimeError when it has been closed."""
        self._running().call_soon_threadsafe(callback)

    def task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a task; on the loop."""
        assert self._loop is not None
        return self._loop.create_task(work)

    def run(self, work: Awaitable[Any], seconds: float) -> None:
        """Wait for ``work``, which runs on the loop, and raise what it raises; TimeoutError if it lasts."""
        ended: Future[None] = Future()

        async def run() -> None:
            try:
                await asyncio.wait_for(work, seconds)
            except BaseException as error:  # what is let out of a task may end the whole loop
                ended.set_exception(error)
            else:
                ended.set_result(None)

        self.soon(lambda: self.task(run()))
        try:
            ended.result(seconds + BLOCKED_S)
        except TimeoutError:
            raise TimeoutError(f"it did not end within {seconds:g} s") from None

    def close(self) -> None:
        """Cancel what runs, and end; waits a little, unless nothing was ever begun."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(END_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("the hook has been disposed")
            if self._loop is None:
                ready = threading.Event()
                try:
                    thread = threading.Thread(target=self._serve, args=(ready,), name=self._name, daemon=True)
                    thread.start()
                except RuntimeError as error:
                    raise NoThread(str(error)) from None
                self._thread = thread
                ready.wait()
            assert self._loop is not None
            return self._loop

    def _serve(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            loop = self._loop = runner.get_loop()
            loop.set_exception_handler(self._failed)
            ready.set()
            while True:
                try:
                    loop.run_forever()
                except BaseException as error:  # a task that exits ends no loop
                    self._on_error("a task ended the event loop", error)
                if self._closed:
                    return

    def _failed(self, _: asyncio.AbstractEventLoop, told: dict[str, Any]) -> None:
        self._on_error(str(told.get("message")), told.get("exception"))
