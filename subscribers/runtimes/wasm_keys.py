"""What a plugin keeps between calls: keys and values in a file, at most so many bytes.

Decides that one plugin's data are one SQLite file, readable by this user alone, and when they are full.
A file that is broken is put aside and a new one begun: a plugin's memory is worth less than its running.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Final

KEY_BYTES: Final = 1_024
"""Longest key."""

VALUE_BYTES: Final = 2_097_152
"""Longest value (2 MiB). The engine ends a call that copies one of over 3 MiB; this is said before."""

LISTED_BYTES: Final = 1_048_576
"""Most bytes of keys, each counted with :data:`ENTRY_BYTES`, that are listed at once."""

ENTRY_BYTES: Final = 64
"""What an entry counts beside its key and its value: many small ones are not free."""

BUSY_S: Final = 1.0
"""How long another process may hold the file."""


class KeysRefused(Exception):
    """An entry that cannot be stored; the text says why."""


class KeyValues:
    """One plugin's keys and values. For one thread at a time.

    ``path`` is the file, made when it is not there; ``most`` is how many bytes of keys and values it may
    hold. ``put_aside`` is where a broken file was moved, None when there was none. Raises OSError and
    sqlite3.Error.
    """

    def __init__(self, path: str, most: int) -> None:
        self._most = most
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self.put_aside: str | None = None
        try:
            self._open(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):  # busy, or no access: the file may be good
                raise
            self.put_aside = f"{path}.broken"
            os.replace(path, self.put_aside)
            for leftover in (f"{path}-wal", f"{path}-shm"):
                if os.path.exists(leftover):
                    os.unlink(leftover)
            self._open(path)

    def _open(self, path: str) -> None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        self._base = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
            )
            size = f"SELECT COALESCE(SUM(LENGTH(key) + LENGTH(value) + {ENTRY_BYTES}), 0) FROM kv"
            self.used: int = self._base.execute(size).fetchone()[0]
        except BaseException:
            self._base.close()
            raise

    def get(self, key: str) -> bytes | None:
        """The value of ``key``."""
        row = self._base.execute("SELECT value FROM kv WHERE key = ?", (key.encode(),)).fetchone()
        return None if row is None else bytes(row[0])

    def set(self, key: str, value: bytes) -> None:
        """Store ``value``; raises :class:`KeysRefused` where it does not fit."""
        name = key.encode()
        if len(name) > KEY_BYTES:
            raise KeysRefused(f"a key has at most {KEY_BYTES} bytes, not {len(name)}")
        if len(value) > VALUE_BYTES:
            raise KeysRefused(f"a value has at most {VALUE_BYTES} bytes, not {len(value)}")
        after = self.used - self._size_of(name) + len(name) + len(value) + ENTRY_BYTES
        if after > self._most:
            raise KeysRefused(f"no room: {after} of {self._most} bytes would be in use (max_kv_storage_mb)")
        self._base.execute("INSERT OR REPLACE INTO kv VALUES (?, ?)", (name, value))
        self.used = after

    def delete(self, key: str) -> bool:
        """Remove ``key``; whether it was there."""
        name = key.encode()
        size = self._size_of(name)
        if size:
            self._base.execute("DELETE FROM kv WHERE key = ?", (name,))
            self.used -= size
        return size > 0

    def keys(self, prefix: str) -> list[str]:
        """Every key that begins with ``prefix``, in the order of their bytes.

        Raises :class:`KeysRefused` where those are more than :data:`LISTED_BYTES`.
        """
        name = prefix.encode()
        after = name[:-1] + bytes([name[-1] + 1]) if name else None  # no byte of a text is the last one, 255
        wanted = "SELECT key FROM kv WHERE key >= ?1 AND (?2 IS NULL OR key < ?2) ORDER BY key"
        found: list[str] = []
        listed = 0
        for (key,) in self._base.execute(wanted, (name, after)):
            listed += len(key) + ENTRY_BYTES
            if listed > LISTED_BYTES:
                raise KeysRefused(f"more keys begin so than can be listed at once ({LISTED_BYTES} bytes)")
            found.append(bytes(key).decode())
        return found

    def close(self) -> None:
        """Close the file; what was stored stays."""
        self._base.close()

    def _size_of(self, name: bytes) -> int:
        """What an entry counts now; 0 when there is none."""
        row = self._base.execute(
            "SELECT LENGTH(key) + LENGTH(value) FROM kv WHERE key = ?", (name,)
        ).fetchone()
        return 0 if row is None else row[0] + ENTRY_BYTES
