"""A payload sent as an agent sends it: what counts as an answer, by exit code and over HTTP."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from subscribers.runner import agent_probe
from subscribers.runner.agent_probe import HttpSender, ask_status, send_command


@pytest.mark.parametrize(
    "command,answer,blocked,failed",
    [
        ("cat", b"payload", False, None),
        ("true", b"", False, None),
        ("cat >/dev/null; echo no >&2; exit 2", b"no", True, None),
        ("echo prxbus: away >&2; exit 2", b"prxbus: away", True, "prxbus: away"),
        ("exit 3", b"", False, "it ended with 3"),
        ("echo broken >&2; exit 1", b"", False, "broken"),
        (["/no/such/program"], b"", False, "it cannot be started: No such file or directory"),
    ],
)
def test_a_command_answers_by_its_exit_code(
    command: str | list[str], answer: bytes, blocked: bool, failed: str | None
) -> None:
    """0 with what it prints, 2 with why not; anything else is no answer."""
    sent = send_command(command, b"payload", os.environ)
    assert (sent.answer, sent.blocked, sent.failed) == (answer, blocked, failed)


def test_a_command_that_does_not_end_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it for ever."""
    monkeypatch.setattr(agent_probe, "TRY_SECONDS", 0.1)
    assert send_command(["sleep", "60"], b"", os.environ).failed == "it did not end within 0.1 s"


@contextmanager
def server(status: int, body: bytes) -> Iterator[str]:
    """An address that answers one connection so."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}/hooks/claude?closed=1"
        thread.join()


@pytest.mark.parametrize(
    "status,body,blocked,failed",
    [
        (200, b"", False, None),
        (200, b'{"continue": false}', False, None),
        (200, b'{"decision": "block", "reason": "no"}', True, None),
        (200, b'{"decision": "block", "reason": "prxbus: away"}', True, "prxbus: away"),
        (200, b"plain", False, "the answer is no JSON object"),
        (200, b"[]", False, "the answer is no JSON object"),
        (401, b'{"detail": "a token is needed"}', False, "status 401: a token is needed"),
        (500, b"oops", False, "status 500: oops"),
    ],
)
def test_an_http_hook_answers_by_its_body(
    status: int, body: bytes, blocked: bool, failed: str | None
) -> None:
    """200 with nothing or an object; whatever else comes is no answer."""
    with server(status, body) as url:
        sender = HttpSender(url, "Bearer x")
        sent = sender.send(b"{}")
        sender.close()
    assert (sent.blocked, sent.failed) == (blocked, failed)
    assert sent.answer == (b"" if status != 200 else body)


def test_nobody_at_an_address_is_no_answer(runtime_dir: Path) -> None:
    """Neither over HTTP nor at the socket."""
    sender = HttpSender("http://127.0.0.1:9/hooks/claude", "Bearer x")
    assert (sender.send(b"{}").failed or "").startswith("no answer over HTTP: ")
    sender.close()
    with pytest.raises(OSError, match="No such file"):
        ask_status(str(runtime_dir / "hook.sock"))
