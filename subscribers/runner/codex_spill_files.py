"""Whole texts of handlers of which the model gets the ends only, as files that it can be told to read.

    <runtime directory>/hook_outputs/    private (0700)
        <digest of the session>/          one folder for each session
            <random>.txt                  one text (0600)

Decides where they are and how much of them is kept: the oldest go first. Refuses to know what is cut of them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections import OrderedDict
from contextlib import suppress
from hashlib import blake2b
from typing import Final

DIRECTORY: Final = "hook_outputs"

FILES: Final = 1_024
"""Texts that are kept at a time."""

TOTAL_BYTES: Final = 67_108_864
"""Bytes of all of them (64 MiB)."""

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SpillFiles:
    """The texts of one process. Thread-safe; what an earlier process has left is removed.

    ``removed`` counts texts that went because there were too many.
    """

    def __init__(self, runtime_dir: str, *, files: int = FILES, total_bytes: int = TOTAL_BYTES) -> None:
        self.removed = 0
        self._directory = os.path.join(runtime_dir, DIRECTORY)
        self._files = files
        self._total_bytes = total_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0
        shutil.rmtree(self._directory, ignore_errors=True)

    def path(self, session: str) -> str:
        """Where a text of this session will be saved; nothing is there yet."""
        folder = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return os.path.join(self._directory, folder, f"{secrets.token_hex(16)}.txt")

    def save(self, path: str, text: str) -> None:
        """Write a text to a path that :meth:`path` gave. Raises OSError, such as for a full disk."""
        content = text.encode("utf-8", "surrogatepass")
        with self._lock:
            self._make_room(len(content))
            for folder in (self._directory, os.path.dirname(path)):
                with suppress(FileExistsError):
                    os.mkdir(folder, 0o700)
            with open(os.open(path, _CREATE, 0o600), "wb") as file:
                file.write(content)
            self._kept[path] = len(content)
            self._bytes += len(content)

    def close(self) -> None:
        """Remove all of them: the sessions of a bus that is gone read them no more."""
        with self._lock:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._kept.clear()
            self._bytes = 0

    def _make_room(self, wanted: int) -> None:
        """The newest text is always kept, also one that is larger than all are to be."""
        while self._kept and (len(self._kept) >= self._files or self._bytes + wanted > self._total_bytes):
            path, size = self._kept.popitem(last=False)
            self._bytes -= size
            self.removed += 1
            with suppress(OSError):
                os.unlink(path)
            with suppress(OSError):  # others of its session are still there
                os.rmdir(os.path.dirname(path))
