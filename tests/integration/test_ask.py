"""Asking through a real broker: who is asked, what is decided, and what is published of it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client import Answer, Decider, Subscriber, aio
from broker.client.context import handling
from broker.client.decider import Ask
from broker.client.tool import Tool
from broker.protocol.decisions import Conflict, Refusal
from broker.protocol.errors import LimitExceeded
from broker.protocol.limits import ASK_BYTES
from broker.testing import running_broker
from tests.integration.ask_scene import CALL, RESULT, TOPIC, agent, decider, denies, gain
from tests.integration.waiting import until


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """A broker's directory."""
    with running_broker(runtime_dir) as directory:
        yield directory


def test_an_agent_asks_and_hears_who_said_no(bus: str) -> None:
    """The example of the README: denied, with the reason and the handler; else no opinion."""
    with decider(bus, denies), agent(bus) as agents:
        decision = agents.ask(TOPIC, CALL, timeout=20.0, session_id="s1")
        assert (decision.denied, decision.reason, decision.by) == (True, "not here", "guard")
        assert decision.input == CALL["arguments"]
        calm = agents.ask(TOPIC, {"tool": "Bash", "arguments": {"command": "ls"}}, timeout=20.0)
        assert (calm.verdict, calm.allowed, calm.partial) == ("none", True, False)
        assert [heard.decider for heard in calm.heard] == ["guard"]


def test_nobody_to_ask_is_no_opinion_at_once(bus: str) -> None:
    """An ask without deciders does not wait for its deadline."""
    with agent(bus) as agents:
        began = time.monotonic()
        assert agents.ask(TOPIC, CALL, timeout=60.0).heard == ()
        assert time.monotonic() - began < 30


def test_an_ask_is_published_under_its_own_id(bus: str) -> None:
    """Subscribers see the event that deciders were asked about, with the same id, time and session."""
    seen: list[Ask] = []

    def looks(ask: Ask) -> list[Answer]:
        seen.append(ask)
        return []

    with decider(bus, looks), Subscriber([TOPIC], runtime_dir=bus) as events, agent(bus) as agents:
        agents.publish(TOPIC, {"tool": "first"})
        agents.ask(TOPIC, CALL, timeout=20.0, session_id="s1")
        agents.publish(TOPIC, {"tool": "last"})
        received: list[Any] = []
        until(lambda: gain(received, events.batch(timeout=1.0)) == 3, "all three")
        assert [event.payload.get("tool") for event in received] == ["first", "Bash", "last"]
        assert [event.sequence for event in received] == [1, 2, 3]
        assert received[1] == seen[0].event
        assert (seen[0].event.session_id, seen[0].event.source) == ("s1", "agent/1")
        assert events.stats["missed"] == 0


def test_answers_merge_in_declared_order_with_provenance(bus: str) -> None:
    """Three deciders rewrite and comment; the later of two changes to a key holds, and is a conflict."""
    with (
        decider(bus, lambda _: [Answer("a", updated_input={"command": "ls", "x": 1})], name="a", priority=3),
        decider(bus, lambda _: [Answer("b", "ask", "sure?", contexts=("be careful",))], name="b", priority=1),
        decider(bus, lambda _: [Answer("c", updated_input={"command": "pwd"})], name="c", priority=2),
        agent(bus) as agents,
    ):
        decision = agents.ask(TOPIC, CALL, timeout=20.0)
    assert [heard.decider for heard in decision.heard] == ["b", "c", "a"]
    assert (decision.verdict, decision.reason, decision.by) == ("ask", "sure?", "b")
    assert decision.updated_input == {"command": "ls", "x": 1}
    assert decision.changed_by == {"command": "a", "x": "a"}
    assert decision.conflicts == (Conflict("command", ("c", "a")),)
    assert [(said.by, said.text) for said in decision.contexts] == [("b", "be careful")]


