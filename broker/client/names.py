"""Session id, source and cause of an event, checked and packed once for each session.

Decides what a session id and a cause may be and which cause holds. Pure.
"""

from __future__ import annotations

from typing import Final

from ..protocol.envelope import Names, is_text
from ..protocol.errors import LimitExceeded
from ..protocol.limits import CAUSE_BYTES, SESSION_ID_BYTES
from .context import Cause

SESSIONS: Final = 1_024
"""Session ids whose packed form is remembered."""


class KnownNames:
    """The names in the events of one source; ``inherited`` is the cause that holds unless another is told.

    ``known`` maps a session id to its packed names with the inherited cause, for a quick look.
    """

    def __init__(self, source: str, inherited: str | None) -> None:
        self._source = source
        self._inherited = inherited
        self.known: dict[str | None, Names] = {None: Names(None, source, inherited)}

    def pack(self, session_id: str | None, caused_by: str | None, context: Cause | None) -> Names:
        """The names of an event; what is told wins over the context, that over what is inherited.

        Raises :class:`LimitExceeded` for a session id or a cause that cannot be one.
        """
        if session_id is not None and not is_text(session_id, SESSION_ID_BYTES):
            raise LimitExceeded(
                f"session id must be a string of at most {SESSION_ID_BYTES} bytes, not {_short(session_id)}"
            )
        if caused_by is None and context is not None:
            caused_by = context.event
        if caused_by is not None and caused_by != self._inherited:
            if not is_text(caused_by, CAUSE_BYTES):
                raise LimitExceeded(f"caused_by must be an event id, not {_short(caused_by)}")
            return Names(session_id, self._source, caused_by)
        packed = self.known.get(session_id)
        if packed is None:
            packed = Names(session_id, self._source, self._inherited)
            if len(self.known) >= SESSIONS:
                self.known.clear()
            self.known[session_id] = packed
        return packed


def _short(value: object) -> str:
    return (
        f"{len(value.encode('utf-8', 'surrogatepass')):,} bytes"
        if isinstance(value, str)
        else repr(value)[:80]
    )
