"""The five calls by which an agent lets the hooks of its role take part, each in one line.

    with Rolebox("s1", agent="my-agent", role="reviewer") as rolebox:
        text = rolebox.chat_message(text)
        system = rolebox.system_transform(system)
        args = rolebox.tool_before("write", args)
        output = rolebox.tool_after("write", args, run(args))
        rolebox.event("session.idle", {})

Each call puts one event to the hooks and returns its subject as they left it. With ``core`` it does so twice:
the hooks of phase ``before``, the agent's own step, the hooks of phase ``after``. Without, the hooks of both
phases run, in this order.

Decides what of an event travels, what comes back, and that no trouble of the bus is the agent's: without an
answer a call returns what it was given, and says why in ``problem``. What somebody refuses is not passed
over: :class:`NotAllowed` is raised, because a decider may guard the tool that a role's hook only looks at.
``rolebox.mjs`` beside this file is the same for Node.
Source: the rolebox page, its table of handlers and its order of execution.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar

from broker.client import Decision, Publisher, aio
from broker.places import runtime_directory
from broker.protocol.errors import BusError, BusUnreachable

SECONDS: Final = 10.0
"""How long a call waits for hooks, for each of its asks."""

HINT: Final = "start one with 'prxbus up', or name its directory with runtime_dir or PRXBUS_RUNTIME_DIR"

TOPIC: Final = "prx.lifecycle."
TYPES: Final = {
    "session.created": "session_start",
    "session.deleted": "session_end",
    "session.reset": "session_reset",
    "session.idle": "turn_complete",
    "session.error": "error",
}
"""Types of ``event`` that are events of the catalogue; any other one is an event of its own."""

T = TypeVar("T")


class NotAllowed(Exception):
    """Somebody refuses it, or wants the user to be asked: ``verdict`` is ``deny`` or ``ask``.

    ``reason`` and ``by`` say why and who; ``decision`` is all of it.
    """

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"{decision.by}: {decision.reason or decision.verdict}")
        self.decision = decision
        self.verdict = decision.verdict
        self.reason = decision.reason
        self.by = decision.by


class _Ask(NamedTuple):
    """An event to put to the hooks."""

    topic: str
    payload: dict[str, Any]


class _Own(NamedTuple):
    """The agent's own step, with what it is given."""

    core: Callable[[Any], Any]
    value: Any


_Steps: TypeAlias = Generator[_Ask | _Own, Any, Any]
"""What a call does in order: sends decisions (None: there is none) and what the agent's step returned."""


class _Calls:
    """What both adapters know: the session, and of each call its event, its subject and what comes back."""

    def __init__(
        self,
        session: str,
        agent: str,
        role: str | None,
        timeout: float,
        runtime_dir: str | os.PathLike[str] | None,
    ) -> None:
        self.session = session
        self.agent = agent
        self.role = role
        self.timeout = timeout
        self.decision: Decision | None = None
        """The last decision; None where there was none."""
        self.problem: str | None = None
        """Why there was no answer to the last ask, or not from everybody; None when all is well."""
        self._runtime_dir = runtime_dir
        self._refused: str | None = None  # why there is no publisher
        self._is_known = False  # whether the bus was told whose session it is

    def _started(self) -> _Ask:
        """Whose session it is: asked and not only published, so that the next ask finds it known.

        It is asked again by the next call, until it was heard.
        """
        return _Ask(f"{TOPIC}session_start", {"source": "startup", **self._who()})

    def _absent(self) -> BusUnreachable:
        """Said at once where there is no bus: an ask would wait for it as long as for an answer."""
        where = runtime_directory(self._runtime_dir)
        return BusUnreachable(self._refused or f"no bus answers in {where!r}; {HINT}")

    def _who(self) -> dict[str, str]:
        return {"agent": self.agent} if self.role is None else {"agent": self.agent, "role": self.role}

    def _heard(self, decision: Decision) -> Decision:
        missing = [f"{each.decider}: {each.silence}" for each in decision.missing]
        self.decision, self.problem = decision, ", ".join(missing) or None
        return decision

    def _failed(self, error: BusError) -> None:
        self.decision, self.problem = None, str(error)

    def _chat_message(self, text: str, core: Callable[[str], Any] | None) -> _Steps:
        return _phases("user_prompt", {}, "prompt", text, core)

    def _tool_before(self, tool: str, args: Mapping[str, Any], core: Callable[[Any], Any] | None) -> _Steps:
        return _phases("tool_call_start", {"tool": tool}, "arguments", args, core, whole=True)

    def _tool_after(
        self, tool: str, args: Mapping[str, Any], output: T, core: Callable[[T], Any] | None
    ) -> _Steps:
        payload = {"tool": tool, "arguments": args, "success": True}
        return _phases("tool_call", payload, "output", output, core)

    def _system_transform(self, system: list[str], core: Callable[[list[str]], Any] | None) -> _Steps:
        return _phases("system_transform", {}, "system", system, core)

    def _event(self, type: str, properties: Mapping[str, Any]) -> _Steps:
        event = TYPES.get(type)
        payload: dict[str, Any] = {} if event else {"type": type}
        if event == "session_start":
            payload |= self._who()
        name = event or type.replace(".", "_").replace("-", "_")
        return _phases(name, payload, "properties", properties, None)


