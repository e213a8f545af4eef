"""The ``http`` process: the HTTP API of one bus and one workspace, on 127.0.0.1.

    python -P -m subscribers.runner.http_service --port PORT [--workspace DIR] [--runtime-dir DIR]

It prints one JSON line when it is ready, with its address as ``http``. SIGTERM or SIGINT: nothing new is
taken, streams end, requests under way have two seconds to be answered (edits that have begun are finished in
any case, test runs are ended), exit 0. A port that is taken is told with a way out, exit 4.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import socket
import sys
import sysconfig
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

import platformdirs
import uvicorn

from broker.client import aio
from broker.logs import get_logger
from broker.places import runtime_directory
from broker.protocol.errors import BusError, BusUnreachable
from broker.protocol.limits import ASK_BYTES
from broker.version import __version__

from ..http.access import Gate
from ..http.application import build_application
from ..http.ask_api import SOURCE, AskApi
from ..http.blocking import Blocking
from ..http.bus_api import BusApi, told_status
from ..http.bus_watch import BusWatch, ask_status
from ..http.connections import Connection
from ..http.event_stream import CLIENTS, Streams
from ..http.guard import Guard
from ..http.hooks_api import HooksApi
from ..http.metrics import Metrics
from ..http.token_file import TokenRefused, find_token
from ..runtimes.sandbox import Limits
from ..sources.hook_store import FileRefused, HookStore, StoreBusy, StoreUnusable
from ..sources.watch import FileWatcher
from . import service
from .agent_http import AgentHttp, remove_address, write_address
from .service import BUS_SECONDS
from .trial import TrialRunner

NAME: Final = "http"
REFUSED: Final = 4
"""Exit code when the port or the token cannot be had."""

HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 16_831

END_SECONDS: Final = 2
"""How long requests under way may take after SIGTERM."""

EDIT_THREADS: Final = 8
TRIALS: Final = 4
"""Test runs at a time."""
QUEUE: Final = 64
BACKLOG: Final = 128

log = get_logger("subscribers.http")


class PortTaken(Exception):
    """Somebody else listens there; the text says what to do."""


class HttpService:
    """The API with everything that it stands on."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._resources = ExitStack()
        try:
            self._open(options)
        except BaseException:
            self._resources.close()
            raise

    def run(self) -> None:
        """Serve until told to stop."""
        # The server stops on these signals and raises them again afterwards: then they mean nothing more.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        with self._resources:
            askers = (self._asks,) if self._agents is None else (self._asks, self._agents)
            server = _Server(self._guard, self._streams, self._say_ready, askers)
            server.run(sockets=[self._socket])
            self._streams.stop()

    def _open(self, options: argparse.Namespace) -> None:
        self._directory = runtime_directory(options.runtime_dir)
        self._workspace = None if options.workspace is None else os.path.abspath(options.workspace)
        token, self._token_file = find_token(self._directory, os.environ)
        self._socket = self._resources.enter_context(listen(options.port))
        port = self._socket.getsockname()[1]
        self._address = f"http://{HOST}:{port}"
        self._metrics = Metrics()
        watch = BusWatch(self._directory, self._metrics, BUS_SECONDS)
        self._resources.callback(watch.close)
        self._streams = Streams(self._directory, options.streams)
        # Closed in the opposite order: test runs are ended before their threads are waited for.
        edits, bus_calls = (
            self._pool(EDIT_THREADS, QUEUE, "http-edits"),
            self._pool(EDIT_THREADS, QUEUE, "http-bus"),
        )
        trials = self._pool(TRIALS, 0, "http-trials")
        self._store, trial = self._open_workspace(options)
        hooks = HooksApi(self._store, trial, edits, trials, time.time_ns)
        bus = BusApi(self._directory, self._streams, self._metrics, bus_calls, self._describe)
        self._agents = AgentHttp(self._directory, os.environ) if options.agents else None
        others = {} if self._agents is None else self._agents.entrances
        self._asks = AskApi(aio.Publisher(SOURCE, runtime_dir=self._directory), options.ask_bytes)
        self._guard = build_application(hooks, bus, self._asks, Gate(token), port, others)
        self._metrics.answered = lambda: dict(self._guard.answered)
        self._metrics.stream_queues = lambda: self._streams.waiting
        self._metrics.stream_dropped = lambda: self._streams.dropped
        self._metrics.hooks = lambda: self._count_hooks()[0]

    def _pool(self, threads: int, queue: int, name: str) -> Blocking:
        pool = Blocking(threads, queue, name)
        self._resources.callback(pool.close)
        return pool

    def _open_workspace(self, options: argparse.Namespace) -> tuple[HookStore | None, TrialRunner | None]:
        if self._workspace is None:
            return None, None
        folder = sysconfig.get_path("scripts")
        limits = Limits(options.sandbox_memory_bytes, options.sandbox_processes, options.sandbox_file_bytes)
        trial = TrialRunner(self._workspace, self._directory, folder, options.sandbox, limits)
        self._resources.callback(trial.close)
        states = os.path.join(platformdirs.user_state_dir("prxbus", appauthor=False), "hooks")
        store = HookStore(self._workspace, options.state_dir or states, folder)
        # Hooks are recognised between two states of the file, so each is looked at: ids stay over hand edits.
        watcher = FileWatcher(store.path, lambda: _look(store), lambda error: _look_failed(store, error))
        watcher.start()
        self._resources.callback(watcher.stop)
        _look(store)
        return store, trial

    def _describe(self) -> dict[str, Any]:
        broker, problem = told_status(lambda: ask_status(self._directory))
        hooks, hooks_problem = self._count_hooks()
        return {
            "version": __version__,
            "runtime_dir": self._directory,
            "workspace": self._workspace,
            "hooks": hooks,
            "hooks_problem": hooks_problem,
            "http": {
                "address": self._address,
                "pid": os.getpid(),
                "answers": self._guard.answered,
                "streams": len(self._streams.waiting),
                "streams_limit": self._streams.limit,
                "stream_dropped": self._streams.dropped,
                **({} if self._agents is None else {"agent_hooks": dict(self._agents.counts)}),
            },
            "broker": broker,
            "problem": problem,
        }

    def _count_hooks(self) -> tuple[int | None, str | None]:
        if self._store is None:
            return None, None
        try:
            return len(self._store.snapshot().hooks), None
        except (FileRefused, StoreBusy, StoreUnusable) as error:
            return None, str(error)

    def _say_ready(self) -> None:
        write_address(self._directory, self._address)
        self._resources.callback(remove_address, self._directory)
        service.say_ready(NAME, http=self._address, http_token_file=self._token_file)


