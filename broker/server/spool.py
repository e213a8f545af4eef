"""The spool: a private directory, on tmpfs where there is one, swept of expired claims.

Decides where it lies and what is removed from it. Claims are written and read by clients; a file whose
name begins with a dot is theirs and left alone. Pipes, links and directories are nobody's: they go when a
claim of their age would. A spool that somebody removed is made again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ..logs import get_logger
from ..places import spool_directory
from ..protocol.errors import RuntimeDirError
from .threads import start_without_signals

SHARED_MEMORY: Final = "/dev/shm"
SWEEP_SECONDS: Final = 2.0
ABANDONED_SECONDS: Final = 86_400.0
"""A spool in shared memory in which nothing changed for so long belongs to nobody; no claim lives longer."""

OWNER_FILE: Final = ".runtime-dir"
"""Names, inside a spool in shared memory, the runtime directory that it belongs to."""

log = get_logger("broker.spool")


class Claim(NamedTuple):
    """One entry of the spool. ``size`` is 0 for what is no file; ``directory``: it is one."""

    written: float
    size: int
    name: str
    directory: bool


class Spool:
    """The spool of the bus in ``directory``: at most ``capacity`` bytes, each kept for ``seconds``.

    Raises :class:`RuntimeDirError` when it cannot be made.
    """

    def __init__(self, directory: str, capacity: int, seconds: float, memory: str = SHARED_MEMORY) -> None:
        self.capacity = capacity
        self.seconds = seconds
        self.path = place_spool(directory, memory)
        self._directory = directory
        self._memory = memory
        self._fault: str | None = None
        self._link = spool_directory(directory)
        self.swept = 0
        self._usage = (0, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prxbus-spool", daemon=True)
        self.sweep(time.time())

    def start(self) -> None:
        """Sweep every few seconds, in a thread of its own: a slow disk delays nobody."""
        start_without_signals(self._thread)

    def stop(self) -> None:
        """Sweep no longer. An empty spool is removed; claims stay, because somebody may still load them."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if _remove_if_empty(self.path) and os.path.islink(self._link):
            os.unlink(self._link)

    def usage(self) -> dict[str, Any]:
        """What status says of it."""
        files, size = self._usage
        return {
            "path": self.path,
            "files": files,
            "bytes": size,
            "swept": self.swept,
            "limit_bytes": self.capacity,
            "claim_seconds": self.seconds,
        }

    def sweep(self, now: float) -> None:
        """Remove claims that have expired at ``now`` (seconds of the epoch) and the oldest of too many.

        A spool that is no longer there is made again first. What cannot be done is logged, once.
        """
        fault = None
        try:
            if not self._in_place():
                self._place_again()
            stuck = self._remove_from(now)
            if stuck:
                fault = f"{stuck[0]!r} cannot be removed"
        except RuntimeDirError as error:
            fault = str(error)
        except OSError as error:
            fault = str(error.strerror)
        if fault is not None and fault != self._fault:
            log.warning("the spool cannot be kept in order", path=self.path, reason=fault)
        self._fault = fault

    def _remove_from(self, now: float) -> list[str]:
        """Sweep the directory; returns the names of what should have gone and did not."""
        stuck = []
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            kept = sorted(claims_in(descriptor))
            held = sum(claim.size for claim in kept)
            for claim in list(kept):
                expired = abs(now - claim.written) > self.seconds
                if not expired and (held <= self.capacity or not claim.size):
                    continue
                if not _discard(claim, descriptor):
                    stuck.append(claim.name)
                    continue
                kept.remove(claim)
                held -= claim.size
                self.swept += 1
            self._usage = len(kept), held
        finally:
            os.close(descriptor)
        return stuck

    def _in_place(self) -> bool:
        """Whether clients that go where the spool is announced come to the directory that is swept here.

        In shared memory anybody may take the name of a directory that was removed, hence the owner.
        """
        try:
            seen, swept = os.stat(self._link), os.stat(self.path)
        except OSError:
            return False
        return os.path.samestat(seen, swept) and stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid()

    def _place_again(self) -> None:
        """Make the spool anew; what it held is gone. Raises :class:`RuntimeDirError` and OSError."""
        os.stat(self._directory)  # nothing is made in memory for a runtime directory that is gone itself
        self.path = place_spool(self._directory, self._memory)
        log.warning("the spool was removed and is made again; payloads in it are lost", path=self.path)

    def _run(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            self.sweep(time.time())


def place_spool(directory: str, memory: str = SHARED_MEMORY) -> str:
    """Make sure that the spool of ``directory`` exists; returns where it really lies.

    That is in ``memory`` when this is tmpfs and the runtime directory is not; then the spool is a link. A
    directory there that somebody else made first is not used. Raises :class:`RuntimeDirError`.
    """
    link = spool_directory(directory)
    try:
        if os.path.islink(link):
            os.unlink(link)  # the directory is ours alone, so the link was too; it is made anew
        elif os.path.isdir(link):
            os.chmod(link, 0o700)
            return link
        if not on_tmpfs(directory) and on_tmpfs(memory):
            remove_abandoned(memory, time.time())
            target = os.path.join(memory, spool_name(directory))
            if _make_private(target):
                _write_owner(target, directory)
                os.symlink(target, link)
                return target
            log.warning("the spool's place in shared memory is not ours; using the disk", path=target)
        os.mkdir(link, 0o700)
    except OSError as error:
        raise RuntimeDirError(f"the spool {link!r} cannot be made: {error.strerror}") from None
    return link


def spool_name(directory: str) -> str:
    """The name in shared memory of the spool of ``directory``."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()
    return f"{_our_prefix()}{digest[:24]}"


def on_tmpfs(path: str) -> bool:
    """Whether ``path`` lies in memory, as far as the kernel tells; false where it does not exist."""
    try:
        device = os.stat(path).st_dev
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            return _mounted_as(mounts, f"{os.major(device)}:{os.minor(device)}") == "tmpfs"
    except OSError:
        return False


def claims_in(descriptor: int) -> Iterator[Claim]:
    """The claims in an open spool directory, and what else lies there that no client put there."""
    with os.scandir(descriptor) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # a client removed it meanwhile
                continue
            regular = stat.S_ISREG(status.st_mode)
            if regular and entry.name.startswith("."):
                continue
            size = status.st_size if regular else 0
            yield Claim(status.st_mtime, size, entry.name, stat.S_ISDIR(status.st_mode))


def remove_abandoned(memory: str, now: float) -> None:
    """Remove spools of ours in ``memory`` whose runtime directory is gone, or all life for a day."""
    with os.scandir(memory) as entries:
        candidates = [entry.path for entry in entries if entry.name.startswith(_our_prefix())]
    for path in candidates:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            status = os.fstat(descriptor)
            claims = list(claims_in(descriptor))
            newest = max([status.st_mtime, *(claim.written for claim in claims)])
            gone = now - newest > ABANDONED_SECONDS or not _owner_exists(path)
            if status.st_uid == os.geteuid() and gone:
                for claim in claims:
                    _discard(claim, descriptor)
                _remove_if_empty(path)
        finally:
            os.close(descriptor)


def _our_prefix() -> str:
    return f"prxbus-{os.geteuid()}-"


def _mounted_as(mounts: Iterable[str], device: str) -> str | None:
    """The file system of ``device`` in a mountinfo table (proc(5)): the first field after the dash."""
    for line in mounts:
        before, _, after = line.partition(" - ")
        if before.split()[2] == device:
            return after.split()[0]
    return None


def _make_private(path: str) -> bool:
    """Whether ``path`` is a directory of ours alone, made now or earlier."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and stat.S_IMODE(status.st_mode) == 0o700
    )


def _write_owner(path: str, directory: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(os.path.join(path, OWNER_FILE), flags, 0o600), "wb") as file:
        file.write(os.fsencode(directory))


def _owner_exists(path: str) -> bool:
    """Whether the runtime directory of the spool at ``path`` is there; without a name it counts so."""
    try:
        with open(os.path.join(path, OWNER_FILE), "rb") as file:
            return os.path.lexists(file.read())
    except (OSError, ValueError):
        return True


def _discard(claim: Claim, descriptor: int) -> bool:
    """Remove an entry of the open directory with all that it holds; whether it is gone."""
    try:
        if claim.directory:
            import shutil  # as good as never needed, and a broker starts sooner without it

            shutil.rmtree(claim.name, dir_fd=descriptor)
        else:
            os.unlink(claim.name, dir_fd=descriptor)
    except FileNotFoundError:
        return True
    except (OSError, RecursionError):  # the latter for folders nested a thousand deep
        return False
    return True


def _remove_if_empty(path: str) -> bool:
    """Remove a spool that holds no claim, with the file that clients lock; whether it could be done."""
    try:
        names = os.listdir(path)
        if not all(name.startswith(".") for name in names):
            return False
        for name in names:
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        return False
    return True
