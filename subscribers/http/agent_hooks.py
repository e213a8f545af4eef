"""Where agents' HTTP hooks arrive: ``POST /hooks/claude``, ``/hooks/codex`` and ``/hooks/bitfun``.

An agent reads nothing but a success with an empty body (no opinion) or a JSON object, and waits meanwhile. So
whatever goes wrong behind the guard is answered by one of these two, as the hook's address wants it: empty,
or with ``closed=1`` a block. Decides what an address may say; who answers is an argument. It is called for
every tool call of an agent, so it stands beside the framework, not inside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

import orjson
from starlette.types import Receive, Scope, Send

from broker.logs import get_logger

from .problems import Problem

PREFIX: Final = "/hooks/"
BODY_BYTES: Final = 16_777_216
"""Largest payload: that of an ask."""

DEFAULT_SECONDS: Final = 599.0
"""What an agent waits where nothing else is said, less a second."""

MOST_SECONDS: Final = 3_600.0
QUIET_SECONDS: Final = 1.0
"""After so long it is watched whether the agent is still there: most are answered before."""

Answer: TypeAlias = Callable[[str, bytes, float, bool], Awaitable[bytes]]
"""The body for a dialect's payload, seconds left, and whether no answer is to block."""

_EMPTY: Final = ((b"content-length", b"0"),)

log = get_logger("subscribers.http")


class AgentHooks:
    """The application of these endpoints: ``dialects`` are the last parts of their paths."""

    def __init__(self, answer: Answer, dialects: Collection[str]) -> None:
        self._answer = answer
        self._paths = {f"{PREFIX}{dialect}": dialect for dialect in dialects}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; its body is there already."""
        try:
            dialect, seconds, closed = self._understand(scope)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        body = (await receive())["body"]
        asked = asyncio.ensure_future(self._answer(dialect, body, seconds, closed))
        try:
            if not (await asyncio.wait((asked,), timeout=QUIET_SECONDS))[0]:
                await until_either(asked, receive)
            if not asked.done():
                return  # nobody is there to be answered
            found = _made_of(asked, closed)
        finally:
            asked.cancel()
        headers = (
            ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(found)))
            if found
            else _EMPTY
        )
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": found})

    def _understand(self, scope: Scope) -> tuple[str, float, bool]:
        """Dialect, seconds and policy of a request; raises :class:`Problem`."""
        dialect = self._paths.get(scope["path"])
        if dialect is None:
            raise Problem(404, "no_such_path", f"there is nothing here; there are {', '.join(self._paths)}")
        if scope["method"] != "POST":
            raise Problem(405, "wrong_method", "hooks are sent with POST", headers={"allow": "POST"})
        seconds, closed = DEFAULT_SECONDS, False
        query: bytes = scope["query_string"]
        for name, value in parse_qsl(query.decode("latin-1")) if query else ():
            if name == "closed":
                closed = value == "1"
            elif name == "timeout":
                seconds = _seconds(value)
        return dialect, seconds, closed


async def until_either(asked: asyncio.Future[bytes], receive: Receive) -> None:
    """Wait until there is an answer, or nobody who would read it."""
    leaving = asyncio.ensure_future(_leaves(receive))
    try:
        await asyncio.wait((asked, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving


async def _leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _made_of(asked: asyncio.Future[bytes], closed: bool) -> bytes:
    """The answer; a defect is told in the log, and to the agent as a failure of any other kind."""
    error = asked.exception()
    if error is None:
        return asked.result()
    log.error("an agent's HTTP hook could not be answered", error=repr(error))
    if not closed:
        return b""
    return orjson.dumps({"decision": "block", "reason": "prxbus failed; this hook is set to block then"})


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MOST_SECONDS:
        raise Problem(
            422,
            "bad_timeout",
            f"timeout is {text[:20]!r}, not seconds up to {MOST_SECONDS:g}",
            field="timeout",
        )
    return seconds
