"""How deep we are and what caused it: depth and cause of what is published here.

An event from an agent has depth 0; what is published while an event of depth d is handled has
depth d + 1. Handlers in this process carry it in a context variable, child processes in
``PRXBUS_DEPTH`` (the depth at which they publish) and ``PRXBUS_CAUSE``. It stops accidents, not
a process that scrubs its environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

from ..protocol.envelope import is_text
from ..protocol.limits import CAUSE_BYTES, DEPTHS

if TYPE_CHECKING:
    from ..protocol.events import Event

DEPTH_VARIABLE: Final = "PRXBUS_DEPTH"
CAUSE_VARIABLE: Final = "PRXBUS_CAUSE"


class Cause(NamedTuple):
    """``depth`` is that of events published now; ``event`` the id of the event being handled."""

    depth: int
    event: str | None


current: ContextVar[Cause | None] = ContextVar("prxbus_cause", default=None)
"""What this task or thread is handling, None outside of a handler."""


def inherited(environ: Mapping[str, str]) -> Cause:
    """Depth and cause that the environment hands down; a malformed depth counts as 7."""
    text = environ.get(DEPTH_VARIABLE, "0")
    depth = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else DEPTHS - 1
    cause = environ.get(CAUSE_VARIABLE)
    return Cause(depth, cause if is_text(cause, CAUSE_BYTES) else None)


@contextmanager
def handling(event: Event) -> Iterator[None]:
    """Within the block, what is published is caused by ``event`` and one level deeper."""
    token = current.set(Cause(event.depth + 1, event.id))
    try:
        yield
    finally:
        current.reset(token)
