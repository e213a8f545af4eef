"""The lock on a runtime directory: one broker at a time, whatever became of the one before.

Binding an ipc socket silently takes the path away from whoever had it, so the lock comes first and
goes last. The kernel drops it with the process; the pid inside is for people only.
"""

from __future__ import annotations

import fcntl
import os
import stat
from typing import Self

from ..places import LOCK_NAME
from ..protocol.errors import AlreadyRunning, RuntimeDirError


class DirectoryLock:
    """The lock on ``directory``, held from construction to :meth:`release`.

    ``used_before`` says whether some broker ran here before, so that clients may be waiting.
    Raises :class:`AlreadyRunning` when another process holds it, :class:`RuntimeDirError` when it
    cannot be made.
    """

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/{LOCK_NAME}"
        self._descriptor = self._acquire(directory)
        try:
            self.used_before = os.fstat(self._descriptor).st_size > 0
            owner = b"%d\n" % os.getpid()
            # Written before it is cut: a disk without room must not make the file forget that it was used.
            os.pwrite(self._descriptor, owner, 0)
            os.ftruncate(self._descriptor, len(owner))
        except OSError as error:
            os.close(self._descriptor)
            raise RuntimeDirError(
                f"cannot write the lock {self.path!r}: {error.strerror}; make room there, "
                "or name another directory with --runtime-dir"
            ) from None

    @property
    def in_place(self) -> bool:
        """Whether the path still names the locked file."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Let another broker in. The file stays: it says that there was one."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _acquire(self, directory: str) -> int:
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            try:
                descriptor = os.open(self.path, flags, 0o600)
            except OSError as error:
                raise RuntimeDirError(f"cannot open the lock {self.path!r}: {error.strerror}") from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.stat(self.path), os.fstat(descriptor)):
                    return descriptor
            except BlockingIOError:
                owner = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
                os.close(descriptor)
                raise AlreadyRunning(
                    f"a broker (pid {owner}) owns {directory!r}; stop that one, "
                    "or start this one with another --runtime-dir"
                ) from None
            except FileNotFoundError:
                pass
            except OSError as error:
                os.close(descriptor)
                raise RuntimeDirError(f"cannot take the lock {self.path!r}: {error.strerror}") from None
            os.close(descriptor)  # somebody removed or replaced the file meanwhile: it locks nothing


def remove_stale_sockets(paths: list[str]) -> None:
    """Remove the sockets that a killed broker left behind; only the lock's owner may.

    Raises :class:`RuntimeDirError` for anything else at such a path.
    """
    for path in paths:
        try:
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
                continue
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RuntimeDirError(f"the stale socket {path!r} cannot be removed: {error.strerror}") from None
        raise RuntimeDirError(f"{path!r} is not a socket; move it away")
