"""The bytes of a hook file, replaced whole: one writer at a time, and never a half-written file for a reader.

A lock file beside the hook file keeps writers apart, those of other processes too. A new text is written to
a file of its own and renamed over the old one; when somebody saved the file meanwhile, nothing is renamed. A
link is followed, and what it leads to is replaced. It refuses to know what the bytes mean.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from .discover import Signature, signature

LOCK_SECONDS: Final = 10.0
"""How long a writer waits for the others."""

_PAUSE_SECONDS: Final = 0.002
_NEW_FILE_MODE: Final = 0o600
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class StoreBusy(Exception):
    """Other edits held the lock for longer than a writer waits."""


class Turns:
    """A lock that threads get in the order in which they asked, so that none starves beside a busy one."""

    def __init__(self) -> None:
        self._inside = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    def take(self, timeout: float) -> bool:
        """Wait for the turn, at most ``timeout`` seconds; whether it came."""
        with self._inside:
            if not self._taken:
                self._taken = True
                return True
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=timeout):
            return True
        with self._inside:
            if turn not in self._waiting:  # it came at the last moment
                return True
            self._waiting.remove(turn)
            return False

    def give(self) -> None:
        """Hand the lock to the next who waits."""
        with self._inside:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False


class GuardedFile:
    """One file that programs edit together. Every method blocks; none for longer than its deadline."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._turns = Turns()  # threads queue here, so that only processes poll for the lock file

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock. Raises :class:`StoreBusy` after :data:`LOCK_SECONDS`, and OSError."""
        deadline = time.monotonic() + LOCK_SECONDS
        if not self._turns.take(LOCK_SECONDS):
            raise StoreBusy(self._busy())
        try:
            folder, name = os.path.split(os.path.realpath(self.path))
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(os.path.join(folder, f".{name}.lock"), flags, _NEW_FILE_MODE)
            try:
                while not _try_lock(descriptor):
                    if time.monotonic() > deadline:
                        raise StoreBusy(self._busy())
                    time.sleep(_PAUSE_SECONDS)
                yield
            finally:
                os.close(descriptor)
        finally:
            self._turns.give()

    def replace(self, text: bytes, expected: Signature) -> bool:
        """Put ``text`` in place of the file unless that looks otherwise than ``expected``; call it locked.

        Returns whether it was done. Owner and mode stay; a new file is the owner's alone. Raises OSError, and
        then the file is what it was.
        """
        target = os.path.realpath(self.path)
        folder, name = os.path.split(target)
        temporary = os.path.join(folder, f".{name}.new")
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # of a writer that was killed: nobody else has the lock
        try:
            _write(temporary, text, target)
            if signature(self.path) != expected:
                return False
            os.rename(temporary, target)
            temporary = ""
        finally:
            if temporary:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
        _sync_folder(folder)
        return True

    def keep_copy(self, suffix: str) -> str:
        """Copy the file, whatever is in it, to a new file beside it and return that one's path.

        Raises OSError, and then no copy is left.
        """
        target = os.path.realpath(self.path)
        path, number = f"{target}.{suffix}", 1
        while True:
            try:
                descriptor = os.open(path, _CREATE, _NEW_FILE_MODE)
            except FileExistsError:
                number += 1
                path = f"{target}.{suffix}-{number}"
                continue
            try:
                with open(descriptor, "wb") as copy, open(target, "rb") as original:
                    shutil.copyfileobj(original, copy)
            except BaseException:
                os.unlink(path)
                raise
            return path

    def _busy(self) -> str:
        return f"{self.path} is being edited by others; nothing was changed"


def _write(path: str, text: bytes, like: str) -> None:
    """A new file with the mode and owner of ``like``, its bytes on the disk when this returns."""
    descriptor = os.open(path, _CREATE, _NEW_FILE_MODE)
    try:
        with suppress(FileNotFoundError):
            found = os.stat(like)
            os.fchmod(descriptor, found.st_mode & 0o777)
            with suppress(PermissionError):
                os.fchown(descriptor, found.st_uid, found.st_gid)
        unwritten = memoryview(text)
        while unwritten:
            unwritten = unwritten[os.write(descriptor, unwritten) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: str) -> None:
    """Have the rename itself on the disk; without that the file is replaced all the same."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
