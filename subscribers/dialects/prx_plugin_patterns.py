"""The event patterns of a plugin's manifest: which lifecycle events reach it.

Three forms: one event (``tool_call`` or ``prx.lifecycle.tool_call``), every event below a prefix
(``prx.lifecycle.*``, ``prx.*``), and every event (``*``). All of them mean lifecycle events only, so that a
plugin is never fed with reports of its own calls. The union over all patterns counts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from broker.protocol.errors import TopicError
from broker.protocol.topics import LIFECYCLE, Pattern

from ..hooks.diagnostics import quote
from .findings import Findings
from .json_positions import Path
from .nearest import nearest
from .prx_file import event_name
from .prx_plugin_rules import EVERY_PATTERN
from .prx_rules import PAGE_EVENTS

_EVERY: Final = (EVERY_PATTERN, "prx.*", f"{LIFECYCLE}*")


@dataclass(frozen=True, slots=True)
class EventPatterns:
    """Which events: ``every`` lifecycle event, or those whose bare names are in ``names``."""

    every: bool
    names: frozenset[str]

    def match(self, event: str) -> bool:
        """Whether the lifecycle event of this bare name is one of them."""
        return self.every or event in self.names

    def __bool__(self) -> bool:
        return self.every or bool(self.names)


def read_pattern(text: str, where: Path, known: Collection[str], findings: Findings) -> EventPatterns | None:
    """One pattern; None, with a finding that says so, when it matches no event."""
    written = text.strip()
    if written in _EVERY:
        return EventPatterns(True, frozenset())
    event = event_name(written).removeprefix(LIFECYCLE)
    if event in PAGE_EVENTS or event in known:
        if event not in PAGE_EVENTS:
            message = f"{event} is not an event of PRX (prxbus extension): PRX itself never sends it"
            findings.say("extension_event", where, message)
        return EventPatterns(False, frozenset({event}))
    code, message, hint = _fault(written, event, () if findings.full else (*PAGE_EVENTS, *known))
    findings.say(code, where, message, hint)
    return None


def _fault(written: str, event: str, known: Collection[str]) -> tuple[str, str, str | None]:
    if "*" in event:
        code, message = "bad_pattern", f"{quote(written)} is no pattern of events"
        hint = f'write "{LIFECYCLE}*" or "*" for every event, or name each event'
        return (code, message, hint) if not _is_foreign(written) else _not_lifecycle(written)
    if "." in event and _is_foreign(written):
        return _not_lifecycle(written)
    near = nearest(event, known)
    hint = f"did you mean {near}?" if near is not None else f"the events are {', '.join(PAGE_EVENTS)}"
    return "unknown_event", f"there is no event {quote(written)}", hint


def _is_foreign(written: str) -> bool:
    """Whether this is a good pattern of the bus for topics that are no lifecycle events."""
    try:
        pattern = Pattern(written)
    except TopicError:
        return False
    return not pattern.text.startswith((LIFECYCLE, "*"))


def _not_lifecycle(written: str) -> tuple[str, str, str]:
    message = f"{quote(written)} names no lifecycle event, and hooks are for those"
    return "not_lifecycle", message, "subscribe to other topics from inside, with events.subscribe"
