"""What is done of a role's between the phases of its hooks: texts that wait, functions, and who a session is.

Decides what the core of each event is. The prompt of a session is given what waits for it, then what its
functions say; a message of the user activates functions; a text that is injected waits. Refuses to know when
that is, and what a hook does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from broker.logs import get_logger
from broker.protocol.decisions import Answer
from broker.protocol.events import Event

from ..hooks.role_chain import CORE_NAME
from ..hooks.role_functions import FunctionState, RoleFunctions, element, on_message, requested
from ..hooks.role_sessions import ROLE_CHARACTERS, Named, Scope, whose
from .roles_memory import Memory
from .roles_rounds import Round
from .roles_view import MESSAGE, NAMES_A_ROLE, SYSTEM, Seen, session_of

ENDS: Final = frozenset({"session_end", "session_reset"})
"""Events behind which nothing waits for their session any more."""

log = get_logger("subscribers.roles")


class RolesCore:
    """The core. Thread-safe. ``without_session`` counts texts that were injected for no session."""

    def __init__(self, memory: Memory) -> None:
        self.without_session = 0
        self._memory = memory

    def role_of(self, seen: Seen, loaded: Sequence[Named], scope: Scope) -> str | None:
        """The role that an event's session has named, with this event or before.

        A session that plays another role from now on leaves the functions of the one before.
        """
        session = seen.session
        if session is None:
            return seen.role
        record = self._memory.session(session)
        if seen.name in NAMES_A_ROLE and (seen.role or seen.agent):
            role = record.role if seen.role is None else seen.role[:ROLE_CHARACTERS]
            agent = record.agent if seen.agent is None else seen.agent[:ROLE_CHARACTERS]
            is_other = record.role is not None and whose(role, loaded, scope) != whose(
                record.role, loaded, scope
            )
            functions = FunctionState() if is_other else record.functions
            record = replace(record, role=role, agent=agent, functions=functions)
            self._memory.remember(session, record)
        return record.role

    def agent_of(self, seen: Seen) -> str | None:
        """The agent that an event is of, or whose session it is."""
        return seen.agent if seen.agent is not None else self._memory.session(seen.session).agent

    def between(self, found: Round, seen: Seen) -> Sequence[str]:
        """Do what is done between the phases; the elements that the prompt gets, if it is one."""
        session, event = seen.session, seen.happening.event
        if session is None:
            return ()
        functions = [found.roles.functions[place] for place in found.places]
        if event == SYSTEM and found.claimed:
            said = element(self._memory.session(session).functions, functions)
            found.flushed = self._memory.look(session)
            return [text for text in (found.flushed, said) if text is not None]
        if event == MESSAGE:
            self._activate(session, seen.view.get("text"), functions)
        return ()

    def _activate(self, session: str, text: object, roles: Sequence[RoleFunctions]) -> None:
        if isinstance(text, str) and any(role.does_something for role in roles):
            record = self._memory.session(session)
            state = on_message(record.functions, text, roles)
            self._memory.remember(session, replace(record, functions=state))

    def functions(self, event: Event) -> Answer:
        """What the functions of a session are, after what is asked for was done."""
        payload = event.payload
        session = session_of(event, payload)
        record = self._memory.session(session)
        state = requested(record.functions, _names(payload, "activate"), _names(payload, "deactivate"))
        if session is not None and state != record.functions:
            self._memory.remember(session, replace(record, functions=state))
        return Answer(CORE_NAME, output={"active": list(state.active), "locked": list(state.locked)})

    def inject(self, hook: str, session: str | None, texts: Sequence[str]) -> None:
        """Have texts wait for the next prompt."""
        if session is None:
            self.without_session += len(texts)
            log.warning("a text was injected without a session, and is lost", hook=hook)
            return
        for text in texts:
            if not self._memory.add(session, _whole(text)):
                log.warning("a text finds no room and is lost", hook=hook, session=session)

    def store(self) -> None:
        """Have everything stored that has changed, before this returns."""
        self._memory.store()

    def replied(self, seen: Seen, flushed: str | None, *, is_delivered: bool) -> None:
        """The event is over, and its asker has its prompt, or has not."""
        if seen.session is None:
            return
        if flushed is not None and is_delivered:
            self._memory.delivered(seen.session, flushed)
        if seen.name in ENDS:
            self._memory.forget(seen.session, for_good=seen.name == "session_end")
        self._memory.store()

    def counters(self) -> dict[str, Any]:
        """Of texts and sessions."""
        return {"without_session": self.without_session, **self._memory.counters()}


def _whole(text: str) -> str:
    """A text that can be sent: halves of characters are replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _names(payload: Mapping[str, Any], key: str) -> list[str]:
    value = payload.get(key)
    if not isinstance(value, list):
        return []
    return [name for name in value if isinstance(name, str) and 0 < len(name) <= ROLE_CHARACTERS]
