"""Handlers that hang, crash and hold the interpreter: what the others and the asker notice of it."""

from __future__ import annotations

import os
import signal
import time

import pytest

from broker.client import Subscriber
from tests.integration.python_scene import gone, handlers, meanwhile, scene
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(120)

START = "prx.lifecycle.tool_call_start"
STUCK = "prx.lifecycle.user_prompt"
GUARD = '@decide("tool_call_start")\ndef guard(event, ctx):\n    return ctx.deny("not here")\n'
LONG_S = 20.0
"""Patience of an asker who is not to need it."""


def test_a_stuck_handler_stalls_neither_its_file_nor_another() -> None:
    """While a synchronous guard hangs, others of its own file and of another one answer at once."""
    hangs = 'import time\n@decide("user_prompt", timeout=60)\ndef hangs(e, c): time.sleep(5)\n'
    with scene() as on:
        on.write("mixed.py", hangs + GUARD)
        on.write("other.py", GUARD)
        with handlers(on, "--drain-seconds", "0.1"):
            on.agent.ask(START, {"tool": "Bash"}, timeout=LONG_S)  # warms up
            began = time.monotonic()
            with meanwhile(lambda: on.agent.ask(STUCK, {"prompt": "x"}, timeout=4.0)) as hung:
                for _ in range(20):
                    decision = on.agent.ask(START, {"tool": "Bash"}, timeout=LONG_S)
                    assert [heard.silence for heard in decision.heard] == [None, None]
                answered = time.monotonic() - began
    assert answered < 4.0, "the hung one was over before the others had answered"
    assert hung[0].partial


def test_a_timeout_ends_a_stuck_handler() -> None:
    """The asker hears at the timeout; another worker takes over, and the process with the stuck one ends."""
    hangs = 'import time\n@decide("user_prompt", timeout=0.3)\ndef hangs(e, c): time.sleep(1000)\n'
    with scene() as on:
        on.write("mixed.py", hangs + GUARD)
        with handlers(on) as service:
            began = time.monotonic()
            decision = on.agent.ask(STUCK, {"prompt": "x"}, timeout=LONG_S)
            assert time.monotonic() - began < LONG_S / 2
            assert [heard.silence for heard in decision.heard] == ["failed"]
            while len(service.pids()) < 2:  # nobody is without a guard meanwhile
                assert on.agent.ask(START, {"tool": "Bash"}, timeout=LONG_S).denied
            first, second = service.pids()
            until(lambda: gone(first), "the end of the worker with the stuck handler")
            assert on.agent.ask(START, {"tool": "Bash"}, timeout=LONG_S).denied
            runs = on.monitor.wait("prx.hooks.dead_letter", 1)
    assert first != second
    assert (runs[0]["hook"], runs[0]["status"]) == ("mixed.py:hangs", "timeout")
    assert runs[0]["reason"] == "it did not end within 0.3 s"


def test_an_asynchronous_handler_is_cancelled() -> None:
    """Its time over, it is cancelled and its worker stays."""
    source = (
        "import asyncio\n"
        '@decide("user_prompt", timeout=0.3)\nasync def waits(e, c):\n'
        "    try:\n        await asyncio.sleep(1000)\n"
        '    finally:\n        c.publish("it.ended", {})\n'
    )
    with scene() as on:
        on.write("waits.py", source + GUARD)
        with handlers(on) as service:
            decision = on.agent.ask(STUCK, {"prompt": "x"}, timeout=LONG_S)
            assert [heard.silence for heard in decision.heard] == ["failed"]
            (run,) = on.monitor.runs(1)
            assert on.agent.ask(START, {"tool": "Bash"}, timeout=LONG_S).denied
            assert len(service.pids()) == 1
    assert (run["hook"], run["status"]) == ("waits.py:waits", "timeout")


def test_a_handler_that_holds_the_interpreter_is_ended_from_outside() -> None:
    """A regular expression without end lets no thread speak: the process is killed soon after the timeout."""
    source = (
        "import re\n"
        '@decide("user_prompt", timeout=0.5, failure="closed")\n'
        'def endless(e, c): return c.deny("no") if re.match(r"(a+)+$", "a" * 60 + "b") else None\n'
    )
    with scene() as on:
        on.write("endless.py", source + GUARD)
        on.write("other.py", GUARD)
        with handlers(on) as service:
            pids = service.pids()
            with meanwhile(lambda: on.agent.ask(STUCK, {"prompt": "x"}, timeout=LONG_S)) as asked:
                other = on.agent.ask(START, {"tool": "Bash"}, timeout=0.4)  # the other file answers meanwhile
            until(lambda: any(gone(pid) for pid in pids), "the end of the frozen worker")
            service.in_force(3)
            decision = on.agent.ask(START, {"tool": "Bash"}, timeout=LONG_S)
            (lost,) = on.monitor.wait("prx.hooks.dead_letter", 1)
    assert other.denied
    assert asked[0].denied, "a guard that fails closed and dies is a denial"
    assert not decision.partial
    assert (lost["hook"], lost["status"]) == ("endless.py:endless", "timeout")


