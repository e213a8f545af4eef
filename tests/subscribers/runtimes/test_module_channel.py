"""Frames put together and taken apart, and a channel whose other end does not read."""

from __future__ import annotations

import json
import socket
import threading

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.module_hook import ModuleCall, ModuleHook
from subscribers.runtimes import module_channel
from subscribers.runtimes.module_channel import (
    FRAME_BYTES,
    TOO_DEEP,
    ChannelBroken,
    Frames,
    FrameTooLong,
    ModuleChannel,
    call_frame,
    frame,
    framed,
    hook_as_told,
)

MESSAGES = st.lists(st.dictionaries(st.text(max_size=5), st.integers(0, 9) | st.text(max_size=9)), max_size=5)


@given(MESSAGES, st.lists(st.integers(1, 40), min_size=1))
def test_frames_survive_being_cut_anywhere(messages: list[dict[str, object]], sizes: list[int]) -> None:
    """What arrives in pieces is what was sent, in order."""
    sent = b"".join(map(frame, messages))
    frames, found, at, turn = Frames(), [], 0, 0
    while at < len(sent):
        size = sizes[turn % len(sizes)]
        found += frames.feed(sent[at : at + size])
        at, turn = at + size, turn + 1
    assert found == messages


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\xff", framed(b"[1]"), framed(b"{"), framed(b"\xff"), b"\0\0\0\0"]
)
def test_what_is_no_frame_breaks_the_channel(data: bytes) -> None:
    """A length that cannot be, and what is no JSON object."""
    with pytest.raises(ChannelBroken):
        Frames().feed(data)


def test_a_name_that_is_not_unicode_travels() -> None:
    """A file's name may hold a lone surrogate."""
    assert Frames().feed(frame({"path": "/\udcff.py"})) == [{"path": "/\udcff.py"}]


def test_a_call_carries_its_input_as_it_is() -> None:
    """The bytes of the input are not read again."""
    call = ModuleCall("onToolBefore", b'{"tool":"x","args":{"n":1.50}}', None, "coder", 2.5, 3, "p:t:1")
    framed_call = call_frame(7, "a", call)
    assert framed_call.endswith(b'"input":{"tool":"x","args":{"n":1.50}}}')
    assert Frames().feed(framed_call) == [
        {
            "do": "call",
            "n": 7,
            "hook": "a",
            "handler": "onToolBefore",
            "session": None,
            "agent": "coder",
            "timeout_ms": 2_500,
            "depth": 3,
            "cause": "p:t:1",
            "input": {"tool": "x", "args": {"n": 1.5}},
        }
    ]


def test_a_hook_without_config_is_told_without() -> None:
    """An absent config is another thing than one that is null."""
    hook = ModuleHook("a", "A", "/a.py", "1", None, "role")
    assert "config" not in hook_as_told(hook)
    assert hook_as_told(ModuleHook("a", "A", "/a.py", "1", "null", "role"))["config"] is None


def test_a_frame_has_a_longest_length() -> None:
    """One that is longer is refused where it is made."""
    with pytest.raises(FrameTooLong):
        framed(bytes(FRAME_BYTES + 1))


def test_a_sender_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other end does not read yet is kept, in order, up to a bound; then sending fails."""
    monkeypatch.setattr(module_channel, "BACKLOG_BYTES", 3_000_000)
    ours, theirs = socket.socketpair()
    channel, other = ModuleChannel(ours), ModuleChannel(theirs)
    texts = [str(number) + "x" * 1_000_000 for number in range(9)]
    took = [channel.send(frame({"text": text})) for text in texts]
    assert took[:3] == [True] * 3
    assert took[-1] is False
    kept = [text for text, was_taken in zip(texts, took, strict=True) if was_taken]
    found: list[str] = []
    while len(found) < len(kept):
        found += [message["text"] for message in other.receive()]
    assert found == kept
    assert channel.send(frame({"text": "last"}))
    assert other.receive() == [{"text": "last"}]
    channel.close()
    with pytest.raises(ChannelBroken):
        other.receive()
    assert other.send(frame({})) is False
    other.close()


def test_a_channel_that_is_closed_while_much_waits_lets_go_of_it() -> None:
    """Nobody is going to read it."""
    ours, theirs = socket.socketpair()
    channel = ModuleChannel(ours)
    assert channel.send(frame({"text": "x" * 5_000_000}))
    assert channel.send(frame({"text": "x"}))
    channel.shut()
    channel.close()
    theirs.close()
    assert channel.fileno() == -1


def test_a_large_message_arrives_whole() -> None:
    """Although it is longer than what is read at a time."""
    ours, theirs = socket.socketpair()
    channel, other = ModuleChannel(ours), ModuleChannel(theirs)
    text = "y" * 3_000_000
    sender = threading.Thread(target=channel.send, args=(frame({"text": text}),))
    sender.start()
    assert other.receive() == [{"text": text}]
    sender.join()
    channel.close()
    other.close()
    assert json.loads(orjson.dumps(text)) == text


def test_a_return_that_is_nested_too_deep_fails_its_call_alone() -> None:
    """Whatever else cannot be read ends the connection: nobody knows whom it is about."""
    deep = b"[" * 100_000 + b"]" * 100_000
    done = framed(b'{"is":"done","n":7,"edit":%b}' % deep)
    (said,) = Frames().feed(done)
    assert (said["n"], said["status"], said["error"]) == (7, "failed", TOO_DEEP)
    for body in (b'{"is":"log","n":7,"fields":%b}' % deep, b'{"is":"done","n":7,"edit":'):
        with pytest.raises(ChannelBroken, match="a frame is not JSON"):
            Frames().feed(framed(body))
