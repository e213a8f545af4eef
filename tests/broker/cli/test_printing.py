"""Data to stdout, the rest to stderr."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Iterator

import pytest

from broker.cli import printing
from broker.cli.exits import CommandError
from broker.cli.printing import emit, emit_bytes, emit_json, note, reader_is_gone, say, terminal_safe


def stream(encoding: str = "utf-8") -> io.TextIOWrapper:
    """A text stream over memory."""
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def written(stdout: io.TextIOWrapper) -> bytes:
    """What has reached the bytes below ``stdout``."""
    below = stdout.buffer
    assert isinstance(below, io.BytesIO)
    return below.getvalue()


class Failing:
    """A text stream that takes nothing."""

    def __init__(self, number: int) -> None:
        self.buffer = self
        self._number = number

    def write(self, _data: bytes) -> None:
        raise OSError(self._number, os.strerror(self._number))


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends of a pipe; the test closes the first."""
    reading, writing = os.pipe()
    yield reading, writing
    os.close(writing)


def test_data_is_flushed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads a pipe sees a line when it is printed."""
    stdout = stream()
    monkeypatch.setattr(sys, "stdout", stdout)
    emit("one")
    emit_bytes(b"two\n")
    emit_json({"n": 3})
    emit_json({"n": 4}, indent=True)
    assert written(stdout) == b'one\ntwo\n{"n":3}\n{\n  "n": 4\n}\n'


def test_an_encoding_that_lacks_a_character_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a terminal cannot write is shown as its escape."""
    stdout = stream("ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    emit("é")
    assert written(stdout) == b"\\xe9\n"


def test_a_closed_stdout_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command started without standard output runs all the same."""
    monkeypatch.setattr(sys, "stdout", None)
    emit("one")
    emit_bytes(b"two")


def test_json_has_no_control_characters_either() -> None:
    """DEL and the C1 controls, which JSON lets pass, are escaped; the value stays the same."""
    value = {"a": "\x7f\x80\x9b\x9f\xa0é"}
    line = terminal_safe(json.dumps(value, ensure_ascii=False).encode())
    assert line == '{"a": "\\u007f\\u0080\\u009b\\u009f\xa0é"}'.encode()
    assert json.loads(line) == value


def test_a_note_is_a_line_or_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    """For people with the command's name, for programs with its fields."""
    note("tap", "missed\n1", code="missed")
    note("tap", "missed 1", as_json=True, code="missed", count=1)
    plain, as_json = capsys.readouterr().err.splitlines()
    assert plain == "prxbus tap: missed\\n1"
    assert json.loads(as_json) == {"code": "missed", "count": 1, "message": "missed 1"}


def test_a_closed_stderr_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be said is not said."""
    closed = stream()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    say("x")


def test_a_stderr_that_was_closed_before_the_start_sends_nothing_to_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python has no stderr then, and print() would take standard output."""
    monkeypatch.setattr(sys, "stderr", None)
    say("x")
    assert capsys.readouterr().out == ""


def test_a_stdout_that_takes_nothing_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is told as standard output that could not be written; a reader that went as what it is."""
    monkeypatch.setattr(printing, "forget_stdout", lambda: None)
    monkeypatch.setattr(sys, "stdout", Failing(errno.ENOSPC))
    with pytest.raises(CommandError, match="standard output could not be written: No space left"):
        emit_bytes(b"x")
    monkeypatch.setattr(sys, "stdout", Failing(errno.EPIPE))
    with pytest.raises(BrokenPipeError):
        emit_bytes(b"x")


def test_a_reader_that_has_gone_is_noticed_without_writing(pipe: tuple[int, int]) -> None:
    """The writing end of a pipe tells when nobody can read any more."""
    reading, writing = pipe
    assert not reader_is_gone(writing)
    os.close(reading)
    assert reader_is_gone(writing)
