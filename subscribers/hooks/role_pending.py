"""Texts that hooks have given to ``inject`` and that wait for the next system prompt of their session.

Decides how they are joined, how much may wait, and what is kept of a session that builds no prompt any more.
Joined as the rolebox page has it: a newline between two texts. A text that does not fit is not kept at all:
half an instruction may mean something else. A text is gone when it was delivered, and not before. Pure: where
texts are stored, and who takes them, is told by others; time is an argument, in seconds since the epoch,
because they outlive their process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

SESSION_BYTES: Final = 65_536
"""UTF-8 bytes that may wait for one session."""

SESSIONS: Final = 1_024
"""Sessions for which texts wait; beyond it those go that nothing was added to for the longest time."""

KEPT_S: Final = 7 * 86_400.0
"""Seconds that a text waits for a prompt."""


class Waiting(NamedTuple):
    """What waits for a session: ``text``, or None for nothing; ``at``: when something was added last."""

    session: str
    text: str | None
    at: float


class Pending:
    """What waits, by session. ``dropped`` counts texts that did not fit, ``expired`` sessions forgotten."""

    def __init__(self, kept: Iterable[Waiting] = ()) -> None:
        self.dropped = 0
        self.expired = 0
        self._texts: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._changed: dict[str, None] = {}
        for session, text, at in sorted(kept, key=lambda waiting: waiting.at):
            if text:
                self._texts[session] = (text, at)

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, session: str, text: str, now: float) -> bool:
        """Have ``text`` wait behind what waits already; False if there is no room for it."""
        self.sweep(now)
        waiting = self._texts.get(session)
        whole = text if waiting is None else f"{waiting[0]}\n{text}"
        return self._keep(session, whole, now)

    def look(self, session: str, now: float) -> str | None:
        """All that waits for a session, as one text; None for nothing. It waits until it is delivered."""
        self.sweep(now)
        waiting = self._texts.get(session)
        return None if waiting is None else waiting[0]

    def delivered(self, session: str, text: str) -> None:
        """What was looked at is in a prompt: it is gone, and what came since is what waits."""
        waiting = self._texts.get(session)
        if waiting is None or not f"{waiting[0]}\n".startswith(f"{text}\n"):
            return  # the session was begun anew meanwhile
        self._changed[session] = None
        rest = waiting[0][len(text) + 1 :]
        if rest:
            self._texts[session] = (rest, waiting[1])
        else:
            del self._texts[session]

    def forget(self, session: str) -> None:
        """The session is over."""
        if self._texts.pop(session, None) is not None:
            self._changed[session] = None

    def sweep(self, now: float) -> None:
        """Forget what has waited for too long."""
        while self._texts and now - next(iter(self._texts.values()))[1] > KEPT_S:
            self._evict()

    @property
    def has_changed(self) -> bool:
        """Whether there is something to store."""
        return bool(self._changed)

    def changes(self) -> list[Waiting]:
        """What is different since the last call, to be stored."""
        changed, self._changed = self._changed, {}
        return [Waiting(session, *self._texts.get(session, (None, 0.0))) for session in changed]

    def _keep(self, session: str, text: str, now: float) -> bool:
        if len(text.encode("utf-8", "surrogatepass")) > SESSION_BYTES:
            self.dropped += 1
            return False
        if not text:
            return True  # nothing is what waits already
        self._texts[session] = (text, now)
        self._texts.move_to_end(session)
        self._changed[session] = None
        while len(self._texts) > SESSIONS:
            self._evict()
        return True

    def _evict(self) -> None:
        session, _ = self._texts.popitem(last=False)
        self._changed[session] = None
        self.expired += 1
