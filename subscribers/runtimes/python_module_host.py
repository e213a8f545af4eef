"""The process that holds hooks which are Python modules: ``python -P -m
subscribers.runtimes.python_module_host``.

It speaks what ``module_channel.py`` describes. The thread that reads a call also makes it: no hand-over in
the usual case. When a handler lasts for more than a few milliseconds another thread goes on reading. Hooks
are loaded one after the other in a thread that does nothing else, so that the calls of those that are loaded
go on.

What a handler does to itself stays with it: an exception, ``sys.exit()``, endless recursion, an exception in
one of its threads or tasks, a blocked event loop. What cannot be ended from within (a synchronous handler
that does not end) is quarantined, and this process asks to be replaced. What ends the process (``os._exit``,
a fault in an extension module) or holds the interpreter's lock is the parent's to notice, with the board.

Decides which thread does what. Refuses to know role files, and what is wanted.
"""

from __future__ import annotations

import argparse
import io
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import TracebackType
from typing import Any, Final, NoReturn

from broker.logs import configure, get_logger
from broker.protocol.errors import shown

from .module_channel import ChannelBroken, FrameTooLong, ModuleChannel, frame, framed
from .module_process import FLAG, PAGE
from .python_board import Board
from .python_module_context import HookLog
from .python_module_hook import LoadedHook
from .python_module_loader import PREFIX, Unusable, load_module
from .python_threads import Threads
from .python_watch import Watch, Watched

LOAD_S: Final = 10.0
"""Seconds that an asynchronous ``on_load`` may take."""

DISPOSE_S: Final = 5.0
"""Seconds that ``on_dispose`` may take while the process goes on."""

HANG_UP_S: Final = 0.5
"""Seconds in which everything is disposed when the parent is gone."""

STACK_BYTES: Final = 4_194_304
CROWDED: Final = 0.5
"""Share of the memory that, if it is used while nothing is under way, makes any call a mere victim."""

EXHAUSTED: Final = 70
CLOSED: Final = 71
"""How this process exits when it has no memory left for itself, and when its channel was closed under it."""

log = get_logger("subscribers.modules")


Handling = Callable[[int, str | None], AbstractContextManager[None]]
"""Makes the block in which what is published has this depth and cause."""


