"""Waiting for descriptors and ZeroMQ sockets together."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest
import zmq

from broker.server.readiness import Readiness

Socket = zmq.Socket[bytes]


@pytest.fixture
def sockets() -> Iterator[tuple[Socket, Socket]]:
    """Two sockets that are connected with each other."""
    with zmq.Context() as context, context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
        one.bind("inproc://readiness")
        other.connect("inproc://readiness")
        yield one, other


@pytest.fixture
def readiness() -> Iterator[Readiness]:
    """Nothing to wait for yet."""
    made = Readiness()
    yield made
    made.close()


def test_nothing_is_ready_when_nothing_comes(readiness: Readiness, sockets: tuple[Socket, Socket]) -> None:
    """The wait ends after its time, and not before."""
    readiness.add(sockets[0])
    began = time.monotonic()
    assert readiness.wait(0.05) == {}
    assert time.monotonic() - began >= 0.04


def test_a_descriptor_is_ready_as_long_as_there_is_something(readiness: Readiness) -> None:
    """A pipe with a byte in it is told at each wait until the byte is read."""
    reading, writing = os.pipe()
    try:
        assert readiness.add(reading) == reading
        os.write(writing, b"x")
        assert readiness.wait(10).keys() == readiness.wait(10).keys() == {reading}
        os.read(reading, 1)
        assert readiness.wait(0) == {}
    finally:
        os.close(reading)
        os.close(writing)


def test_a_socket_is_ready_when_a_message_comes_from_another_thread(
    readiness: Readiness, sockets: tuple[Socket, Socket]
) -> None:
    """Whoever waits is woken."""
    descriptor = readiness.add(sockets[0])
    assert readiness.wait(0) == {}
    thread = threading.Thread(target=sockets[1].send, args=(b"hello",))
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not (ready := readiness.wait(1)) and time.monotonic() < deadline:
            continue
        assert ready.keys() == {descriptor}
    finally:
        thread.join()


def test_messages_that_are_left_are_told_of_a_socket_that_was_used(
    readiness: Readiness, sockets: tuple[Socket, Socket]
) -> None:
    """Reading one of two messages may take the descriptor's word away; who says so loses nothing."""
    one, other = sockets
    descriptor = readiness.add(one)
    other.send(b"first")
    other.send(b"second")
    assert readiness.wait(10).keys() == {descriptor}
    assert one.recv() == b"first"
    readiness.used(descriptor)
    assert readiness.wait(0).keys() == {descriptor}
    assert one.recv() == b"second"
    readiness.used(descriptor)
    assert readiness.wait(0) == {}


def test_what_came_before_a_socket_was_added_is_told(
    readiness: Readiness, sockets: tuple[Socket, Socket]
) -> None:
    """A message that waits already is no news to the descriptor, and is found all the same."""
    one, other = sockets
    other.send(b"early")
    assert one.poll(10_000)
    descriptor = readiness.add(one)
    assert readiness.wait(0).keys() == {descriptor}
