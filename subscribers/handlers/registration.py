"""A function that was made a handler: what it is for, and whether an event is its business.

Decides which arguments of a decorator are refused and in what words. Refuses to know who calls the function.
Registrations go to whoever collects them at that moment; where nobody does, as in a test of the user's own
that imports the file, a decorated function is just a function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias

from broker.protocol.decisions import FAILURES, Failure
from broker.protocol.errors import LimitExceeded, TopicError, shown
from broker.protocol.topics import LIFECYCLE, Pattern, parse_patterns

Kind: TypeAlias = Literal["on", "decide", "transform"]
"""``on`` watches, ``decide`` is asked and answers, ``transform`` rewrites a tool's result."""

Handler: TypeAlias = Callable[[Any, Any], Any]

TIMEOUTS: Final[Mapping[Kind, float]] = {"on": 30.0, "decide": 5.0, "transform": 5.0}
"""Seconds that a call may take, unless the handler says otherwise."""

MAX_TIMEOUT: Final = 3_600.0
"""Longest timeout that a handler may ask for, in seconds."""

MAX_PRIORITY: Final = 1_000_000

TOOL_FIELDS: Final = ("tool", "tool_name")
AGENT_FIELDS: Final = ("agent", "agent_id", "agent_name")
"""Where a payload names its tool and its agent."""


class HandlerError(ValueError):
    """A handler that cannot be: its decorator's arguments, its signature, or what it returned."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One handler. ``path`` and ``line`` are where it was made; ``timeout_s`` counts from the call.

    ``tools`` and ``agents`` are names in which ``*`` stands for any characters; empty: every one. ``failure``
    and ``priority`` (the lower the earlier) are of meaning for ``decide`` alone.
    """

    kind: Kind
    function: Handler
    patterns: tuple[Pattern, ...]
    tools: tuple[str, ...]
    agents: tuple[str, ...]
    priority: int
    timeout_s: float
    failure: Failure
    name: str
    path: str
    line: int
    is_async: bool

    def wants_topic(self, topic: str) -> bool:
        """Whether ``topic`` is one that this handler asks for."""
        return any(pattern.matches(topic) for pattern in self.patterns)

    def wants_payload(self, payload: Mapping[str, Any]) -> bool:
        """Whether the tool and the agent that ``payload`` names pass this handler's filters."""
        return _passes(self.tools, payload, TOOL_FIELDS) and _passes(self.agents, payload, AGENT_FIELDS)

    @property
    def filters(self) -> bool:
        """Whether the payload has to be looked at to know that an event is this handler's business."""
        return bool(self.tools or self.agents)


_collecting: ContextVar[list[Registration] | None] = ContextVar("prxbus_registrations", default=None)


@contextmanager
def collected() -> Iterator[list[Registration]]:
    """Within the block, what this thread's decorators register is put into the list, in order."""
    found: list[Registration] = []
    token = _collecting.set(found)
    try:
        yield found
    finally:
        _collecting.reset(token)


def register(registration: Registration) -> None:
    """Hand a registration to whoever collects."""
    found = _collecting.get()
    if found is not None:
        found.append(registration)


def topics(kind: Kind, texts: tuple[object, ...]) -> tuple[Pattern, ...]:
    """The patterns of ``texts``; a name without a dot is that of a lifecycle event, ``*`` all of them.

    Raises :class:`HandlerError`.
    """
    if len(texts) == 1 and callable(texts[0]):
        raise HandlerError(f'@{kind} needs at least one event: write @{kind}("tool_call")')
    full = [_full(text) for text in texts]
    try:
        return parse_patterns(full)
    except TopicError as error:
        if not full:
            raise HandlerError(f'@{kind}() needs at least one event: write @{kind}("tool_call")') from None
        raise HandlerError(f"@{kind}: {error}") from None
    except LimitExceeded as error:
        raise HandlerError(f"@{kind}: {error}") from None


def names(kind: Kind, what: str, value: object) -> tuple[str, ...]:
    """The names of a filter such as ``tools``; raises :class:`HandlerError`."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise HandlerError(f'@{kind}: {what} is a list of names, such as ["Bash"], not {shown(value)}')
    found = tuple(value)
    if not found:
        raise HandlerError(f"@{kind}: {what} is empty, so nothing would pass; leave it out for every one")
    for name in found:
        if not isinstance(name, str) or not name:
            raise HandlerError(f"@{kind}: {what} holds {shown(name)}, which is not a name")
    return found


def seconds(kind: Kind, value: object) -> float:
    """A timeout in seconds; raises :class:`HandlerError`."""
    if value is None:
        return TIMEOUTS[kind]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT:
        raise HandlerError(
            f"@{kind}: timeout is a number of seconds above 0 and at most {MAX_TIMEOUT:g}, not {shown(value)}"
        )
    return float(value)


def place_in_order(value: object) -> int:
    """A priority; raises :class:`HandlerError`."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_PRIORITY:
        raise HandlerError(
            f"@decide: priority is a whole number between ±{MAX_PRIORITY:,}, the lower the earlier, "
            f"not {shown(value)}"
        )
    return value


def failure_policy(value: object) -> Failure:
    """A failure policy; raises :class:`HandlerError`."""
    for policy in FAILURES:
        if value == policy:
            return policy
    raise HandlerError(
        '@decide: failure is "open" (no answer is no opinion) or "closed" (no answer denies), '
        f"not {shown(value)}"
    )


def check_function(kind: Kind, function: object) -> bool:
    """Whether ``function`` is asynchronous; raises :class:`HandlerError` when it cannot be a handler."""
    if not callable(function):
        raise HandlerError(f"@{kind} stands above a function, not above {shown(function)}")
    if isinstance(function, type):
        raise HandlerError(f"@{kind} stands above a function, not above the class {function.__name__}")
    called = function if inspect.isroutine(function) else type(function).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise HandlerError(
            f"@{kind}: {name_of(function)} is a generator; return its answer instead of yielding"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function of C that tells nothing of itself
        return False
    try:
        signature.bind(None, None)
    except TypeError:
        raise HandlerError(
            f"@{kind}: {name_of(function)}{signature} cannot be called with (event, ctx)"
        ) from None
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def name_of(function: object) -> str:
    """What a handler is called in reports and answers."""
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return str(name).replace("<locals>.", "")


def _full(text: object) -> Any:
    return f"{LIFECYCLE}{text}" if isinstance(text, str) and text and "." not in text else text


def _passes(wanted: tuple[str, ...], payload: Mapping[str, Any], fields: tuple[str, ...]) -> bool:
    if not wanted:
        return True
    said = [value for value in map(payload.get, fields) if isinstance(value, str)]
    return any(
        fnmatchcase(value, name) if "*" in name else value == name for value in said for name in wanted
    )
