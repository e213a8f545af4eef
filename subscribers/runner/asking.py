"""What whoever answers an ask needs of it, so that tests and other sources of asks can stand in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from broker.protocol.decisions import Answer
from broker.protocol.events import Event


class Ask(Protocol):
    """As much of :class:`broker.client.decider.Ask` as is needed here."""

    @property
    def event(self) -> Event:
        """The event that an opinion is wanted on."""

    @property
    def deadline(self) -> float:
        """In seconds of ``time.monotonic()``."""

    @property
    def cancelled(self) -> bool:
        """Whether the asker waits no longer."""

    def reply(self, answers: Iterable[Answer], /) -> bool:
        """Answer."""

    def fail(self, why: str, /) -> bool:
        """Say that there is no answer."""
