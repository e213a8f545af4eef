"""The socket at which the hook commands of attached agents arrive: one connection, one event, one answer.

Decides who is let in, how many at a time and how long one may take to say what it wants; when an agent has
gone, what is done for it ends. Refuses to know what an event is: who answers is an argument.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from broker.logs import get_logger

from .hook_socket_frames import BadRequest, Reply, Request, RequestReader

NAME: Final = "hook.sock"
"""The socket's name in the runtime directory."""

CONNECTIONS: Final = 256
"""Events at a time; one more is not answered, and the agent does what it does without an answer."""

REQUEST_SECONDS: Final = 10.0
"""How long a connection may take for its request."""

BACKLOG: Final = 256
_CREDENTIALS: Final = struct.Struct("3i")

Answer: TypeAlias = Callable[[Request], Awaitable[Reply]]

log = get_logger("subscribers.agents")


class SocketTaken(Exception):
    """Somebody answers at the socket's path already."""


class HookSocket:
    """The socket at ``path``; ``answer`` is awaited for each request. For one event loop.

    ``refused`` counts connections that were not answered, by reason.
    """

    def __init__(self, path: str, answer: Answer) -> None:
        self.path = path
        self.refused = {"busy": 0, "bad": 0, "gone": 0}
        self.answer = answer
        self.open: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._file: tuple[int, int] | None = None

    async def start(self) -> None:
        """Listen; what did so before listens no more. Raises :class:`SocketTaken` and OSError."""
        listener = _bound(self.path)
        before, self._file = self._server, _file(self.path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: _Connection(self), sock=listener)
        if before is not None:
            before.close()

    @property
    def is_there(self) -> bool:
        """Whether agents still find this socket at its path: anybody may remove or replace the file."""
        return self._file is not None and _file(self.path) == self._file

    async def stop(self, seconds: float) -> None:
        """Take nothing new, give what is under way ``seconds`` to end, and break off the rest."""
        if self._server is not None:
            is_there = self.is_there
            self._server.close()
            if is_there:
                with suppress(OSError):
                    os.unlink(self.path)
        tasks = [each.task for each in self.open if each.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for each in list(self.open):
            each.abort()


class _Connection(asyncio.Protocol):
    """One event."""

    def __init__(self, home: HookSocket) -> None:
        self.task: asyncio.Task[None] | None = None
        self._home = home
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._home.open) >= CONNECTIONS or not _is_us(transport):
            self._home.refused["busy"] += 1
            transport.abort()
            return
        self._home.open.add(self)
        self._timer = asyncio.get_running_loop().call_later(REQUEST_SECONDS, self._give_up, "too slow")

    def data_received(self, data: bytes) -> None:
        """A piece of its request."""
        if self.task is not None:
            self._give_up("more than a request")
            return
        try:
            request = self._reader.feed(data)
        except BadRequest as error:
            self._give_up(str(error))
            return
        if request is not None:
            assert self._timer is not None
            self._timer.cancel()
            self.task = asyncio.get_running_loop().create_task(self._answer(request))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the base's signature
        """It has gone, or was answered."""
        self._home.open.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self.task is not None and not self.task.done():
            self._home.refused["gone"] += 1
            self.task.cancel()

    def abort(self) -> None:
        """Break off."""
        if self._transport is not None:
            self._transport.abort()

    async def _answer(self, request: Request) -> None:
        try:
            reply = await self._home.answer(request)
        except Exception as error:  # a defect must not leave the agent waiting
            log.error("an agent's event could not be answered", error=repr(error))
            self.abort()
            return
        assert self._transport is not None
        self._transport.write(reply.encode())
        self._transport.close()

    def _give_up(self, why: str) -> None:
        self._home.refused["bad"] += 1
        log.warning("a connection to the hook socket was broken off", reason=why)
        self.abort()


def check_free(path: str) -> None:
    """Raises :class:`SocketTaken` when somebody answers at ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        if probe.connect_ex(path) == 0:
            raise SocketTaken(f"another process answers at {path!r}; stop that one first")


def _file(path: str) -> tuple[int, int] | None:
    """Which file is at ``path``; None for none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _bound(path: str) -> socket.socket:
    """A listening socket for our user alone; one that nobody answers at any more is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        check_free(path)
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(path)  # in a directory that is closed to everybody else
        os.chmod(path, 0o600)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _is_us(transport: asyncio.Transport) -> bool:
    """Whether the process at the other end runs as our user."""
    peer = transport.get_extra_info("socket")
    packed = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(packed)[1] == os.geteuid())