class Host:
    """All hooks of this process; what a hook needs of it is its :class:`World`."""

    def __init__(
        self, channel: ModuleChannel, board: int | None, level: str, memory: int | None, handling: Handling
    ) -> None:
        self.watch = Watch()
        self.handling = handling
        self._channel = channel
        self._level = level
        self._memory = memory
        self._board = None if board is None else Board(board)
        self._flag = None if board is None else mmap.mmap(board, PAGE, offset=FLAG)
        self._threads = Threads("hooks")
        self._hooks: dict[str, LoadedHook] = {}
        self._all: dict[str, LoadedHook] = {}  # by package, also those that are being loaded
        self._orders: deque[tuple[str, Any]] = deque()
        self._loading = threading.Lock()
        self._is_loading = False
        self._pending: deque[dict[str, Any]] = deque()
        self._turn = object()
        self._leading = threading.Lock()
        self._is_copy = False
        self._end_ms: float | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Serve until told to end, or until nobody is there any more."""
        self.send({"is": "ready", "version": sys.version.partition(" ")[0]})
        self._lead()
        self._ended.wait()
        self._end((self._end_ms or 0.0) / 1_000)

    # -- reading ------------------------------------------------------------------------------

    def _lead(self) -> None:
        turn = self._turn = object()
        self._threads.run(lambda: self._work(turn))

    def _work(self, turn: object) -> None:
        """Read and do, for as long as it is this thread's turn; then do what was read and not begun."""

        def on_long() -> None:
            with self._leading:
                if turn is self._turn:
                    self._lead()
                elif self._pending:
                    self._threads.run(lambda: self._work(None))

        pending = self._pending
        try:
            while True:
                try:
                    message = pending.popleft()
                except IndexError:
                    if turn is not self._turn or self._ended.is_set():
                        return
                    pending.extend(self._channel.receive())
                else:
                    self._do(message, on_long)
        except ChannelBroken:
            self._end_ms = HANG_UP_S * 1_000
            self._ended.set()
        except MemoryError:
            exit_now(EXHAUSTED)  # nothing is certain now; what is under way stands on the board

    def _do(self, message: dict[str, Any], on_long: Callable[[], None]) -> None:
        order = message.get("do")
        if order == "call":
            hook = self._hooks.get(message["hook"])
            if hook is None:
                self._absent(message)
            else:
                hook.call(message, time.monotonic(), on_long)
        elif order == "ping":
            self.send({"is": "pong"})
        elif order == "load":
            self._order([("load", hook) for hook in message["hooks"]])
        elif order == "unload":
            self._order([("unload", hook_id) for hook_id in message["hooks"]])
        elif order == "end":
            self._end_ms = message["ms"]
            self._ended.set()

    def _absent(self, message: Mapping[str, Any]) -> None:
        told = {"is": "done", "n": message["n"], "status": "absent", "error": "the hook is not loaded"}
        self.send(told)

    # -- what hooks need ----------------------------------------------------------------------

    def is_forked(self) -> None:
        """Be a copy, in a process that a hook has forked: it has no say, and ends when it comes back."""
        self._is_copy = True
        self._channel.abandon()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a frame. One that is too long is left out, and that is logged."""
        if self._is_copy:
            os._exit(0)
        try:
            self._channel.send(frame(message))
        except FrameTooLong as error:
            log.error("a message to the parent was left out", kind=message.get("is"), error=str(error))

    def send_done(self, number: int, hook_id: str, rest: bytes) -> None:
        """Send a ``done`` of this hook's; ``rest`` are its further members, each with a comma in front."""
        if self._is_copy:
            os._exit(0)
        try:
            was_sent = self._channel.send(framed(b'{"is":"done","n":%d%b}' % (number, rest)))
            if not was_sent and not self._channel.is_open():
                self.begin(number, hook_id, time.monotonic())  # so that it is known who
                log.error("a hook has closed the channel of its host, which ends", hook=hook_id)
                exit_now(CLOSED)
        except FrameTooLong as error:
            told = {"is": "done", "n": number, "status": "failed", "error": f"what it leaves behind: {error}"}
            self.send(told)

    def begin(self, number: int, hook_id: str, deadline: float) -> int | None:
        """Note that a handler begins; where that is noted (-1: nowhere), or None if it must not."""
        if self._board is None or self._flag is None:
            return -1
        slot = self._board.put(int(deadline * 1e9), b"%d" % number, hook_id.encode("utf-8", "replace"))
        if self._flag[
            0
        ]:  # after it has been noted: the parent writes here first, and then looks at the board
            self._board.take(slot)
            return None
        return slot

    def end(self, slot: int) -> None:
        """Note that it has ended."""
        if self._board is not None:
            self._board.take(slot)

    def quarantine(self, hook: LoadedHook, reason: str, *, replace: bool) -> None:
        """The hook is not to be called any more; ``replace``: the process is spoilt, too."""
        if hook.gone is not None:
            return
        if self._hooks.get(hook.id) is hook:
            del self._hooks[hook.id]
            self.send({"is": "quarantined", "hook": hook.id, "reason": reason})
        hook.drop(reason)
        if replace:
            self.replace(f"{hook.name}: {reason}")

    def replace(self, reason: str) -> None:
        """Ask for a successor."""
        self.send({"is": "replace", "reason": reason})

    def is_crowded(self) -> bool:
        """Whether the memory of this process is used up by what is not under way."""
        return self._memory is not None and _data_bytes() > self._memory * CROWDED

    # -- loading: one thread at a time --------------------------------------------------------

    def _order(self, orders: list[tuple[str, Any]]) -> None:
        with self._loading:
            self._orders.extend(orders)
            if self._is_loading or not self._orders:
                return
            self._is_loading = True
        self._threads.run(self._load_all)

    def _load_all(self) -> None:
        while True:
            with self._loading:
                if not self._orders:
                    self._is_loading = False
                    return
                order, what = self._orders.popleft()
            if order == "load":
                self._load(what)
            else:
                self._unload(what)

    def _load(self, told: Mapping[str, Any]) -> None:
        hook_id = told["id"]
        self.send({"is": "loading", "hook": hook_id})
        try:
            module = load_module(told["path"])
        except Unusable as error:
            self.send({"is": "refused", "hook": hook_id, "error": error.error, "detail": error.detail})
            return
        hook = LoadedHook(self, told, module, HookLog(hook_id, self._level, self.send))
        self._all[module.package] = hook
        problem = hook.once("onLoad", LOAD_S)
        before = self._hooks.get(hook_id)
        self._hooks[hook_id] = hook
        said = {"is": "loaded", "hook": hook_id, "handlers": list(module.handlers)}
        if problem is not None:
            said |= {"problem": f"onLoad threw: {problem[0]}", "detail": problem[1]}
        elif not module.handlers:
            said["problem"] = "its module has none of the documented handlers"
        self.send(said)
        if before is not None:
            self._threads.run(lambda: self._dispose(before, say=False))

    def _unload(self, hook_id: str) -> None:
        hook = self._hooks.pop(hook_id, None)
        if hook is None:
            self.send({"is": "unloaded", "hook": hook_id})
        else:
            self._threads.run(lambda: self._dispose(hook, say=True))

    def _dispose(self, hook: LoadedHook, *, say: bool) -> None:
        reason = f"{hook.name}: on_dispose does not end"
        watched = Watched(time.monotonic(), 2 * DISPOSE_S, lambda: self.replace(reason))
        self.watch.enter(watched)
        problem = hook.dispose(DISPOSE_S)
        self.watch.leave(watched)
        self._all.pop(hook.module.package, None)
        if problem is not None or say:
            said: dict[str, Any] = {"is": "unloaded", "hook": hook.id}
            if problem is not None:
                said |= {"problem": f"onDispose threw: {problem[0]}", "detail": problem[1]}
            self.send(said)

    # -- the end ------------------------------------------------------------------------------

    def _end(self, seconds: float) -> None:
        """Dispose everything, one after the other; one that hangs costs the others some of the time."""
        deadline = time.monotonic() + seconds
        hooks = [*self._hooks.values()]
        for index, hook in enumerate(hooks):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            share = max(0.05, left / (len(hooks) - index))
            ended = threading.Event()
            self._threads.run(partial(self._end_one, hook, share, ended))
            ended.wait(share)

    def _end_one(self, hook: LoadedHook, seconds: float, ended: threading.Event) -> None:
        problem = hook.dispose(seconds)
        if problem is not None:
            said = {"is": "unloaded", "hook": hook.id, "problem": f"onDispose threw: {problem[0]}"}
            self.send(said | {"detail": problem[1]})
        ended.set()

    # -- what happens in threads of hooks -----------------------------------------------------

    def thread_failed(self, args: threading.ExceptHookArgs) -> None:
        """An exception in a thread that a hook has started: told in its log."""
        if args.exc_type is SystemExit:
            return
        hook = self._owner(args.exc_traceback)
        if hook is None:
            log.error("a thread failed", error=shown(args.exc_value, 300))
        else:
            hook.noticed("an exception in a thread", args.exc_value)

    def _owner(self, trace: TracebackType | None) -> LoadedHook | None:
        """The hook whose code an exception came through."""
        while trace is not None:
            name = str(trace.tb_frame.f_globals.get("__name__"))
            if name.startswith(PREFIX):
                return self._all.get(name.partition(".")[0])
            trace = trace.tb_next
        return None