def test_constraints_are_final_and_rewrites_are_validated(bus: str) -> None:
    """The agent's own refusal asks nobody; its validator refuses a rewrite and says why."""
    asked: list[str] = []

    def rewrites(ask: Ask) -> list[Answer]:
        asked.append(ask.id)
        return [Answer("r", "allow", updated_input={"command": 5})]

    def checks(arguments: Mapping[str, Any]) -> str | None:
        return None if isinstance(arguments["command"], str) else "command must be a string"

    with decider(bus, rewrites), agent(bus) as agents, Subscriber([TOPIC], runtime_dir=bus) as events:
        refused = agents.ask(TOPIC, CALL, timeout=20.0, constraints=lambda _: "never as root")
        assert (refused.denied, refused.reason, refused.heard) == (True, "never as root", ())
        assert asked == []
        decision = agents.ask(TOPIC, CALL, timeout=20.0, revalidate=checks)
        assert decision.updated_input is None
        assert decision.refused == (Refusal("r", "command must be a string"),)
        received: list[Any] = []
        until(lambda: gain(received, events.batch(timeout=1.0)) == 2, "both events")


@pytest.mark.parametrize("size", [70_000, 5_000_000])
def test_large_asks_and_answers_travel_whole(bus: str, size: int) -> None:
    """An ask of megabytes reaches its decider, and so does an answer of the same size its asker."""
    text = "x" * size

    def doubles(ask: Ask) -> list[Answer]:
        return [Answer("big", output=ask.event.payload["tool_output"] + "y")]

    with decider(bus, doubles, patterns=(RESULT,)), agent(bus) as agents:
        decision = agents.ask(RESULT, {"tool_name": "cat", "tool_output": text}, timeout=60.0)
        assert decision.replaced
        assert decision.output == text + "y"
        assert decision.output_by == "big"
        assert [each for each in os.listdir(Path(bus) / "spool") if not each.startswith(".")] == []
        with pytest.raises(LimitExceeded, match="an ask takes at most 16,777,216"):
            agents.ask(RESULT, {"tool_output": "x" * ASK_BYTES})


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_tool_result_is_published_without_its_text(bus: str, size: int) -> None:
    """Redaction is real: neither the published copy nor the spool holds what the deciders saw."""
    secret = "SECRET" + "x" * size
    with (
        decider(bus, lambda _: [Answer("redact", output="***")], patterns=(RESULT,)),
        Subscriber([RESULT], runtime_dir=bus) as events,
        agent(bus) as agents,
    ):
        payload = {"tool_name": "cat", "tool_input": {"path": "SECRET"}, "tool_output": secret}
        assert agents.ask(RESULT, payload, timeout=30.0).output == "***"
        (event,) = events.batch(timeout=30.0)
        assert b"SECRET" not in event.payload_bytes
        assert event.payload["tool_name"] == "cat"
        assert event.payload["tool_output_bytes"] == len(secret)
        spooled = [path for path in (Path(bus) / "spool").iterdir() if not path.name.startswith(".")]
        assert spooled == []


def test_an_ask_at_the_last_depth_is_no_opinion_and_counted(bus: str) -> None:
    """What a handler asks is one level deeper; at depth 8 nobody is asked."""
    depths: list[int] = []

    def notes(ask: Ask) -> list[Answer]:
        depths.append(ask.event.depth)
        return []

    with decider(bus, notes), agent(bus) as agents, Subscriber(["x"], runtime_dir=bus) as events:
        agents.publish("x", {}, depth=3)
        (event,) = events.batch(timeout=30.0)
        with handling(event):
            agents.ask(TOPIC, CALL, timeout=20.0)
        assert agents.ask(TOPIC, CALL, timeout=20.0, depth=8).heard == ()
        assert depths == [4]
        assert agents.stats["over_depth"] == 1


def test_asks_from_many_threads_get_their_own_answers(bus: str) -> None:
    """Sixteen threads ask at once; nobody hears what another asked."""

    def echoes(ask: Ask) -> list[Answer]:
        return [Answer("echo", "allow", str(ask.event.payload["arguments"]["n"]))]

    wrong: list[object] = []
    with decider(bus, echoes, gather=True), agent(bus) as agents:

        def ask(thread: int) -> None:
            for turn in range(20):
                number = f"{thread}-{turn}"
                decision = agents.ask(TOPIC, {"tool": "t", "arguments": {"n": number}}, timeout=60.0)
                if decision.reason != number:
                    wrong.append((number, decision))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert wrong == []


