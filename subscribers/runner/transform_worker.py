"""A process that has loaded one file of handlers and forks: each fork runs its ``@transform`` functions.

    python -P -m subscribers.runner.transform_worker (--file PATH | --entry-point NAME) < control socket

Started by :class:`subscribers.runtimes.transform_pool.FunctionPool`, which says what goes over the sockets.
Decides what a function is given and what its answer means, and that nothing of a tool's text gets out on
another way than the answer: of an error only its type and the user's own line are told, and what a function
prints is thrown away. What it writes with ``ctx.log`` is its author's own affair.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from broker.logs import configure, get_logger
from broker.protocol.events import Event

from ..handlers import Answer, Context, HandlerEvent, Registration
from ..runtimes.python_caller import Caller, Outcome, Returned, TimedOut
from ..runtimes.python_loader import Loaded, load, load_entry_point
from ..runtimes.transform_pool import FORK, REQUEST_BYTES
from ..runtimes.transform_wire import WireClosed, pack, receive, send
from ..sources.handlers import GROUP

if TYPE_CHECKING:
    from broker.client import Publisher

TEXT_BYTES: Final = 16_777_216
"""Longest text that a function may return, in UTF-8; as for commands."""

_PR_SET_PDEATHSIG: Final = 1

log = get_logger("subscribers.transform")


class Broken:
    """What a function raised, without its words: ``reason`` is the type and the place."""

    def __init__(self, error: BaseException, folder: str) -> None:
        place = _place(error.__traceback__, folder)
        self.reason = f"{type(error).__name__}{'' if place is None else f' at {place}'}"


class Runner:
    """Runs calls of one file's functions, one at a time, in a worker."""

    def __init__(self, registrations: tuple[Registration, ...], runtime_dir: str) -> None:
        self._registrations = [replace(each, function=_guarded(each)) for each in registrations]
        self._runtime_dir = runtime_dir
        self._caller = Caller()
        self._publisher: Publisher | None = None

    def serve(self, connection: socket.socket) -> None:
        """Answer calls until the other side is gone."""
        with suppress(WireClosed):
            while True:
                index, name, timeout_s, event, payload = receive(connection)
                answer = self._call(index, name, timeout_s, event, payload)
                send(connection, pack([answer, not self._caller.stuck]))
        if self._publisher is not None:
            self._publisher.close()

    def _call(
        self, index: int, name: str, timeout_s: float, fields: list[Any], payload: dict[str, Any]
    ) -> list[str]:
        registration = self._registrations[index]
        event = Event.of(*[*fields, b"{}"])
        deadline = time.monotonic() + timeout_s

        def publish(topic: str, content: Mapping[str, Any], /, *, session_id: str | None) -> bool:
            return self._publish(event, topic, content, session_id)

        context = Context(registration, name, deadline, publish, event.session_id)
        told = threading.Event()
        outcomes: list[Outcome] = []

        def done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            told.set()

        self._caller.start(registration, (ResultEvent(event, payload), context), timeout_s, done)
        told.wait()
        return _answer(outcomes[0])

    def _publish(self, event: Event, topic: str, content: Mapping[str, Any], session_id: str | None) -> bool:
        from broker.client import Publisher, handling

        if self._publisher is None:
            self._publisher = Publisher("transform", runtime_dir=self._runtime_dir)
        with handling(event):
            return self._publisher.publish(topic, content, session_id=session_id)


class ResultEvent(HandlerEvent):
    """The event of a tool's result: its payload came along and is not decoded again."""

    __slots__ = ()

    def __init__(self, event: Event, payload: dict[str, Any]) -> None:
        super().__init__(event)
        self._payload = payload


def _answer(outcome: Outcome) -> list[str]:
    """What came of a call, for the owner of the chain; no word of it is the function's, but its value."""
    if isinstance(outcome, TimedOut):
        return ["fault", "timeout", f"no answer within {outcome.timeout_s:.3g} s"]
    if not isinstance(outcome, Returned):
        return ["fault", "failed", "it could not be called"]
    value = outcome.value
    if isinstance(value, Answer) and isinstance(value.output, str):
        value = value.output
    if value is None:
        return ["passed"]
    if isinstance(value, Broken):
        return ["fault", "failed", value.reason]
    if not isinstance(value, str):
        return ["fault", "failed", f"it returned {type(value).__name__}; it may return a text or None"]
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return ["fault", "failed", "the text that it returned holds half a character (a lone surrogate)"]
    if size > TEXT_BYTES:
        return ["fault", "failed", f"it returned {size:,} bytes; a replacement has at most {TEXT_BYTES:,}"]
    return ["value", str(value)]


