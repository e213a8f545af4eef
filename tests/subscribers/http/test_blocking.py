"""Work off the loop: its answer, its errors, its bounds."""

from __future__ import annotations

import asyncio
import threading

import pytest

from subscribers.http.blocking import Blocking
from subscribers.http.problems import Problem


def test_answers_and_errors_come_back() -> None:
    """What the function returns or raises is what the caller gets."""

    async def use() -> None:
        pool = Blocking(1, 0, "test")
        assert await pool.run(lambda: 5) == 5
        with pytest.raises(ValueError, match="invalid literal"):
            await pool.run(lambda: int("x"))
        pool.close()

    asyncio.run(use())


def test_a_deadline_ends_the_wait_and_room_comes_back() -> None:
    """503 past the deadline; while the work goes on its place is taken, and then it is free again."""

    async def use() -> None:
        pool, go = Blocking(1, 0, "test"), threading.Event()

        def fail_late() -> None:
            go.wait(30)
            raise ValueError("nobody hears this")

        with pytest.raises(Problem, match="not done within") as late:
            await pool.run(fail_late, 0.05)
        assert (late.value.status, late.value.code) == (503, "timeout")
        with pytest.raises(Problem, match="too many requests") as busy:
            await pool.run(lambda: 5)
        assert (busy.value.status, busy.value.code) == (503, "busy")
        go.set()
        while True:
            try:
                assert await pool.run(lambda: 5) == 5
                break
            except Problem:
                await asyncio.sleep(0)
        pool.close()

    asyncio.run(use())


@pytest.mark.parametrize("gives_up", ["by time", "by cancellation"])
def test_what_comes_too_late_is_given_back(gives_up: str) -> None:
    """Once, whatever ended the wait; what was waited for, and what failed, is not."""

    async def use() -> list[str]:
        pool, go, back = Blocking(1, 1, "test"), threading.Event(), threading.Event()
        discarded: list[str] = []

        def discard(value: str) -> None:
            discarded.append(value)
            back.set()

        def late() -> str:
            go.wait(30)
            return "late"

        def fail() -> str:
            go.wait(30)
            raise ValueError("nobody hears this")

        assert await pool.run(lambda: "in time", discard=discard) == "in time"
        for work in (fail, late):
            if gives_up == "by time":
                with pytest.raises(Problem, match="not done within"):
                    await pool.run(work, 0.05, discard)
            else:
                waiting = asyncio.ensure_future(pool.run(work, 30.0, discard))
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
        go.set()
        assert await asyncio.to_thread(back.wait, 30)
        pool.close()
        return discarded

    assert asyncio.run(use()) == ["late"]


def test_what_comes_after_the_end_is_left() -> None:
    """A pool that is closed discards nothing any more, and nothing fails."""

    async def use() -> list[str]:
        pool, go = Blocking(1, 0, "test"), threading.Event()
        discarded: list[str] = []

        def late() -> str:
            go.wait(30)
            return "late"

        with pytest.raises(Problem):
            await pool.run(late, 0.05, discarded.append)
        go.set()
        pool.close()
        await asyncio.sleep(0)
        return discarded

    assert asyncio.run(use()) == []
