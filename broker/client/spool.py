"""Payloads that are too large for a frame: stored and loaded by claim check.

A payload becomes a 0600 file in the bus's spool, its digest and size travel in the event. The
spool is bounded: to make room the oldest claims go first, but none younger than a few seconds.
Knows files; does not know events or sockets.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..protocol.envelope import Claim
from ..protocol.errors import ClaimCorrupt, ClaimExpired, SpoolFull
from ..protocol.limits import CLAIM_HEAD_BYTES, SPOOL_BYTES

YOUNG_SECONDS: Final = 5.0
"""A claim younger than this is never given up to make room."""

LOCK_SECONDS: Final = 1.0
"""How long a writer waits for another one."""


class Spool:
    """The spool in ``directory``, holding at most ``capacity`` bytes. Safe for many processes at once."""

    def __init__(self, directory: str, capacity: int = SPOOL_BYTES) -> None:
        self.directory = directory
        self.capacity = capacity

    def store(self, reference: str, payload: bytes) -> Claim:
        """Write ``payload`` under ``reference`` (a file name) and return its claim.

        Raises :class:`SpoolFull` when spool or disk have no room; nothing is left behind then.
        """
        path = os.path.join(self.directory, reference)
        try:
            with self._locked():
                self._make_room(len(payload))
                _write(path, payload)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "no space left on its disk" if full else str(error.strerror)
            raise self._refusal(len(payload), reason) from None
        return Claim(len(payload), hashlib.sha256(payload).digest(), reference, payload[:CLAIM_HEAD_BYTES])

    def load(self, claim: Claim) -> bytes:
        """The payload that ``claim`` stands for, verified.

        Raises :class:`ClaimExpired` when its file is gone or cannot be read and :class:`ClaimCorrupt`
        when it is not what was announced, whatever it is: a pipe, a directory or a file of any size.
        """
        path = os.path.join(self.directory, claim.reference)
        try:
            payload = _read(path, claim.size)
        except OSError as error:
            raise ClaimExpired(
                f"the payload {claim.reference} ({claim.size:,} bytes) is no longer there: {error.strerror}"
            ) from None
        if payload is None or hashlib.sha256(payload).digest() != claim.digest:
            raise ClaimCorrupt(
                f"the payload {claim.reference} is not the {claim.size:,} bytes that its event announced"
            )
        return payload

    def remove(self, claim: Claim) -> None:
        """Nobody is to load ``claim`` any more. One that is gone is no error."""
        _remove(os.path.join(self.directory, claim.reference))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, so that the capacity holds."""
        lock = os.open(os.path.join(self.directory, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + LOCK_SECONDS
            while not _try_lock(lock):
                if time.monotonic() > deadline:
                    raise OSError(errno.EBUSY, "another writer has kept it locked")
                time.sleep(0.001)
            yield
        finally:
            os.close(lock)

    def _make_room(self, size: int) -> None:
        files = sorted(
            (status.st_mtime, status.st_size, entry.path)
            for entry in os.scandir(self.directory)
            if not entry.name.startswith(".")
            for status in _status(entry)
            if stat.S_ISREG(status.st_mode)  # anything else is no claim, and the broker's to remove
        )
        held = sum(bytes_ for _, bytes_, _ in files)
        excess = held + size - self.capacity
        newest = time.time() - YOUNG_SECONDS
        for written, bytes_, path in files:
            if excess <= 0:
                return
            if written > newest:
                break
            _remove(path)
            excess -= bytes_
        if excess > 0:
            raise self._refusal(size, f"it holds {held:,} of at most {self.capacity:,} bytes")

    def _refusal(self, size: int, reason: str) -> SpoolFull:
        return SpoolFull(
            f"a payload of {size:,} bytes cannot be stored in the spool {self.directory!r}: {reason}; "
            "make room there, or publish with oversize='reject' and smaller payloads"
        )


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _status(entry: os.DirEntry[str]) -> Iterator[os.stat_result]:
    try:
        yield entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # swept meanwhile
        return


def _read(path: str, size: int) -> bytes | None:
    """The content of the regular file of ``size`` bytes at ``path``; None when that is something else."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size != size:
                return None
            payload = file.read(size + 1)
    except IsADirectoryError:
        return None
    return payload if len(payload) == size else None


def _open_at_once(path: str, flags: int) -> int:
    """Open without following a link and without waiting: the far end of a pipe may never come."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)


def _write(path: str, payload: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            rest = memoryview(payload)
            while rest:
                rest = rest[file.write(rest) :]
    except OSError:
        _remove(path)
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
