"""An event that is asked about a second time is one event.

An agent of rolebox may ask twice: before its own logic and behind it, with ``"phase": "after"`` in the second
ask. Only the hooks of a role have two halves. Decides, in one place for everybody else, that this second ask
is nothing new: hooks of PRX, LibreFang and the Codex family and plugins do not run for it again. Functions in
Python see both. Pure, and cheap for events without a phase: their payload is not decoded.
"""

from __future__ import annotations

from typing import Final

from broker.protocol.catalogue import EVENTS
from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE

FIELD: Final = "phase"

TOPICS: Final = frozenset(
    f"{LIFECYCLE}{event}"
    for event, spec in EVENTS.items()
    if any(field.name == FIELD for field in spec.fields)
)
"""Topics of the events that have phases; in any other one the word is the agent's own."""

_KEY: Final = f'"{FIELD}"'.encode()


def is_second_phase(event: Event) -> bool:
    """Whether an event has been handled before, as far as anybody but a role is concerned.

    Raises what :attr:`Event.payload <broker.protocol.events.Event.payload>` raises.
    """
    if event.topic not in TOPICS or _KEY not in event.payload_bytes:
        return False
    return event.payload.get(FIELD) == "after"
