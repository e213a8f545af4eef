"""The client of the bus: publish, subscribe, ask; blocking and asyncio over one sans-IO core.

    from broker.client import Publisher, Subscriber

It decides when a peer is ready and what was missed. It refuses to know who is at the other end: agents,
hooks and monitors are clients alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..protocol.decisions import Answer, Decision
    from ..protocol.events import Event
    from .context import handling
    from .decider import Ask, Decider
    from .publisher import Publisher
    from .subscriber import Subscriber

__all__ = ["Answer", "Ask", "Decider", "Decision", "Event", "Publisher", "Subscriber", "handling"]

_HOMES = {
    "Answer": "..protocol.decisions",
    "Ask": ".decider",
    "Decider": ".decider",
    "Decision": "..protocol.decisions",
    "Event": "..protocol.events",
    "Publisher": ".publisher",
    "Subscriber": ".subscriber",
    "handling": ".context",
}


def __getattr__(name: str) -> object:
    """Import what is asked for: who publishes one event and ends does not pay for the subscriber."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home, __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
