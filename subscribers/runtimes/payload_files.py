"""Payloads as files that only this user can read, gone when the run ends or when we have crashed.

Decides where the files are, that nobody else can plant or read them, and which leftovers may be removed.
Refuses to know what is in them.

    DIRECTORY/                private (0700); on tmpfs where there is one
        lock                  held while a store is made or swept, so that no sweep meets a half-made store
        <token>/              one store, locked for as long as its process lives
            prx-hook-<random>.json   one payload (0600)

A store that somebody removes while its process lives (a logout does, where RemoveIPC is set) is made again.
A lock says who lives better than a pid does: it is never reused, and it is the same in every pid namespace.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final

from broker.logs import get_logger

LOCK_DEADLINE_S: Final = 5.0
_LOCK_PAUSE_S: Final = 0.005
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

log = get_logger("subscribers.payload_files")


class PayloadDirError(OSError):
    """The directory for payload files cannot be trusted or used; the text says which, why, and what to do."""


def payload_directories(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Where payload files may live, best first: the user's runtime directory, shared memory, /tmp."""
    shared = f"prxbus-payloads-{os.getuid()}"
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    own = [os.path.join(runtime, "prxbus-payloads")] if os.path.isabs(runtime) else []
    return (*own, os.path.join("/dev/shm", shared), os.path.join(tempfile.gettempdir(), shared))


class PayloadFiles:
    """A store of payload files, swept of what crashed processes left when it is opened. Thread-safe.

    Raises PayloadDirError if ``directory`` is not ours alone, cannot be made, or stays locked for five
    seconds.
    """

    def __init__(self, directory: str | os.PathLike[str], *, prefix: str = "prx-hook-") -> None:
        self._directory = os.fspath(directory)
        self._directories: tuple[str, ...] = (self._directory,)
        self._prefix = prefix
        self._lock = threading.Lock()  # the store may be made again while runs write and remove
        self._store, self._descriptor = _new_store(self._directory)
        self.sweep()

    @classmethod
    def in_first_usable(cls, directories: Iterable[str], *, prefix: str = "prx-hook-") -> PayloadFiles:
        """Open the store in the first directory that works. Raises what the last one said if none does."""
        failure = PayloadDirError("no directory for payload files was named")
        candidates = tuple(directories)
        for directory in candidates:
            try:
                files = cls(directory, prefix=prefix)
            except PayloadDirError as error:
                failure = error
            else:
                files._directories = candidates
                return files
        raise failure

    def __enter__(self) -> PayloadFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, payload: bytes) -> str:
        """Write the payload to a new file and return its path. Raises OSError, such as for a full disk.

        A store that was removed is made again first, in the first directory that works.
        """
        name = f"{self._prefix}{secrets.token_hex(6)}.json"
        with self._lock:
            try:
                descriptor = os.open(name, _CREATE, 0o600, dir_fd=self._descriptor)
            except FileNotFoundError:
                self._renew()
                descriptor = os.open(name, _CREATE, 0o600, dir_fd=self._descriptor)
            path = f"{self._store}/{name}"
        try:
            unwritten = memoryview(payload)
            while unwritten:
                unwritten = unwritten[os.write(descriptor, unwritten) :]
        except OSError:
            self.remove(name)
            raise
        finally:
            os.close(descriptor)
        return path

    def remove(self, path: str) -> None:
        """Remove a file that :meth:`write` made; a program may have removed it already."""
        with self._lock, suppress(FileNotFoundError):
            os.unlink(os.path.basename(path), dir_fd=self._descriptor)

    @contextmanager
    def holding(self, payload: bytes) -> Iterator[str]:
        """The path of a file with the payload, for as long as the block runs."""
        path = self.write(payload)
        try:
            yield path
        finally:
            self.remove(path)

    def sweep(self) -> int:
        """Remove the stores of processes that are gone; returns how many those were."""
        removed = 0
        with _locked(self._directory), os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.path != self._store and entry.is_dir(follow_symlinks=False):
                    removed += _remove_abandoned(entry.path)
        return removed

    def close(self) -> None:
        """Remove the store with everything in it. Harmless when repeated."""
        with self._lock:
            if self._descriptor >= 0:
                shutil.rmtree(self._store, ignore_errors=True)
                os.close(self._descriptor)
                self._descriptor = -1

    def _renew(self) -> None:
        """Make the store again, in the first directory that works. The lock is held."""
        failure: OSError | None = None
        for directory in self._directories:
            try:
                store, descriptor = _new_store(directory)
            except OSError as error:
                failure = error
                continue
            log.warning("the payload files' store was removed and is made again", was=self._store, now=store)
            os.close(self._descriptor)
            self._directory, self._store, self._descriptor = directory, store, descriptor
            return
        assert failure is not None
        raise failure


def _new_store(directory: str) -> tuple[str, int]:
    """A new store's path and open, locked descriptor. Raises PayloadDirError and other OSErrors."""
    _make_private(directory)
    with _locked(directory):
        store = os.path.join(directory, secrets.token_hex(8))
        os.mkdir(store, 0o700)
        descriptor = os.open(store, _DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return store, descriptor


def _make_private(directory: str) -> None:
    """Make sure that the directory exists, is ours, and that nobody else may look into it."""
    try:
        with suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        found = os.lstat(directory)
    except OSError as error:
        raise PayloadDirError(f"payload files cannot be kept in {directory}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise PayloadDirError(
            f"payload files cannot be kept in {directory}: it is not a directory; remove it"
        )
    if found.st_uid != os.getuid():
        raise PayloadDirError(
            f"payload files cannot be kept in {directory}: it belongs to user {found.st_uid}"
        )
    if found.st_mode & 0o077:
        raise PayloadDirError(
            f"payload files cannot be kept in {directory}: other users can reach it; chmod 700 {directory}"
        )


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Hold the directory's lock, for which others are waited at most LOCK_DEADLINE_S."""
    path = os.path.join(directory, "lock")
    deadline = time.monotonic() + LOCK_DEADLINE_S
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise PayloadDirError(f"payload files cannot be kept in {directory}: {error}") from error
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise PayloadDirError(f"{path} is held by another process; see who: fuser {path}")
            time.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(store: str) -> bool:
    """Remove a store unless its process lives; the directory's lock is held."""
    try:
        descriptor = os.open(store, _DIRECTORY)
    except OSError:  # removed by its owner just now
        return False
    try:
        if not _try_lock(descriptor):
            return False
        shutil.rmtree(store, ignore_errors=True)
        return True
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
