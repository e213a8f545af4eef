"""One payload sent the way an agent sends it: through its hook command, or over HTTP; and what came back.

Decides what counts as an answer. Refuses to know why something is sent: ``doctor`` tries the path with it,
``replay`` a recording.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from .hook_socket_frames import Reply
from .hook_socket_service import STATUS

TRY_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5.0
_FAILED: Final = b"prxbus: "
"""How the hook command's stderr begins when there was no answer; an HTTP answer's reason begins so too."""


class Sent(NamedTuple):
    """What an agent would have seen. ``failed`` says why nothing was decided, None when something was.

    ``answer`` is what was said: JSON, or the reason of a block; empty for no opinion.
    """

    seconds: float
    answer: bytes
    blocked: bool
    failed: str | None = None


def send_command(command: str | Sequence[str], payload: bytes, environ: Mapping[str, str]) -> Sent:
    """Run a hook command; a text is run by a shell, as an agent does it."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            shell=isinstance(command, str),
            input=payload,
            capture_output=True,
            env=environ,
            timeout=TRY_SECONDS,
            check=False,
        )
    except OSError as error:
        return Sent(0.0, b"", False, f"it cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Sent(TRY_SECONDS, b"", False, f"it did not end within {TRY_SECONDS:g} s")
    took = time.perf_counter() - began
    said = done.stderr.strip()
    failed = None
    if done.returncode not in (0, 2) or said.startswith(_FAILED):
        failed = said.decode("utf-8", "replace") or f"it ended with {done.returncode}"
    return Sent(took, said if done.returncode == 2 else done.stdout, done.returncode == 2, failed)


class HttpSender:
    """A connection to the HTTP hooks at ``url``, kept open between payloads as an agent keeps it."""

    def __init__(self, url: str, authorization: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path + (f"?{parts.query}" if parts.query else "")
        self._connection = HTTPConnection(parts.netloc, timeout=TRY_SECONDS)
        self._headers = {"Authorization": authorization, "Content-Type": "application/json"}

    def send(self, payload: bytes) -> Sent:
        """Post a payload."""
        began = time.perf_counter()
        try:
            self._connection.request("POST", self._path, payload, self._headers)
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException) as error:
            self._connection.close()
            return Sent(time.perf_counter() - began, b"", False, f"no answer over HTTP: {error}")
        return _judged(time.perf_counter() - began, answer.status, body)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def is_served(address: str) -> bool:
    """Whether anybody listens at the ``http://HOST:PORT`` of an API; who was killed has left its address."""
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def ask_status(path: str) -> dict[str, object]:
    """What the process at the hook socket says of itself. Raises OSError and ValueError."""
    from ..shim.hook_command import receive, request

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(TRY_SECONDS)
        link.connect(path)
        link.sendall(request(f"{STATUS}\0open\0{1_000}\0/".encode(), b"", b""))
        reply = receive(link)
    if reply is None:
        raise ValueError("it broke off")
    said = orjson.loads(Reply(*reply).stdout)
    if not isinstance(said, dict):
        raise ValueError("it answered something else")
    return said


def _judged(took: float, status: int, body: bytes) -> Sent:
    if status != 200:
        try:
            why = orjson.loads(body)["detail"]
        except (ValueError, KeyError, TypeError):
            why = body[:200].decode("utf-8", "replace")
        return Sent(took, b"", False, f"status {status}: {why}")
    if not body:
        return Sent(took, b"", False)
    try:
        said = orjson.loads(body)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        return Sent(took, body, False, "the answer is no JSON object")
    failed = _FAILED.decode() in body.decode("utf-8", "replace")
    reason = said.get("reason") if isinstance(said.get("reason"), str) else None
    return Sent(took, body, said.get("decision") == "block", (reason or "not decided") if failed else None)