def _phases(
    event: str,
    payload: Mapping[str, Any],
    name: str,
    value: Any,
    core: Callable[[Any], Any] | None,
    *,
    whole: bool = False,
) -> _Steps:
    """The steps of a call about ``value``, the event's field ``name`` (``whole``: all that can be edited)."""
    if core is None:
        return _left((yield _Ask(TOPIC + event, {**payload, name: value})), name, value, whole)
    before = yield _Ask(TOPIC + event, {**payload, name: value, "phase": "before"})
    value = _left(before, name, value, whole)
    returned = yield _Own(core, value)
    if returned is not None:
        value = returned
    after = yield _Ask(TOPIC + event, {**payload, name: value, "phase": "after"})
    return _left(after, name, value, whole)


def _left(decision: Decision | None, name: str, value: Any, whole: bool) -> Any:
    """``value`` as the hooks left it; raises :class:`NotAllowed`."""
    if decision is None:
        return value
    if not decision.allowed:
        raise NotAllowed(decision)
    if name == "output":
        return decision.output if decision.replaced else value
    updated = decision.updated_input
    if updated is None:
        return value
    return dict(updated) if whole else updated.get(name, value)


class Rolebox(_Calls):
    """The five calls, blocking. ``session``, ``agent`` and ``role`` hold for all of them.

    ``role`` is the name of a role's folder, or the one in its file. ``timeout``: seconds for each ask.
    ``runtime_dir``: the bus's directory, found as by every client. Not for use across a fork.
    """

    def __init__(
        self,
        session: str,
        *,
        agent: str = "agent",
        role: str | None = None,
        timeout: float = SECONDS,
        runtime_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(session, agent, role, timeout, runtime_dir)
        self._publisher: Publisher | None = None
        try:
            self._publisher = Publisher(agent, runtime_dir=runtime_dir)
        except BusError as error:
            self._refused = str(error)
            self._failed(error)
        else:
            self._is_known = self._ask(self._started()) is not None

    def chat_message(self, text: str, core: Callable[[str], Any] | None = None) -> str:
        """The user has sent ``text``: ``onChatMessage``."""
        found: str = self._run(self._chat_message(text, core))
        return found

    def tool_before(
        self, tool: str, args: Mapping[str, Any], core: Callable[[Any], Any] | None = None
    ) -> dict[str, Any]:
        """A tool is about to run: ``onToolBefore``. The arguments to run it with; raises NotAllowed."""
        found: dict[str, Any] = self._run(self._tool_before(tool, args, core))
        return found

    def tool_after(
        self, tool: str, args: Mapping[str, Any], output: T, core: Callable[[T], Any] | None = None
    ) -> T:
        """A tool has run: ``onToolAfter``. Its output."""
        found: T = self._run(self._tool_after(tool, args, output, core))
        return found

    def system_transform(
        self, system: list[str], core: Callable[[list[str]], Any] | None = None
    ) -> list[str]:
        """A system prompt is built: ``onSystemTransform``. Its parts, with what hooks have injected."""
        found: list[str] = self._run(self._system_transform(system, core))
        return found

    def event(self, type: str, properties: Mapping[str, Any]) -> None:
        """Anything else has happened, such as ``session.idle``: ``onEvent``, of both phases."""
        self._run(self._event(type, properties))

    def close(self) -> None:
        """Let go of the bus; the session goes on."""
        if self._publisher is not None:
            self._publisher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: _Steps) -> Any:
        if not self._is_known:
            self._is_known = self._ask(self._started()) is not None
        sent: Any = None
        while True:
            try:
                step = steps.send(sent)
            except StopIteration as end:
                return end.value
            sent = self._ask(step) if isinstance(step, _Ask) else step.core(step.value)

    def _ask(self, ask: _Ask) -> Decision | None:
        try:
            if self._publisher is None or not self._publisher.ready:
                raise self._absent()
            return self._heard(
                self._publisher.ask(ask.topic, ask.payload, timeout=self.timeout, session_id=self.session)
            )
        except BusError as error:
            self._failed(error)
            return None


