"""An ``http`` handler of Claude Code's and an event, as one request; and what its reply is as an outcome.

Decides by section 6.4 of the contract which variables stand in for names in headers, which URLs may be
called, and what a status and a body are: a reply that is no answer is a failure, and never a text for the
model. Refuses to judge an answer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import orjson

from broker.version import __version__

from ..dialects.codex_spec import CodexHandler
from ..hooks.outcome import NOTHING, Outcome
from ..runtimes.deadlines import Deadlines
from ..runtimes.http_call import Reply, post
from .codex_invocation import OUTPUT_BYTES

_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_ENDS_A_HEADER: Final = re.compile(r"[\r\n\0]")


def call(
    handler: CodexHandler,
    env: Mapping[str, str],
    body: bytes,
    timeout_s: float,
    urls: tuple[str, ...],
    deadlines: Deadlines,
) -> Outcome:
    """Ask a handler's server; blocks for ``timeout_s`` at most.

    ``env`` is what command handlers of the event find in theirs. ``urls``: patterns of what may be called
    beyond this machine.
    """
    if (refusal := refusal_of(handler.url, urls)) is not None:
        return Outcome.not_started(refusal)
    began = time.monotonic()
    reply = post(handler.url, body, headers_of(handler, env), timeout_s, OUTPUT_BYTES, deadlines)
    return reply if isinstance(reply, Outcome) else outcome_of(reply, time.monotonic() - began)


def headers_of(handler: CodexHandler, env: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request: names of variables filled in, where the handler lists any, else as written.

    A variable that is not listed, or is not there, is the empty text.
    """
    found = {"User-Agent": f"prxbus/{__version__}"}
    for name, written in (handler.headers or {}).items():
        value = _filled(written, handler.allowed_env, env) if handler.allowed_env else written
        if name.lower() not in ("content-type", "content-length", "host", "connection"):
            found[name] = _ENDS_A_HEADER.sub("", value)
    return {**found, "Content-Type": "application/json"}


def _filled(text: str, allowed: tuple[str, ...], env: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return env.get(name, "") if name in allowed else ""

    return _VARIABLE.sub(value, text)


def refusal_of(url: str, patterns: tuple[str, ...]) -> str | None:
    """Why a URL is not called: it is neither on this machine nor configured. None: it is called."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    if _is_here(host) or any(
        fnmatchcase(url, pattern.replace("[", "[[]").replace("?", "[?]")) for pattern in patterns
    ):
        return None
    return "its url is not on this machine, and hooks.http_urls does not allow it"


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def outcome_of(reply: Reply, seconds: float) -> Outcome:
    """What a reply is: 2xx without a body or with a JSON object is an answer, anything else a failure."""
    if not 200 <= reply.status < 300:
        return _failed(seconds, f"its server answered with HTTP status {reply.status}")
    text = reply.body.text().strip()
    if text and not _is_object(text):
        return _failed(seconds, "its server answered with something else than a JSON object")
    return Outcome("ok", 0, None, seconds, reply.body, NOTHING)


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _failed(seconds: float, reason: str) -> Outcome:
    return Outcome("not_started", None, None, seconds, NOTHING, NOTHING, reason)
