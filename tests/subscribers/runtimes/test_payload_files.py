"""Payload files are private, complete, and gone when nobody needs them any more."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from subscribers.runtimes import payload_files
from subscribers.runtimes.payload_files import PayloadDirError, PayloadFiles, payload_directories

CRASHING = """
import sys, os
from subscribers.runtimes.payload_files import PayloadFiles
print(PayloadFiles(sys.argv[1]).write(b"left behind"), flush=True)
sys.stdin.read()
"""


def _files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def test_a_payload_is_a_private_file_for_as_long_as_it_is_held(tmp_path: Path) -> None:
    """The file is 0600 in a 0700 directory, holds the bytes exactly, and is gone afterwards."""
    with PayloadFiles(tmp_path / "p") as files:
        with files.holding(b'{"a": 1}\n\x00') as name:
            path = Path(name)
            assert path.read_bytes() == b'{"a": 1}\n\x00'
            assert path.stat().st_mode & 0o777 == 0o600
            assert {part.stat().st_mode & 0o777 for part in list(path.parents)[:2]} == {0o700}
            assert path.name.startswith("prx-hook-")
            assert path.name.endswith(".json")
        assert not path.exists()
    assert _files(tmp_path / "p") == ["lock"]


def test_a_large_payload_is_written_whole(tmp_path: Path) -> None:
    """Twenty megabytes arrive unchanged."""
    payload = os.urandom(1 << 20) * 20
    with PayloadFiles(tmp_path / "p", prefix="x-") as files, files.holding(payload) as path:
        assert Path(path).name.startswith("x-")
        assert Path(path).read_bytes() == payload


def test_a_program_may_remove_the_file_itself(tmp_path: Path) -> None:
    """A file that is gone already is no error."""
    with PayloadFiles(tmp_path / "p") as files, files.holding(b"x") as path:
        os.unlink(path)


def test_a_payload_for_which_there_is_no_room_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is the caller's OSError, and the half-written file is removed."""

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with PayloadFiles(tmp_path / "p") as files:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            files.write(b"x")
        monkeypatch.undo()
        assert [name for name in _files(tmp_path / "p") if name.endswith(".json")] == []


def test_many_threads_share_a_store(tmp_path: Path) -> None:
    """Concurrent payloads get files of their own."""
    seen: list[tuple[str, bytes]] = []

    def work(number: int) -> None:
        for turn in range(20):
            payload = b"%d.%d" % (number, turn)
            with files.holding(payload) as path:
                seen.append((path, Path(path).read_bytes()))

    with PayloadFiles(tmp_path / "p") as files:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({path for path, _ in seen}) == 80
    assert sorted(data for _, data in seen) == sorted(b"%d.%d" % (a, b) for a in range(4) for b in range(20))


