"""Whose turn it is at a connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue

import pytest

from subscribers.runner.python_lanes import Lane, Task
from subscribers.runtimes.python_threads import Threads

DEADLINE_S = 20.0


class Connection:
    """Gives what is put into it."""

    def __init__(self) -> None:
        self.items: SimpleQueue[list[Task]] = SimpleQueue()
        self.inside = 0
        self.most = 0

    def receive(self) -> Iterable[Task]:
        """Wait a little for tasks."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            return self.items.get(timeout=0.01)
        except Empty:
            return ()
        finally:
            self.inside -= 1


@pytest.fixture
def threads() -> Iterator[Threads]:
    """Threads that end with the test."""
    lent = Threads("lane of a test")
    yield lent
    lent.close()


def test_tasks_are_done_in_order_by_whoever_received_them(threads: Threads) -> None:
    """Quick ones all in the same thread."""
    connection, done = Connection(), threading.Event()
    lane = Lane(connection.receive, threads)
    order: list[int] = []
    inside: set[int] = set()

    def task(number: int) -> Task:
        def do(_: Callable[[], None], /) -> None:
            order.append(number)
            inside.add(threading.get_ident())
            if number == 99:
                done.set()

        return do

    lane.start()
    for start in range(0, 100, 10):
        connection.items.put([task(number) for number in range(start, start + 10)])
    assert done.wait(DEADLINE_S)
    assert lane.stop(DEADLINE_S)
    assert order == list(range(100))
    assert len(inside) == 1
    assert lane.pending == 0


def test_a_task_that_lasts_holds_nothing_up(threads: Threads) -> None:
    """What was received with it, and what comes later, is done while it goes on; then it is out of turn."""
    connection = Connection()
    lane = Lane(connection.receive, threads)
    go, beside, later = threading.Event(), threading.Event(), threading.Event()

    def lasts(on_long: Callable[[], None], /) -> None:
        on_long()
        assert go.wait(DEADLINE_S)

    lane.start()
    connection.items.put([lasts, lambda _: beside.set()])
    assert beside.wait(DEADLINE_S)
    connection.items.put([lasts, lasts, lambda _: later.set()])
    assert later.wait(DEADLINE_S)
    assert lane.stop(DEADLINE_S)
    go.set()
    assert connection.most == 1


def test_what_was_gathered_does_not_wait_for_a_task_that_lasts(threads: Threads) -> None:
    """As soon as a task is known to last, what the ones before it left behind is sent."""
    connection, flushed, go = Connection(), threading.Event(), threading.Event()
    lane = Lane(connection.receive, threads, flushed.set)

    def lasts(on_long: Callable[[], None], /) -> None:
        assert not flushed.is_set()
        on_long()
        assert go.wait(DEADLINE_S)

    lane.start()
    connection.items.put([lasts])
    assert flushed.wait(DEADLINE_S)
    assert lane.stop(DEADLINE_S)
    go.set()


def test_a_thread_out_of_turn_that_lasts_leaves_the_rest_to_another(threads: Threads) -> None:
    """Tasks that were received are begun by somebody, whatever becomes of the thread that took them."""
    connection = Connection()
    lane = Lane(connection.receive, threads)
    go, done = threading.Event(), threading.Event()
    long: list[Callable[[], None]] = []

    def first(on_long: Callable[[], None], /) -> None:
        long.append(on_long)
        on_long()  # another thread has the turn from here on
        lane._pending.extend([second, lambda _: done.set()])

    def second(on_long: Callable[[], None], /) -> None:
        on_long()
        assert go.wait(DEADLINE_S)

    lane.start()
    connection.items.put([first])
    assert done.wait(DEADLINE_S)
    assert lane.stop(DEADLINE_S)
    go.set()


def test_a_failing_task_is_logged_and_its_thread_is_lent_again(threads: Threads) -> None:
    """Threads outlive what they are lent for."""
    done = threading.Event()

    def fails() -> None:
        raise RuntimeError("no")

    threads.run(fails)
    threads.run(done.set)
    assert done.wait(DEADLINE_S)


def test_neither_a_failing_task_nor_a_failing_connection_ends_the_lane(threads: Threads) -> None:
    """Both are logged, and what comes next is done."""
    connection, done = Connection(), threading.Event()
    failures = iter([RuntimeError("no connection")])

    def receive() -> Iterable[Task]:
        for failure in failures:
            raise failure
        return connection.receive()

    def fails(_: Callable[[], None], /) -> None:
        raise RuntimeError("no")

    lane = Lane(receive, threads)
    lane.start()
    connection.items.put([fails, lambda _: done.set()])
    assert done.wait(DEADLINE_S)
    assert lane.stop(DEADLINE_S)
