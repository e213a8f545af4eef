"""The spool: where it lies, who may have made it, what is swept."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.errors import RuntimeDirError
from broker.server import spool as spool_module
from broker.server.spool import ABANDONED_SECONDS, OWNER_FILE, Spool, on_tmpfs, place_spool, spool_name

NOW = 1_000_000.0


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory that counts as tmpfs while the runtime directory does not."""
    with tempfile.TemporaryDirectory() as path:
        monkeypatch.setattr(spool_module, "on_tmpfs", lambda asked: asked == path)
        yield path


def claim(spool: Spool, name: str, size: int = 10, age: float = 0.0) -> Path:
    """A claim in ``spool`` that was written ``age`` seconds before NOW."""
    path = Path(spool.path) / name
    path.write_bytes(b"x" * size)
    os.utime(path, (NOW - age, NOW - age))
    return path


def new_spool(directory: Path, memory: str, capacity: int = 1_000, seconds: float = 60.0) -> Spool:
    """A spool that nobody sweeps by itself."""
    return Spool(str(directory), capacity, seconds, memory)


def told(monkeypatch: pytest.MonkeyPatch, fact: str) -> list[str]:
    """One fact of every warning from now on."""
    facts: list[str] = []

    class Recorder:
        def warning(self, event: str, **others: str) -> None:
            facts.append({"event": event, **others}[fact])

    monkeypatch.setattr(spool_module, "log", Recorder())
    return facts


def test_it_is_a_private_directory_where_there_is_no_tmpfs(runtime_dir: Path) -> None:
    """Without tmpfs the spool is a directory of mode 0700 in the runtime directory."""
    assert place_spool(str(runtime_dir), "/nonexistent") == str(runtime_dir / "spool")
    assert (runtime_dir / "spool").stat().st_mode & 0o777 == 0o700
    assert place_spool(str(runtime_dir), "/nonexistent") == str(runtime_dir / "spool")


def test_it_is_a_link_into_memory_where_there_is_tmpfs(runtime_dir: Path, memory: str) -> None:
    """The link names a private directory whose name comes from user and runtime directory alone."""
    target = place_spool(str(runtime_dir), memory)
    assert target == f"{memory}/{spool_name(str(runtime_dir))}"
    assert os.readlink(runtime_dir / "spool") == target
    assert os.stat(target).st_mode & 0o777 == 0o700
    assert f"prxbus-{os.geteuid()}-" in target
    assert place_spool(str(runtime_dir), memory) == target


def test_a_directory_that_somebody_else_prepared_is_not_used(runtime_dir: Path, memory: str) -> None:
    """One with another mode, or a link in its place, is left alone: the spool is on disk then."""
    target = Path(memory) / spool_name(str(runtime_dir))
    target.mkdir(0o777)
    target.chmod(0o777)
    assert place_spool(str(runtime_dir), memory) == str(runtime_dir / "spool")
    assert not (runtime_dir / "spool").is_symlink()
    target.rmdir()
    (runtime_dir / "spool").rmdir()
    elsewhere = Path(memory) / "elsewhere"
    elsewhere.mkdir(0o700)
    target.symlink_to(elsewhere)
    assert place_spool(str(runtime_dir), memory) == str(runtime_dir / "spool")


def test_a_link_of_an_earlier_broker_is_made_anew(runtime_dir: Path, memory: str) -> None:
    """A link that leads nowhere, or elsewhere, is replaced."""
    (runtime_dir / "spool").symlink_to("/nonexistent")
    target = place_spool(str(runtime_dir), memory)
    assert os.readlink(runtime_dir / "spool") == target


def test_a_spool_that_cannot_be_made_is_an_error(runtime_dir: Path) -> None:
    """A file in its place is an error that names it."""
    (runtime_dir / "spool").touch()
    with pytest.raises(RuntimeDirError, match="spool"):
        place_spool(str(runtime_dir), "/nonexistent")


