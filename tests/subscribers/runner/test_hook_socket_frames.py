"""The request and the reply of a hook command, in bytes, against the module that the agent starts."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.runner.hook_socket_frames import (
    ENVIRONMENT_BYTES,
    HEAD_BYTES,
    PAYLOAD_BYTES,
    BadRequest,
    Reply,
    Request,
    RequestReader,
    decode_request,
)
from subscribers.shim import hook_command

HEAD = b"claude\0closed\x00599000\0/tmp/\xff"


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(1, 700))
def test_a_request_is_read_in_whatever_pieces_it_comes(
    environment: bytes, payload: bytes, piece: int
) -> None:
    """What the hook command writes is read back, and not before it is whole."""
    whole = hook_command.request(HEAD, environment, payload)
    reader = RequestReader()
    read = [reader.feed(whole[at : at + piece]) for at in range(0, len(whole), piece)]
    expected = Request("claude", True, 599.0, os.fsdecode(b"/tmp/\xff"), environment, payload)
    assert read == [*[None] * (len(read) - 1), expected]


@given(st.integers(0, 255), st.binary(max_size=100_000), st.binary(max_size=300))
def test_a_reply_is_read_by_the_hook_command(status: int, stdout: bytes, stderr: bytes) -> None:
    """Exit code and both outputs arrive as they were; a reply that is cut short is none."""
    encoded = Reply(status, stdout, stderr).encode()
    for content, expected in ((encoded, (status, stdout, stderr)), (encoded[:-1], None)):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(content)
            ours.shutdown(socket.SHUT_WR)
            assert hook_command.receive(theirs) == expected


def lengths(head: int, environment: int, payload: int) -> bytes:
    """The beginning of a request whose parts have these lengths."""
    return b"PXH1" + b"".join(size.to_bytes(4, "big") for size in (head, environment, payload))


@pytest.mark.parametrize(
    "content,why",
    [
        (b"GET / HTTP/1.1\r\n", "begins with b'GET '"),
        (lengths(HEAD_BYTES + 1, 0, 0), "8,193 bytes, where 8,192"),
        (lengths(0, ENVIRONMENT_BYTES + 1, 0), "where 4,194,304"),
        (lengths(0, 0, PAYLOAD_BYTES + 1), "where 67,108,864"),
        (lengths(1, 0, 0) + b"xy", "more bytes"),
        (lengths(1, 0, 0) + b"x", "1 fields, not 4"),
        (lengths(12, 0, 0) + b"a\0open\0ten\0/", "b'ten'"),
        (lengths(10, 0, 0) + b"a\0ajar\x005\0/", "b'ajar'"),
        (lengths(1, 0, 0), "ends after 16 bytes"),
    ],
)
def test_what_is_no_request_is_refused(content: bytes, why: str) -> None:
    """The error says what is wrong; a length that is too large is refused before its bytes come."""
    with pytest.raises(BadRequest, match=why):
        decode_request(content)
