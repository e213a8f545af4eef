"""What roles remember of sessions, in a file that outlives the process: ``roles.db`` in the bus's directory.

Decides how it is written: before anybody is told of it, and so that ending the process at any moment loses
nothing that was written. What cannot be stored is kept in memory and said once. A file that is damaged is put
aside and begun anew. Refuses to know what is stored for.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import orjson

from broker.logs import get_logger
from broker.protocol.errors import shown

from ..hooks.role_functions import FunctionState
from ..hooks.role_pending import Waiting
from ..hooks.role_sessions import Kept, SessionRecord

FILE_NAME: Final = "roles.db"
VERSION: Final = 1

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS pending (session TEXT PRIMARY KEY, text BLOB NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (session TEXT PRIMARY KEY, record BLOB NOT NULL, at REAL NOT NULL);
"""
_PENDING: Final = "SELECT session, text, at FROM pending"
_SESSIONS: Final = "SELECT session, record FROM sessions ORDER BY at"

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""What is wrong with a file itself, the last for tables that are not ours; a full disk leaves it as it is."""

log = get_logger("subscribers.roles")


def open_store(path: str) -> RolesStore | None:
    """The file at ``path``, begun anew if it is damaged; None, and said, where there can be none."""
    try:
        try:
            return RolesStore(path)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF not in _DAMAGED:
                raise
            log.error("what roles remember is damaged and begun anew", path=path, error=str(error))
            for suffix in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(path + suffix)
            os.replace(path, f"{path}.damaged")
            return RolesStore(path)
    except (sqlite3.Error, OSError) as error:
        log.error("what roles remember will not survive this process", path=path, error=shown(error, 300))
        return None


class RolesStore:
    """The file at ``path``. Thread-safe. Raises sqlite3.Error and OSError where it cannot be used."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._has_failed = False
        self._database = self._open()

    def pending(self) -> list[Waiting]:
        """The texts that wait. What is not understood is left out."""
        with self._lock:
            rows = self._database.execute(_PENDING).fetchall()
        return [waiting for row in rows if (waiting := _waiting(*row)) is not None]

    def sessions(self) -> list[Kept]:
        """What is known of sessions, the least recently changed first. What is not understood is left out."""
        with self._lock:
            rows = self._database.execute(_SESSIONS).fetchall()
        return [kept for session, record in rows if (kept := _kept(session, record)) is not None]

    def write(self, pending: Iterable[Waiting], sessions: Iterable[Kept]) -> None:
        """Store what has changed. Raises nothing: what cannot be stored is said, once."""
        now = time.time()
        try:
            with self._lock, self._database:
                for waiting in pending:
                    if waiting.text is None:
                        self._database.execute("DELETE FROM pending WHERE session = ?", (waiting.session,))
                    else:
                        text = waiting.text.encode("utf-8", "surrogatepass")
                        row = (waiting.session, text, waiting.at)
                        self._database.execute("INSERT OR REPLACE INTO pending VALUES (?, ?, ?)", row)
                for kept in sessions:
                    if kept.record is None:
                        self._database.execute("DELETE FROM sessions WHERE session = ?", (kept.session,))
                    else:
                        told = (kept.session, _told(kept.record), now)
                        self._database.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", told)
        except (sqlite3.Error, UnicodeEncodeError) as error:
            if not self._has_failed:
                self._has_failed = True
                log.error(
                    "what roles remember cannot be stored, and will not survive this process",
                    path=self.path,
                    error=shown(error, 300),
                )
        else:
            self._has_failed = False

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()

    def _open(self) -> sqlite3.Connection:
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        os.chmod(self.path, 0o600)
        database = sqlite3.connect(self.path, timeout=1.0, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")  # a write is one append
            database.execute("PRAGMA synchronous = OFF")  # it is to outlive the process, not the machine
            database.executescript(_SCHEMA)
            for query in (_PENDING, _SESSIONS):  # a page that is damaged is found by who reads it
                for _ in database.execute(query):
                    pass
        except BaseException:
            database.close()
            raise
        return database


def _told(record: SessionRecord) -> bytes:
    functions = record.functions
    return orjson.dumps([record.role, record.agent, *functions])


def _waiting(session: object, text: object, at: object) -> Waiting | None:
    if not isinstance(session, str) or not isinstance(text, bytes) or not isinstance(at, int | float):
        return None
    try:
        return Waiting(session, text.decode("utf-8", "surrogatepass"), float(at))
    except ValueError:
        return None


def _kept(session: object, record: bytes) -> Kept | None:
    try:
        role, agent, active, locked, given, greeted = orjson.loads(record)
        parameters = tuple((name, tuple((key, value) for key, value in each)) for name, each in given)
        functions = FunctionState(tuple(active), tuple(locked), parameters, bool(greeted))
    except (ValueError, TypeError):
        return None
    texts = [session, role or "", agent or "", *active, *locked]
    for name, each in parameters:
        texts += [name, *(text for pair in each for text in pair)]
    if not isinstance(session, str) or not all(isinstance(text, str) for text in texts):
        return None
    return Kept(session, SessionRecord(role, agent, functions))
