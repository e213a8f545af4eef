"""A hook that is in force in the Python module host, and the calls of it.

A synchronous handler runs in the thread that begins the call, and those of one hook one after the other, as
in a language without threads; asynchronous ones run together on the hook's own event loop. Decides what came
of a call, once, and what is done about one that does not end. Refuses to know the other hooks, and how a
call came.
"""

from __future__ import annotations

import gc
import inspect
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from broker.protocol.errors import shown

from ..hooks.module_hook import Handler
from .python_module_context import A_SECOND, Allowance, Context, HookLog, Injected
from .python_module_edit import EditRefused, before, edit_of
from .python_module_loader import SNAKE, FoundHandler, PythonModule, forget
from .python_traceback import fault_of
from .python_watch import Watch, Watched

if TYPE_CHECKING:
    import asyncio

    from .python_module_loop import HookLoop

STUCK_S: Final = 0.5
"""Seconds after its deadline at which a call that goes on is a case for :meth:`World.quarantine`."""

IDLE_S: Final = 5.0
"""Seconds that a hook which is to be disposed waits for its calls."""


class World(Protocol):
    """What a hook needs of its process."""

    watch: Watch

    def send(self, message: Mapping[str, Any]) -> object:
        """Send a frame."""

    def send_done(self, number: int, hook_id: str, rest: bytes) -> None:
        """Send a ``done`` of this hook's; ``rest`` are its further members, each with a comma in front."""

    def begin(self, number: int, hook_id: str, deadline: float) -> int | None:
        """Note that a handler begins; where that is noted, or None if it must not."""

    def end(self, slot: int) -> None:
        """Note that it has ended."""

    def quarantine(self, hook: LoadedHook, reason: str, *, replace: bool) -> None:
        """The hook is not to be called any more; ``replace``: the process is spoilt, too."""

    def replace(self, reason: str) -> None:
        """Say that this process had better be replaced."""

    def is_crowded(self) -> bool:
        """Whether the memory of this process is used up by what is not under way."""

    def handling(self, depth: int, cause: str | None, /) -> AbstractContextManager[None]:
        """Within the block, what is published has this depth and cause."""


class PythonCall:
    """One call. Whoever takes ``open`` first tells of it; times are of ``time.monotonic()``."""

    __slots__ = (
        "cause",
        "context",
        "deadline",
        "depth",
        "ended",
        "found",
        "given",
        "handler",
        "hook",
        "injected",
        "is_cancelled",
        "number",
        "open",
        "slot",
        "started",
        "task",
        "timeout_s",
        "was",
        "watched",
    )

    def __init__(self, hook: LoadedHook, message: Mapping[str, Any], found: FoundHandler, now: float) -> None:
        session_id = message["session"]
        self.hook = hook
        self.number: int = message["n"]
        self.handler: Handler = message["handler"]
        self.found = found
        self.given: dict[str, Any] = message["input"]
        self.was = before(self.handler, self.given)
        self.depth: int = message.get("depth", 0)
        self.cause: str | None = message.get("cause")
        self.injected = Injected(lambda text: hook.inject_later(session_id, text))
        self.context = Context(hook.name, hook.config, hook.log, self.injected, session_id, message["agent"])
        self.started = now
        self.timeout_s: float = message["timeout_ms"] / 1_000
        self.deadline = now + self.timeout_s
        self.open: list[None] = [None]
        self.slot = -1
        self.ended = self.is_cancelled = False
        self.task: asyncio.Task[None] | None = None
        self.watched: Watched | None = None

    def tell(self, members: bytes) -> None:
        """Tell what came of it, unless that has been told; ``members`` each with a comma in front."""
        try:
            self.open.pop()
        except IndexError:
            return
        texts = self.injected.close()
        if texts:
            members += b',"inject":' + orjson.dumps(texts)
        self.hook.world.send_done(self.number, self.hook.id, members)

    def is_due(self) -> None:
        """Tell that its time is over, cancel what can be cancelled, and look at it again a little later."""
        self.watched = Watched(time.monotonic(), STUCK_S, lambda: self.hook.is_stuck(self))
        self.hook.world.watch.enter(self.watched)
        self.tell(
            _failed("timeout", f"{SNAKE[self.handler]} did not end within {round(self.timeout_s, 3):g} s")
        )
        if self.task is not None:
            self.hook.soon(self._cancel)

    def _cancel(self) -> None:
        self.is_cancelled = True
        if self.task is not None:
            self.task.cancel()

    def lose(self, *, started: bool, reason: str) -> None:
        """Tell that nothing will come of it, unless something has."""
        try:
            self.open.pop()
        except IndexError:
            return
        self.hook.world.send({"is": "lost", "n": self.number, "started": started, "reason": reason})


def _failed(status: str, error: str, detail: str | None = None) -> bytes:
    said = orjson.dumps({"status": status, "error": error, "detail": detail})
    return b"," + said[1:-1]