def test_the_kernel_tells_what_lies_in_memory() -> None:
    """A mounted tmpfs is recognized; proc and a missing path are none."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        rows = [line.partition(" - ") for line in mounts]
    kinds = {before.split()[4]: after.split()[0] for before, _, after in rows}
    for point in [point for point, kind in kinds.items() if kind == "tmpfs" and os.access(point, os.X_OK)][
        :3
    ]:
        assert on_tmpfs(point)
    assert not on_tmpfs("/proc")
    assert not on_tmpfs("/nonexistent")


def test_expired_claims_are_swept(runtime_dir: Path, memory: str) -> None:
    """A claim older than its time goes, a younger one stays; names with a dot are not claims."""
    spool = new_spool(runtime_dir, memory, seconds=60.0)
    old, young, future = claim(spool, "a", age=61), claim(spool, "b", age=59), claim(spool, "c", age=-61)
    hidden = claim(spool, ".lock", age=1e6)
    spool.sweep(NOW)
    assert [path.exists() for path in (old, young, future, hidden)] == [False, True, False, True]
    assert (spool.usage()["files"], spool.usage()["bytes"], spool.usage()["swept"]) == (1, 10, 2)


def test_the_oldest_go_when_there_are_too_many_bytes(runtime_dir: Path, memory: str) -> None:
    """Beyond the capacity the oldest claims are removed until the rest fits."""
    spool = new_spool(runtime_dir, memory, capacity=25)
    claims = [claim(spool, f"c{age}", age=age) for age in (30, 20, 10)]
    spool.sweep(NOW)
    assert [path.exists() for path in claims] == [False, True, True]
    assert spool.usage()["bytes"] == 20


def test_sweeping_does_not_follow_links(runtime_dir: Path, memory: str) -> None:
    """An expired link goes and its target stays."""
    spool = new_spool(runtime_dir, memory)
    precious = runtime_dir / "precious"
    precious.write_text("x")
    link = Path(spool.path) / "link"
    link.symlink_to(precious)
    os.utime(link, (0, 0), follow_symlinks=False)
    spool.sweep(NOW)
    assert precious.exists()
    assert not link.is_symlink()


@pytest.mark.parametrize("name", ["plain", ".lock"])
@pytest.mark.parametrize("kind", ["pipe", "directory", "full directory"])
def test_what_is_no_file_goes_like_an_expired_claim(
    runtime_dir: Path, memory: str, kind: str, name: str
) -> None:
    """Pipes and directories, whatever their names and content, stay as long as a claim and then go."""
    spool = new_spool(runtime_dir, memory, capacity=25)
    path = Path(spool.path) / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    if kind == "full directory":
        (path / "inner").mkdir()
        (path / "inner" / "file").write_bytes(b"x" * 100)
    os.utime(path, (NOW - 59, NOW - 59))
    claims = [claim(spool, f"c{age}", age=age) for age in (30, 20, 10)]
    spool.sweep(NOW)
    assert path.exists(), "it holds no claim's bytes, so that no claim is gained by it"
    assert [each.exists() for each in claims] == [False, True, True]
    spool.sweep(NOW + 2)
    assert not path.exists()
    assert spool.usage()["swept"] == 2


def test_what_cannot_be_removed_is_said_once_and_stops_nothing(
    runtime_dir: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that the system protects is still counted; the others expire as ever."""
    spool = new_spool(runtime_dir, memory)
    warnings = told(monkeypatch, "reason")
    kept, old = claim(spool, "a", age=61), claim(spool, "b", age=61)
    plain = os.unlink

    def unlink(path: str, *, dir_fd: int | None = None) -> None:
        if path == "a":
            raise PermissionError(1, "Operation not permitted")
        plain(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)
    spool.sweep(NOW)
    spool.sweep(NOW)
    assert (kept.exists(), old.exists()) == (True, False)
    assert (spool.usage()["files"], spool.usage()["swept"]) == (1, 1)
    assert warnings == ["'a' cannot be removed"]