def test_closing_removes_what_is_left_and_can_be_repeated(tmp_path: Path) -> None:
    """A store that is closed takes its files with it."""
    files = PayloadFiles(tmp_path / "p")
    files.write(b"x")
    files.close()
    files.close()
    assert _files(tmp_path / "p") == ["lock"]


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_holds_is_not(tmp_path: Path) -> None:
    """The next store to open removes the files of a process that was killed, and only those."""
    directory = tmp_path / "p"
    crashed = subprocess.Popen(
        [sys.executable, "-P", "-c", CRASHING, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    with crashed:
        assert crashed.stdout is not None
        left = Path(os.fsdecode(crashed.stdout.readline().strip()))
        with PayloadFiles(directory) as files, files.holding(b"mine") as mine:
            assert left.exists()
            os.kill(crashed.pid, signal.SIGKILL)
            crashed.wait()
            assert files.sweep() == 1
            assert not left.parent.exists()
            assert Path(mine).read_bytes() == b"mine"
            assert files.sweep() == 0


def test_opening_sweeps(tmp_path: Path) -> None:
    """An abandoned store is gone once another has been opened; links and files beside it are left alone."""
    directory = tmp_path / "p"
    (directory / "abandoned").mkdir(parents=True)
    directory.chmod(0o700)
    (directory / "abandoned" / "prx-hook-1.json").write_bytes(b"old")
    (directory / "note.txt").write_bytes(b"")
    (directory / "link").symlink_to(tmp_path)
    with PayloadFiles(directory):
        assert not (directory / "abandoned").exists()
    assert _files(directory) == ["link", "lock", "note.txt"]


def test_a_store_that_vanishes_during_a_sweep_is_no_error(tmp_path: Path) -> None:
    """A store that its owner has just removed is not counted."""
    assert not payload_files._remove_abandoned(str(tmp_path / "gone"))


def _file_in_the_way(directory: Path) -> None:
    directory.write_bytes(b"")


def _link_in_the_way(directory: Path) -> None:
    (directory.parent / "elsewhere").mkdir(mode=0o700)
    directory.symlink_to(directory.parent / "elsewhere")


def _open_to_all(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o755)


def _planted_lock(directory: Path) -> None:
    directory.mkdir(mode=0o700)
    (directory / "lock").symlink_to("/dev/null")


@pytest.mark.parametrize(
    "prepare,complaint",
    [
        (_file_in_the_way, "it is not a directory"),
        (_link_in_the_way, "it is not a directory"),
        (_open_to_all, "other users can reach it; chmod 700"),
        (_planted_lock, "lock"),
    ],
)
def test_a_directory_that_others_can_reach_is_refused(
    tmp_path: Path, prepare: Callable[[Path], None], complaint: str
) -> None:
    """Nothing is written where somebody else could have planted or could read something."""
    prepare(tmp_path / "p")
    with pytest.raises(PayloadDirError, match=complaint):
        PayloadFiles(tmp_path / "p")


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner of the directory is checked, and named."""
    (tmp_path / "p").mkdir(mode=0o700)
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(PayloadDirError, match=f"belongs to user {owner}"):
        PayloadFiles(tmp_path / "p")


def test_a_directory_that_cannot_be_made_is_an_error_with_the_reason(tmp_path: Path) -> None:
    """A missing parent is said to be missing."""
    with pytest.raises(PayloadDirError, match="No such file or directory"):
        PayloadFiles(tmp_path / "missing" / "p")


def test_a_lock_that_is_never_released_is_an_error_and_not_a_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds the lock, opening ends with an error that says how to find out."""
    monkeypatch.setattr(payload_files, "LOCK_DEADLINE_S", 0.02)
    (tmp_path / "p").mkdir(mode=0o700)
    with (tmp_path / "p" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PayloadDirError, match="held by another process"):
            PayloadFiles(tmp_path / "p")


def test_the_first_directory_that_works_is_used(tmp_path: Path) -> None:
    """A directory that somebody else occupies costs nothing but the second choice."""
    (tmp_path / "taken").write_bytes(b"")
    directories = [str(tmp_path / "taken"), str(tmp_path / "free")]
    with PayloadFiles.in_first_usable(directories) as files, files.holding(b"x") as path:
        assert path.startswith(directories[1])
    with pytest.raises(PayloadDirError, match="taken"):
        PayloadFiles.in_first_usable(directories[:1])
    with pytest.raises(PayloadDirError, match="no directory"):
        PayloadFiles.in_first_usable([])


def test_memory_is_preferred_to_disk() -> None:
    """The user's runtime directory comes first if its path is absolute, then shared memory, then /tmp."""
    assert payload_directories({"XDG_RUNTIME_DIR": "/run/user/7"})[0] == "/run/user/7/prxbus-payloads"
    for environ in ({}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "run"}):
        shared, temporary = payload_directories(environ)
        assert shared == f"/dev/shm/prxbus-payloads-{os.getuid()}"
        assert temporary.endswith(f"/prxbus-payloads-{os.getuid()}")


@pytest.mark.parametrize("removed", ["store", "directory"])
def test_a_store_that_was_removed_is_made_again(tmp_path: Path, removed: str) -> None:
    """Whether the store or its whole directory went, the next payload gets a new, locked, private one."""
    directory = tmp_path / "p"
    with PayloadFiles(directory) as files:
        first = files.write(b"old")
        shutil.rmtree(Path(first).parent if removed == "store" else directory)
        files.remove(first)
        with files.holding(b"new") as path:
            assert Path(path).read_bytes() == b"new"
            assert {part.stat().st_mode & 0o777 for part in list(Path(path).parents)[:2]} == {0o700}
            with PayloadFiles(directory):
                assert Path(path).exists(), "another process's sweep takes it for abandoned"
    assert _files(directory) == ["lock"]


def test_threads_that_all_miss_the_store_share_the_next_one(tmp_path: Path) -> None:
    """One of them makes it, and every path that is given out holds its payload."""
    failures: list[str] = []

    def work(number: int) -> None:
        for turn in range(20):
            payload = b"%d.%d" % (number, turn)
            path = files.write(payload)
            if Path(path).read_bytes() != payload:
                failures.append(path)

    with PayloadFiles(tmp_path / "p") as files:
        shutil.rmtree(Path(files.write(b"x")).parent)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len([name for name in os.listdir(tmp_path / "p") if name != "lock"]) == 1
    assert failures == []


def test_a_removed_store_is_made_where_there_is_a_place(tmp_path: Path) -> None:
    """When the first directory cannot come back, the next one is used; without one the reason is told."""
    directories = [str(tmp_path / "runtime" / "p"), str(tmp_path / "q")]
    (tmp_path / "runtime").mkdir()
    with PayloadFiles.in_first_usable(directories) as files:
        with files.holding(b"x") as path:
            assert path.startswith(directories[0])
        shutil.rmtree(tmp_path / "runtime")
        with files.holding(b"x") as path:
            assert path.startswith(directories[1])
            shutil.rmtree(directories[1])
        Path(directories[1]).write_bytes(b"")
        with pytest.raises(PayloadDirError, match="it is not a directory"):
            files.write(b"x")
        Path(directories[1]).unlink()
        with files.holding(b"x") as path:
            assert path.startswith(directories[1])
