"""A hook that is a module of a role, and one call of it, as values.

    ModuleHook    what a host loads: a module, for one hook
    ModuleCall    what a host is asked for: one handler, one input
    ModuleReturn  what came of it: an edit, texts for the next prompt, or why there is none

Decides the words in which those that order hooks and those that run modules speak of them. Pure data: it
knows no role file, no language and no process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Handler: TypeAlias = Literal[
    "onChatMessage", "onToolBefore", "onToolAfter", "onSystemTransform", "onEvent", "onLoad", "onDispose"
]

HANDLER_OF: Final[dict[str, Handler]] = {
    "chat.message": "onChatMessage",
    "tool.execute.before": "onToolBefore",
    "tool.execute.after": "onToolAfter",
    "system.transform": "onSystemTransform",
    "event": "onEvent",
}
"""The handler that a rolebox event calls."""

Language: TypeAlias = Literal["javascript", "python"]

SUFFIXES: Final[dict[str, Language]] = {
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "javascript",
    ".mts": "javascript",
    ".cts": "javascript",
    ".py": "python",
}
"""The endings of module files, and what each is written in."""


@dataclass(frozen=True, slots=True)
class ModuleHook:
    """A hook to load. Two that are equal are the same hook, and need not be loaded again.

    ``id`` is unique in the process (role directory and place in the file). ``path`` is the module's absolute
    path, ``digest`` what its file held when it was looked at: a module that was edited is another hook.
    ``config`` is JSON text of what role.yaml gives it, None where it gives nothing. ``role`` names the role.
    """

    id: str
    name: str
    path: str
    digest: str
    config: str | None
    role: str

    def __hash__(self) -> int:
        """Of what tells hooks apart in practice."""
        return hash((self.id, self.digest))


class ModuleCall(NamedTuple):
    """One call. ``input`` is the JSON of the handler's second argument, ``timeout_s`` what it may take.

    ``depth`` is that of what the handler publishes, one more than its event's; ``cause`` the event's id.
    """

    handler: Handler
    input: bytes
    session_id: str | None
    agent: str | None
    timeout_s: float
    depth: int = 0
    cause: str | None = None


CallStatus: TypeAlias = Literal["ok", "failed", "timeout", "lost", "absent"]
"""``failed``: it threw. ``timeout``: not done in time. ``lost``: its process or thread ended under it, or it
was quarantined before. ``absent``: the module is not loaded or has no such handler."""


class ModuleReturn(NamedTuple):
    """What came of a call.

    ``edit`` is ``args`` (onToolBefore) or ``system`` (onSystemTransform) as the handler left it, a dict or a
    list of str, None where nothing changed. ``injected`` are the texts given to ``inject`` meanwhile.
    ``error`` says why it is not ``ok``; ``detail`` is the trace, which points at the user's line.
    """

    status: CallStatus
    edit: Any = None
    injected: tuple[str, ...] = ()
    error: str | None = None
    detail: str | None = None
    seconds: float = 0.0
