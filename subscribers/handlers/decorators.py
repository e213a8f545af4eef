"""``on``, ``decide`` and ``transform``: they register a function and return it unchanged.

Decides what each of them takes. An argument that is refused raises :class:`HandlerError` in the user's own
line. Refuses to know when the file is loaded and by whom.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final, TypeVar, overload

from broker.protocol.decisions import Failure
from broker.protocol.topics import LIFECYCLE, Pattern

from .registration import (
    Kind,
    Registration,
    check_function,
    failure_policy,
    name_of,
    names,
    place_in_order,
    register,
    seconds,
    topics,
)

F = TypeVar("F", bound=Callable[..., Any])

RESULT_TOPIC: Final = f"{LIFECYCLE}tool_result"
"""What ``transform`` handlers are asked about."""


def on(
    *patterns: str,
    tools: Iterable[str] | None = None,
    agents: Iterable[str] | None = None,
    timeout: float | None = None,
) -> Callable[[F], F]:
    """Have ``function(event, ctx)`` called for each event that matches; what it returns is of no effect.

    ``patterns`` are names of lifecycle events (``"tool_call"``, ``"*"`` for all) or full topics and patterns
    (``"my.topic.*"``). ``tools`` and ``agents`` let pass what the payload names, ``*`` standing for any
    characters. ``timeout`` is in seconds (30).
    """
    found = topics("on", patterns)
    filters = names("on", "tools", tools), names("on", "agents", agents)
    timeout_s = seconds("on", timeout)
    return lambda function: _registered("on", function, found, filters, timeout_s, sys._getframe(1))


def decide(
    *patterns: str,
    tools: Iterable[str] | None = None,
    agents: Iterable[str] | None = None,
    priority: int = 0,
    timeout: float | None = None,
    failure: Failure = "open",
) -> Callable[[F], F]:
    """Have ``function(event, ctx)`` answer what agents ask about matching events.

    It returns None (no opinion) or what ``ctx.allow``, ``ctx.deny``, ``ctx.ask`` and their like give. The
    lower the ``priority`` the earlier its answer counts. ``failure`` says what it means when the function
    raises or is late: ``"open"``, no opinion, or ``"closed"``, a denial. ``timeout`` is in seconds (5).
    It is called for events that nobody asks about too, and its answer is then ignored.
    """
    found = topics("decide", patterns)
    filters = names("decide", "tools", tools), names("decide", "agents", agents)
    timeout_s = seconds("decide", timeout)
    order, policy = place_in_order(priority), failure_policy(failure)
    return lambda function: _registered(
        "decide", function, found, filters, timeout_s, sys._getframe(1), order, policy
    )


@overload
def transform(function: F, /) -> F: ...


@overload
def transform(
    *,
    tools: Iterable[str] | None = None,
    agents: Iterable[str] | None = None,
    timeout: float | None = None,
) -> Callable[[F], F]: ...


def transform(
    function: Any = None,
    /,
    *,
    tools: Iterable[str] | None = None,
    agents: Iterable[str] | None = None,
    timeout: float | None = None,
) -> Any:
    """Have ``function(event, ctx)`` rewrite what a tool has put out, before the agent reads it.

    It returns the new text, or None to leave the word to the next one; the first text wins. Handlers are
    asked in the order of their registration. ``timeout`` is in seconds (5).
    """
    found = (Pattern(RESULT_TOPIC),)
    filters = names("transform", "tools", tools), names("transform", "agents", agents)
    timeout_s = seconds("transform", timeout)
    if function is not None:
        return _registered("transform", function, found, filters, timeout_s, sys._getframe(1))
    return lambda decorated: _registered("transform", decorated, found, filters, timeout_s, sys._getframe(1))


def _registered(
    kind: Kind,
    function: F,
    patterns: tuple[Pattern, ...],
    filters: tuple[tuple[str, ...], tuple[str, ...]],
    timeout_s: float,
    frame: FrameType,
    priority: int = 0,
    failure: Failure = "open",
) -> F:
    is_async = check_function(kind, function)
    path, line = frame.f_code.co_filename, frame.f_lineno
    code = getattr(function, "__code__", None)
    if code is not None and code.co_filename == path:
        line = code.co_firstlineno
    tools, agents = filters
    register(
        Registration(
            kind=kind,
            function=function,
            patterns=patterns,
            tools=tools,
            agents=agents,
            priority=priority,
            timeout_s=timeout_s,
            failure=failure,
            name=name_of(function),
            path=path,
            line=line,
            is_async=is_async,
        )
    )
    return function
