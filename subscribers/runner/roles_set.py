"""The roles in force, in the shape in which events are put to them.

Decides what a role that was read comes to: whom it is called by, its links in order, its functions. Pure; how
a role is read, and where its modules run, is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from ..dialects.rolebox_spec import RoleHook
from ..hooks.module_hook import ModuleHook
from ..hooks.role_chain import Link, ordered
from ..hooks.role_functions import Function, RoleFunctions
from ..hooks.role_sessions import Named
from ..sources.role_directories import LoadedRole

COMBINATIONS: Final = 256
"""Sets of roles whose common order is remembered."""


class InForce(NamedTuple):
    """A hook that may be called. ``path`` is its module's, ``line`` that of its entry in role.yaml."""

    link: Link
    module: ModuleHook
    line: int


class Missing(NamedTuple):
    """A hook whose module cannot be loaded at all: why, and where it was looked for."""

    role: str
    name: str
    module: str
    reason: str


@dataclass(frozen=True)
class RoleSet:
    """What is in force. The sequences have a place for each role, in the order in which they were named.

    ``refused`` counts roles that cannot be used, ``bad_hooks`` the entries of others that cannot.
    """

    named: tuple[Named, ...] = ()
    functions: tuple[RoleFunctions, ...] = ()
    chains: tuple[tuple[Link, ...], ...] = ()
    hooks: Mapping[str, InForce] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    refused: int = 0
    bad_hooks: int = 0
    _orders: dict[tuple[int, ...], tuple[Link, ...]] = field(default_factory=dict, compare=False)

    @cached_property
    def listens(self) -> frozenset[str]:
        """The rolebox events that some hook listens to."""
        return frozenset(event for hook in self.hooks.values() for event in hook.link.events)

    @property
    def modules(self) -> tuple[ModuleHook, ...]:
        """What to load, in the order of registration."""
        return tuple(hook.module for hook in self.hooks.values())

    def links(self, places: tuple[int, ...]) -> tuple[Link, ...]:
        """The hooks of these roles, in the order in which they are asked."""
        if len(places) == 1:
            return self.chains[places[0]]
        found = self._orders.get(places)
        if found is None:
            found = ordered(link for place in places for link in self._registered(place))
            if len(self._orders) < COMBINATIONS:
                self._orders[places] = found
        return found

    def _registered(self, place: int) -> Iterable[Link]:
        role = self.chains[place]
        order = {hook_id: number for number, hook_id in enumerate(self.hooks)}
        return sorted(role, key=lambda link: order[link.id])


NOTHING: Final = RoleSet()


def role_set(roles: Sequence[LoadedRole], timeout_s: float) -> RoleSet:
    """The roles that were read; a handler may take ``timeout_s`` seconds."""
    hooks: dict[str, InForce] = {}
    missing: list[Missing] = []
    chains: list[tuple[Link, ...]] = []
    usable = [role for role in roles if not role.role.refused]
    for role in usable:
        links: list[Link] = []
        for loaded in role.hooks:
            spec, module = loaded.hook, loaded.module
            if module is None:
                reason = "; ".join(said.message for said in loaded.diagnostics)
                missing.append(Missing(role.name, spec.name, f"{role.directory}/{spec.module}", reason))
                continue
            link = link_of(spec, module.id, role.name, timeout_s)
            links.append(link)
            hooks[module.id] = InForce(link, module, spec.line)
        chains.append(ordered(links))
    return RoleSet(
        tuple(Named(role.id, role.role.name) for role in usable),
        tuple(map(_functions, usable)),
        tuple(chains),
        hooks,
        tuple(missing),
        len(roles) - len(usable),
        sum(role.role.bad_hooks for role in usable),
    )


def link_of(hook: RoleHook, module_id: str, role: str, timeout_s: float) -> Link:
    """A hook that was read as a link of the chain."""
    return Link(
        module_id,
        hook.name,
        role,
        frozenset(hook.events),
        hook.phase,
        hook.priority,
        None if hook.tools is None else frozenset(hook.tools),
        None if hook.event_types is None else frozenset(hook.event_types),
        timeout_s,
    )


def _functions(role: LoadedRole) -> RoleFunctions:
    functions = {
        each.name: Function(each.name, each.text, tuple(each.params.items()), each.requires, each.priority)
        for each in role.functions
    }
    return RoleFunctions(role.automatic, frozenset(role.locked), functions)
