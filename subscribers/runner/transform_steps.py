"""The two kinds of handlers in a chain, made runnable: a command of the configuration, a function of a file.

Decides how a question about a tool's result is put to each. Refuses to know the order and who wins.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Protocol

from broker.protocol.events import Event
from broker.protocol.projections import seen_by

from ..config.transforms import Transform
from ..dialects import transform_command
from ..hooks.spec import HookSpec
from ..hooks.transform_chain import Fault, Handler, Said, ToolResult
from ..runtimes.child import run
from ..runtimes.reaper import Reaper
from ..runtimes.spawn import StartFailed
from ..runtimes.transform_pool import FunctionPool
from ..sources.resolve import Unresolved, resolve
from .dispatch import Enclose
from .transform_reports import Who

COMMAND: Final = "command"
FUNCTION: Final = "function"

TELL_S: Final = 0.05
"""Seconds that a worker has to tell that a function's time is over, before it is taken for stuck."""

TELL_SHARE: Final = 0.1
"""Largest share of a function's time that goes to that."""


class Question:
    """A tool's result as handlers are asked about it; what only some need is made when it is needed."""

    def __init__(self, event: Event, payload: Mapping[str, Any], result: ToolResult) -> None:
        self.event = event
        self.result = result
        self._payload = payload

    @cached_property
    def line(self) -> bytes:
        """What a command reads. Raises TypeError."""
        return transform_command.stdin_of(self.result)

    @cached_property
    def fields(self) -> list[Any]:
        """The event without its payload, as it goes to a worker."""
        return list(self.event.parts()[:-1])

    @cached_property
    def payload(self) -> dict[str, Any]:
        """What a function finds in ``event.payload``: what the agent sent, and the page's four fields."""
        result = self.result
        return {
            **self._payload,
            "agent_id": result.agent_id,
            "tool_name": result.tool_name,
            "tool_input": result.tool_input,
            "tool_output": result.tool_output,
        }


def question(event: Event) -> Question | None:
    """The question that an event puts, or None where it brings no output.

    Raises what :attr:`broker.protocol.events.Event.payload` raises.
    """
    payload = event.payload
    known = {} if event.session_id is None else {"session": event.session_id}
    seen = seen_by("librefang", transform_command.EVENT, payload, known=known)
    output = seen["tool_output"]
    if not isinstance(output, str):
        return None
    others = tuple(name for name in map(payload.get, ("agent", "agent_name")) if isinstance(name, str))
    result = ToolResult(
        agent_id=_text(seen["agent_id"]),
        session_id=event.session_id or _text(payload.get("session_id")) or _text(payload.get("session")),
        tool_name=_text(seen["tool_name"]),
        tool_input={} if seen["tool_input"] is None else seen["tool_input"],
        tool_output=output,
        agent_names=others,
    )
    return Question(event, payload, result)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class Step(Protocol):
    """A link of the chain that can be run."""

    @property
    def who(self) -> Who:
        """How it stands in records."""

    def ask(self, question: Question, timeout_s: float) -> Said:
        """Put the question; returns within ``timeout_s`` seconds, and raises nothing on its account."""


class CommandStep:
    """A ``[[transform]]`` table."""

    def __init__(
        self,
        transform: Transform,
        reaper: Reaper,
        runtime_dir: str,
        prxbus_folder: str,
        enclose: Enclose | None,
    ) -> None:
        program, *arguments = transform.table.command
        self.who = Who(transform.name, COMMAND, transform.path, None, shlex.join(transform.table.command))
        self._spec = HookSpec(
            id=transform.name,
            dialect=transform_command.NAME,
            path=transform.path,
            line=None,
            event=transform_command.EVENT,
            command=program,
            args=tuple(arguments),
            env={},
            cwd=None,
            timeout_s=transform.table.timeout,
            grace_s=0.0,
            stdin=True,
        )
        self._folder = transform.folder
        self._reaper = reaper
        self._runtime_dir = runtime_dir
        self._prxbus_folder = prxbus_folder
        self._enclose = enclose

    def ask(self, question: Question, timeout_s: float) -> Said:
        """Run it once."""
        found = resolve(self._spec, self._folder, self._prxbus_folder)
        if isinstance(found, Unresolved):
            return Fault(
                "not_started", found.message if found.hint is None else f"{found.message}; {found.hint}"
            )
        event = question.event
        env = transform_command.environment_of(
            self._prxbus_folder, self._runtime_dir, event.depth, event.id, self.who.handler
        )
        try:
            line = question.line
        except (TypeError, ValueError) as error:
            return Fault("not_started", f"its input cannot be written as JSON: {type(error).__name__}")
        invocation = transform_command.render(self._spec, found.executable, found.cwd, env, line, timeout_s)
        release = None
        if self._enclose is not None:
            try:
                invocation, release = self._enclose(invocation, (self._runtime_dir,))
            except (StartFailed, OSError) as error:
                return Fault("not_started", str(error))
        return transform_command.read(run(invocation, self._reaper, on_end=release))


def command_handler(transform: Transform, step: CommandStep) -> Handler[Step]:
    """A table as a link of the chain."""
    table = transform.table
    return Handler(transform.name, step, table.timeout, tuple(table.tools), tuple(table.agents))


class FunctionStep:
    """A ``@transform`` function: the ``index``-th of what ``pool`` has loaded."""

    def __init__(self, pool: FunctionPool, index: int, who: Who) -> None:
        self.who = who
        self._pool = pool
        self._index = index

    def ask(self, question: Question, timeout_s: float) -> Said:
        """Call it once, in a process that can be ended."""
        own_s = timeout_s - min(TELL_S, timeout_s * TELL_SHARE)
        call = [self._index, self.who.handler, own_s, question.fields, question.payload]
        return self._pool.call(call, timeout_s)
