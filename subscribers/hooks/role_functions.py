"""Which functions of a role are active in a session.

Decides what activates one: the first message of the user, for those of the role's ``auto_activate`` list; the
word ``|name|`` in a message, for those that the role has; a request. Locked ones stay active whatever is
requested. Pure values and functions; what a function does, and who keeps the state, is known elsewhere.
Source: the rolebox page, "auto_activate".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

ACTIVE: Final = 256
"""Functions of a session that are active at most."""

_NAMED: Final = re.compile(r"\|([^|\s]{1,128})(?=\|)")


class RoleFunctions(NamedTuple):
    """What a role says of its functions.

    ``auto``: the names that the first message activates, none where ``hooks.builtin.auto_activate`` is off;
    ``locked``: whether those stay active; ``names``: those that ``|name|`` may activate.
    """

    auto: tuple[str, ...] = ()
    locked: bool = False
    names: frozenset[str] = frozenset()


class FunctionState(NamedTuple):
    """The functions of a session. ``greeted``: its first message has come. All in order of activation."""

    active: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    greeted: bool = False


def on_message(state: FunctionState, text: str, roles: Iterable[RoleFunctions]) -> FunctionState:
    """What a message of the user makes of it, in a session that plays these roles."""
    active, locked = list(state.active), list(state.locked)
    for role in roles:
        if not state.greeted:
            active += role.auto
            locked += role.auto if role.locked else ()
        if role.names and "|" in text:
            active += [name for name in _NAMED.findall(text) if name in role.names]
    return FunctionState(_once(active), _once(locked), greeted=True)


def requested(state: FunctionState, activate: Iterable[str], deactivate: Iterable[str]) -> FunctionState:
    """What a request makes of it: locked ones are not deactivated."""
    off = set(deactivate) - set(state.locked)
    wanted = (name for name in (*state.active, *activate) if name not in off)
    return state._replace(active=_once(wanted))


def element(state: FunctionState) -> str | None:
    """What a system prompt says of them; None for nothing."""
    if not state.active:
        return None
    locked = set(state.locked)
    names = (f"{name} (locked)" if name in locked else name for name in state.active)
    return f"Active functions: {', '.join(names)}"


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:ACTIVE]
