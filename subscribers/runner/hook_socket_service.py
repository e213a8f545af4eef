"""The ``agents`` process: the bus's end of the hook commands that attached agents run.

    python -P -m subscribers.runner.hook_socket_service [--runtime-dir DIR]

It prints one JSON line when agents can reach it, with its socket as ``hook_socket``. Events that waited for a
bus are published first. SIGTERM or SIGINT: nothing new is taken, events under way have two seconds to be
answered, exit 0.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Final

import orjson

from broker.client import aio
from broker.logs import get_logger
from broker.places import runtime_directory
from broker.protocol.errors import BusUnreachable

from ..sources.attach_context import Contexts
from . import service
from .agent_relay import SOURCE, Relay
from .hook_socket import NAME as SOCKET_NAME
from .hook_socket import HookSocket, SocketTaken, check_free
from .hook_socket_frames import Reply, Request
from .hook_spool import Delivered, deliver

NAME: Final = "agents"
REFUSED: Final = 4
"""Exit code when somebody else answers at the socket."""

STATUS: Final = "status"
"""In the place of a dialect: what the process has to say of itself, as JSON."""

END_SECONDS: Final = 2.0
TIDY_SECONDS: Final = 2.0
"""Pause between two looks at what is too old, and at events that came while nobody listened."""

LOOK_SECONDS: Final = 1.0
"""Pause between two looks at whether agents still find the socket."""

log = get_logger("subscribers.agents")


class AgentsService:
    """The hook socket on the bus in a runtime directory."""

    def __init__(self, runtime_dir: str) -> None:
        self._directory = runtime_dir
        self._path = os.path.join(runtime_dir, SOCKET_NAME)
        self._lost = Delivered()
        self._is_missed = False

    async def run(self) -> None:
        """Serve until told to stop. Raises :class:`BusUnreachable`, :class:`SocketTaken` and OSError."""
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told.set)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)  # nothing is configured that could be read again
        async with aio.Publisher(SOURCE, runtime_dir=self._directory) as publisher:
            await _await_bus(publisher, told)
            self._publisher = publisher
            check_free(self._path)  # before what another one keeps is taken for left behind
            self._contexts = Contexts(self._directory, time.monotonic)
            self._relay = Relay(publisher, self._contexts)
            self._socket = HookSocket(self._path, self._answer)
            self._tidy()
            await self._socket.start()
            try:
                print(orjson.dumps(self._said()).decode(), flush=True)
                await self._look_after(told)
            finally:
                await self._socket.stop(END_SECONDS)
                self._contexts.close()

    async def _look_after(self, told: asyncio.Event) -> None:
        """Tidy up, and see to it that agents find the socket, until told to stop."""
        next_tidy = time.monotonic() + TIDY_SECONDS
        while not told.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await told.wait()
                    return
            if not self._socket.is_there:
                await self._make_again()
            if time.monotonic() >= next_tidy:
                self._tidy()
                next_tidy = time.monotonic() + TIDY_SECONDS

    async def _make_again(self) -> None:
        """Listen at the path once more. Where that cannot be, it is told once, and tried at the next look."""
        try:
            await self._socket.start()
        except (SocketTaken, OSError) as error:
            if not self._is_missed:
                log.error("the hook socket is gone, and cannot be made again yet", error=str(error))
            self._is_missed = True
            return
        self._is_missed = False
        log.warning("the hook socket was removed or replaced, and was made again", path=self._path)

    async def _answer(self, request: Request) -> Reply:
        if request.dialect == STATUS:
            return Reply(stdout=orjson.dumps(self._said()))
        return await self._relay.command(request)

    def _said(self) -> dict[str, object]:
        return {
            "ready": True,
            "name": NAME,
            "pid": os.getpid(),
            "hook_socket": self._path,
            **self._relay.counts,
            "refused": self._socket.refused,
            "spool_dropped": self._lost.without_room + self._lost.too_old + self._lost.unreadable,
        }

    def _tidy(self) -> None:
        """Publish what waited for a bus, and remove environments that nobody uses."""
        self._contexts.tidy()
        if not self._publisher.ready:
            return
        found = deliver(self._directory, time.time_ns(), self._relay.deliver)
        if any(found):
            self._lost = Delivered(*(sum(pair) for pair in zip(self._lost, found, strict=True)))
            log.info("events of agents that waited for a bus were taken", **found._asdict())


async def _await_bus(publisher: aio.Publisher, told: asyncio.Event) -> None:
    """Wait until events reach the bus; raises :class:`BusUnreachable`."""
    ends = time.monotonic() + service.BUS_SECONDS
    while not publisher.ready and not told.is_set():
        if time.monotonic() > ends:
            raise BusUnreachable("no bus answers; start one with 'prxbus up'")
        await asyncio.sleep(0.005)


def main(argv: list[str] | None = None) -> int:
    """Run the process; returns its exit code (3: no bus, 4: the socket is taken, 1: failed)."""
    options: argparse.Namespace = service.parser("hook_socket_service").parse_args(argv)

    def serve() -> None:
        asyncio.run(AgentsService(runtime_directory(options.runtime_dir)).run())

    return service.run(options, serve, log, {SocketTaken: REFUSED})


if __name__ == "__main__":
    sys.exit(main())
