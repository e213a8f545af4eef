"""The state file of a hook file: the ids and times of its hooks that do not stand in the file itself.

It lies in a folder of the user's, one for each hook file, so that reading hooks never writes into a
workspace. A state that is lost or damaged costs no hook: ids are given anew in file order. It refuses to
decide which hook is which.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import orjson

from ..dialects.prx_ids import Known, Ledger
from .hook_store_files import GuardedFile

STATE_BYTES: Final = 4_194_304
"""Bytes of a state that is read: more than the ledger of the largest file that can be edited has."""

_VERSION: Final = 1


class StateFile:
    """The ledger of one hook file. ``folder`` is made, for this user alone, when there is need of it."""

    def __init__(self, folder: str, hook_file: str) -> None:
        self._folder = folder
        self._hook_file = os.path.realpath(hook_file)
        name = hashlib.sha256(os.fsencode(self._hook_file)).hexdigest()[:24]
        self.path = os.path.join(folder, f"{name}.json")
        self._guard = GuardedFile(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the ledger's own lock, in its folder. Raises StoreBusy, and OSError without such a folder."""
        os.makedirs(self._folder, 0o700, exist_ok=True)
        with self._guard.locked():
            yield

    def load(self) -> Ledger:
        """What was kept; an empty ledger when there is none that can be read."""
        try:
            with open(self.path, "rb") as file:
                document = orjson.loads(file.read(STATE_BYTES))
            hooks = tuple(Known(*map(str, hook)) for hook in document["hooks"])
            return Ledger(int(document["next"]), hooks)
        except (OSError, ValueError, TypeError, KeyError):
            return Ledger()

    def save(self, ledger: Ledger) -> None:
        """Keep a ledger, whole or not at all; call it locked. Raises OSError."""
        document = {
            "version": _VERSION,
            "file": self._hook_file.encode("utf-8", "backslashreplace").decode(),
            "next": ledger.next,
            "hooks": [list(known) for known in ledger.hooks],
        }
        temporary = f"{self.path}.{os.getpid()}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(orjson.dumps(document))
        os.replace(temporary, self.path)
