"""Tells the bus and the log of an event's calls that are over, once its asker has been answered.

Decides that an edit for which nobody has asked is called ignored. Refuses to know what a report says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.protocol.events import Event

from .reports import reports
from .roles_reports import log_failure, outcome_of, spec_of
from .roles_rounds import Ran, Round
from .roles_view import GUARDED

Publish = Callable[[str, dict[str, Any], Event], None]
"""Has a report published soon: topic, payload and the event that it is about. Raises nothing."""


def tell(publish: Publish, found: Round, ran: Sequence[Ran]) -> None:
    """Report these calls of an event."""
    for hook, seen, said, waited_s in ran:
        if said.status != "ok":
            log_failure(hook, seen, said)
        outcome = outcome_of(said, is_ignored=seen.happening.event in GUARDED and not found.claimed)
        for topic, payload in reports(spec_of(hook, seen), found.event, outcome, waited_s):
            publish(topic, payload, found.event)
