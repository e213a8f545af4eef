"""One call of a handler: what comes of it, when it is told, and what is left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from subscribers.handlers import Registration, on
from subscribers.handlers.registration import collected
from subscribers.runtimes.python_caller import Caller, Outcome, Raised, Returned, TimedOut

DEADLINE_S = 20.0
current: ContextVar[int] = ContextVar("current", default=0)


def handler(function: Callable[..., Any], timeout: float = DEADLINE_S) -> Registration:
    """``function`` as a handler."""
    with collected() as found:
        on("x", timeout=timeout)(function)
    return found[0]


@pytest.fixture
def stuck() -> list[str]:
    """The names of handlers that were told as stuck."""
    return []


@pytest.fixture
def caller(stuck: list[str]) -> Iterator[Caller]:
    """A caller that notes what is stuck."""
    calling = Caller(lambda registration: stuck.append(registration.name))
    yield calling
    calling.close()


def wait_for(condition: Callable[[], object]) -> None:
    """Until it holds."""
    deadline, pause = time.monotonic() + DEADLINE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.005)


def test_a_call_returns_what_the_handler_returns(caller: Caller) -> None:
    """Synchronous or not, the value comes with the time it took, and the caller's context holds inside."""

    def now(event: Any, ctx: Any) -> Any:
        return event, current.get()

    async def later(event: Any, ctx: Any) -> Any:
        await asyncio.sleep(0)
        return ctx, current.get()

    token = current.set(7)
    for function, expected in ((now, ("e", 7)), (later, ("c", 7))):
        outcome = caller.call(handler(function), "e", "c")
        assert isinstance(outcome, Returned)
        assert outcome.value == expected
        assert 0 <= outcome.seconds < DEADLINE_S
    current.reset(token)
    assert caller.stuck == 0


def test_what_is_raised_is_told_with_the_users_line(caller: Caller) -> None:
    """Whatever it is, also what would end a process; frames of the caller are not shown."""

    def ends(event: Any, ctx: Any) -> None:
        raise SystemExit(3)

    async def cancelled(event: Any, ctx: Any) -> None:
        raise asyncio.CancelledError

    def returns_a_coroutine(event: Any, ctx: Any) -> Any:
        return asyncio.sleep(0)

    for function, says in (
        (ends, "SystemExit: 3"),
        (cancelled, "CancelledError"),
        (returns_a_coroutine, "async def"),
    ):
        outcome = caller.call(handler(function), None, None)
        assert isinstance(outcome, Raised)
        assert says in outcome.fault.reason
        assert "/runtimes/python_caller.py" not in outcome.fault.traceback


def test_a_synchronous_timeout_is_told_at_once(caller: Caller, stuck: list[str]) -> None:
    """The handler goes on and is counted as stuck until it really ends."""
    go = threading.Event()

    def hangs(event: Any, ctx: Any) -> None:
        go.wait(DEADLINE_S)

    registration = handler(hangs, timeout=0.05)
    outcome = caller.call(registration, None, None)
    assert isinstance(outcome, TimedOut)
    assert outcome.timeout_s == 0.05
    wait_for(lambda: caller.stuck == 1)
    assert stuck == [registration.name]
    go.set()
    wait_for(lambda: caller.stuck == 0)


def test_an_asynchronous_timeout_cancels(caller: Caller, stuck: list[str]) -> None:
    """The handler is cancelled where it waits, and nothing is stuck."""
    ended = threading.Event()

    async def waits(event: Any, ctx: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assert isinstance(caller.call(handler(waits), None, None, timeout_s=0.05), TimedOut)
    assert ended.wait(DEADLINE_S)
    assert (caller.stuck, stuck) == (0, [])


def test_an_asynchronous_handler_that_blocks_is_stuck(caller: Caller, stuck: list[str]) -> None:
    """It is told in time although the loop cannot cancel it; what waits behind it never begins in vain."""
    go = threading.Event()

    async def blocks(event: Any, ctx: Any) -> None:
        go.wait(DEADLINE_S)

    async def quick(event: Any, ctx: Any) -> str:
        return "quick"

    told: list[Outcome] = []
    ended: list[str] = []
    caller.start(handler(blocks), (None, None), 0.05, told.append, None, lambda: ended.append("blocks"))
    caller.start(handler(quick), (None, None), 0.1, told.append, None, lambda: ended.append("quick"))
    wait_for(lambda: len(told) == 2)
    assert all(isinstance(outcome, TimedOut) for outcome in told)
    wait_for(lambda: caller.stuck == 2)
    assert ended == []
    go.set()
    wait_for(lambda: caller.stuck == 0)
    wait_for(lambda: sorted(ended) == ["blocks", "quick"])


def test_a_call_that_lasts_is_told_while_it_goes_on(caller: Caller) -> None:
    """on_long comes once, from another thread; a quick call never causes it; the end comes last."""
    order: list[str] = []
    long = threading.Event()

    def said() -> None:
        order.append("long")
        long.set()

    def lasts(event: Any, ctx: Any) -> None:
        assert long.wait(DEADLINE_S)

    caller.start(
        handler(lasts),
        (None, None),
        DEADLINE_S,
        lambda _: order.append("told"),
        said,
        lambda: order.append("end"),
    )
    for _ in range(200):
        caller.start(handler(lambda e, c: None), (None, None), DEADLINE_S, lambda _: None)
    assert order == ["long", "told", "end"]


def test_many_calls_at_once_are_all_told(caller: Caller) -> None:
    """From many threads, mixed: each exactly once."""
    told: list[Outcome] = []
    barrier = threading.Barrier(4)

    async def later(event: Any, ctx: Any) -> int:
        await asyncio.sleep(0)
        return 1

    registrations = [handler(lambda e, c: 1), handler(later)]

    def work() -> None:
        barrier.wait(DEADLINE_S)
        for n in range(100):
            caller.start(registrations[n % 2], (None, None), DEADLINE_S, told.append)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(lambda: len(told) == 400)
    assert all(isinstance(outcome, Returned) for outcome in told)
