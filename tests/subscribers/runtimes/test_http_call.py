"""One HTTP call against a real server on this machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from subscribers.hooks.outcome import Outcome
from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.http_call import Reply, post


@contextmanager
def server(*chunks: bytes, pause_s: float = 0.0) -> Iterator[tuple[str, list[bytes]]]:
    """Somebody who answers one request with ``chunks``, a pause after each; its URL and what it was sent."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        stop = threading.Event()

        def serve() -> None:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(20)
                request = b""
                while b"\r\n\r\n" not in request:
                    request += peer.recv(65_536)
                head, _, body = request.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                while len(body) < length:
                    body += peer.recv(65_536)
                got.append(head + b"\r\n\r\n" + body)
                try:
                    for chunk in chunks:
                        peer.sendall(chunk)
                        stop.wait(pause_s)
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", got
        finally:
            stop.set()
            listening.close()
            thread.join(20)


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    """One thread for deadlines."""
    watched = Deadlines()
    yield watched
    watched.close()


def test_a_call_posts_the_body_and_gets_the_reply(deadlines: Deadlines) -> None:
    """Path, query, headers and body arrive as they are; the reply is status and body."""
    with server(b"HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\n{}") as (url, got):
        reply = post(f"{url}/h?a=1", b'{"x":1}', {"X-Token": "t"}, 20.0, 100, deadlines)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body.text()) == (201, "{}")
    head, _, body = got[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /h?a=1 HTTP/1.1\r\n")
    assert b"\r\nX-Token: t" in head
    assert body == b'{"x":1}'


def test_a_reply_is_kept_up_to_its_limit(deadlines: Deadlines) -> None:
    """Of a longer body, head and tail are kept and the rest is counted."""
    with server(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 1_000) as (url, _):
        reply = post(url, b"", {}, 20.0, 10, deadlines)
    assert isinstance(reply, Reply)
    assert (len(reply.body.head), len(reply.body.tail), reply.body.total) == (5, 5, 1_000)


@pytest.mark.parametrize(
    "chunks",
    [
        (b"",) * 100,
        (b"HTTP/1.1 200 OK\r\n", *(b"A: b\r\n",) * 100),
        (b"HTTP/1.1 200 OK\r\n\r\n", *(b"x",) * 100),
    ],
)
def test_time_is_over_whatever_the_other_side_does(deadlines: Deadlines, chunks: tuple[bytes, ...]) -> None:
    """One that is silent, or that trickles its head or its body, is cut off at the deadline."""
    with server(*chunks, pause_s=0.2) as (url, _):
        began = time.monotonic()
        outcome = post(url, b"", {}, 0.5, 100, deadlines)
    assert isinstance(outcome, Outcome)
    assert outcome.status == "timeout"
    assert 0.4 < time.monotonic() - began < 15


def test_nobody_there_is_a_failure_with_its_reason(deadlines: Deadlines) -> None:
    """A refused connection and a reply that is no HTTP are told in words; another scheme is not tried."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    refused = post(f"http://127.0.0.1:{port}", b"", {}, 20.0, 100, deadlines)
    assert isinstance(refused, Outcome)
    assert (refused.status, refused.reason) == ("failed", "it cannot be reached: Connection refused")
    with server(b"nonsense\r\n\r\n") as (url, _):
        nonsense = post(url, b"", {}, 20.0, 100, deadlines)
    assert isinstance(nonsense, Outcome)
    assert nonsense.status == "failed"
    for url in ("ftp://127.0.0.1/", "http://[", "http://127.0.0.1:x/", ""):
        wrong = post(url, b"", {}, 20.0, 100, deadlines)
        assert isinstance(wrong, Outcome)
        assert wrong.status == "not_started"
