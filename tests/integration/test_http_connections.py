"""Connections that ask nothing and take nothing: they are cut, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from subscribers.http import connections
from subscribers.http.access import Gate
from subscribers.http.event_stream import Streams
from subscribers.http.guard import Guard
from subscribers.runner.http_service import _Server, listen
from tests.integration.waiting import until

SECONDS = 30.0
TOKEN = "test-token-0123456789"
LARGE = 8_388_608


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Eight megabytes for /large, two bytes for anything else."""
    body = b"x" * LARGE if scope["path"] == "/large" else b"ok"
    head = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


class Served:
    """A server of that application, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        listener = listen(0)
        self.port = listener.getsockname()[1]
        self.guard = Guard(answer, Gate(TOKEN), self.port)
        ready = threading.Event()
        self.server: uvicorn.Server = _Server(self.guard, Streams(folder), ready.set, ())
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]})
        self.thread.start()
        assert ready.wait(SECONDS)

    def connect(self) -> socket.socket:
        """A connection that waits for answers, though not for ever, and takes little at a time."""
        found = socket.socket()
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        found.settimeout(SECONDS)
        found.connect(("127.0.0.1", self.port))
        return found

    def request(self, path: str, *headers: str) -> bytes:
        """The bytes of a request that may come in."""
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *headers]
        return ("\r\n".join([*lines, f"Authorization: Bearer {TOKEN}"]) + "\r\n\r\n").encode()

    @property
    def open(self) -> int:
        """Connections that the server holds."""
        return len(self.server.server_state.connections)


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """A server that is ended in order."""
    found = Served(folder)
    try:
        yield found
    finally:
        found.server.should_exit = True
        found.thread.join(SECONDS)
        assert not found.thread.is_alive()


def rest_of(client: socket.socket) -> int:
    """Bytes that still come before the other end is gone."""
    taken = 0
    with suppress(ConnectionError):
        while part := client.recv(1_048_576):
            taken += len(part)
    return taken


def trickle(client: socket.socket) -> None:
    """Send a head byte by byte until the other end is gone."""
    deadline = time.monotonic() + SECONDS
    with suppress(ConnectionError):
        while time.monotonic() < deadline:
            client.sendall(b"G")
            select.select([client], [], [], 0.03)
        pytest.fail("the connection is still there")


def test_who_asks_nothing_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent connection, and one whose head never ends, the second request of a connection too."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    with serving(tmp_path) as served, served.connect() as silent, served.connect() as slow:
        slow.sendall(served.request("/"))
        assert slow.recv(4_096).startswith(b"HTTP/1.1 200")
        trickle(slow)
        assert rest_of(silent) == 0
        until(lambda: served.open == 0, "no connections")


def test_a_request_that_takes_its_time_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline is for asking, not for answering."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    with serving(tmp_path) as served, served.connect() as client:
        inside = served.guard._own.app

        async def late(scope: Scope, receive: Receive, send: Send) -> None:
            over = asyncio.Event()
            asyncio.get_running_loop().call_later(0.4, over.set)
            await over.wait()
            await inside(scope, receive, send)

        monkeypatch.setattr(served.guard._own, "app", late)
        client.sendall(served.request("/"))
        assert client.recv(4_096).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("closing", [(), ("Connection: close",)])
def test_who_takes_nothing_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closing: tuple[str, ...]
) -> None:
    """Also where the server has nothing more to say and only waits for the last bytes to be taken."""
    monkeypatch.setattr(connections, "SEND_SECONDS", 0.3)
    with serving(tmp_path) as served, served.connect() as client:
        client.sendall(served.request("/large", *closing))
        until(lambda: served.open == 1, "the connection")
        until(lambda: served.open == 0, "no connection")
        assert rest_of(client) < LARGE


def test_who_takes_in_time_gets_everything(tmp_path: Path) -> None:
    """However small the pieces."""
    with serving(tmp_path) as served, served.connect() as client:
        client.sendall(served.request("/large", "Connection: close"))
        assert rest_of(client) > LARGE


def test_answers_that_nobody_takes_keep_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Health is told beside a full house, and the house is empty again after the deadline."""
    monkeypatch.setattr("subscribers.http.guard.REQUESTS", 2)
    monkeypatch.setattr(connections, "SEND_SECONDS", 1.0)
    with serving(tmp_path) as served:
        idle = [served.connect() for _ in range(2)]
        for client in idle:  # the second answer waits for the first one to be taken
            client.sendall(served.request("/large") * 3)
        until(lambda: served.guard._own.inside == 2, "a full house")
        with served.connect() as health:
            health.sendall(served.request("/healthz"))
            assert health.recv(4_096).startswith(b"HTTP/1.1 200")
        with served.connect() as client:
            client.sendall(served.request("/"))
            assert client.recv(4_096).startswith(b"HTTP/1.1 503")
        until(lambda: served.guard._own.inside == 0, "an empty house")
        for client in idle:
            client.close()


def test_connections_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than the limit is closed at once; the others are served, and a closed one makes room."""
    monkeypatch.setattr(connections, "CONNECTIONS", 2)
    monkeypatch.setattr(connections, "FEWEST", 2)
    with serving(tmp_path) as served, served.connect() as first:
        with served.connect() as second:
            until(lambda: served.open == 2, "two connections")
            with served.connect() as third:
                assert rest_of(third) == 0
            for client in (first, second):
                client.sendall(served.request("/"))
                assert client.recv(4_096).startswith(b"HTTP/1.1 200")
        until(lambda: served.open == 1, "room")
        with served.connect() as fourth:
            fourth.sendall(served.request("/"))
            assert fourth.recv(4_096).startswith(b"HTTP/1.1 200")
