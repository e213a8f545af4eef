"""An agent's event from its bytes to what the agent reads, over a stand-in for the bus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from broker.client import Answer, Event, aio
from broker.protocol.errors import BusUnreachable, RequestTimeout
from broker.testing import StubBus, StubPublisher
from subscribers.dialects.codex_canonical import original
from subscribers.dialects.codex_events import events_of
from subscribers.dialects.codex_profiles import PROFILES
from subscribers.runner import agent_relay
from subscribers.runner.agent_relay import SOURCE, Relay, cause_of
from subscribers.runner.hook_socket_frames import ABSENT, Reply, Request
from subscribers.sources.attach_context import Contexts, load

EXAMPLES = Path(__file__).parents[3] / "examples" / "agents"
BLOCKED = b"this hook is set to block without an answer"


def recorded(dialect: str) -> list[bytes]:
    """The payloads of the recording."""
    return (EXAMPLES / f"{dialect}.jsonl").read_bytes().splitlines()


class StubAsker:
    """The asyncio half of a stub publisher; ``fault`` is raised where it is set."""

    ready = True

    def __init__(self, publisher: StubPublisher, fault: Exception | None = None) -> None:
        self.publish = publisher.publish
        self.timeouts: list[float] = []
        self._publisher = publisher
        self._fault = fault

    async def ask(self, topic: str, payload: Any, **how: Any) -> Any:
        """Ask the stub bus."""
        self.timeouts.append(how["timeout"])
        if self._fault is not None:
            raise self._fault
        return self._publisher.ask(topic, payload, **how)


def relay(bus: StubBus, contexts: Contexts | None = None, fault: Exception | None = None) -> Relay:
    """A relay on a stub bus."""
    return Relay(cast(aio.Publisher, StubAsker(bus.publisher(SOURCE), fault)), contexts)


def request(
    payload: bytes, dialect: str = "claude", *, closed: bool = False, environment: bytes = b""
) -> Request:
    """What a hook command sends."""
    return Request(dialect, closed, 9.0, "/home/dev/shop", environment, payload)


def guard(event: Event) -> Answer | None:
    """No to one command."""
    command = event.payload.get("arguments", {}).get("command", "")
    return Answer("guard", "deny", "not that") if command.startswith("rm -rf") else None


@pytest.mark.parametrize("dialect", ["claude", "codex"])
def test_every_event_is_published_as_its_canonical_one_and_answered(dialect: str) -> None:
    """Each one reaches the bus with its bytes, session and topic; who has no opinion is silent."""
    bus = StubBus()
    over = relay(bus)
    payloads = recorded(dialect)
    for payload in payloads:
        assert asyncio.run(over.command(request(payload, dialect))) == Reply()
        assert asyncio.run(over.http(dialect, payload, 9.0, closed=True)) == b""
    assert over.counts == {"answered": 2 * len(payloads), "failed": 0, "delivered": 0}
    assert [original(event.payload, dialect) for event in bus.events] == [p for p in payloads for _ in "12"]
    rules = {f"prx.lifecycle.{rule.canonical}" for rule in events_of(PROFILES[dialect])}
    assert {event.topic for event in bus.events} == rules
    assert {event.session_id for event in bus.events} == {orjson.loads(payloads[0])["session_id"]}
    assert {event.depth for event in bus.events} == {0}


@pytest.mark.parametrize("dialect", ["claude", "codex"])
def test_a_decision_comes_back_as_the_agent_reads_it(dialect: str) -> None:
    """The same over both ways, and for the one call alone."""
    bus = StubBus()
    bus.decide("prx.lifecycle.tool_call_start", guard)
    over = relay(bus)
    answers = {}
    for payload in recorded(dialect):
        reply = asyncio.run(over.command(request(payload, dialect)))
        assert asyncio.run(over.http(dialect, payload, 9.0, closed=False)) == reply.stdout
        if reply != Reply():
            answers[payload] = reply
    ((payload, reply),) = answers.items()
    assert b"rm -rf" in payload
    said = orjson.loads(reply.stdout)["hookSpecificOutput"]
    assert (said["permissionDecision"], said["permissionDecisionReason"]) == ("deny", "not that")


BAD = {
    "no JSON": b"{",
    "no object": b"[]",
    "no event": b"{}",
    "another type": b'{"hook_event_name": 5}',
    "no name": b'{"hook_event_name": "../x"}',
    "nothing": b"",
}


@pytest.mark.parametrize("payload", BAD.values(), ids=BAD)
def test_what_is_no_event_is_answered_by_the_policy(payload: bytes) -> None:
    """Open: the agent goes on. Closed: it is blocked, and told why. The bus hears nothing."""
    bus = StubBus()
    over = relay(bus)
    assert asyncio.run(over.command(request(payload))) == Reply()
    blocked = asyncio.run(over.command(request(payload, closed=True)))
    assert (blocked.exit_code, blocked.stdout, BLOCKED in blocked.stderr) == (2, b"", True)
    assert asyncio.run(over.http("claude", payload, 9.0, closed=False)) == b""
    said = orjson.loads(asyncio.run(over.http("claude", payload, 9.0, closed=True)))
    assert (said["decision"], BLOCKED.decode() in said["reason"]) == ("block", True)
    assert (bus.events, over.counts["failed"]) == ([], 4)


@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit", "Notification", "SessionStart"])
def test_without_an_answer_of_the_bus_the_policy_holds(event: str) -> None:
    """A block over HTTP is in the event's own form; what cannot be blocked is not."""
    over = relay(StubBus(), fault=RequestTimeout("the broker is overloaded"))
    payload = orjson.dumps({"hook_event_name": event, "session_id": "s"})
    assert asyncio.run(over.command(request(payload))) == Reply()
    assert b"the broker is overloaded" in asyncio.run(over.command(request(payload, closed=True))).stderr
    assert asyncio.run(over.http("claude", payload, 9.0, closed=False)) == b""
    body = asyncio.run(over.http("claude", payload, 9.0, closed=True))
    if event == "PreToolUse":
        assert orjson.loads(body)["hookSpecificOutput"]["permissionDecision"] == "deny"
    elif event == "UserPromptSubmit":
        assert orjson.loads(body)["decision"] == "block"
    else:
        assert b"permissionDecision" not in body


