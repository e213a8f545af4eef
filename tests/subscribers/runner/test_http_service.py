"""What keeps the ``http`` process going whatever lies in a workspace."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest

from subscribers.runner import http_service
from subscribers.sources.hook_store import HookStore, StoreBusy


class Failing:
    """A store that cannot be looked at."""

    path = "hooks.json"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def snapshot(self) -> None:
        """Fail."""
        raise self.error


@pytest.mark.parametrize("error,is_fault", [(StoreBusy("busy"), False), (TypeError("not foreseen"), True)])
def test_a_look_at_the_hooks_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_fault: bool
) -> None:
    """What was not foreseen is logged as a fault, and the process serves all the same."""
    logged: list[object] = []
    monkeypatch.setattr(http_service, "_look_failed", lambda _store, found: logged.append(found))
    http_service._look(cast("HookStore", Failing(error)))
    assert logged == ([error] if is_fault else [])


def test_an_answer_is_not_held_back_for_an_acknowledgement() -> None:
    """A body follows its head at once: Nagle's algorithm is off for each connection that comes in."""
    delayed: list[int] = []

    async def run() -> None:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            link = writer.get_extra_info("socket")
            delayed.append(link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with http_service.listen(0) as listener:
            server = await asyncio.start_server(answer, sock=listener)
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            await reader.read()
            writer.close()
            server.close()
            await server.wait_closed()

    asyncio.run(run())
    assert [bool(each) for each in delayed] == [True]
