"""What a run of a handler comes to, as values: a status, entries for people, effects for the agent.

It decides nothing; :mod:`.codex_result` makes these and :mod:`.codex_merge` puts those of an event together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from broker.protocol.decisions import NOTHING, Verdict

RunStatus: TypeAlias = Literal["completed", "failed", "blocked", "stopped"]
EntryKind: TypeAlias = Literal["warning", "stop", "feedback", "context", "error"]


class Entry(NamedTuple):
    """One text of a run, in the words of upstream."""

    kind: EntryKind
    text: str


class Context(NamedTuple):
    """A text for the model, and how long it may be: in tokens, 0 for any length, None for the profile's."""

    text: str
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Effects:
    """What a run asks of the agent; nothing at all by default.

    ``verdict`` and ``reason``: a block is a ``deny``; of ``Stop`` the reason is the prompt that the turn goes
    on with. ``updated_input`` is :data:`~broker.protocol.decisions.NOTHING` or any JSON value, ``output``
    likewise what replaces the tool's. ``feedback`` is what the model reads of a tool's result, in its place
    or beside it. ``stop_reason`` may be None although ``stop`` is set. ``warnings`` are for the user.
    """

    verdict: Verdict = "none"
    reason: str | None = None
    updated_input: Any = NOTHING
    output: Any = NOTHING
    feedback: str | None = None
    contexts: tuple[Context, ...] = ()
    stop: bool = False
    stop_reason: str | None = None
    warnings: tuple[str, ...] = ()


NO_EFFECTS = Effects()


@dataclass(frozen=True, slots=True)
class Judged:
    """One run: how it ended, what it said, what it wants."""

    status: RunStatus
    entries: tuple[Entry, ...] = ()
    effects: Effects = NO_EFFECTS

    @property
    def errors(self) -> Iterator[str]:
        """The texts that say what went wrong."""
        return (entry.text for entry in self.entries if entry.kind == "error")


COMPLETED = Judged("completed")