class LoadedHook:
    """A hook: its module, what it is given, and its calls. Thread-safe."""

    def __init__(self, world: World, told: Mapping[str, Any], module: PythonModule, log: HookLog) -> None:
        self.world = world
        self.id: str = told["id"]
        self.name: str = told["name"]
        self.config = told.get("config")
        self.module = module
        self.log = log
        self.gone: str | None = None  # why it is not called any more
        self._texts = Allowance()
        self._loop: HookLoop | None = None
        self._lock = threading.Lock()
        self._queue: deque[PythonCall] = deque()
        self._calls: set[PythonCall] = set()
        self._is_busy = self._is_disposed = False
        self._idle = threading.Condition(self._lock)

    # -- calls --------------------------------------------------------------------------------

    def call(self, message: Mapping[str, Any], now: float, on_long: Callable[[], None]) -> None:
        """Make a call; returns when a synchronous handler has ended. ``on_long``: this thread takes long."""
        handler: Handler = message["handler"]
        found = self.module.handlers.get(handler)
        if found is None:
            error = f"its module has no {SNAKE.get(handler, handler)}"
            self.world.send_done(message["n"], self.id, _failed("absent", error))
            return
        try:
            call = PythonCall(self, message, found, now)
        except Exception as error:  # its input is nothing that an edit of it could be compared with
            why = f"its input cannot be handed over: {shown(error, 200)}"
            self.world.send_done(message["n"], self.id, _failed("failed", why))
            return
        with self._lock:
            self._calls.add(call)
            waits = self._is_busy and not found.is_async
            if waits:
                self._queue.append(call)
            elif not found.is_async:
                self._is_busy = True
        if waits or found.is_async:
            call.watched = Watched(now, call.timeout_s, call.is_due)
            self.world.watch.enter(call.watched)
        if found.is_async:
            self._soon(call, lambda: self._begin(call))
        elif not waits:
            self._work(call, on_long)

    def _work(self, call: PythonCall | None, on_long: Callable[[], None]) -> None:
        """Run a call, and those that have come meanwhile."""
        while call is not None:
            if call.watched is not None:  # it has waited
                self.world.watch.leave(call.watched)
            if call.open and self._may_begin(call):
                self._run(call, on_long)
            else:
                self._over(call)
            with self._lock:
                call = self._queue.popleft() if self._queue else None
                self._is_busy = call is not None

    def _run(self, call: PythonCall, on_long: Callable[[], None]) -> None:
        left_s = call.deadline - time.monotonic()
        watched = Watched(time.monotonic(), left_s, call.is_due, on_long=on_long)
        self.world.watch.enter(watched)
        try:
            with self.world.handling(call.depth, call.cause):
                returned = call.found.call(call.context, call.given)
        except BaseException as error:  # SystemExit too: a handler ends nobody else's work
            self.world.watch.leave(watched)
            self._raised(call, error)
            return
        self.world.watch.leave(watched)
        if returned is not None and inspect.isawaitable(
            returned
        ):  # a function that is asynchronous and does not look it
            call.watched = Watched(call.started, call.timeout_s, call.is_due)
            self.world.watch.enter(call.watched)
            self._soon(call, lambda: self._go_on(call, returned))
            return
        self._returned(call, returned)

    def soon(self, callback: Callable[[], object]) -> None:
        """Have something done on the hook's event loop, if it is there."""
        with suppress(RuntimeError):
            self._event_loop().soon(callback)

    # -- on the hook's event loop -------------------------------------------------------------

    def _soon(self, call: PythonCall, callback: Callable[[], object]) -> None:
        from .python_module_loop import NoThread

        try:
            self._event_loop().soon(callback)
        except RuntimeError as error:  # it has just been disposed
            self._raised(call, error)
        except NoThread as error:  # whoever has used them up: another process may do better
            reason = f"its process starts no thread any more: {error}"
            self.world.replace(reason)
            begun = call.slot >= 0
            self._over(call)
            call.lose(started=begun, reason=reason)

    def _event_loop(self) -> HookLoop:
        """The hook's own loop, from its first asynchronous handler on: importing asyncio takes its time."""
        from .python_module_loop import HookLoop

        with self._lock:
            if self._loop is None:
                self._loop = HookLoop(f"hook {self.name}", self.noticed)
            return self._loop

    def _begin(self, call: PythonCall) -> None:
        if not call.open or not self._may_begin(call):
            self._over(call)
            return
        try:
            with self.world.handling(call.depth, call.cause):
                work = call.found.call(call.context, call.given)
        except BaseException as error:
            self._raised(call, error)
        else:
            self._go_on(call, work)

    def _go_on(self, call: PythonCall, work: Awaitable[Any]) -> None:
        with self.world.handling(call.depth, call.cause):  # a task keeps what holds where it begins
            call.task = self._event_loop().task(self._await(call, work))

    async def _await(self, call: PythonCall, work: Awaitable[Any]) -> None:
        try:
            returned = await work
        except BaseException as error:  # what is let out of a task may end the whole loop
            self._raised(call, error)
        else:
            self._returned(call, returned)

    # -- ends ---------------------------------------------------------------------------------

    def _may_begin(self, call: PythonCall) -> bool:
        slot = None if self.gone else self.world.begin(call.number, self.id, call.deadline)
        if slot is None:
            call.lose(started=False, reason=self.gone or "its process begins nothing any more")
            return False
        call.slot = slot
        return True

    def _returned(self, call: PythonCall, returned: object) -> None:
        try:
            edit = None if call.was is None else edit_of(call.handler, call.given, call.was, returned)
        except EditRefused as error:
            rest = _failed("failed", str(error))
        else:
            rest = b"" if edit is None else b',"edit":' + edit
        self._over(call)
        call.tell(rest)

    def _raised(self, call: PythonCall, error: BaseException) -> None:
        fault = fault_of(error, self.module.folder)
        if isinstance(error, MemoryError):
            error.__traceback__ = None  # its frames hold what was asked for
            self._exhausted(call)
            return
        self._over(call)
        call.tell(_failed("failed", fault.reason, fault.traceback or None))

    def _exhausted(self, call: PythonCall) -> None:
        """Memory was used up: by this call, unless there is little left when it is over."""
        call.given, call.was = {}, None
        gc.collect()
        reason = f"{SNAKE[call.handler]} ran out of memory"
        crowded = self.world.is_crowded()
        if not crowded:
            self.world.quarantine(self, reason, replace=False)
        self._over(call)
        call.lose(started=True, reason=reason)
        if crowded:
            self.world.replace(reason)

    def _over(self, call: PythonCall) -> None:
        """Its handler has ended, or will not begin."""
        call.ended = True
        if call.watched is not None:
            self.world.watch.leave(call.watched)
        if call.slot >= 0:
            self.world.end(call.slot)
        with self._lock:
            self._calls.discard(call)
            if not self._calls:
                self._idle.notify_all()

    def is_stuck(self, call: PythonCall) -> None:
        """See, in the watch's thread, whether a call goes on although its time has been over for a while."""
        if call.ended or (call.slot < 0 and not call.found.is_async):
            return  # it waits behind another one, of which this is told, too
        if call.is_cancelled:  # so its event loop moves: it holds up nobody
            self.log.write("warn", f"{SNAKE[call.handler]} goes on although it was cancelled at its deadline")
            return
        reason = f"{SNAKE[call.handler]} does not end, with its time of {round(call.timeout_s, 3):g} s over"
        self.world.quarantine(self, reason, replace=True)

    def drop(self, reason: str) -> None:
        """Begin nothing any more; what waits is lost, and what is under way, too."""
        self.gone = reason
        with self._lock:
            calls = [*self._calls]
            self._queue.clear()
        for call in calls:
            call.lose(started=call.slot >= 0, reason=reason)

    # -- beside calls -------------------------------------------------------------------------

    def once(self, handler: Handler, seconds: float) -> tuple[str, str | None] | None:
        """Call ``onLoad`` or ``onDispose`` and wait for it; what it raised and the trace, or None.

        An asynchronous one is cancelled after ``seconds``; a synchronous one goes on for as long as it does.
        """
        found = self.module.handlers.get(handler)
        if found is None:
            return None
        injected = Injected(lambda text: self.inject_later(None, text))
        injected.close()  # there is no answer that could carry it
        context = Context(self.name, self.config, self.log, injected)
        try:
            returned = found.call(context, {})
            if returned is not None and inspect.isawaitable(returned):
                self._event_loop().run(returned, seconds)
        except BaseException as error:
            fault = fault_of(error, self.module.folder)
            return fault.reason, fault.traceback or None
        return None

    def inject_later(self, session_id: str | None, text: str) -> None:
        """Send a text that no call carries, unless there are too many."""
        is_allowed, left_out = self._texts.take()
        if left_out:
            self.log.write("warn", f"{left_out} texts were not injected: more than {A_SECOND} in a second")
        if is_allowed:
            self.world.send({"is": "inject", "hook": self.id, "session": session_id, "text": text})

    def noticed(self, what: str, error: BaseException | None) -> None:
        """Log what went wrong where nobody waits for it."""
        if error is None:
            self.log.write("error", what)
            return
        fault = fault_of(error, self.module.folder)
        self.log.write("error", f"{what}: {fault.reason}", {"detail": fault.traceback})

    def dispose(self, seconds: float) -> tuple[str, str | None] | None:
        """Wait for calls under way, call ``onDispose``, once, and let go of everything."""
        with self._lock:
            if self._is_disposed:
                return None
            self._is_disposed = True
            self._idle.wait_for(lambda: not self._calls, min(seconds, IDLE_S))
        problem = self.once("onDispose", seconds)
        if self._loop is not None:
            self._loop.close()
        self.log.flush()
        forget(self.module.package)
        return problem
