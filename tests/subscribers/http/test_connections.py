"""How many connections there are, and how a deadline is counted."""

from __future__ import annotations

import asyncio

import pytest

from subscribers.http.connections import CONNECTIONS, FEWEST, OWN_DESCRIPTORS, Deadline, room_for


@pytest.mark.parametrize(
    "descriptors,connections",
    [(1_048_576, CONNECTIONS), (1_024, CONNECTIONS), (OWN_DESCRIPTORS + 100, 100), (64, FEWEST)],
)
def test_connections_leave_descriptors_for_the_rest(descriptors: int, connections: int) -> None:
    """Few descriptors are few connections, yet never none."""
    assert room_for(descriptors) == connections


def test_a_deadline_counts_from_its_first_start() -> None:
    """Starting it again moves nothing; stopped, it does not come; started anew, it does."""

    async def count() -> list[str]:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        stopped = Deadline(0.0, lambda: told.append("stopped"))
        stopped.start()
        stopped.stop()
        stopped.stop()
        begun = loop.time()
        deadline = Deadline(0.05, over.set)
        deadline.start()
        loop.call_later(0.02, deadline.start)
        async with asyncio.timeout(30.0):
            await over.wait()
        assert loop.time() - begun >= 0.05
        return told

    assert asyncio.run(count()) == []
