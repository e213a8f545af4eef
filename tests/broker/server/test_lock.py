"""The lock on a runtime directory, and the sockets of a broker that was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from broker.protocol.errors import AlreadyRunning, RuntimeDirError
from broker.server.lock import DirectoryLock, remove_stale_sockets


def test_a_second_owner_is_refused_with_the_pid_of_the_first(runtime_dir: Path) -> None:
    """While the lock is held, another one is refused, naming its owner and what to do."""
    with DirectoryLock(str(runtime_dir)) as first:
        assert first.in_place
        with pytest.raises(AlreadyRunning, match=rf"pid {os.getpid()}\).*--runtime-dir"):
            DirectoryLock(str(runtime_dir))


def test_a_released_lock_is_free_and_remembers_that_there_was_a_broker(runtime_dir: Path) -> None:
    """The first lock of a directory is unused before, the next one is not."""
    with DirectoryLock(str(runtime_dir)) as first:
        assert not first.used_before
    with DirectoryLock(str(runtime_dir)) as second:
        assert second.used_before
        assert (runtime_dir / "lock").read_text() == f"{os.getpid()}\n"
        assert (runtime_dir / "lock").stat().st_mode & 0o777 == 0o600


def test_the_lock_of_a_killed_process_is_free(runtime_dir: Path) -> None:
    """A process that is killed leaves no lock behind."""
    code = (
        "import sys, time; from broker.server.lock import DirectoryLock;"
        "lock = DirectoryLock(sys.argv[1]); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(runtime_dir)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunning, match=str(owner.pid)):
            DirectoryLock(str(runtime_dir))
        owner.kill()
        owner.wait()
    with DirectoryLock(str(runtime_dir)) as lock:
        assert lock.used_before


def test_a_lock_that_was_removed_is_noticed(runtime_dir: Path) -> None:
    """A lock whose file is gone or is another one is not in place."""
    with DirectoryLock(str(runtime_dir)) as lock:
        (runtime_dir / "lock").unlink()
        assert not lock.in_place
        (runtime_dir / "lock").touch()
        assert not lock.in_place


def test_a_lock_file_that_is_replaced_while_it_is_taken_locks_again(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who locks a file that was removed meanwhile holds nothing, and tries again with the new one."""
    plain = fcntl.flock
    path = runtime_dir / "lock"
    removals: list[Callable[[], object]] = [path.unlink, partial(path.rename, runtime_dir / "x")]

    def flock_after_a_removal(descriptor: int, operation: int) -> None:
        plain(descriptor, operation)
        if removals:
            removals.pop()()
            if removals:
                path.touch()

    monkeypatch.setattr(fcntl, "flock", flock_after_a_removal)
    with DirectoryLock(str(runtime_dir)) as lock:
        assert removals == []
        assert lock.in_place


def test_a_link_in_place_of_the_lock_is_refused(runtime_dir: Path) -> None:
    """A link is not followed: it could name a file that matters."""
    (runtime_dir / "lock").symlink_to(runtime_dir / "precious")
    with pytest.raises(RuntimeDirError, match="lock"):
        DirectoryLock(str(runtime_dir))
    assert not (runtime_dir / "precious").exists()


def test_stale_sockets_go_and_missing_ones_are_no_error(runtime_dir: Path) -> None:
    """Sockets are removed; a path where nothing is needs nothing."""
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(runtime_dir / "a.sock"))
    remove_stale_sockets([str(runtime_dir / name) for name in ("a.sock", "b.sock")])
    assert os.listdir(runtime_dir) == []


def test_what_is_no_socket_is_not_removed(runtime_dir: Path) -> None:
    """A file at the path of a socket stays, and is an error."""
    (runtime_dir / "a.sock").write_text("precious")
    with pytest.raises(RuntimeDirError, match="not a socket"):
        remove_stale_sockets([str(runtime_dir / "a.sock")])
    assert (runtime_dir / "a.sock").read_text() == "precious"


def test_a_socket_that_cannot_be_removed_is_an_error(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the system refuses, the error says which socket and why."""
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(runtime_dir / "a.sock"))

    def refuse(path: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(RuntimeDirError, match=r"a\.sock.*Operation not permitted"):
        remove_stale_sockets([str(runtime_dir / "a.sock")])


def test_a_disk_without_room_is_an_error_in_words(runtime_dir: Path) -> None:
    """When the file cannot be written, the error says which and why; nothing is held then."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "from broker.protocol.errors import RuntimeDirError\n"
        "from broker.server.lock import DirectoryLock\n"
        "for attempt in range(2):\n"
        "    try:\n"
        "        DirectoryLock(sys.argv[1])\n"
        "    except RuntimeDirError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(runtime_dir)], capture_output=True, text=True, check=False
    )
    told = f"cannot write the lock '{runtime_dir}/lock': File too large; make room there"
    assert [line.startswith(told) for line in done.stdout.splitlines()] == [True, True], done.stderr


def test_a_disk_without_room_does_not_make_a_directory_look_unused(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed start the next broker still knows that clients may be waiting."""
    DirectoryLock(str(runtime_dir)).release()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(RuntimeDirError, match="No space left on device"):
        DirectoryLock(str(runtime_dir))
    monkeypatch.undo()
    with DirectoryLock(str(runtime_dir)) as lock:
        assert lock.used_before


def test_a_lock_that_the_system_refuses_is_an_error_in_words(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without locks is told as such."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(RuntimeDirError, match=r"cannot take the lock.*No locks available"):
        DirectoryLock(str(runtime_dir))
