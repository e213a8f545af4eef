"""A hook in normal form: which event starts which command, as a file says it.

Every dialect reads its files into this shape, and nothing behind it knows where a hook came from. It refuses
to know whether the command exists: that is decided when it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HookSpec:
    """One action of a hook file that may run.

    ``id`` is stable within its file: ``<event>#<index>``, such as ``tool_call#0``. ``path`` and ``line`` are
    where it was read. ``event`` is the canonical event name. ``command``, ``args`` and ``cwd`` are as written
    (``cwd`` None: the workspace); ``env`` is what the action may set, after the environment rules. Times are
    in seconds: ``timeout_s`` counts from exec, ``grace_s`` from SIGTERM to SIGKILL. ``stdin``: the event is
    also written to the standard input. ``name`` is what the file calls the hook, where hooks have names.
    ``splits_command``: ``command`` may hold arguments too, if no program has the whole of it as a name.
    ``command_at`` is where the command stands, line and column, where that is not ``line``.
    """

    id: str
    dialect: str
    path: str
    line: int | None
    event: str
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    timeout_s: float
    grace_s: float
    stdin: bool
    name: str | None = None
    splits_command: bool = False
    command_at: tuple[int, int] | None = None

    @property
    def key(self) -> str:
        """What tells the hook from all others, of any file; the specs of one with a name share it."""
        return f"{self.path}#{self.id if self.name is None else self.name}"
