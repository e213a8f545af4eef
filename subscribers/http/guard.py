"""What every request passes before anything looks at what it wants: name, origin, token, size.

The body is read here, whole and with a deadline, so that no handler waits for a slow sender; what is refused
is answered with a problem document. It refuses to know any endpoint but the one that needs no token.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.logs import get_logger

from .access import Gate, bearer, is_foreign_site, is_our_host, is_our_origin
from .problems import Problem

BODY_BYTES: Final = 1_048_576
"""Largest body of a request (1 MiB)."""

BODY_SECONDS: Final = 10.0
"""How long a sender may take for a body."""

REQUESTS: Final = 256
"""Requests with the token that are answered at a time; those for health are not counted."""

BODIES_BYTES: Final = 268_435_456
"""What the bodies of all requests under way may take together (256 MiB)."""

OPEN_PATHS: Final = ("/healthz",)

OWN_HINT: Final = "the token is in http-token in the runtime directory"
"""Where the token of the API itself is."""

log = get_logger("subscribers.http")


class Entrance:
    """Where requests go: ``app`` behind ``gate``, whose bodies have at most ``body_bytes``.

    ``hint`` says where its token is. ``inside`` counts the requests that are being answered.
    """

    __slots__ = ("app", "body_bytes", "gate", "hint", "inside")

    def __init__(self, app: ASGIApp, gate: Gate, hint: str, body_bytes: int = BODY_BYTES) -> None:
        self.app = app
        self.gate = gate
        self.hint = hint
        self.body_bytes = body_bytes
        self.inside = 0


class Guard:
    """The outermost layer of the application. ``port`` is ours; ``now`` gives seconds of a steady clock.

    ``others`` are further entrances by the beginning of their paths, each with its own limit and token.
    ``answered`` counts answers by status.
    """

    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        port: int,
        now: Callable[[], float] = time.monotonic,
        others: Mapping[str, Entrance] = MappingProxyType({}),
    ) -> None:
        self.answered: dict[int, int] = {}
        self._own = Entrance(app, gate, OWN_HINT)
        self._others = tuple(others.items())
        self._port = port
        self._now = now
        self._bytes = 0  # of bodies under way, as they were announced

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand over what is not one."""
        entrance = self._own
        if scope["type"] != "http":
            await entrance.app(scope, receive, send)
            return
        for prefix, other in self._others:
            if scope["path"].startswith(prefix):
                entrance = other

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                self.answered[status] = self.answered.get(status, 0) + 1
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check_names(headers)
            if scope["path"] in OPEN_PATHS:  # whoever comes without a token brings no body and takes no place
                await entrance.app(scope, _replaying(b"", receive), counting)
                return
            self._check_token(headers, entrance)
            if entrance.inside >= REQUESTS:
                raise Problem(503, "busy", f"{REQUESTS} requests are under way", headers={"retry-after": "1"})
        except Problem as problem:
            await problem.response()(scope, receive, counting)
            return
        entrance.inside += 1
        try:
            await self._answer(entrance, scope, headers, receive, counting)
        finally:
            entrance.inside -= 1

    async def _answer(
        self, entrance: Entrance, scope: Scope, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Answer a request that was let in."""
        size = _announced(headers, entrance.body_bytes)
        size = size if size <= entrance.body_bytes else 0  # a larger one is not read at all
        self._bytes += size
        try:
            if size and self._bytes > BODIES_BYTES:
                raise Problem(
                    503, "busy", "too many large bodies are under way", headers={"retry-after": "1"}
                )
            body = await self._read(headers, receive, entrance.body_bytes)
        except Problem as problem:
            await problem.response()(scope, receive, send)
        else:
            await entrance.app(scope, _replaying(body, receive), send)
        finally:
            self._bytes -= size

    async def _read(self, headers: Headers, receive: Receive, most: int) -> bytes:
        """The body; raises :class:`Problem` for one that is too large, too slow, or no JSON by its header."""
        body = await _read_body(headers, receive, most)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise Problem(
                415,
                "not_json_content",
                f"the body is {kind or 'of no stated type'}, not application/json",
                field="Content-Type",
                hint="send the header Content-Type: application/json",
            )
        return body

    def _check_names(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_our_host(hosts[0], self._port):
            raise Problem(
                403,
                "wrong_host",
                "this address is not called by that name",
                field="Host",
                hint=f"call http://127.0.0.1:{self._port}",
            )
        for origin in headers.getlist("origin"):
            if not is_our_origin(origin, hosts[0]):
                raise Problem(403, "wrong_origin", "web pages are not let in", field="Origin")
        if is_foreign_site(headers.get("sec-fetch-site", "")):
            raise Problem(403, "wrong_origin", "web pages are not let in", field="Sec-Fetch-Site")

    def _check_token(self, headers: Headers, entrance: Entrance) -> None:
        gate, now = entrance.gate, self._now()
        seconds = gate.closed_for(now)
        token = bearer(headers.get("authorization", ""))
        if token is not None and gate.admits(token, now):
            return
        if seconds:
            raise Problem(
                429,
                "too_many_wrong_tokens",
                "several wrong tokens have come: for a while only the right one is answered",
                field="Authorization",
                headers={"retry-after": str(math.ceil(seconds))},
            )
        if token is None:
            raise _unauthorized("no_token", "a token is needed", "Bearer", entrance)
        log.warning("a wrong token was sent")
        raise _unauthorized("wrong_token", "the token is wrong", 'Bearer error="invalid_token"', entrance)


def _unauthorized(code: str, detail: str, challenge: str, entrance: Entrance) -> Problem:
    hint = f"send Authorization: Bearer TOKEN; {entrance.hint}"
    return Problem(
        401, code, detail, field="Authorization", hint=hint, headers={"www-authenticate": challenge}
    )


def _announced(headers: Headers, most: int) -> int:
    """The bytes that a body is said to have; ``most`` for one that comes in chunks."""
    told = headers.get("content-length", "0")
    return int(told) if told.isdecimal() and "transfer-encoding" not in headers else most


async def _read_body(headers: Headers, receive: Receive, most: int) -> bytes:
    if _announced(headers, most) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Problem(400, "broken_off", "the request was broken off")
                part = message.get("body", b"")
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Problem(408, "slow_body", f"the body did not come within {BODY_SECONDS:g} s") from None


def _too_large(most: int) -> Problem:
    detail = f"a body has at most {most:,} bytes"
    return Problem(413, "body_too_large", detail, headers={"connection": "close"})


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Gives the body once, then whatever comes: the word that the client has gone."""
    is_told = False

    async def replay() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
