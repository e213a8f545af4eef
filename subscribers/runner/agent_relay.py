"""One event of an attached agent, end to end: read, asked on the bus, and answered as that agent expects.

    payload --from_agent--> canonical event --ask--> decision --render--> what the agent reads

Decides what becomes of an event that cannot be read or asked: the agent goes on, or it is blocked where it
asked for that. Refuses to know how the payload came here: over the hook socket and over HTTP it is the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from broker.client import aio
from broker.client.context import CAUSE_VARIABLE, DEPTH_VARIABLE, Cause, inherited
from broker.logs import get_logger
from broker.protocol.decisions import Decision
from broker.protocol.errors import BusError, BusUnreachable
from broker.protocol.limits import ASK_SECONDS

from ..dialects.codex_canonical import AGENT_FIELDS, AGENT_PAYLOAD, AgentEvent, from_agent
from ..dialects.codex_profiles import PROFILES, Profile
from ..dialects.codex_render import render, render_http
from ..sources.attach_context import Contexts, decode_environment
from .hook_socket_frames import ABSENT, Reply, Request

SOURCE: Final = "prxbus hook"
"""The source of agents' events."""

MARGIN_SECONDS: Final = 0.1
"""Kept of an agent's time for the way back."""

LEAST_SECONDS: Final = 0.05

AWAY_SECONDS: Final = 2.0
"""How long a broker that has gone is waited for: it is started again. After that nobody waits for it."""

BLOCK: Final = 2
"""Exit code by which a hook command of this family says no."""

_CAUSES: Final = tuple(f"{name}=".encode() for name in (DEPTH_VARIABLE, CAUSE_VARIABLE))
_NO_CAUSE: Final = Cause(0, None)

log = get_logger("subscribers.agents")


class Unreadable(Exception):
    """A payload that is no event of its dialect; the text says why."""


class Failed(NamedTuple):
    """An event that was not decided: ``reason`` says why, ``event`` is None when it could not be read.

    ``absent``: because there is no bus.
    """

    event: str | None
    reason: str
    absent: bool = False


class Relay:
    """Answers agents' events over ``publisher``, which is open; ``contexts`` keeps their environments.

    ``counts`` says how many events were answered, and how many of them failed.
    """

    def __init__(self, publisher: aio.Publisher, contexts: Contexts | None = None) -> None:
        self.counts = {"answered": 0, "failed": 0, "delivered": 0}
        self._publisher = publisher
        self._contexts = contexts
        self._away_since: float | None = None

    async def command(self, request: Request) -> Reply:
        """What the hook command of ``request`` puts out, and how it ends."""
        profile = PROFILES.get(request.dialect)
        if profile is None:
            known = ", ".join(PROFILES)
            return self._refused(request, f"there is no dialect {request.dialect!r}; there are {known}")
        extra: dict[str, Any] = {"cwd": request.directory} if request.directory else {}
        if (context := self._keep(request.environment)) is not None:
            extra["agent_context"] = context
        cause = cause_of(request.environment)
        found = await self._ask(profile, request.payload, request.seconds, extra, cause)
        if isinstance(found, Failed):
            return ABSENT if found.absent else self._refused(request, found.reason)
        event, decision = found
        if event not in profile.outputs:  # an event that we do not know has no answer that we know
            return Reply()
        rendered = render(event, profile, decision)
        return Reply(rendered.exit_code, rendered.stdout, rendered.stderr)

    async def http(self, dialect: str, payload: bytes, seconds: float, *, closed: bool) -> bytes:
        """The body that answers an HTTP hook: JSON, or nothing for no opinion."""
        profile = PROFILES[dialect]
        found = await self._ask(profile, payload, seconds, {}, _NO_CAUSE)
        if isinstance(found, Failed):
            if not closed:
                return b""
            reason = f"prxbus: {found.reason}; this hook is set to block without an answer"
            if found.event is None or found.event not in profile.outputs:
                return orjson.dumps({"decision": "block", "reason": reason})
            return render_http(found.event, profile, Decision("deny", reason))
        event, decision = found
        return render_http(event, profile, decision) if event in profile.outputs else b""

    def deliver(self, request: Request, age_ms: int) -> bool:
        """Publish an event that waited ``age_ms`` for a bus; whether it could be read."""
        try:
            agent = _read(request.dialect, request.payload)
            payload = _with(agent, request.payload, {"cwd": request.directory, "spooled_ms": age_ms})
            self._publisher.publish(agent.topic, payload, session_id=agent.session_id)
        except (Unreadable, BusError) as error:
            log.warning("an event that waited for a bus is lost", dialect=request.dialect, error=str(error))
            return False
        self.counts["delivered"] += 1
        return True

    async def _ask(
        self, profile: Profile, payload: bytes, seconds: float, extra: Mapping[str, Any], cause: Cause
    ) -> tuple[str, Decision] | Failed:
        """The event's name and what was decided, or why nothing was."""
        event = None
        began = time.monotonic()
        try:
            agent = _read(profile.name, payload)
            event = agent.event
            await self._await_bus(seconds)
            decision = await self._publisher.ask(
                agent.topic,
                _with(agent, payload, extra),
                timeout=min(ASK_SECONDS, max(LEAST_SECONDS, seconds - MARGIN_SECONDS)),
                session_id=agent.session_id,
                depth=cause.depth,
                caused_by=cause.event,
            )
        except (Unreadable, BusError) as error:
            self.counts["failed"] += 1
            log.warning(
                "an agent's event was not decided",
                dialect=profile.name,
                agent_event=event,
                error=str(error),
                after_ms=round((time.monotonic() - began) * 1e3, 1),
            )
            return Failed(event, str(error), isinstance(error, BusUnreachable))
        self.counts["answered"] += 1
        return event, decision

    async def _await_bus(self, seconds: float) -> None:
        """Wait a moment for a broker that has just gone; raises :class:`BusUnreachable`."""
        while not self._publisher.ready:
            now = time.monotonic()
            if self._away_since is None:
                self._away_since = now
            if now - self._away_since > min(AWAY_SECONDS, seconds):
                raise BusUnreachable("no bus answers; it has ended, or is being started again")
            await asyncio.sleep(0.01)
        self._away_since = None

    def _keep(self, environment: bytes) -> str | None:
        """The id under which command handlers find an agent's environment; None where there is none."""
        try:
            return None if self._contexts is None else self._contexts.hold(environment)
        except OSError as error:
            log.warning("an agent's environment could not be kept", error=str(error))
            return None

    def _refused(self, request: Request, reason: str) -> Reply:
        if not request.closed:
            return Reply()
        said = f"prxbus: {reason}; this hook is set to block without an answer\n"
        return Reply(BLOCK, b"", said.encode("utf-8", "replace"))


def cause_of(environment: bytes) -> Cause:
    """How deep an agent's event is: an agent that a handler has started hands that down."""
    if not any(name in environment for name in _CAUSES):
        return _NO_CAUSE
    found = decode_environment(
        b"\0".join(entry for entry in environment.split(b"\0") if entry.startswith(_CAUSES))
    )
    return inherited(found)


def _with(agent: AgentEvent, raw: bytes, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The payload with what came beside it; where that adds a field, the agent's text is kept as it was."""
    added = {name: value for name, value in extra.items() if name not in agent.payload}
    if added.keys() - AGENT_FIELDS:
        agent.payload[AGENT_PAYLOAD].setdefault("text", raw.decode("utf-8", "replace").strip())
    return agent.payload | added


def _read(dialect: str, payload: bytes) -> AgentEvent:
    try:
        return from_agent(dialect, payload)
    except ValueError as error:
        raise Unreadable(str(error)) from None
