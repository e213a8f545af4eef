"""The client of the bus: publish, subscribe, ask; blocking and asyncio over one sans-IO core.

    from broker.client import Publisher, Subscriber

It decides when a peer is ready and what was missed. It refuses to know who is at the other end: agents,
hooks and monitors are clients alike.
"""

from __future__ import annotations

from ..protocol.events import Event
from .context import handling
from .publisher import Publisher
from .subscriber import Subscriber

__all__ = ["Event", "Publisher", "Subscriber", "handling"]
