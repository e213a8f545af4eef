"""Which hooks an event starts: an immutable index of specs by canonical event name.

It decides nothing else: not the order in which they run (the runner), not whether they can (sources). A new
set of hooks is a new plan; whoever holds one replaces the reference, so a reader sees the old set or the new
one and never a mixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from .spec import HookSpec


@dataclass(frozen=True, slots=True)
class Plan:
    """The hooks of one set, in file order, and the same hooks by event."""

    specs: tuple[HookSpec, ...]
    by_event: Mapping[str, tuple[HookSpec, ...]]

    @classmethod
    def of(cls, specs: Iterable[HookSpec]) -> Plan:
        """Index the specs; within an event they keep the order given."""
        kept = tuple(specs)
        lists: dict[str, list[HookSpec]] = {}
        for spec in kept:
            lists.setdefault(spec.event, []).append(spec)
        return cls(kept, MappingProxyType({event: tuple(found) for event, found in lists.items()}))

    def for_event(self, name: str) -> tuple[HookSpec, ...]:
        """The hooks of this canonical event name; none is an empty tuple."""
        return self.by_event.get(name, ())

    @property
    def events(self) -> tuple[str, ...]:
        """The event names that start something, in file order: what a subscriber has to listen for."""
        return tuple(self.by_event)

    def __len__(self) -> int:
        return len(self.specs)


EMPTY: Final = Plan.of(())
"""The plan of a workspace without hooks."""
