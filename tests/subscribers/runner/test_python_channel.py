"""What the service and its workers say to each other."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from subscribers.runner.python_channel import LINE_BYTES, Channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel, socket.socket]]:
    """Both ends, and the socket below the first."""
    ours, theirs = socket.socketpair()
    pair = Channel(ours), Channel(theirs), ours
    yield pair
    pair[0].close()
    pair[1].close()


def test_messages_arrive_whole_and_in_order(ends: tuple[Channel, Channel, socket.socket]) -> None:
    """However they are cut on the way; what is no message is passed over."""
    here, there, raw = ends
    assert here.send({"do": "share", "directory": "/x"})
    raw.sendall(b'not json\n[1]\n{"is"')
    raw.sendall(b': "ready"}\n')
    here.end()
    assert list(there.messages()) == [{"do": "share", "directory": "/x"}, {"is": "ready"}]


def test_any_name_of_a_file_arrives(ends: tuple[Channel, Channel, socket.socket]) -> None:
    """Also one that is no UTF-8, which Python has as lone surrogates."""
    here, there, _ = ends
    message = {"is": "loaded", "files": ["/w/\udcff.py", "/w/ü.py"]}
    assert here.send(message)
    here.end()
    assert list(there.messages()) == [message]


def test_without_waiting_there_may_be_nothing(ends: tuple[Channel, Channel, socket.socket]) -> None:
    """An empty list while the other end is there, None once it is gone."""
    here, there, _ = ends
    assert there.receive(socket.MSG_DONTWAIT) == []
    here.close()
    assert there.receive(socket.MSG_DONTWAIT) is None
    assert not there.send({"is": "ready"})
    there.close()
    assert there.receive(None) is None
    there.end()
    there.end_reading()


def test_a_line_without_end_ends_the_stream(ends: tuple[Channel, Channel, socket.socket]) -> None:
    """Nobody keeps more than a bounded part of a line."""
    _, there, raw = ends
    raw.setblocking(False)
    sent = 0
    while sent <= LINE_BYTES:
        try:
            sent += raw.send(b"x" * 65_536)
        except BlockingIOError:
            assert there.receive(socket.MSG_DONTWAIT) == []
    while (found := there.receive(socket.MSG_DONTWAIT)) == []:
        raw.send(b"x")
    assert found is None


def test_a_signal_handler_can_end_the_reading(ends: tuple[Channel, Channel, socket.socket]) -> None:
    """Messages end although the other end is there."""
    _, there, _ = ends
    there.end_reading()
    assert list(there.messages()) == []
