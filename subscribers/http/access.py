"""Who may come in: the token, the names that we answer to, and a pause after wrong tokens.

Pure: times are arguments. The API listens on this machine alone, yet every program and every web page here
can reach it: the token keeps programs of other users out, ``Host`` and ``Origin`` keep web pages out, also
those whose name was made to point here (DNS rebinding).
"""

from __future__ import annotations

import hmac
from typing import Final

ATTEMPTS: Final = 5
"""Wrong tokens, with no right one between them, after which no other one is answered for a while."""

PAUSE_SECONDS: Final = 10.0

LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")

_FOREIGN_SITES: Final = ("cross-site", "same-site")


class Gate:
    """Compares tokens in constant time; pauses after ``attempts`` wrong ones for ``pause_s`` seconds.

    The right token is let in all the same: every program of this machine can send wrong ones, and is not to
    silence the guards of an agent by that. A token has 16 characters or more, and 256 random bits where it
    was made here: what keeps others out is its length.
    """

    def __init__(self, token: str, attempts: int = ATTEMPTS, pause_s: float = PAUSE_SECONDS) -> None:
        self._token = token.encode()
        self._attempts = attempts
        self._pause_s = pause_s
        self._wrong = 0
        self._closed_until = float("-inf")

    def closed_for(self, now: float) -> float:
        """Seconds for which the sender of a wrong token is to wait; 0 outside of a pause."""
        return max(0.0, self._closed_until - now)

    def admits(self, token: str, now: float) -> bool:
        """Whether this is the token. A wrong one is counted."""
        if hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self._token):
            self._wrong = 0
            return True
        self._wrong += 1
        if self._wrong >= self._attempts:
            self._wrong = 0
            self._closed_until = now + self._pause_s
        return False


def bearer(header: str) -> str | None:
    """The token of an ``Authorization`` header (RFC 6750); None when it is of another kind."""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def is_our_host(host: str, port: int) -> bool:
    """Whether a ``Host`` header names this machine itself, and our port."""
    name, separator, number = host.rpartition(":")
    if not separator or host.endswith("]"):
        name, number = host, "80"
    return name.lower() in LOCAL_NAMES and number == str(port)


def is_our_origin(origin: str, host: str) -> bool:
    """Whether an ``Origin`` header names the very address that was called."""
    return origin.lower() == f"http://{host.lower()}"


def is_foreign_site(fetch_site: str) -> bool:
    """Whether a browser says (``Sec-Fetch-Site``) that the request comes from another site's page."""
    return fetch_site.lower() in _FOREIGN_SITES
