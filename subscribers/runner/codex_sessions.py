"""What is remembered of agents' sessions between two events, and for how many of them.

Two things: what asynchronous handlers have said, until it can be told, and how often in a row a session's end
of turn was refused. Decides that the least recently used session is forgotten first, and counts what is lost.
Refuses to know when something can be told.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from broker.protocol.decisions import Answer

SESSIONS: Final = 1_024
"""Sessions that are remembered."""

KEPT: Final = 64
"""Results of asynchronous handlers that one session keeps."""


@dataclass(slots=True)
class _Session:
    results: list[Answer] = field(default_factory=list)
    continuations: dict[str, int] = field(default_factory=dict)


class Sessions:
    """The sessions of all agents, by id. Thread-safe. ``dropped`` counts results that nobody was told."""

    def __init__(self, *, sessions: int = SESSIONS, kept: int = KEPT) -> None:
        self.dropped = 0
        self._most = sessions
        self._kept = kept
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def keep(self, session: str, result: Answer) -> None:
        """An asynchronous handler has something to say. A session that has ended hears nothing any more."""
        with self._lock:
            if session in self._ended:
                self.dropped += 1
                return
            results = self._of(session).results
            results.append(result)
            if len(results) > self._kept:
                del results[0]
                self.dropped += 1

    def take(self, session: str) -> list[Answer]:
        """What asynchronous handlers have said since the last time, in the order in which they ended."""
        with self._lock:
            found = self._sessions.get(session)
            if found is None:
                return []
            results, found.results = found.results, []
            return results

    def continued(self, session: str, event: str) -> int:
        """The turn was refused its end once more; how often in a row that makes for ``event``."""
        with self._lock:
            counts = self._of(session).continuations
            counts[event] = counts.get(event, 0) + 1
            return counts[event]

    def let_end(self, session: str, event: str) -> None:
        """The turn may end: the next refusal is a first one."""
        with self._lock:
            if (found := self._sessions.get(session)) is not None:
                found.continuations.pop(event, None)

    def began(self, session: str) -> None:
        """The session begins, or goes on."""
        with self._lock:
            self._ended.pop(session, None)

    def end(self, session: str) -> None:
        """The session is over: what was kept for it is discarded, and so is what comes after."""
        with self._lock:
            found = self._sessions.pop(session, None)
            self.dropped += 0 if found is None else len(found.results)
            self._ended[session] = None
            if len(self._ended) > self._most:
                self._ended.popitem(last=False)

    def _of(self, session: str) -> _Session:
        found = self._sessions.setdefault(session, _Session())
        self._sessions.move_to_end(session)
        if len(self._sessions) > self._most:
            _, oldest = self._sessions.popitem(last=False)
            self.dropped += len(oldest.results)
        return found
