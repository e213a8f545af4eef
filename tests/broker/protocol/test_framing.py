"""Messages on a stream come apart as they went together, however they are cut; a wrong length is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.errors import DecodeError
from broker.protocol.framing import LENGTH_BYTES, Splitter, framed, length_of
from broker.protocol.limits import CONTROL_BYTES


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.lists(st.integers(1, 30), max_size=20))
def test_messages_come_apart_however_the_stream_is_cut(messages: list[bytes], cuts: list[int]) -> None:
    """Each is told once, whole and in order, as soon as its last byte is there."""
    stream, splitter = framed(messages), Splitter()
    found: list[bytes] = []
    for cut in cuts:
        piece, stream = stream[:cut], stream[cut:]
        found += splitter.feed(piece)
    assert found + splitter.feed(stream) == messages


def test_one_whole_message_is_the_usual_case() -> None:
    """It is told without anything being kept."""
    splitter = Splitter()
    assert splitter.feed(framed([b"one"])) == [b"one"]
    assert splitter.feed(framed([b"two"])) == [b"two"]


def test_the_longest_message_passes() -> None:
    """One byte more is refused before it is collected, also when it comes in one piece."""
    longest = b"x" * CONTROL_BYTES
    assert Splitter().feed(framed([longest])) == [longest]
    with pytest.raises(DecodeError, match=f"{CONTROL_BYTES + 1:,} bytes"):
        Splitter().feed(framed([longest + b"x"]))
    with pytest.raises(DecodeError, match=f"{CONTROL_BYTES + 1:,} bytes"):
        Splitter().feed(length_of(CONTROL_BYTES + 1))


def test_an_empty_message_is_refused() -> None:
    """Nobody sends one."""
    with pytest.raises(DecodeError, match="a message of 0 bytes"):
        Splitter().feed(bytes(LENGTH_BYTES))
