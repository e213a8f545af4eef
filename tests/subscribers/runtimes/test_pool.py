"""The pool gives threads to what its budget lets start, and survives whatever a job does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from subscribers.runtimes.pool import PoolStats, RunPool

LONG_S = 30.0


class _Gate:
    """Jobs that report that they have started and wait until they may go on."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        self.opened = threading.Event()

    def __call__(self) -> None:
        self.started.release()
        assert self.opened.wait(LONG_S)

    def wait_for(self, number: int) -> None:
        """Return when this many more jobs have started."""
        for _ in range(number):
            assert self.started.acquire(timeout=LONG_S)


@pytest.fixture
def gate() -> Iterator[_Gate]:
    gate = _Gate()
    yield gate
    gate.opened.set()


def test_runs_of_one_event_are_under_way_at_once(gate: _Gate) -> None:
    """As many jobs as there are slots start without waiting for each other, and each is run once."""
    pool = RunPool(total=3, per_hook=3)
    assert all(pool.submit("h", gate) for _ in range(3))
    gate.wait_for(3)
    assert pool.stats == PoolStats(running=3, waiting=0, finished=0, dropped=0, failed=0)
    gate.opened.set()
    assert pool.drain(LONG_S) == 0
    assert pool.stats == PoolStats(running=0, waiting=0, finished=3, dropped=0, failed=0)


def test_what_has_no_room_is_dropped_and_counted(gate: _Gate) -> None:
    """A slow hook makes its own runs wait, then drops them; submit says so at once."""
    pool = RunPool(total=4, per_hook=1, queue=2)
    assert [pool.submit("slow", gate) for _ in range(5)] == [True, True, True, False, False]
    gate.wait_for(1)
    done = threading.Event()
    assert pool.submit("quick", done.set)
    assert done.wait(LONG_S)
    gate.opened.set()
    assert pool.drain(LONG_S) == 0
    assert pool.stats == PoolStats(running=0, waiting=0, finished=4, dropped=2, failed=0)


def test_threads_are_used_again() -> None:
    """A hundred jobs, one after the other, need one thread; names say what the threads are for."""
    pool = RunPool()
    names = set()
    done = threading.Semaphore(0)

    def job() -> None:
        names.add(threading.current_thread().name)

    for _ in range(100):
        before = pool.stats.finished
        assert pool.submit("h", job)
        while pool.stats.finished == before:
            done.acquire(timeout=0.001)
    assert pool.drain(LONG_S) == 0
    assert names == {"run-1"}


def test_a_failing_job_is_reported_and_costs_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception reaches threading.excepthook, is counted, and the thread goes on working."""
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: reported.append(arguments.exc_value))
    pool = RunPool(total=1)
    error = ValueError("of the job")

    def fail() -> None:
        raise error

    assert pool.submit("h", fail)
    assert pool.submit("h", lambda: None)
    assert pool.drain(LONG_S) == 0
    assert reported == [error]
    assert (pool.stats.finished, pool.stats.failed) == (2, 1)


def test_draining_gives_up_at_its_deadline_and_can_be_continued(gate: _Gate) -> None:
    """What still runs at the deadline is left running and counted; what waits and what is new is dropped."""
    pool = RunPool(total=1, queue=5)
    for _ in range(3):
        assert pool.submit("h", gate)
    gate.wait_for(1)
    assert pool.drain(0.0) == 1
    assert not pool.submit("h", gate)
    assert pool.stats == PoolStats(running=1, waiting=0, finished=0, dropped=3, failed=0)
    gate.opened.set()
    assert pool.drain(LONG_S) == 0
    assert pool.stats.finished == 1


def test_draining_finishes_what_waits(gate: _Gate) -> None:
    """Accepted jobs run before the pool is drained, also those that had to wait."""
    pool = RunPool(total=1, queue=9)
    ran: list[int] = []

    def numbered(number: int) -> Callable[[], None]:
        return lambda: ran.append(number)

    assert pool.submit("a", gate)
    for number in range(5):
        assert pool.submit("a", numbered(number))
    gate.opened.set()
    assert pool.drain(LONG_S) == 0
    assert ran == list(range(5))


def test_an_idle_pool_drains_at_once() -> None:
    """Without a job there is nothing to wait for."""
    assert RunPool().drain(LONG_S) == 0


def test_a_system_without_threads_costs_the_job_and_not_the_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """When no thread can be made the job is dropped, and the next one finds the slot free."""
    pool = RunPool(total=1)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert not pool.submit("h", lambda: None)
    assert pool.submit("h", lambda: None)
    assert pool.drain(LONG_S) == 0
    assert (pool.stats.dropped, pool.stats.finished) == (1, 1)
