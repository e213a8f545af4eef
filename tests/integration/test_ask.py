"""Asking through a real broker: who is asked, what is decided, and what happens when somebody goes away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.client import Answer, Decider, Publisher, Subscriber, aio
from broker.client.context import handling
from broker.client.decider import Ask
from broker.client.tool import Tool
from broker.protocol.decisions import Conflict, Failure, Refusal
from broker.protocol.errors import BusUnreachable, ClosedError, ForkedError, LimitExceeded
from broker.protocol.limits import ASK_BYTES
from broker.testing import running_broker
from tests.integration.waiting import until

TOPIC = "prx.lifecycle.tool_call_start"
CALL = {"tool": "Bash", "arguments": {"command": "rm -rf /"}}
RESULT = "prx.lifecycle.tool_result"

Says = Callable[[Ask], list[Answer] | None]
"""What a decider does with an ask: answers, or None to say nothing at all."""


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """A broker's directory."""
    with running_broker(runtime_dir) as directory:
        yield directory


@contextmanager
def decider(
    bus: str,
    says: Says,
    *,
    name: str = "guard",
    priority: int = 0,
    failure: Failure = "open",
    patterns: tuple[str, ...] = (TOPIC,),
    gather: bool = False,
) -> Iterator[Decider]:
    """A decider in a thread of this process."""
    with Decider(
        patterns, name=name, priority=priority, failure=failure, runtime_dir=bus, gather=gather
    ) as asks:

        def serve() -> None:
            while not asks.closed:
                try:
                    taken = asks.batch(timeout=0.2)
                except ClosedError:
                    return
                for ask in taken:
                    answers = says(ask)
                    if answers is not None:
                        ask.reply(answers)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asks
        finally:
            asks.close()
            thread.join(30)


def gain(known: list[Any], more: list[Any]) -> int:
    """Add ``more`` to what is ``known``; how much there is now."""
    known.extend(more)
    return len(known)


def agent(bus: str) -> Publisher:
    """An agent that insists on a bus."""
    return Publisher("agent/1", runtime_dir=bus, on_absent="raise")


def denies(ask: Ask) -> list[Answer]:
    """A guard against recursive removal."""
    bad = "rm -rf" in ask.event.payload["arguments"]["command"]
    return [Answer("guard", "deny", "not here")] if bad else []


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


def test_a_late_decider_costs_the_deadline_and_no_more(bus: str) -> None:
    """Who is late is listed with the answers that came; a closed one's silence denies."""
    with (
        decider(bus, lambda _: None, name="asleep"),
        decider(bus, lambda _: [Answer("quick", "allow")], name="quick"),
        agent(bus) as agents,
    ):
        began = time.monotonic()
        decision = agents.ask(TOPIC, CALL, timeout=0.3)
        assert time.monotonic() - began < 20
        assert (decision.verdict, decision.partial) == ("allow", True)
        assert [(each.decider, each.silence) for each in decision.missing] == [("asleep", "timeout")]
        with decider(bus, lambda _: None, name="gate", failure="closed"):
            denied = agents.ask(TOPIC, CALL, timeout=0.3)
            assert (denied.verdict, denied.by) == ("deny", "gate")


DECIDER = """
import sys, time
from broker.client import Answer, Decider
with Decider(sys.argv[2:3], name=sys.argv[3], failure=sys.argv[4], runtime_dir=sys.argv[1]) as asks:
    print("ready", flush=True)
    while True:
        for ask in asks.batch(timeout=1.0):
            print("asked", flush=True)
            if "answer" in sys.argv[5:]:
                ask.reply([Answer("other", "allow", "from another process")])
"""