class _Shared(io.TextIOWrapper):
    """Where all hooks print: none of them closes it for the others."""

    def close(self) -> None:
        """Write what there is."""
        self.flush()


def _data_bytes() -> int:
    """Memory of this process that counts against its limit."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[5]) * mmap.PAGESIZE


def _limit_memory(megabytes: int) -> int:
    """Let this process have so much more than it has now; returns how much it may have."""
    most = _data_bytes() + megabytes * 1_048_576
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    return most


def main(argv: list[str] | None = None, handling: Handling = lambda _depth, _cause: nullcontext()) -> int:
    """Run the process; returns its exit code. ``handling``: how a publisher knows what it is caused by."""
    parser = argparse.ArgumentParser(prog="python -P -m subscribers.runtimes.python_module_host")
    parser.add_argument("--board", type=int)
    parser.add_argument("--memory-mb", type=int, help="memory that hooks may use beyond that of the process")
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warn", "error"))
    parser.add_argument("--channel", type=int, required=True)
    options = parser.parse_args(argv)
    configure("warning" if options.log_level == "warn" else options.log_level)
    os.dup2(2, 1)  # what hooks print is for people
    people = open(2, "wb", buffering=0, closefd=False)  # noqa: SIM115 - to the end
    sys.stdout = sys.stderr = _Shared(people, "utf-8", "backslashreplace", write_through=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.set_inheritable(options.channel, False)  # what hooks start is not to hold it open
    if options.board is not None:
        os.set_inheritable(options.board, False)
    sys.dont_write_bytecode = True  # nothing is left in the user's folder
    threading.stack_size(STACK_BYTES)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    memory = None if options.memory_mb is None else _limit_memory(options.memory_mb)
    channel = ModuleChannel(socket.socket(fileno=options.channel))
    host = Host(channel, options.board, options.log_level, memory, handling)
    threading.excepthook = host.thread_failed
    os.register_at_fork(after_in_child=host.is_forked)
    host.run()
    return 0


def exit_now(code: int) -> NoReturn:
    """End the process here: a thread may be in a handler that does not end, and code of the user's refuse."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    exit_now(main())
