"""Python handlers explained: what each function of a file is for, as its decorators say.

The file was loaded elsewhere, by a process that can be ended; what it registered comes here as plain facts.
It refuses to know how a file is loaded and whether it may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from broker.protocol.catalogue import EVENTS
from broker.protocol.topics import LIFECYCLE

from ..hooks.diagnostics import Diagnostic, quote
from ..hooks.explanation import Handler, TimeoutFrom
from .nearest import nearest

NAME: Final = "python"
FOLDER: Final = ".prxbus/handlers"
DECIDES: Final = "@decide"
"""What the command of a handler is whose answer counts."""


class Function(NamedTuple):
    """What one decorator registered. ``kind`` is its name: ``on``, ``decide`` or ``transform``.

    ``has_own_timeout``: the decorator says it. ``failure``: ``open`` or ``closed``; it is for ``decide``.
    """

    kind: str
    name: str
    path: str
    line: int
    patterns: tuple[str, ...]
    tools: tuple[str, ...]
    agents: tuple[str, ...]
    priority: int
    timeout_s: float
    has_own_timeout: bool
    failure: str


def handlers(functions: Iterable[Function], unit: str) -> tuple[Handler, ...]:
    """The handlers of a file that reports call ``unit``."""
    return tuple(_handler(index, function, unit) for index, function in enumerate(functions))


def _handler(index: int, function: Function, unit: str) -> Handler:
    origin: TimeoutFrom = "own" if function.has_own_timeout else "default"
    return Handler(
        event=", ".join(pattern.removeprefix(LIFECYCLE) for pattern in function.patterns),
        index=index,
        name=f"{unit}:{function.name}",
        runtime="transform" if function.kind == "transform" else "python",
        status="ok",
        topics=function.patterns,
        command=f"@{function.kind}",
        args=_arguments(function),
        matcher=matcher(function.tools, function.agents),
        timeout_s=function.timeout_s,
        timeout_from=origin,
        line=function.line,
        executable=function.path,
        diagnostics=tuple(_remarks(function)),
        failure="closed" if function.kind == "decide" and function.failure == "closed" else "open",
        priority=function.priority,
    )


def _arguments(function: Function) -> tuple[str, ...]:
    """What else a decorator says that is of meaning."""
    said = []
    if function.kind == "decide" and function.priority:
        said.append(f"priority={function.priority}")
    if function.kind == "decide" and function.failure != "open":
        said.append(f"failure={function.failure}")
    return tuple(said)


def matcher(tools: tuple[str, ...], agents: tuple[str, ...]) -> str | None:
    """The filters of a handler in words; None where everything passes."""
    parts = [f"{what}: {', '.join(names)}" for what, names in (("tools", tools), ("agents", agents)) if names]
    return "; ".join(parts) or None


def _remarks(function: Function) -> Iterable[Diagnostic]:
    """A lifecycle event that the catalogue does not have is nearly always a slip."""
    for pattern in function.patterns:
        name = pattern.removeprefix(LIFECYCLE)
        if name == pattern or "*" in name or name in EVENTS:
            continue
        near = nearest(name, EVENTS)
        hint = "an event of the agent's own may have any name" if near is None else f"did you mean {near}?"
        message = f"{quote(name)} is in no catalogue: nothing but an agent's own events can be called so"
        place = (function.path, function.line, None, function.name)
        yield Diagnostic("warning", "uncatalogued_event", *place, message, hint)
