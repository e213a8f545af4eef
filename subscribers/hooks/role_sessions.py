"""Whose session it is: the role that a session plays, and which hooks fire for it.

Decides by the law of the field ``role``: a session that names a role at its start belongs to it, by the name
of the role's folder or the one in its file; one that names none belongs to the only role that is loaded, and
to nobody if there are several; one that names a role that is not loaded belongs to nobody. Where the scope is
``all``, every role has every session. Pure; who keeps the state over a restart is told what has changed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from .role_functions import FunctionState

SESSIONS: Final = 4_096
"""Sessions that are remembered; beyond it those go that nothing was heard of for the longest time."""

ROLE_CHARACTERS: Final = 256
"""Longest name of a role, or of an agent, that a session is remembered by."""

SHOWN: Final = 8
"""Roles that are named to somebody who has named none of them."""

Scope: TypeAlias = Literal["session", "all"]


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What is remembered of a session: the role and the agent that it named, and its functions."""

    role: str | None = None
    agent: str | None = None
    functions: FunctionState = field(default_factory=FunctionState)


NEW: Final = SessionRecord()
"""A session of which nothing is known yet."""


class Named(NamedTuple):
    """A role that is loaded: its id (the folder's name) and the name in its file, if there is one."""

    id: str
    name: str | None


class Whose(NamedTuple):
    """Places of the roles that a session belongs to; ``why``: what to say, once, where there is none."""

    roles: tuple[int, ...]
    why: str | None = None


def whose(role: str | None, loaded: Sequence[Named], scope: Scope) -> Whose:
    """The loaded roles whose hooks fire for a session that has named ``role``, or None."""
    if scope == "all":
        return Whose(tuple(range(len(loaded))))
    if role is None:
        if len(loaded) == 1:
            return Whose((0,))
        if not loaded:
            return Whose(())
        return Whose((), f"a session that names no role fires nothing, because {len(loaded)} are loaded")
    found = [place for place, each in enumerate(loaded) if each.id == role]
    found = found or [place for place, each in enumerate(loaded) if each.name == role]
    if found:
        return Whose(tuple(found))
    there = ", ".join(each.id for each in loaded[:SHOWN]) + (", ..." if len(loaded) > SHOWN else "")
    why = f"a session plays {role[:ROLE_CHARACTERS]!r}, a role that is not loaded: it fires nothing"
    return Whose((), f"{why}; loaded: {there or 'none'}")


class Kept(NamedTuple):
    """A session as it is to be stored; ``record`` None: it is forgotten."""

    session: str
    record: SessionRecord | None


class Sessions:
    """What is known of sessions, the least recently used of them forgotten first."""

    def __init__(self, kept: Iterable[Kept] = ()) -> None:
        self._records: OrderedDict[str, SessionRecord] = OrderedDict()
        self._changed: dict[str, None] = {}
        for session, record in kept:
            if record is not None:
                self._records[session] = record

    def __len__(self) -> int:
        return len(self._records)

    def get(self, session: str | None) -> SessionRecord:
        """What is known of a session."""
        record = None if session is None else self._records.get(session)
        if record is None:
            return NEW
        assert session is not None
        self._records.move_to_end(session)
        return record

    def put(self, session: str, record: SessionRecord) -> None:
        """Remember a session as it is now."""
        if self._records.get(session, NEW) == record:
            return
        self._changed[session] = None
        self._records[session] = record
        self._records.move_to_end(session)
        while len(self._records) > SESSIONS:
            forgotten, _ = self._records.popitem(last=False)
            self._changed[forgotten] = None

    def forget(self, session: str) -> None:
        """The session is over."""
        if self._records.pop(session, None) is not None:
            self._changed[session] = None

    @property
    def has_changed(self) -> bool:
        """Whether there is something to store."""
        return bool(self._changed)

    def changes(self) -> list[Kept]:
        """What is different since the last call, to be stored."""
        changed, self._changed = self._changed, {}
        return [Kept(session, self._records.get(session)) for session in changed]