def test_a_killed_worker_is_heard_at_once_and_comes_back() -> None:
    """kill -9 during an ask: the asker does not wait for its deadline, and the next worker answers."""
    waits = (
        'import time\n@decide("user_prompt", timeout=60)\ndef waits(e, c):\n'
        '    c.publish("it.waits", {})\n    time.sleep(1000)\n'
    )
    with scene() as on:
        on.write("guard.py", waits + GUARD)
        with handlers(on) as service, Subscriber(["it.waits"], runtime_dir=on.bus) as watching:
            (pid,) = service.pids()
            with meanwhile(lambda: (on.agent.ask(STUCK, {"p": 1}, timeout=60.0), time.monotonic())) as asked:
                assert watching.batch(timeout=LONG_S)
                killed = time.monotonic()
                os.kill(pid, signal.SIGKILL)
            service.in_force(2)
            assert on.agent.ask(START, {}, timeout=LONG_S).denied
            (lost,) = on.monitor.wait("prx.hooks.dead_letter", 1)
            assert service.count("a worker ended by itself and is started again") == 1
    decision, heard_at = asked[0]
    assert heard_at - killed < 10.0
    assert [heard.silence for heard in decision.heard] == ["died"]
    assert (lost["hook"], lost["status"], lost["signal"]) == ("guard.py:waits", "signalled", 9)


def test_a_handler_that_ends_its_process_takes_no_other_file_along() -> None:
    """os._exit in a handler: its asker hears, its file comes back after a pause, other files go on."""
    with scene() as on:
        on.write("exits.py", 'import os\n@decide("user_prompt")\ndef exits(e, c): os._exit(7)\n')
        on.write("other.py", GUARD)
        with handlers(on) as service:
            for times in range(3):
                decision = on.agent.ask(STUCK, {"n": times}, timeout=LONG_S)
                assert [heard.silence for heard in decision.heard] == ["died"]
                assert on.agent.ask(START, {}, timeout=LONG_S).denied
                service.in_force(3 + times)
            assert service.count("a worker ended by itself and is started again") == 3
            lost = on.monitor.wait("prx.hooks.dead_letter", 3)
    told = {(run["hook"], run["status"], run["exit_code"]) for run in lost}
    assert told == {("exits.py:exits", "failed", 7)}


def test_what_a_handler_raises_ends_no_worker() -> None:
    """SystemExit and MemoryError are failures like any other."""
    source = (
        '@decide("user_prompt", failure="closed")\ndef ends(e, c): raise SystemExit(3)\n'
        '@decide("permission_request")\nasync def full(e, c): raise MemoryError\n'
    )
    with scene() as on:
        on.write("ends.py", source)
        with handlers(on) as service:
            assert on.agent.ask(STUCK, {}, timeout=LONG_S).denied
            other = on.agent.ask("prx.lifecycle.permission_request", {}, timeout=LONG_S)
            assert [heard.silence for heard in other.heard] == ["failed"]
            reasons = {run["hook"]: run["reason"] for run in on.monitor.runs(2)}
            assert len(service.pids()) == 1
    assert reasons["ends.py:ends"].startswith("SystemExit: 3")
    assert reasons["ends.py:full"].startswith("MemoryError")


def test_calls_are_bounded_and_what_finds_no_room_is_told() -> None:
    """One call at once, one may wait: a third ask fails at once, and the first two are answered in turn."""
    source = (
        "import threading\ngo = threading.Event()\n"
        '@decide("user_prompt", timeout=60)\ndef waits(e, c):\n    go.wait(30)\n    return c.deny("w")\n'
        '@on("go")\ndef start(e, c): go.set()\n'  # a wait that nobody ends would be a timeout
    )
    with scene() as on:
        on.write("waits.py", source)
        with (
            handlers(on, "--calls-per-handler", "1", "--queue", "1"),
            meanwhile(lambda: on.agent.ask(STUCK, {"n": 1}, timeout=LONG_S)) as first,
            meanwhile(lambda: on.agent.ask(STUCK, {"n": 2}, timeout=LONG_S)) as second,
        ):

            def found_no_room() -> bool:
                decision = on.agent.ask(STUCK, {"n": 3}, timeout=2.0)
                return [heard.silence for heard in decision.heard] == ["failed"]

            until(found_no_room, "an ask that finds no room")
            on.agent.publish("prx.lifecycle.go", {})
    assert first[0].denied or second[0].denied


@pytest.mark.parametrize("victim", ["service", "worker"])
def test_no_ask_passes_unasked_while_the_workers_are_away(victim: str) -> None:
    """kill -9 of the service, SIGTERM to a worker: a death, and guards that fail closed go on denying."""
    source = '@decide("tool_call_start", failure="closed")\ndef guard(event, ctx): return ctx.allow()\n'
    decisions = []

    def answered() -> bool:
        decisions.append(on.agent.ask(START, {"tool": "Bash"}, timeout=LONG_S))
        return not decisions[-1].denied

    with scene() as on:
        on.write("guard.py", source)
        with handlers(on) as service:
            (pid,) = service.pids()
            assert answered()
            if victim == "service":
                service.kill()
            else:
                os.kill(pid, signal.SIGTERM)
            until(lambda: not answered(), "an ask while nobody is there")
            if victim == "worker":
                until(answered, "an answer of the next worker")
        if victim == "service":
            for _ in range(20):
                assert not answered()
            with handlers(on):
                until(answered, "an answer of the next worker")
    assert all(decision.heard for decision in decisions), "an ask passed with nobody asked"
    away = [decision for decision in decisions if decision.denied]
    assert {heard.silence for decision in away for heard in decision.heard} <= {
        "died",
        "unreachable",
        "failed",
    }


def test_a_service_that_ends_in_order_takes_its_guards_along() -> None:
    """Whoever stops it wants nobody asked any more: no denial stays behind."""
    with scene() as on:
        on.write("guard.py", GUARD.replace('start"', 'start", failure="closed"'))
        with handlers(on):
            assert on.agent.ask(START, {}, timeout=LONG_S).denied
        decision = on.agent.ask(START, {}, timeout=LONG_S)
    assert (decision.denied, list(decision.heard)) == (False, [])
