"""A hook file of the Codex family in normal form: its handlers, and what there is to say about it.

It decides shapes only. A handler here is one that may run: what was dropped stands among the diagnostics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..hooks.diagnostics import Diagnostic
from .codex_condition import Condition
from .codex_matcher import Matcher

Kind: TypeAlias = Literal["command", "http", "mcp_tool", "refusal"]
FailurePolicy: TypeAlias = Literal["continue", "block"]


@dataclass(frozen=True, slots=True)
class CodexHandler:
    """One handler of a hook file.

    ``event`` is its name in the file, such as ``PreToolUse``; ``group`` and ``index`` are its places there,
    counted from 0 and including what was dropped; ``order`` is its number over all files, which is the order
    of results. ``line`` None: not known.

    ``kind`` says which fields mean something. ``command`` is what a shell is given, or, where ``args`` is not
    None, a program with these arguments; ``command_windows`` is what it would be on Windows. ``shell`` None:
    the profile's. ``url``, ``headers`` and ``allowed_env`` belong to ``http``; ``server``, ``tool`` and
    ``tool_input`` to ``mcp_tool``.

    A ``refusal`` stands in no file: it denies in place of one that cannot be used, and ``command`` is why.

    ``timeout_s`` is what applies, after defaults and clamps. ``is_async``: nobody waits for it.
    ``rewakes``: an asynchronous one whose exit 2 wakes the model. ``context_limit`` is in tokens, 0 never
    spills, None: the profile's own limit. ``matcher`` is as written and None where it means nothing,
    ``matches`` what it compiles to. ``condition`` is a further test of the tool call.

    ``key`` and ``digest`` are what Codex's trust record calls it and says of it. ``unsupported`` is why this
    handler is listed and cannot be run here; None: it can.
    """

    event: str
    group: int
    index: int
    order: int
    kind: Kind
    timeout_s: float
    matches: Matcher
    path: str
    key: str
    digest: str
    profile: str
    command: str = ""
    command_windows: str | None = None
    args: tuple[str, ...] | None = None
    shell: str | None = None
    url: str = ""
    headers: Mapping[str, str] | None = None
    allowed_env: tuple[str, ...] = ()
    server: str = ""
    tool: str = ""
    tool_input: Mapping[str, Any] | None = None
    is_async: bool = False
    rewakes: bool = False
    once: bool = False
    status_message: str | None = None
    context_limit: int | None = None
    matcher: str | None = None
    condition: Condition | None = None
    on_failure: FailurePolicy = "continue"
    timeout_is_own: bool = False
    line: int | None = None
    unsupported: str | None = None

    @property
    def id(self) -> str:
        """What reports call it within its file: ``PreToolUse#0.1``, group and index."""
        return f"{self.event}#{self.group}.{self.index}"

    @property
    def identity(self) -> tuple[object, ...]:
        """What two handlers of one event have in common that are the same thing: what they run, and when."""
        condition = None if self.condition is None else self.condition.text
        what = (self.kind, self.command, self.args, self.shell, self.url, self.server, self.tool)
        return (*what, condition, self.is_async, self.on_failure)


@dataclass(frozen=True, slots=True)
class TrustState:
    """What a record of Codex says of one handler; None: nothing."""

    enabled: bool | None = None
    trusted_hash: str | None = None


@dataclass(frozen=True, slots=True)
class CodexDocument:
    """What a file says.

    ``handlers`` are those that may run, in order. ``refused``: nothing of the file is used. ``inspected``
    counts every handler that stands in it, also those that were dropped. ``warnings`` are the texts that
    the agent itself would give, in its order; ``upstream_refusal`` is why it would use nothing of this file,
    None where it would. ``states`` are the records of trust that the file carries, by key.
    """

    path: str
    profile: str
    handlers: tuple[CodexHandler, ...]
    diagnostics: tuple[Diagnostic, ...]
    refused: bool
    inspected: int = 0
    warnings: tuple[str, ...] = ()
    upstream_refusal: str | None = None
    states: Mapping[str, TrustState] | None = None