def test_a_bus_that_has_gone_is_waited_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: after that, and when it ends under an ask, the hook command is told and keeps the event."""
    bus = StubBus()
    over = relay(bus)
    asker = cast(StubAsker, over._publisher)
    asked = request(b'{"hook_event_name":"Stop"}', closed=True)

    async def run() -> list[Reply]:
        asker.ready = False
        waiting = asyncio.ensure_future(over.command(asked))
        await asyncio.sleep(0)
        asker.ready = True
        found = [await waiting]
        asker.ready = False
        monkeypatch.setattr(agent_relay, "AWAY_SECONDS", 0.02)
        found.append(await over.command(asked))
        monkeypatch.setattr(asyncio, "sleep", None)  # nobody waits again
        found.append(await over.command(asked))
        asker.ready, asker._fault = True, BusUnreachable("the broker ended")
        return [*found, await over.command(asked)]

    assert asyncio.run(run()) == [Reply(), ABSENT, ABSENT, ABSENT]
    assert asyncio.run(over.http("claude", asked.payload, 9.0, closed=False)) == b""


def test_a_dialect_that_we_do_not_speak_is_refused() -> None:
    """By the policy; it names those that there are."""
    over = relay(StubBus())
    assert asyncio.run(over.command(request(b"{}", "cursor"))) == Reply()
    assert b"codex, bitfun, claude" in asyncio.run(over.command(request(b"{}", "cursor", closed=True))).stderr


def test_an_event_that_we_do_not_know_is_published_and_not_answered() -> None:
    """A newer agent may have more events: observers see them, and no answer is invented."""
    bus = StubBus()
    bus.decide("prx.lifecycle.brand_new", lambda event: Answer("guard", "deny", "no"))
    over = relay(bus)
    payload = b'{"hook_event_name":"BrandNew","cwd":"/"}'
    assert asyncio.run(over.command(request(payload, closed=True))) == Reply()
    assert asyncio.run(over.http("claude", payload, 9.0, closed=True)) == b""
    assert [event.topic for event in bus.events] == ["prx.lifecycle.brand_new"] * 2


def test_environment_and_directory_travel_beside_the_payload(tmp_path: Path) -> None:
    """The environment is in a file that the event names; the agent's own bytes come back unchanged."""
    bus = StubBus()
    contexts = Contexts(str(tmp_path), lambda: 0.0)
    over = relay(bus, contexts)
    payload = b'{"hook_event_name": "Stop", "note": 1.50}'
    asyncio.run(over.command(request(payload, environment=b"CLAUDE_ENV_FILE=/tmp/e\0HOME=/home/dev")))
    (event,) = bus.events
    assert event.payload["cwd"] == "/home/dev/shop"
    assert original(event.payload, "claude") == payload
    expected = {"CLAUDE_ENV_FILE": "/tmp/e", "HOME": "/home/dev"}
    assert load(str(tmp_path), event.payload["agent_context"]) == expected
    contexts._directory = str(tmp_path / "gone" / "away")
    asyncio.run(over.command(request(payload, environment=b"A=1")))
    assert "agent_context" not in bus.events[1].payload


@pytest.mark.parametrize(
    "environment,depth,cause",
    [
        (b"HOME=/root", 0, None),
        (b"A=1\0PRXBUS_DEPTH=3\0PRXBUS_CAUSE=p:t:1", 3, "p:t:1"),
        (b"PRXBUS_DEPTH=deep", 7, None),
        (b"XPRXBUS_DEPTH=3", 0, None),
    ],
)
def test_an_agent_that_a_handler_started_is_one_deeper(
    environment: bytes, depth: int, cause: str | None
) -> None:
    """So that a hook which starts an agent that is attached here ends."""
    assert cause_of(environment) == (depth, cause)
    bus = StubBus()
    asyncio.run(relay(bus).command(request(b'{"hook_event_name":"Stop"}', environment=environment)))
    assert [event.depth for event in bus.events] == [depth]


def test_an_ask_ends_before_the_agents_patience() -> None:
    """Something is kept for the way back, and it is never asked for no time at all."""
    over = relay(StubBus())
    asked: Callable[[Request], Any] = over.command
    payload = b'{"hook_event_name":"Stop"}'
    for seconds in (9.0, 0.01, -3.0, 1e6):
        asyncio.run(asked(request(payload)._replace(seconds=seconds)))
    assert cast(StubAsker, over._publisher).timeouts == [8.9, 0.05, 0.05, 3_600.0]


def test_an_event_that_waited_is_published_with_its_age() -> None:
    """Nobody is asked about what has happened long ago; one that cannot be read is told of."""
    bus = StubBus()
    decider = bus.decide("*", lambda event: Answer("guard", "deny", "no"))
    over = relay(bus)
    payload = recorded("codex")[2]
    assert over.deliver(request(payload, "codex"), 5_000)
    assert not over.deliver(request(b"{", "codex"), 5_000)
    (event,) = bus.events
    assert (event.topic, event.payload["spooled_ms"]) == ("prx.lifecycle.tool_call_start", 5_000)
    assert original(event.payload, "codex") == payload
    assert (decider.asked, over.counts["delivered"]) == ([], 1)
