"""Which functions of a role are active in a session, and what a system prompt says of them.

A function is a text of instructions that a role has. Decides what activates one: the first message of the
user, for those that the role activates by itself; ``|name|`` at the beginning of a line of a message, with
its parameters (``|review:security,strict|``, ``|review focus=security|``, ``|plan|review|``); a request.
Active ones stay so for the session, locked ones whatever is requested. Its instructions stand in the prompt,
smaller priorities first, once all that it requires are active. Pure values and functions: where a function is
written, and who keeps the state of a session, is known elsewhere.
Sources: the rolebox page, "auto_activate", and what its documents say of functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

ACTIVE: Final = 256
"""Functions of a session that are active at most."""

VALUE_CHARACTERS: Final = 1_024
"""First characters of a parameter's value."""

ELEMENT_CHARACTERS: Final = 262_144
"""Characters of all instructions in a prompt; what does not fit is named only."""

_PREFIX: Final = re.compile(r"^[ \t]*((?:\|{1,2}[a-z][^|\n]{0,4096})+)\|", re.MULTILINE)
_ONE: Final = re.compile(r"([a-z][a-z0-9-]*)(?::([^|]*)|[ \t]+([^|]*=[^|]*))?[ \t]*", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}", re.ASCII)

Parameters: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a role. ``text`` None: its instructions are unknown. ``params``: with their defaults."""

    name: str
    text: str | None = None
    params: Parameters = ()
    requires: tuple[str, ...] = ()
    priority: float = 50


@dataclass(frozen=True, slots=True)
class RoleFunctions:
    """What a role says of its functions.

    ``auto``: the names that the first message activates; ``locked``: those of them that stay active;
    ``functions``: those that can be named, by name.
    """

    auto: tuple[str, ...] = ()
    locked: frozenset[str] = frozenset()
    functions: Mapping[str, Function] = field(default_factory=dict)

    @property
    def does_something(self) -> bool:
        """Whether a message can activate anything."""
        return bool(self.auto or self.functions)


class FunctionState(NamedTuple):
    """The functions of a session, in order of activation; ``given`` are the parameters of some.

    ``greeted``: its first message has come.
    """

    active: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    given: tuple[tuple[str, Parameters], ...] = ()
    greeted: bool = False


def on_message(state: FunctionState, text: str, roles: Sequence[RoleFunctions]) -> FunctionState:
    """What a message of the user makes of it, in a session that plays these roles."""
    active, locked, given = list(state.active), list(state.locked), dict(state.given)
    if not state.greeted:
        for role in roles:
            active += role.auto
            locked += (name for name in role.auto if name in role.locked)
    for name, written in _named(text):
        for function in (role.functions[name] for role in roles if name in role.functions):
            active.append(name)
            parameters = tuple(_parameters(function, written))
            if parameters:
                given[name] = parameters
    kept = _once(active)
    return FunctionState(kept, _once(locked), _of(given, kept), greeted=True)


def requested(state: FunctionState, activate: Iterable[str], deactivate: Iterable[str]) -> FunctionState:
    """What a request makes of it: locked ones are not deactivated."""
    off = set(deactivate) - set(state.locked)
    kept = _once(name for name in (*state.active, *activate) if name not in off)
    return state._replace(active=kept, given=_of(dict(state.given), kept))


def element(state: FunctionState, roles: Sequence[RoleFunctions]) -> str | None:
    """What a system prompt says of them; None for nothing."""
    if not state.active:
        return None
    active, locked, given = set(state.active), set(state.locked), dict(state.given)
    names = (f"{name} (locked)" if name in locked else name for name in state.active)
    parts = [f"Active functions: {', '.join(names)}"]
    known = [role.functions[name] for name in state.active for role in roles if name in role.functions]
    room = ELEMENT_CHARACTERS
    for function in sorted(known, key=lambda each: each.priority):
        missing = [name for name in function.requires if name not in active]
        if missing:
            parts.append(f"## {function.name}\nactivate required functions first: {', '.join(missing)}")
        elif function.text is not None:
            text = _filled(function, dict(given.get(function.name, ())))
            room -= len(text)
            if room >= 0:
                parts.append(f"## {function.name}\n{text}")
    return "\n\n".join(parts)


def _named(text: str) -> Iterator[tuple[str, str]]:
    """What a message activates: names, and their parameters as written."""
    if "|" not in text:
        return
    for prefix in _PREFIX.finditer(text):
        for one in prefix[1].split("|"):
            found = _ONE.fullmatch(one)
            if found is not None:
                yield found[1], found[2] if found[2] is not None else found[3] or ""


def _parameters(function: Function, written: str) -> Iterator[tuple[str, str]]:
    """By name if there is an equals sign and a name of a parameter before it, else by place."""
    names = [name for name, _ in function.params]
    by_name = [part.partition("=") for part in written.split()]
    if by_name and all(equals and name in names for name, equals, _ in by_name):
        yield from ((name, value[:VALUE_CHARACTERS]) for name, _, value in by_name)
        return
    for name, value in zip(names, written.split(","), strict=False):
        if value.strip():
            yield name, value.strip()[:VALUE_CHARACTERS]


def _filled(function: Function, given: Mapping[str, str]) -> str:
    values = {**dict(function.params), **given}
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), function.text or "").strip()


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))[:ACTIVE]


def _of(given: Mapping[str, Parameters], active: Iterable[str]) -> tuple[tuple[str, Parameters], ...]:
    return tuple((name, given[name]) for name in active if name in given)
