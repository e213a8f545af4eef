"""One HTTP request with a body, from start to reply, within its time.

Decides when a call is over: at the deadline, whatever the other side does, and with a bounded answer. It
follows no redirect, asks no proxy and tries nothing twice. Refuses to know what is sent, and what a reply
means.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from ..hooks.outcome import NOTHING, Captured, Outcome
from .capture import Capture
from .deadlines import Deadlines

CHUNK = 65_536


class Reply(NamedTuple):
    """What came back: the status code, and the body as far as it was kept."""

    status: int
    body: Captured


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    timeout_s: float,
    limit: int,
    deadlines: Deadlines,
) -> Reply | Outcome:
    """Send ``body`` to an ``http`` or ``https`` URL; the reply, or how the call came to nothing.

    Blocks for ``timeout_s`` seconds at most; only the look-up of a host's name may take longer.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # 15 ms that only a call needs

    began = time.monotonic()
    try:
        parts = urlsplit(url)
        kind = {"http": HTTPConnection, "https": HTTPSConnection}[parts.scheme]
        connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    except (KeyError, ValueError):
        return Outcome.not_started("its url is not one of http or https")
    connected: list[socket.socket] = []  # the connection forgets it as soon as the other side is to close it
    deadline = deadlines.arm(timeout_s, lambda: _cut(connected))
    try:
        connection.connect()
        connected.append(connection.sock)
        target = parts.path or "/"
        connection.request(
            "POST", f"{target}?{parts.query}" if parts.query else target, body=body, headers=dict(headers)
        )
        response = connection.getresponse()
        kept = Capture(limit)
        while chunk := response.read1(CHUNK):
            kept.add(chunk)
        if deadline.passed:
            raise TimeoutError
        return Reply(response.status, kept.captured())
    except (OSError, HTTPException, ValueError) as error:
        took = time.monotonic() - began
        if deadline.passed or isinstance(error, TimeoutError) or took >= timeout_s:
            return Outcome("timeout", None, None, took, NOTHING, NOTHING)
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Outcome(
            "failed",
            None,
            None,
            took,
            NOTHING,
            NOTHING,
            f"it cannot be reached: {words or type(error).__name__}",
        )
    finally:
        deadlines.disarm(deadline)
        connection.close()


def _cut(connected: Sequence[socket.socket]) -> None:
    """Have whoever waits for the other side wait no longer."""
    for each in connected:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
