"""One call of a handler: run, timed, and told as a value.

    Caller.start(registration, args, timeout_s, done)     returns at once, or when a synchronous one is over
    Caller.call(registration, *args, timeout_s=...)       waits, at most for the timeout

A synchronous handler runs in the thread that starts it; an asynchronous one on the caller's event loop, where
it is cancelled when its time is over. A synchronous one cannot be ended from within: its timeout is told at
once, and it goes on in its thread, counted as :attr:`Caller.stuck`; to be rid of it, end the process. Decides
what came of a call. Refuses to know events and answers: arguments and returned values are anybody's.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from types import CoroutineType
from typing import Any, Final, NamedTuple, TypeAlias

from ..handlers.registration import HandlerError, Registration
from .python_threads import Threads
from .python_traceback import Fault, fault_of
from .python_watch import Watch, Watched

END_S: Final = 2.0
"""Seconds that the event loop may take to end."""


class Returned(NamedTuple):
    """It came to its end; ``seconds`` from the call to then."""

    value: Any
    seconds: float


class Raised(NamedTuple):
    """It raised, whatever it was: also SystemExit."""

    fault: Fault
    seconds: float


class TimedOut(NamedTuple):
    """Its time was over."""

    timeout_s: float
    seconds: float


Outcome: TypeAlias = Returned | Raised | TimedOut
Done: TypeAlias = Callable[[Outcome], None]
"""Told of each call once: in the thread that made it, on the event loop, or in the watch's thread."""


class _Call:
    """A call under way. Whoever takes ``open`` first tells of it."""

    __slots__ = ("_done", "_on_end", "_open", "ended", "stuck", "task")

    def __init__(self, done: Done, on_end: Callable[[], None] | None = None) -> None:
        self._done = done
        self._on_end = on_end
        self._open = [None]
        self.ended = self.stuck = False
        self.task: asyncio.Task[None] | None = None

    @property
    def told(self) -> bool:
        """Whether somebody has told of it."""
        return not self._open

    def tell(self, outcome: Outcome) -> bool:
        """Tell of the call, unless somebody has; whether this was the first word."""
        try:
            self._open.pop()
        except IndexError:
            return False
        self._done(outcome)
        return True

    def over(self) -> None:
        """Say that the handler has ended."""
        if self._on_end is not None:
            self._on_end()


class Caller:
    """Calls handlers. Thread-safe; each call by itself, in any number: whoever calls sees to a bound.

    ``on_stuck`` is called, in the watch's thread, whenever a call goes on although its time is over.
    """

    def __init__(self, on_stuck: Callable[[Registration], None] | None = None) -> None:
        self._on_stuck = on_stuck
        self._watch = Watch()
        self._threads = Threads("handler")
        self._lock = threading.Lock()
        self._stuck = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread: threading.Thread | None = None

    @property
    def stuck(self) -> int:
        """Calls that were told as timed out and still go on."""
        return self._stuck

    def call(self, registration: Registration, /, *args: Any, timeout_s: float | None = None) -> Outcome:
        """Call and wait: for its end, or for its timeout (default: the handler's own)."""
        told = threading.Event()
        outcomes: list[Outcome] = []

        def done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            told.set()

        context = copy_context()
        seconds = registration.timeout_s if timeout_s is None else timeout_s
        self._threads.run(lambda: context.run(self.start, registration, args, seconds, done))
        told.wait()
        return outcomes[0]

    def start(
        self,
        registration: Registration,
        args: tuple[Any, ...],
        timeout_s: float,
        done: Done,
        on_long: Callable[[], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """Begin a call. A synchronous handler runs here and now; an asynchronous one elsewhere.

        ``on_long`` is called, in the watch's thread, when a synchronous call lasts for more than a few
        milliseconds: whoever waits for this thread is to wait no longer. ``on_end`` is called last, when the
        handler has really ended, which after a timeout may be later, or never.
        """
        if registration.is_async:
            self._start_async(registration, args, timeout_s, _Call(done, on_end))
        else:
            self._run(registration, args, timeout_s, _Call(done, on_end), on_long)

    def close(self) -> None:
        """End the event loop, cancelling what runs there, and the watch. What is stuck is left to itself."""
        loop, thread = self._loop, self._loop_thread
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(END_S)
        self._watch.close()
        self._threads.close()

    # -- synchronous ones ---------------------------------------------------------------------

    def _run(
        self,
        registration: Registration,
        args: tuple[Any, ...],
        timeout_s: float,
        call: _Call,
        on_long: Callable[[], None] | None,
    ) -> None:
        started = time.monotonic()

        def due() -> None:
            if call.tell(TimedOut(timeout_s, time.monotonic() - started)):
                self._is_stuck(registration, call)

        watched = Watched(started, timeout_s, due, on_long=on_long)
        self._watch.enter(watched)
        outcome: Outcome
        try:
            value = registration.function(*args)
        except BaseException as error:  # SystemExit too: a handler ends nobody else's work
            outcome = _raised(error, registration, started)
        else:
            outcome = Returned(value, time.monotonic() - started)
            if type(value) is CoroutineType:
                value.close()
                wrong = HandlerError(f"{registration.name} returned a coroutine; make it 'async def'")
                outcome = _raised(wrong, registration, started)
        self._watch.leave(watched)
        self._has_ended(call)
        call.tell(outcome)
        call.over()

    # -- asynchronous ones --------------------------------------------------------------------

    def _start_async(
        self, registration: Registration, args: tuple[Any, ...], timeout_s: float, call: _Call
    ) -> None:
        started = time.monotonic()
        loop, context = self._event_loop(), copy_context()

        def due() -> None:
            if call.tell(TimedOut(timeout_s, time.monotonic() - started)):
                loop.call_soon_threadsafe(cancel)

        def cancel() -> None:
            if call.task is not None:
                call.task.cancel()

        def begin() -> None:
            if call.told:  # its time was over before the loop came to it
                self._has_ended(call)
                call.over()
                return
            call.task = loop.create_task(run(), context=context)

        async def run() -> None:
            outcome: Outcome
            try:
                outcome = Returned(await registration.function(*args), time.monotonic() - started)
            except BaseException as error:  # what is let out of a task may end the whole loop
                outcome = _raised(error, registration, started)
            self._watch.leave(watched)
            self._has_ended(call)
            call.tell(outcome)
            call.over()

        watched = Watched(started, timeout_s, due, on_stuck=lambda: self._is_stuck(registration, call))
        self._watch.enter(watched)
        loop.call_soon_threadsafe(begin)

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                ready = threading.Event()
                self._loop_thread = threading.Thread(
                    target=self._serve, args=(ready,), name="asynchronous handlers", daemon=True
                )
                self._loop_thread.start()
                ready.wait()
            assert self._loop is not None
            return self._loop

    def _serve(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            ready.set()
            self._loop.run_forever()

    # -- what does not end --------------------------------------------------------------------

    def _is_stuck(self, registration: Registration, call: _Call) -> None:
        with self._lock:
            if call.ended:
                return
            call.stuck = True
            self._stuck += 1
        if self._on_stuck is not None:
            self._on_stuck(registration)

    def _has_ended(self, call: _Call) -> None:
        with self._lock:
            call.ended = True
            if call.stuck:
                self._stuck -= 1


def _raised(error: BaseException, registration: Registration, started: float) -> Raised:
    return Raised(fault_of(error, os.path.dirname(registration.path)), time.monotonic() - started)
