"""Messages between the owner of the chain and its workers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.runtimes.transform_wire import MESSAGE_BYTES, WireClosed, pack, receive, send

Pair = tuple[socket.socket, socket.socket]
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Both ends of a connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@given(st.lists(values, max_size=5))
def test_messages_arrive_as_they_were_sent(messages: list[object]) -> None:
    """In order, whatever they hold."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for message in messages:
            send(ours, pack(message))
        assert [receive(theirs) for _ in messages] == messages


def test_a_large_message_arrives_whole(pair: Pair) -> None:
    """More than a socket holds is read while it is written."""
    text = "ä" * 4_000_000
    writer = threading.Thread(target=send, args=(pair[0], pack([text])))
    writer.start()
    assert receive(pair[1]) == [text]
    writer.join()


def test_nobody_waits_longer_than_until_the_deadline(pair: Pair) -> None:
    """Silence, half a message, a reader that does not read and a past deadline are a TimeoutError."""
    with pytest.raises(TimeoutError):
        receive(pair[1], time.monotonic() + 0.05)
    pair[0].sendall(b"\0\0")
    with pytest.raises(TimeoutError):
        receive(pair[1], time.monotonic() + 0.05)
    with pytest.raises(TimeoutError):
        send(pair[0], pack("x" * 10_000_000), time.monotonic() + 0.05)
    with pytest.raises(TimeoutError):
        receive(pair[1], time.monotonic() - 1.0)


def test_the_end_of_the_other_side_is_told(pair: Pair) -> None:
    """Also in the middle of a message, and to somebody who writes."""
    pair[0].sendall(pack("x" * 100)[:50])
    pair[0].close()
    with pytest.raises(WireClosed):
        receive(pair[1], time.monotonic() + 5.0)
    with pytest.raises(WireClosed):
        send(pair[1], pack("x"), time.monotonic() + 5.0)


def test_what_is_no_message_is_refused(pair: Pair) -> None:
    """A length beyond the bound and bytes that are not msgpack end the connection."""
    pair[0].sendall((MESSAGE_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(WireClosed, match="announced"):
        receive(pair[1])
    pair[0].sendall((1).to_bytes(4, "big") + b"\xc1")
    with pytest.raises(WireClosed, match="not msgpack"):
        receive(pair[1])


@pytest.mark.parametrize("message", [object(), 2**64, "\ud800", {1, 2}])
def test_what_cannot_be_said_is_an_error_of_the_sender(message: object) -> None:
    """It is raised before anything is sent."""
    with pytest.raises((TypeError, ValueError, OverflowError)):
        pack(message)


def test_a_message_beyond_the_bound_is_not_sent() -> None:
    """The sender is told its size."""
    with pytest.raises(ValueError, match="at most"):
        pack(bytes(MESSAGE_BYTES))
