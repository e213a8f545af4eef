"""A bound on the number of processes of one run, by a control group of its own.

Decides where such groups are made and which leftovers may be removed. Needed for root, to whom the kernel's
limit on a user's processes does not apply. Refuses to start anything, and to know how a program enters a
group: it writes its pid into the group's ``cgroup.procs``.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

PLACES: Final = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")
"""Where the kernel's controller of processes may be mounted: of its own (version 1), or with the others."""

CLOSE_S: Final = 1.0
LEFTOVERS: Final = 1_000
"""Groups that a process of the same pid may have left, and that are passed over at once."""

_PAUSE_S: Final = 0.01

_numbers = itertools.count()  # one for the process: its groups have names of their own, whoever makes them

_NAME: Final = re.compile(r"prxbus-(\d+)-\d+")


class NoGroups(Exception):
    """No group can be made here; the text says why."""


class Groups:
    """Makes groups below the first of ``places`` that allows it, and removes what a crash has left there.

    Raises NoGroups. Thread-safe.
    """

    def __init__(self, places: Sequence[str] = PLACES) -> None:
        self._left: deque[str] = deque()  # groups whose last process the kernel has not let go yet
        self._lock = threading.Lock()
        failure = "the kernel has no controller of processes mounted"
        for place in places:
            self._place = place
            try:
                self.remove(self.make(1))
            except OSError as error:
                failure = f"no control group can be made in {place}: {error.strerror}"
            else:
                self._sweep()
                return
        raise NoGroups(failure)

    def make(self, processes: int) -> str:
        """The path of a new group that holds at most so many processes. Raises OSError."""
        self._tidy(4)
        path = self._new_folder()
        try:
            descriptor = os.open(f"{path}/pids.max", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"%d" % processes)
            finally:
                os.close(descriptor)
        except OSError:
            os.rmdir(path)
            raise
        return path

    def _new_folder(self) -> str:
        """A folder that was not there. One with our own pid is what an earlier process has left."""
        for number in itertools.islice(_numbers, LEFTOVERS):
            path = f"{self._place}/prxbus-{os.getpid()}-{number}"
            try:
                os.mkdir(path)
            except FileExistsError:
                with suppress(OSError):
                    os.rmdir(path)
            else:
                return path
        raise FileExistsError(
            errno.EEXIST, f"{LEFTOVERS} groups of earlier processes are in the way", self._place
        )

    def remove(self, path: str) -> None:
        """Remove a group; one that still holds a process is tried again when another is made."""
        try:
            os.rmdir(path)
        except OSError:
            with self._lock:
                self._left.append(path)

    def close(self) -> None:
        """Remove what was left, for at most a second: what is killed is not gone at once.

        The next process that makes groups removes what cannot be removed yet.
        """
        deadline = time.monotonic() + CLOSE_S
        self._tidy(len(self._left))
        while self._left and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            self._tidy(len(self._left))

    def _tidy(self, count: int) -> None:
        with self._lock:
            for _ in range(min(count, len(self._left))):
                path = self._left.popleft()
                try:
                    os.rmdir(path)
                except FileNotFoundError:
                    continue
                except OSError:
                    self._left.append(path)

    def _sweep(self) -> None:
        for name in os.listdir(self._place):
            found = _NAME.fullmatch(name)
            if found and not os.path.exists(f"/proc/{found[1]}"):
                with suppress(OSError):
                    os.rmdir(f"{self._place}/{name}")