def test_an_event_loop_asks_many_at_a_time(bus: str) -> None:
    """The asyncio twin has many asks under way, and each gets its own answer."""

    def echoes(ask: Ask) -> list[Answer]:
        return [Answer("echo", "allow", str(ask.event.payload["arguments"]["n"]))]

    async def ask_all() -> list[str | None]:
        async with aio.Publisher("loop", runtime_dir=bus, on_absent="raise") as agents:
            decisions = await asyncio.gather(
                *(agents.ask(TOPIC, {"arguments": {"n": n}}, timeout=60.0) for n in range(200))
            )
            return [decision.reason for decision in decisions]

    with decider(bus, echoes, gather=True), Subscriber([TOPIC], runtime_dir=bus) as events:
        assert asyncio.run(ask_all()) == [str(n) for n in range(200)]
        received: list[Any] = []
        until(lambda: gain(received, events.batch(timeout=1.0)) == 200, "all copies")
        assert [event.payload["arguments"]["n"] for event in received] == list(range(200))


def test_a_decision_is_plain_data(bus: str) -> None:
    """What was decided can be logged as JSON, provenance and all."""
    with decider(bus, denies), agent(bus) as agents:
        decision = agents.ask(TOPIC, CALL, timeout=20.0)
    shown = orjson.loads(
        orjson.dumps({"verdict": decision.verdict, "by": decision.by, "reason": decision.reason})
    )
    assert shown == {"verdict": "deny", "by": "guard", "reason": "not here"}
    assert decision.heard[0].elapsed_s > 0


def test_gathered_answers_leave_when_no_other_is_due(bus: str) -> None:
    """While others are due the receiving thread's answers wait, at most for its next look or a flush."""
    heard: dict[str, str] = {}
    with agent(bus) as agents, Decider([TOPIC], name="d", runtime_dir=bus, gather=True) as asks:

        def ask(name: str) -> None:
            heard[name] = agents.ask(TOPIC, {**CALL, "tool": name}, timeout=60.0).verdict

        def taken(*names: str) -> list[Ask]:
            """Asks of these names, all of them under way."""
            threads.extend(threading.Thread(target=ask, args=(name,)) for name in names)
            for each in threads[-len(names) :]:
                each.start()
            found: list[Ask] = []
            until(lambda: gain(found, asks.batch(timeout=1.0)) and len(found) == len(names), "the asks")
            return sorted(found, key=lambda each: str(each.event.payload["tool"]))

        threads: list[threading.Thread] = []
        (alone,) = taken("alone")
        alone.reply([Answer("d", "allow")])
        threads[-1].join(30)
        assert heard == {"alone": "allow"}
        first, second, third = taken("a", "b", "c")
        first.reply([Answer("d", "deny")])
        asks.flush()
        threads[-3].join(30)
        elsewhere = threading.Thread(target=second.reply, args=([Answer("d", "ask")],))
        elsewhere.start()
        elsewhere.join(30)
        threads[-2].join(30)
        assert {name: heard[name] for name in ("a", "b")} == {"a": "deny", "b": "ask"}
        third.reply([])
        threads[-1].join(30)
        former, latter = taken("d", "e")
        former.reply([Answer("d", "deny")])
        assert asks.batch(timeout=0.1) == []
        threads[-2].join(30)
        assert heard["d"] == "deny"
        latter.reply([])
        threads[-1].join(30)


def test_how_large_an_ask_may_be_is_the_broker_s_to_say(runtime_dir: Path) -> None:
    """Publisher and command learn it with the welcome; one byte more is refused with the number."""
    with running_broker(runtime_dir, options=("--ask-bytes", "70000")) as bus, agent(bus) as agents:
        assert agents.ask(TOPIC, {"text": "x" * 69_980}).allowed
        with pytest.raises(LimitExceeded, match="at most 70,000 here"):
            agents.ask(TOPIC, {"text": "x" * 70_000})
        with Tool("test", runtime_dir=bus) as tool, pytest.raises(LimitExceeded, match="at most 70,000 here"):
            tool.ask(TOPIC, {"text": "x" * 70_000}, timeout=5.0)