class AsyncRolebox(_Calls):
    """The five calls for an event loop; open it with ``async with``. Arguments as for :class:`Rolebox`.

    ``core`` may be a coroutine function.
    """

    def __init__(
        self,
        session: str,
        *,
        agent: str = "agent",
        role: str | None = None,
        timeout: float = SECONDS,
        runtime_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(session, agent, role, timeout, runtime_dir)
        self._publisher = aio.Publisher(agent, runtime_dir=runtime_dir)

    async def __aenter__(self) -> Self:
        try:
            await self._publisher.__aenter__()
        except BusError as error:
            self._refused = str(error)
            self._failed(error)
        else:
            self._is_known = await self._ask(self._started()) is not None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._publisher.close()

    async def chat_message(self, text: str, core: Callable[[str], Any] | None = None) -> str:
        """As :meth:`Rolebox.chat_message`."""
        found: str = await self._run(self._chat_message(text, core))
        return found

    async def tool_before(
        self, tool: str, args: Mapping[str, Any], core: Callable[[Any], Any] | None = None
    ) -> dict[str, Any]:
        """As :meth:`Rolebox.tool_before`."""
        found: dict[str, Any] = await self._run(self._tool_before(tool, args, core))
        return found

    async def tool_after(
        self, tool: str, args: Mapping[str, Any], output: T, core: Callable[[T], Any] | None = None
    ) -> T:
        """As :meth:`Rolebox.tool_after`."""
        found: T = await self._run(self._tool_after(tool, args, output, core))
        return found

    async def system_transform(
        self, system: list[str], core: Callable[[list[str]], Any] | None = None
    ) -> list[str]:
        """As :meth:`Rolebox.system_transform`."""
        found: list[str] = await self._run(self._system_transform(system, core))
        return found

    async def event(self, type: str, properties: Mapping[str, Any]) -> None:
        """As :meth:`Rolebox.event`."""
        await self._run(self._event(type, properties))

    async def _run(self, steps: _Steps) -> Any:
        if not self._is_known:
            self._is_known = await self._ask(self._started()) is not None
        sent: Any = None
        while True:
            try:
                step = steps.send(sent)
            except StopIteration as end:
                return end.value
            if isinstance(step, _Ask):
                sent = await self._ask(step)
            else:
                returned = step.core(step.value)
                sent = await returned if isinstance(returned, Awaitable) else returned

    async def _ask(self, ask: _Ask) -> Decision | None:
        try:
            if self._refused is not None or not self._publisher.ready:
                raise self._absent()
            return self._heard(
                await self._publisher.ask(
                    ask.topic, ask.payload, timeout=self.timeout, session_id=self.session
                )
            )
        except BusError as error:
            self._failed(error)
            return None
