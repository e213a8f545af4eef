"""Asks when somebody is late, leaves, dies or talks nonsense, the broker among them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker.client import Answer, Decider, Publisher, aio
from broker.client.core import session
from broker.client.decider import Ask
from broker.client.tool import Tool
from broker.protocol.errors import BusUnreachable, ClosedError, ForkedError, LimitExceeded
from broker.testing import running_broker
from tests.integration.ask_scene import CALL, TOPIC, agent, decider, gain, other_process
from tests.integration.waiting import until


@pytest.fixture
def bus(runtime_dir: Path) -> Iterator[str]:
    """A broker's directory."""
    with running_broker(runtime_dir) as directory:
        yield directory


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


def test_a_decider_finds_the_next_broker_by_the_end_of_its_lane(
    runtime_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait until it has something to report; its descriptor stays, old answers do not count."""
    for name in ("REPORT_SECONDS", "IDLE_REPORT_SECONDS"):
        monkeypatch.setattr(session, name, 3_600.0)
    with running_broker(runtime_dir) as bus, Decider([TOPIC], name="d", runtime_dir=bus) as asks:
        descriptor, heard = asks.descriptor, []
        with Tool("test", runtime_dir=bus) as tool:
            pid = tool.request("status").body["status"]["broker"]["pid"]

        def ask() -> None:
            with suppress(BusUnreachable), agent(bus) as agents:
                heard.append(agents.ask(TOPIC, CALL, timeout=60.0).by)

        threads = [threading.Thread(target=ask)]
        threads[0].start()
        taken: list[Ask] = []
        until(lambda: gain(taken, asks.batch(timeout=0.5)), "an ask")
        os.kill(pid, signal.SIGKILL)
        with running_broker(runtime_dir):

            def asked() -> int:
                if not threads[-1].is_alive():
                    threads.append(threading.Thread(target=ask))
                    threads[-1].start()
                return gain(taken, asks.batch(timeout=0.5)) - 1

            until(asked, "an ask of the next broker")
            assert not taken[0].reply([Answer("late", "deny")])
            assert taken[-1].reply([Answer("d", "allow")])
            for thread in threads:
                thread.join(60)
        assert asks.descriptor == descriptor
    assert heard[-1] == "d"


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