def _guarded(registration: Registration) -> Any:
    """The function, returning what it raises instead of raising it."""
    function, folder = registration.function, os.path.dirname(registration.path)
    if registration.is_async:

        async def guarded_async(event: Any, context: Any) -> Any:
            try:
                return await function(event, context)
            except asyncio.CancelledError:  # its time is over
                raise
            except BaseException as error:
                return Broken(error, folder)

        return guarded_async

    def guarded(event: Any, context: Any) -> Any:
        try:
            return function(event, context)
        except BaseException as error:
            return Broken(error, folder)

    return guarded


def _place(trace: TracebackType | None, folder: str) -> str | None:
    """File and line of the innermost frame in the user's own folder."""
    found = None
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(os.path.join(folder, "")):
            found = f"{os.path.basename(path)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


# -- the stem -----------------------------------------------------------------------------------


def _describe(loaded: Loaded) -> tuple[dict[str, Any], tuple[Registration, ...]]:
    """What the owner is told of a load, and the functions that calls name by their place in it."""
    registrations = tuple(each for each in loaded.registrations if each.kind == "transform")
    error = loaded.error
    said = {
        "handlers": [
            [each.name, each.path, each.line, list(each.tools), list(each.agents), each.timeout_s]
            for each in registrations
        ],
        "error": None if error is None else [error.code, error.path, error.line, error.message, error.hint],
        "files": list(loaded.files),
    }
    return said, registrations


def _load(options: argparse.Namespace) -> Loaded:
    if options.file is not None:
        return load(options.file)
    from importlib.metadata import entry_points

    return load_entry_point(next(iter(entry_points(group=GROUP, name=options.entry_point))))


def stem(control: socket.socket, registrations: tuple[Registration, ...], runtime_dir: str) -> None:
    """Fork and kill as asked until the owner is gone; then end every worker."""
    workers: set[int] = set()
    gc.collect()
    gc.freeze()  # what is loaded stays shared with the forks
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES, 1)
        if len(request) < REQUEST_BYTES:
            break
        if request[:1] == FORK:
            (descriptor,) = descriptors
            pid = _fork(control, descriptor, registrations, runtime_dir)
            os.close(descriptor)
            workers |= {pid} if pid else set()
            control.sendall(pid.to_bytes(4, "big"))
        elif (pid := int.from_bytes(request[1:], "big")) in workers:
            workers.discard(pid)
            _kill(pid)
    for pid in workers:
        _kill(pid)


def _fork(
    control: socket.socket, descriptor: int, registrations: tuple[Registration, ...], runtime_dir: str
) -> int:
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        log.error("no process can be forked for a function", error=error.strerror)
        return 0
    if pid:
        with suppress(OSError):  # it may have done so itself
            os.setpgid(pid, pid)
        return pid
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        _die_with(parent)
        control.close()
        Runner(registrations, runtime_dir).serve(socket.socket(fileno=descriptor))
    finally:
        os._exit(0)  # threads and exit handlers of the stem are not this process's


def _die_with(parent: int) -> None:
    """Be killed when the stem is."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _kill(pid: int) -> None:
    """End a worker with everything in its group; it was not reaped before, so the pid is still its own."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def main(argv: list[str] | None = None) -> int:
    """Load, tell what came of it, and serve."""
    parser = argparse.ArgumentParser(prog="python -P -m subscribers.runner.transform_worker")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--file")
    source.add_argument("--entry-point")
    parser.add_argument("--runtime-dir", required=True)
    parser.add_argument("--log-level", default="info")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's; the owner says when it is over
    control = socket.socket(fileno=os.dup(0))
    configure(options.log_level, stream=os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8"))
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):  # also for programs that a function starts
        os.dup2(null, descriptor)
    said, registrations = _describe(_load(options))
    if threading.active_count() > 1:
        log.warning(
            "a file starts threads when it is loaded; the processes that run its functions have none of them",
            path=options.file or options.entry_point,
        )
    with suppress(WireClosed, OSError):
        send(control, pack(said))
        stem(control, registrations, options.runtime_dir)
    return 0


if __name__ == "__main__":
    sys.exit(main())