@pytest.mark.parametrize("lost", ["directory", "link", "both"])
def test_a_spool_that_vanished_is_made_again(
    runtime_dir: Path, memory: str, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether somebody removes the directory, the link to it or both, the next sweep restores them."""
    spool = new_spool(runtime_dir, memory)
    warnings = told(monkeypatch, "event")
    if lost != "link":
        shutil.rmtree(spool.path)
    if lost != "directory":
        (runtime_dir / "spool").unlink()
    spool.sweep(NOW)
    assert os.path.samefile(runtime_dir / "spool", spool.path)
    assert (Path(spool.path) / OWNER_FILE).read_text() == str(runtime_dir)
    assert os.stat(spool.path).st_mode & 0o777 == 0o700
    assert len(warnings) == 1
    spool.sweep(NOW)
    assert len(warnings) == 1
    spool.stop()
    assert not os.path.lexists(runtime_dir / "spool")


def test_a_spool_on_disk_that_vanished_is_made_again(runtime_dir: Path) -> None:
    """Without tmpfs the directory itself comes back."""
    spool = new_spool(runtime_dir, "/nonexistent")
    os.rmdir(spool.path)
    spool.sweep(NOW)
    assert os.path.isdir(runtime_dir / "spool")


def test_a_name_in_memory_that_somebody_else_took_is_not_used(
    runtime_dir: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of another user in the place of a removed one gets no payload: the disk is used."""
    spool = new_spool(runtime_dir, memory)
    target = spool.path
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)  # as seen from the bus, the directory is not its own
    monkeypatch.setattr(spool_module, "spool_name", lambda _: os.path.basename(target))
    spool.sweep(NOW)
    assert spool.path == str(runtime_dir / "spool")
    assert not (runtime_dir / "spool").is_symlink()


def test_a_spool_that_cannot_be_made_again_is_said_once(
    runtime_dir: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in its place, or a runtime directory that is gone, ends no sweeper and fills no log."""
    spool = new_spool(runtime_dir, memory)
    warnings = told(monkeypatch, "reason")
    (runtime_dir / "spool").unlink()
    (runtime_dir / "spool").touch()
    spool.sweep(NOW)
    spool.sweep(NOW)
    assert len(warnings) == 1
    assert "cannot be made" in warnings[0]
    shutil.rmtree(spool.path)
    shutil.rmtree(runtime_dir)
    spool.sweep(NOW)
    spool.sweep(NOW)
    assert warnings[1:] == ["No such file or directory"]
    assert os.listdir(memory) == []


def test_it_sweeps_by_itself(runtime_dir: Path, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once started, a claim that expires is removed without anybody asking."""
    monkeypatch.setattr(spool_module, "SWEEP_SECONDS", 0.01)
    spool = new_spool(runtime_dir, memory)
    old = claim(spool, "old", age=1e5)
    spool.start()
    deadline = time.monotonic() + 20
    while old.exists() and time.monotonic() < deadline:
        os.sched_yield()
    spool.stop()
    assert not old.exists()


def test_an_empty_spool_is_removed_at_the_end_and_a_full_one_is_not(runtime_dir: Path, memory: str) -> None:
    """Claims outlive the broker because somebody may still load them; nothing else stays in memory."""
    spool = new_spool(runtime_dir, memory)
    kept = claim(spool, "kept")
    spool.stop()
    assert kept.exists()
    kept.unlink()
    claim(spool, ".lock")
    spool.stop()
    assert not os.path.lexists(spool.path)
    assert not os.path.lexists(runtime_dir / "spool")


def test_abandoned_spools_are_removed(runtime_dir: Path, memory: str) -> None:
    """A spool goes when its runtime directory is gone, or after a day without life; others stay."""
    mine = place_spool(str(runtime_dir), memory)

    def spool(name: str, owner: str | None, age: float) -> Path:
        path = Path(memory) / f"prxbus-{os.geteuid()}-{name}"
        path.mkdir(0o700)
        if owner is not None:
            (path / OWNER_FILE).write_text(owner)
        (path / "claim").write_text("x")
        for changed in (path / "claim", path):
            os.utime(changed, (time.time() - age, time.time() - age))
        return path

    orphan = spool("orphan", "/nonexistent", 1.0)
    silent = spool("silent", None, ABANDONED_SECONDS + 100)
    nameless = spool("nameless", None, 1.0)
    owned = spool("owned", str(runtime_dir), 1.0)
    odd = Path(memory) / f"prxbus-{os.geteuid()}-file"
    odd.touch()
    foreign = Path(memory) / "another"
    foreign.mkdir()
    place_spool(str(runtime_dir), memory)
    assert [p.exists() for p in (orphan, silent, nameless, owned, odd, foreign)] == [False, False] + [
        True
    ] * 4
    assert os.path.isdir(mine)
