"""Claims on disk: what is no file of the announced size and content is refused at once."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.client.spool import Spool
from broker.protocol.envelope import Claim
from broker.protocol.errors import ClaimCorrupt, ClaimExpired

SIZE = 1_000


@pytest.fixture
def spool(runtime_dir: Path) -> Spool:
    """An empty spool."""
    return Spool(str(runtime_dir), 2_500)


def stored(spool: Spool) -> tuple[Claim, Path]:
    """A claim, and where its file would be; the file itself is gone."""
    claim = spool.store("claim-1", b"x" * SIZE)
    path = Path(spool.directory, "claim-1")
    path.unlink()
    return claim, path


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


@pytest.mark.parametrize(
    "plant",
    [
        os.mkfifo,
        Path.mkdir,
        _socket,
        _sparse,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.write_bytes(b"x" * (SIZE - 1)),
        lambda path: path.write_bytes(b"y" * SIZE),
    ],
    ids=["pipe", "directory", "socket", "sparse", "link", "short", "other"],
)
def test_what_lies_in_a_claims_place_is_refused_at_once(
    spool: Spool, plant: Callable[[Path], object]
) -> None:
    """Nothing that somebody may plant makes a reader wait, read without end, or raise anything else."""
    claim, path = stored(spool)
    plant(path)
    began = time.monotonic()
    with pytest.raises((ClaimCorrupt, ClaimExpired), match="the payload claim-1"):
        spool.load(claim)
    assert time.monotonic() - began < 10


def test_a_claim_that_is_gone_has_expired(spool: Spool) -> None:
    """A missing file, and a missing spool, are told as expired."""
    claim, _ = stored(spool)
    with pytest.raises(ClaimExpired, match="No such file"):
        spool.load(claim)
    with pytest.raises(ClaimExpired, match="No such file"):
        Spool(f"{spool.directory}/gone").load(claim)


def test_a_claim_that_cannot_be_opened_or_read_is_told_as_such(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exhausted descriptor table and a failing disk raise the bus's own error, with the reason."""
    claim = spool.store("claim-1", b"x" * SIZE)
    assert spool.load(claim) == b"x" * SIZE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(ClaimExpired, match="Too many open files"):
            spool.load(claim)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def fail(_: int) -> os.stat_result:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", fail)
        with pytest.raises(ClaimExpired, match="Input/output error"):
            spool.load(claim)


def test_a_directory_in_the_spool_keeps_no_writer_out(spool: Spool) -> None:
    """What is no file takes no claim's room, and room is made among claims alone."""
    folder = Path(spool.directory, "folder")
    folder.mkdir()
    os.utime(folder, (0, 0))
    for number in range(2):
        spool.store(f"old-{number}", b"x" * SIZE)
        os.utime(Path(spool.directory, f"old-{number}"), (1 + number, 1 + number))
    spool.store("new", b"x" * SIZE)
    left = {name for name in os.listdir(spool.directory) if not name.startswith(".")}
    assert left == {"folder", "old-1", "new"}
