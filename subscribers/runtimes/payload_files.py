"""Payloads as files that only this user can read, gone when the run ends or when we have crashed.

Decides where the files are, that nobody else can plant or read them, and which leftovers may be removed.
Refuses to know what is in them.

    DIRECTORY/                private (0700); on tmpfs where there is one
        lock                  held while a store is made or swept, so that no sweep meets a half-made store
        <token>/              one store, locked for as long as its process lives
            prx-hook-<random>.json   one payload (0600)

A lock says who lives better than a pid does: it is never reused, and it is the same in every pid namespace.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Final

LOCK_DEADLINE_S: Final = 5.0
_LOCK_PAUSE_S: Final = 0.005
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
        self._prefix = prefix
        _make_private(self._directory)
        with _locked(self._directory):
            self._token = secrets.token_hex(8)
            self._store = os.path.join(self._directory, self._token)
            os.mkdir(self._store, 0o700)
            self._descriptor = os.open(self._store, _DIRECTORY)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.sweep()

    @classmethod
    def in_first_usable(cls, directories: Iterable[str], *, prefix: str = "prx-hook-") -> PayloadFiles:
        """Open the store in the first directory that works. Raises what the last one said if none does."""
        failure = PayloadDirError("no directory for payload files was named")
        for directory in directories:
            try:
                return cls(directory, prefix=prefix)
            except PayloadDirError as error:
                failure = error
        raise failure

    def __enter__(self) -> PayloadFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, payload: bytes) -> str:
        """Write the payload to a new file and return its path. Raises OSError, such as for a full disk."""
        name = f"{self._prefix}{secrets.token_hex(6)}.json"
        descriptor = os.open(name, _CREATE, 0o600, dir_fd=self._descriptor)
        try:
            unwritten = memoryview(payload)
            while unwritten:
                unwritten = unwritten[os.write(descriptor, unwritten) :]
        except OSError:
            self.remove(name)
            raise
        finally:
            os.close(descriptor)
        return f"{self._store}/{name}"

    def remove(self, path: str) -> None:
        """Remove a file that :meth:`write` made; a program may have removed it already."""
        with suppress(FileNotFoundError):
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
                if entry.name != self._token and entry.is_dir(follow_symlinks=False):
                    removed += _remove_abandoned(entry.path)
        return removed

    def close(self) -> None:
        """Remove the store with everything in it. Harmless when repeated."""
        if self._descriptor >= 0:
            shutil.rmtree(self._store, ignore_errors=True)
            os.close(self._descriptor)
            self._descriptor = -1


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
