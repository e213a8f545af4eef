"""Who may replace a tool's result, and in which order they are asked: the chain's law, and one walk along it.

The law, each sentence held by a property test:

* Handlers are asked one after another in the order of their registration; those whose filters do not let the
  agent or the tool through are not asked.
* Every handler sees the original result. Nothing that an earlier one did shows.
* The first handler that returns a value wins, also with an empty text or the original one; nothing runs
  after it.
* A handler that returns nothing passes on. One that fails, or is out of time, is noted and skipped: the
  result of a tool is never lost for a handler's sake (fail open).
* No handler can use up the time of those behind it: each gets its own limit, and at most an equal share of
  the time that is left; what it does not need goes to the others. The last may use all that is left.

Pure: it asks nobody, measures no time and knows neither commands nor functions. Who walks along it runs the
handlers and says what came of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

MARGIN_S: Final = 0.05
"""Seconds at the end of an ask's time that are kept for the way back, where there are that many to spare."""

MARGIN_SHARE: Final = 0.1
"""Largest share of the time that is left which the way back may take."""


class ToolResult(NamedTuple):
    """What every handler is shown: one run of a tool and the text that came of it.

    ``agent_id``, ``session_id`` and ``tool_name`` are None where the agent does not say; ``tool_input`` is
    what the tool was given; ``agent_names`` are the agent's other names, by which it may be filtered as well.
    """

    agent_id: str | None
    session_id: str | None
    tool_name: str | None
    tool_input: Any
    tool_output: str
    agent_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Handler(Generic[T]):
    """A link of the chain. ``name`` stands in answers and records; ``what`` is run, and not looked at here.

    ``tools`` and ``agents``: the names that it is for, in which ``*`` stands for any characters; none is
    everybody. What has no name gets to handlers without that filter. ``timeout_s``: seconds that it may take.
    """

    name: str
    what: T
    timeout_s: float
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()

    def is_for(self, result: ToolResult) -> bool:
        """Whether its filters let this result through."""
        agents = (result.agent_id, *result.agent_names)
        return _lets_through(self.tools, (result.tool_name,)) and _lets_through(self.agents, agents)


def _lets_through(wanted: tuple[str, ...], names: tuple[str | None, ...]) -> bool:
    return not wanted or any(fits(pattern, name) for name in names if name for pattern in wanted)


def fits(pattern: str, name: str) -> bool:
    """Whether ``name`` is ``pattern``, in which ``*`` stands for any characters; in linear time."""
    first, *others = pattern.split("*")
    if not others:
        return name == pattern
    *middle, last = others
    if not name.startswith(first):
        return False
    place = len(first)
    for part in middle:
        found = name.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return name.endswith(last) and len(name) - len(last) >= place


class Value(NamedTuple):
    """A handler's answer: the text in place of the tool's."""

    text: str


class Passed(NamedTuple):
    """A handler's answer: nothing to say."""


class Fault(NamedTuple):
    """No answer came of a handler. ``reason`` never repeats the tool's text.

    ``exit_code``, or the number of a ``signal``, where it was a program that ended with one.
    """

    kind: Literal["failed", "signalled", "timeout", "not_started"]
    reason: str
    exit_code: int | None = None
    signal: int | None = None


Said: TypeAlias = Value | Passed | Fault


class Turn(NamedTuple, Generic[T]):
    """Whom to ask now, and for how many seconds at most."""

    handler: Handler[T]
    allowance_s: float


class Skipped(NamedTuple):
    """A handler that was skipped, and why."""

    handler: str
    fault: Fault


class Walk(Generic[T]):
    """One ask's way along the chain: :meth:`turn` says whom to ask, :meth:`heard` what came of it.

    ``deadline`` is the time at which the asker stops waiting, on the clock that :meth:`turn` is told.
    When :meth:`turn` returns None the walk is over: ``value`` and ``by`` hold the replacement and who gave
    it, or None; ``skipped`` those that failed; ``passed`` counts those that had nothing to say, ``unasked``
    those that found no time left.
    """

    def __init__(self, handlers: Iterable[Handler[T]], result: ToolResult, deadline: float) -> None:
        self.value: str | None = None
        self.by: Handler[T] | None = None
        self.skipped: list[Skipped] = []
        self.passed = 0
        self.unasked = 0
        self._left = [handler for handler in handlers if handler.is_for(result)]
        self._left.reverse()
        self._deadline = deadline

    def turn(self, now: float) -> Turn[T] | None:
        """Whom to ask at the time ``now``; None when there is a value, nobody is left, or no time is."""
        if self.value is not None or not self._left:
            return None
        left_s = self._deadline - now
        left_s -= min(MARGIN_S, left_s * MARGIN_SHARE)
        if left_s <= 0:
            self.unasked, self._left = len(self._left), []
            return None
        handler = self._left[-1]
        return Turn(handler, min(handler.timeout_s, left_s / len(self._left)))

    def heard(self, said: Said) -> None:
        """Take what the handler of the last turn said."""
        handler = self._left.pop()
        if isinstance(said, Value):
            self.value, self.by = said.text, handler
            self._left = []
        elif isinstance(said, Fault):
            self.skipped.append(Skipped(handler.name, said))
        else:
            self.passed += 1
