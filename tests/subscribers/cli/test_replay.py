"""``prxbus replay``: what counts as the same answer over two ways, and recordings that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.cli.main import main
from subscribers.cli import replay
from subscribers.runner import agent_probe
from subscribers.runner.agent_probe import Sent

DENY = b'{"a": 1, "b": 2}'


@pytest.mark.parametrize(
    "shim,http,same",
    [
        (Sent(0.1, b"", False), Sent(0.1, b"", False), True),
        (Sent(0.1, DENY, False), Sent(0.1, b'{"b":2,"a":1}', False), True),
        (Sent(0.1, DENY, False), Sent(0.1, b"", False), False),
        (Sent(0.1, b"", False), Sent(0.1, DENY, False), False),
        (Sent(0.1, b"not that", True), Sent(0.1, b'{"continue":false}', False), True),
        (Sent(0.1, b"not that", True), Sent(0.1, b"", False), False),
        (Sent(0.1, b"", False, "late"), Sent(0.1, b"", False, "late"), True),
        (Sent(0.1, b"", False, "late"), Sent(0.1, b"", False), False),
    ],
)
def test_two_ways_agree_when_they_say_the_same(shim: Sent, http: Sent, same: bool) -> None:
    """Whatever the order of keys; a block by exit code is a block."""
    assert replay._is_one([shim, http]) is same


def run(capture: pytest.CaptureFixture[bytes], *arguments: str) -> tuple[int, str]:
    """How a command ends, and all that it prints."""
    status = main(["replay", *arguments])
    told = capture.readouterr()
    return status, (told.out + told.err).decode()


def test_a_failure_is_shown_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """One line for each event and way, blank ones left out; exit code 1 when any was not decided."""
    file = tmp_path / "session.jsonl"
    file.write_bytes(b'{"hook_event_name":"Stop"}\n\n[]\r\nnot JSON')
    sent: list[bytes] = []

    def send(command: object, payload: bytes, environ: object) -> Sent:
        sent.append(payload)
        return Sent(0.0125, b"", False, None if b"Stop" in payload else "it is no event")

    monkeypatch.setattr(agent_probe, "send_command", send)
    status, told = run(capsysbinary, str(file), "--as", "claude", "--via", "shim")
    assert sent == [b'{"hook_event_name":"Stop"}', b"[]", b"not JSON"]
    assert status == 1
    assert told.splitlines() == [
        "   1 Stop                shim    12.5 ms  no opinion",
        "   2 ?                   shim    12.5 ms  failed: it is no event",
        "   3 ?                   shim    12.5 ms  failed: it is no event",
        "3 events, 2 failed; shim: median 12.5 ms",
    ]
    sent.clear()
    run(capsysbinary, str(file), "--as", "claude", "--via", "shim", "--cwd", "/tmp")
    assert sent == [b'{"hook_event_name":"Stop","cwd":"/tmp"}', b"[]", b"not JSON"]
    file.write_bytes(b"")
    assert run(capsysbinary, str(file), "--as", "claude", "--via", "shim") == (0, "no events\n")


def test_what_cannot_be_replayed_is_told(
    tmp_path: Path,
    runtime_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """No file, one that is too large, a line that is, and no API where HTTP was asked for."""
    file = tmp_path / "session.jsonl"
    ways = ("--as", "codex", "--runtime-dir", str(runtime_dir), "--via")
    status, told = run(capsysbinary, str(file), *ways, "shim")
    assert (status, "cannot be read: No such file" in told) == (1, True)
    file.write_bytes(b"x" * 11)
    monkeypatch.setattr(replay, "LINE_BYTES", 10)
    assert "a line of" in run(capsysbinary, str(file), *ways, "shim")[1]
    monkeypatch.setattr(replay, "RECORDING_BYTES", 10)
    assert "has more than 10 bytes" in run(capsysbinary, str(file), *ways, "shim")[1]
    assert "say --via shim" in run(capsysbinary, str(file), *ways, "both")[1]