@contextmanager
def other_process(
    bus: str, *options: str, name: str = "other", failure: str = "open"
) -> Iterator[subprocess.Popen[bytes]]:
    """A decider in a process of its own; it says when it is ready and when it is asked."""
    command = [sys.executable, "-P", "-c", DECIDER, bus, TOPIC, name, failure, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def test_a_decider_that_is_killed_is_noticed_at_once(bus: str) -> None:
    """Its asker hears of the death long before the deadline; a closed one is missed until it is back."""
    heard: list[Any] = []
    with agent(bus) as agents, other_process(bus, failure="closed") as process:
        assert process.stdout is not None

        def ask() -> None:
            heard.append(agents.ask(TOPIC, CALL, timeout=300.0))

        thread = threading.Thread(target=ask)
        thread.start()
        assert process.stdout.readline() == b"asked\n"
        process.send_signal(signal.SIGKILL)
        thread.join(60)
        assert [(each.decider, each.silence) for each in heard[0].missing] == [("other", "died")]
        assert heard[0].denied
        again = agents.ask(TOPIC, CALL, timeout=300.0)
        assert again.denied
        assert again.reason == "other did not answer (died) and fails closed"
        with Tool("test", runtime_dir=bus) as tool:
            asks = tool.request("status").body["status"]["asks"]
        assert asks["closed_and_dead"] == ["other"]
        with other_process(bus, "answer", failure="closed"):
            assert agents.ask(TOPIC, CALL, timeout=60.0).verdict == "allow"


def test_a_decider_that_leaves_says_so(bus: str) -> None:
    """A goodbye in the middle of an ask ends it at once, and is no silence of a dead one afterwards."""
    waiting = threading.Event()

    def hesitates(_: Ask) -> None:
        waiting.set()

    heard: list[Any] = []
    with agent(bus) as agents:
        with decider(bus, hesitates, failure="closed") as asks:
            thread = threading.Thread(target=lambda: heard.append(agents.ask(TOPIC, CALL, timeout=300.0)))
            thread.start()
            assert waiting.wait(30)
            asks.close()
            thread.join(60)
        assert [each.silence for each in heard[0].missing] == ["left"]
        assert agents.ask(TOPIC, CALL, timeout=20.0).heard == ()


def test_a_decider_that_holds_answers_what_it_was_asked_before(bus: str) -> None:
    """After hold() nothing new comes, and what came before can still be answered."""
    taken: list[Ask] = []
    with agent(bus) as agents, Decider([TOPIC], name="d", runtime_dir=bus) as asks:
        heard: list[Any] = []
        thread = threading.Thread(target=lambda: heard.append(agents.ask(TOPIC, CALL, timeout=60.0)))
        thread.start()
        until(lambda: gain(taken, asks.batch(timeout=1.0)), "the ask")
        asks.hold()
        until(lambda: (gain(taken, asks.batch(timeout=0.1)), asks.held)[1], "no more asks")
        assert agents.ask(TOPIC, CALL, timeout=20.0).heard == ()
        assert [ask.reply([Answer("d", "allow")]) for ask in taken] == [True]
        thread.join(60)
        assert heard[0].verdict == "allow"
        assert not taken[0].reply([])  # once


def test_an_asker_that_goes_away_cancels_its_asks(bus: str) -> None:
    """Who decides for nobody hears of it, and a late answer counts as such."""
    taken: list[Ask] = []
    code = (
        "import sys; from broker.client import Publisher\n"
        f"Publisher('gone', runtime_dir=sys.argv[1], on_absent='raise').ask({TOPIC!r}, {{}}, timeout=300.0)"
    )
    with Decider([TOPIC], name="d", runtime_dir=bus) as asks:
        with subprocess.Popen([sys.executable, "-P", "-c", code, bus]) as process:
            until(lambda: gain(taken, asks.batch(timeout=1.0)), "the ask")
            process.kill()
        until(lambda: (gain(taken, asks.batch(timeout=0.1)), taken[0].cancelled)[1], "the cancellation")
        assert not taken[0].reply([])
        assert asks.stats["cancelled"] == asks.stats["too_late"] == 1
        with Tool("test", runtime_dir=bus) as tool:
            assert tool.request("status").body["status"]["asks"]["under_way"] == 0


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


def test_a_broker_that_is_replaced_ends_an_ask_and_takes_the_next(runtime_dir: Path) -> None:
    """The ask under way raises, deciders find the new broker by themselves, the next ask is answered."""
    taken = threading.Event()
    answers: list[Answer] | None = None

    def waits(_: Ask) -> list[Answer] | None:
        taken.set()
        return answers

    with running_broker(runtime_dir) as bus, decider(bus, waits), agent(bus) as agents:
        with Tool("test", runtime_dir=bus) as tool:
            pid = tool.request("status").body["status"]["broker"]["pid"]
        caught: list[Exception] = []

        def ask() -> None:
            try:
                agents.ask(TOPIC, CALL, timeout=300.0)
            except Exception as error:
                caught.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        assert taken.wait(30)
        os.kill(pid, signal.SIGKILL)
        answers = [Answer("g", "allow")]
        with running_broker(runtime_dir):
            thread.join(60)
            assert isinstance(caught[0], BusUnreachable)

            def allowed() -> bool:
                try:
                    return agents.ask(TOPIC, CALL, timeout=20.0).verdict == "allow"
                except BusUnreachable:
                    return False

            until(allowed, "an answer through the new broker")


def test_without_a_bus_nobody_can_be_asked(runtime_dir: Path) -> None:
    """Asking without a bus raises, however patient the publisher is with events."""
    with Publisher("agent", runtime_dir=runtime_dir) as agents, pytest.raises(BusUnreachable):
        agents.ask(TOPIC, CALL)
    with pytest.raises(BusUnreachable):
        Decider([TOPIC], runtime_dir=runtime_dir)


def test_clients_that_are_closed_or_forked_say_so(bus: str) -> None:
    """No call after close or in a forked child works, or hangs."""
    with agent(bus) as agents, Decider([TOPIC], runtime_dir=bus) as asks:
        child = os.fork()
        if child == 0:
            code = 0
            for call in (lambda: agents.ask(TOPIC, CALL), lambda: asks.batch(timeout=0)):
                try:
                    call()
                except ForkedError:
                    continue
                code = 1
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(ClosedError):
        agents.ask(TOPIC, CALL)
    with pytest.raises(ClosedError):
        asks.batch()


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


def test_a_cancelled_task_cancels_its_ask(bus: str) -> None:
    """The decider hears that nobody waits, and the loop's next ask is answered."""
    taken: list[Ask] = []

    async def ask() -> str:
        async with aio.Publisher("loop", runtime_dir=bus, on_absent="raise") as agents:
            task = asyncio.create_task(agents.ask(TOPIC, CALL, timeout=300.0))
            while not taken:
                taken.extend(await asyncio.to_thread(asks.batch, 1, 1.0))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not taken[0].cancelled:
                await asyncio.to_thread(asks.batch, 1, 0.1)
            late = await agents.ask(TOPIC, CALL, timeout=0.2)
            return ",".join(str(each.silence) for each in late.heard)

    with Decider([TOPIC], name="d", runtime_dir=bus) as asks:
        assert asyncio.run(ask()) == "timeout"
        assert not taken[0].reply([])


def test_a_garbled_answer_takes_no_other_along(bus: str) -> None:
    """A decider whose answer is no answer counts as failed; the others are heard."""
    with (
        decider(bus, lambda _: [Answer("good", "allow")], name="good"),
        Decider([TOPIC], name="bad", runtime_dir=bus) as bad,
        agent(bus) as agents,
    ):

        def garble() -> None:
            taken: list[Ask] = []
            until(lambda: gain(taken, bad.batch(timeout=1.0)), "the ask")
            taken[0].reply([Answer("bad", "perhaps")])  # type: ignore[arg-type]

        thread = threading.Thread(target=garble)
        thread.start()
        decision = agents.ask(TOPIC, CALL, timeout=60.0)
        thread.join(30)
    assert decision.verdict == "allow"
    assert [(each.decider, each.silence) for each in decision.heard] == [("bad", "failed"), ("good", None)]


def test_what_can_never_be_asked_is_refused_before_anybody_is(bus: str) -> None:
    """Bad topics, payloads, times and deciders raise what publishing and subscribing would."""
    with agent(bus) as agents:
        for wrong in ("a..b", "", "*"):
            with pytest.raises(ValueError, match="topic"):
                agents.ask(wrong, {})
        wrong_payloads: list[Any] = [[1], b"{", {"n": float("nan")}, {"tool": 5}]
        for payload in wrong_payloads:
            with pytest.raises(ValueError, match="payload"):
                agents.ask(TOPIC, payload)
        for timeout in (0, -1, 3_601):
            with pytest.raises(LimitExceeded, match="timeout"):
                agents.ask(TOPIC, {}, timeout=timeout)
        assert agents.stats["published"] == 0
    wrong_options: list[dict[str, Any]] = [
        {"failure": "x"},
        {"priority": 1.5},
        {"priority": 10**7},
        {"name": ""},
    ]
    for options in wrong_options:
        with pytest.raises(ValueError, match=r"failure|priority|name"):
            Decider([TOPIC], runtime_dir=bus, **options)
    with pytest.raises(ValueError, match="pattern"):
        Decider([], runtime_dir=bus)


def test_a_decision_is_plain_data(bus: str) -> None:
    """What was decided can be logged as JSON, provenance and all."""
    with decider(bus, denies), agent(bus) as agents:
        decision = agents.ask(TOPIC, CALL, timeout=20.0)
    shown = orjson.loads(
        orjson.dumps({"verdict": decision.verdict, "by": decision.by, "reason": decision.reason})
    )
    assert shown == {"verdict": "deny", "by": "guard", "reason": "not here"}
    assert decision.heard[0].elapsed_s > 0


def test_gathered_answers_leave_at_the_next_batch_and_others_at_once(bus: str) -> None:
    """The receiving thread's answers wait for its next look or a flush, those of other threads do not."""
    taken: list[Ask] = []
    heard: list[Any] = []
    with agent(bus) as agents, Decider([TOPIC], name="d", runtime_dir=bus, gather=True) as asks:

        def ask() -> None:
            heard.append(agents.ask(TOPIC, CALL, timeout=60.0))

        def another(answer: Callable[[Ask], object]) -> None:
            """One ask more, answered as told."""
            thread = threading.Thread(target=ask)
            thread.start()
            taken.clear()
            until(lambda: gain(taken, asks.batch(timeout=1.0)), "the ask")
            answer(taken[0])
            thread.join(30)

        def elsewhere(each: Ask) -> None:
            thread = threading.Thread(target=each.reply, args=([Answer("d", "allow")],))
            thread.start()
            thread.join(30)

        def here(each: Ask) -> None:
            each.reply([Answer("d", "deny")])
            asks.flush()

        def later(each: Ask) -> None:
            each.reply([Answer("d", "ask")])
            asks.batch(timeout=0.1)

        for answer in (elsewhere, here, later):
            another(answer)
    assert [decision.verdict for decision in heard] == ["allow", "deny", "ask"]


def test_what_a_closed_decider_guards_stays_shut_over_a_broker_s_death(runtime_dir: Path) -> None:
    """A new broker denies until the guard is back, and one that ends in order leaves nothing to miss."""
    with running_broker(runtime_dir) as bus:
        with Tool("test", runtime_dir=bus) as tool:
            pid = tool.request("status").body["status"]["broker"]["pid"]
        with other_process(bus, "answer", failure="closed") as guard:
            until((Path(bus) / "closed-deciders.json").exists, "the guard is written down")
            os.kill(guard.pid, signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
            with running_broker(runtime_dir), agent(bus) as agents:
                decision = agents.ask(TOPIC, CALL, timeout=20.0)
                assert [(h.decider, h.silence) for h in decision.heard] == [("other", "died")]
                assert decision.denied
                os.kill(guard.pid, signal.SIGCONT)
                until(lambda: agents.ask(TOPIC, CALL, timeout=20.0).verdict == "allow", "the guard is back")
        assert not (Path(bus) / "closed-deciders.json").exists()
