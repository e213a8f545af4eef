"""Events that waited for a bus: their order, their age, and what cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

from subscribers.runner.hook_socket_frames import Request
from subscribers.runner.hook_spool import AGE_SECONDS, DIRECTORY, HALF_SECONDS, Delivered, deliver
from subscribers.shim import hook_command

NOW = 1_774_080_000 * 10**9
SECOND = 10**9


def leave(bus: Path, since_ns: int, payload: bytes, name: str = "") -> None:
    """Leave an event as a hook command does."""
    folder = bus / DIRECTORY
    folder.mkdir(exist_ok=True)
    head = b"codex\0open\x005000\0/tmp"
    (folder / (name or f"{since_ns}-7")).write_bytes(hook_command.request(head, b"", payload))


def test_what_waited_is_published_in_order_and_once(tmp_path: Path) -> None:
    """The oldest first, each with the time that it waited; then nothing waits any more."""
    got: list[tuple[bytes, int]] = []

    def publish(request: Request, age_ms: int) -> bool:
        got.append((request.payload, age_ms))
        return request.payload != b"no event"

    assert deliver(str(tmp_path), NOW, publish) == Delivered()
    leave(tmp_path, NOW - 2 * SECOND, b"second")
    leave(tmp_path, NOW - 30 * SECOND, b"first")
    leave(tmp_path, NOW + SECOND, b"no event")
    assert deliver(str(tmp_path), NOW, publish) == Delivered(2, 0, 0, 1)
    assert got == [(b"first", 30_000), (b"second", 2_000), (b"no event", 0)]
    assert os.listdir(tmp_path / DIRECTORY) == []
    assert deliver(str(tmp_path), NOW, publish) == Delivered()


def test_what_is_not_published_is_counted_by_its_reason(tmp_path: Path) -> None:
    """Without room, too old, not to be read; what is being written stays until it was given up."""
    leave(tmp_path, NOW - int((AGE_SECONDS + 1) * SECOND), b"old")
    folder = tmp_path / DIRECTORY
    (folder / "dropped").write_bytes(b"...")
    (folder / f"{NOW}-1").write_bytes(b"PXH1 cut")
    (folder / f"{NOW}-2").mkdir()
    (folder / f"{NOW}-3").symlink_to("/etc/hostname")
    os.mkfifo(folder / f"{NOW}-4")
    leave(tmp_path, NOW, b"half", f".{NOW}-5")
    leave(tmp_path, NOW, b"half", f".{NOW - int((HALF_SECONDS + 1) * SECOND)}-6")
    (folder / "note").write_bytes(b"of somebody else")
    assert deliver(str(tmp_path), NOW, lambda *_: True) == Delivered(0, 3, 1, 4)
    assert sorted(os.listdir(folder)) == [f".{NOW}-5", f"{NOW}-2", "note"]
