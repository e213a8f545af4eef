"""Agents' HTTP hooks on the bus: what the HTTP service lends to :mod:`subscribers.http.agent_hooks`.

Decides which token lets them in, and that its publisher lives in the server's own event loop.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from broker.client import aio

from ..dialects.codex_profiles import PROFILES
from ..http.access import Gate
from ..http.agent_hooks import BODY_BYTES, PREFIX, AgentHooks
from ..http.guard import Entrance
from ..http.token_file import find_hook_token
from ..sources.attach_files import state_directory
from .agent_relay import SOURCE, Relay

ADDRESS_NAME: Final = "http-address"
"""The file in the runtime directory that says where the API is served."""


class AgentHttp:
    """The entrance of agents' HTTP hooks for the bus in ``runtime_dir``. Raises TokenRefused."""

    def __init__(self, runtime_dir: str, environ: Mapping[str, str]) -> None:
        token, path = find_hook_token(state_directory(), environ)
        # A wrong token must not keep the right one out: an agent that is not answered may go on unwatched.
        gate = Gate(token, attempts=sys.maxsize)
        hint = f"the token is in {path}" if path is not None else "the token is in this service's environment"
        app = AgentHooks(self._answer, PROFILES)
        self.entrances = {PREFIX: Entrance(app, gate, hint, BODY_BYTES)}
        self._publisher = aio.Publisher(SOURCE, runtime_dir=runtime_dir)
        self._relay: Relay | None = None

    async def open(self) -> None:
        """Be ready to ask; in the server's event loop."""
        await self._publisher.__aenter__()
        self._relay = Relay(self._publisher)

    async def close(self) -> None:
        """Ask no more."""
        await self._publisher.close()

    @property
    def counts(self) -> Mapping[str, int]:
        """What became of the events so far."""
        return {} if self._relay is None else self._relay.counts

    async def _answer(self, dialect: str, payload: bytes, seconds: float, closed: bool) -> bytes:
        assert self._relay is not None
        return await self._relay.http(dialect, payload, seconds, closed=closed)


def write_address(runtime_dir: str, address: str) -> None:
    """Say where the API is served, for commands that look for it. Raises OSError."""
    path = os.path.join(runtime_dir, ADDRESS_NAME)
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w"
    ) as file:
        file.write(address + "\n")


def remove_address(runtime_dir: str) -> None:
    """The API is served no more."""
    with suppress(OSError):
        os.unlink(os.path.join(runtime_dir, ADDRESS_NAME))


def read_address(runtime_dir: str) -> str | None:
    """Where the API was last served from this directory; None where it never was."""
    try:
        with open(os.path.join(runtime_dir, ADDRESS_NAME), encoding="ascii") as file:
            return file.read(256).strip() or None
    except (OSError, UnicodeDecodeError):
        return None