class _Server(uvicorn.Server):
    """Says when it serves, and ends the streams as soon as it is told to stop: it would wait for them."""

    def __init__(
        self, guard: Guard, streams: Streams, say_ready: Any, askers: Sequence[AskApi | AgentHttp]
    ) -> None:
        super().__init__(
            uvicorn.Config(
                guard,
                lifespan="off",
                loop="asyncio",
                http=Connection,
                ws="none",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=END_SECONDS,
            )
        )
        self._streams = streams
        self._say_ready = say_ready
        self._askers = askers

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        for asker in self._askers:
            await asker.open()
        await super().startup(sockets)
        self._say_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        await super().shutdown(sockets)
        for asker in self._askers:
            await asker.close()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """A signal came."""
        self._streams.stop()
        super().handle_exit(sig, frame)


def listen(port: int) -> socket.socket:
    """A listening socket; port 0 takes any that is free. Raises :class:`PortTaken` and OSError."""
    # Only where the protocol is named does asyncio turn Nagle's algorithm off: 40 ms for a body after a head.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            why = "is in use" if error.errno == errno.EADDRINUSE else "needs more rights than we have"
            raise PortTaken(
                f"port {port} of {HOST} {why}: choose another with --http PORT (0: any that is free), "
                "or do without the HTTP API with --no-http"
            ) from None
        raise
    return listener


def _look(store: HookStore) -> None:
    try:
        store.snapshot()
    except (FileRefused, StoreBusy, StoreUnusable) as error:
        log.debug("the hook file cannot be listed now", path=store.path, error=str(error))
    except Exception as error:  # whatever is in a file, the service serves
        _look_failed(store, error)


def _look_failed(store: HookStore, error: Exception) -> None:
    log.error("looking at the hook file failed", path=store.path, error=repr(error))


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 4: refused, 1: failed)."""
    parser = service.parser("http_service")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--workspace")
    parser.add_argument("--state-dir", help="where ids of hand-written hooks are kept")
    parser.add_argument("--agents", action="store_true", help="let agents' HTTP hooks in")
    parser.add_argument("--streams", type=int, default=CLIENTS, help="event streams at a time")
    parser.add_argument("--ask-bytes", type=int, default=ASK_BYTES, help="bytes of the largest ask")
    service.add_sandbox(parser)
    options = parser.parse_args(argv)
    threading.current_thread().name = NAME
    refusals: dict[type[Exception], int] = {
        PortTaken: REFUSED,
        TokenRefused: REFUSED,
        BusUnreachable: service.NO_BUS,
        BusError: service.FAILED,
    }
    return service.run(options, lambda: HttpService(options).run(), log, refusals)


if __name__ == "__main__":
    sys.exit(main())
