"""What does it cost to ask, beside a process per question and beside a request over NATS?

Round trips, one at a time, 300 B: the caller's whole `ask()` with its decision, through the broker. To a warm
`@decide` handler as `prxbus up` runs it, one and three of them in a process each, beside starting
`python3 handler.py`, which reads JSON and writes JSON, for each question. And to one `Decider` of the client
library and to a `@decide` handler, beside a nats-py request to a nats-py responder, JSON in, JSON out: they
take turns every hundred questions, so that all see the same moments of the machine.

In flight: asks per second with 64 under way in one event loop: to one `Decider` of the client library, which
is what a subscriber process has inside, to a `@decide` handler, and a nats-py request beside them.
Death: from SIGKILL of a decider that has an ask to the end of that ask.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .flow import scratch
from .measure import Cell, Goal, Plan, note, take_turns
from .servers import absent, free_port, listens, program, running, stop
from .up import broker_alone, up

NAME = "ask"
TOPIC = "prx.lifecycle.tool_call_start"
QUESTION = {"tool": "Bash", "arguments": {"command": "ls -l", "description": "x" * 230}}
IN_FLIGHT = 64
TURN = 100

_HANDLER = """
from subscribers.handlers import decide

@decide("tool_call_start", timeout=5.0)
def guard(event, ctx):
    return ctx.deny("not here") if "rm -rf" in event.payload["arguments"]["command"] else ctx.allow()
"""

_SCRIPT = """
import json, sys
event = json.load(sys.stdin)
denied = "rm -rf" in event["arguments"]["command"]
json.dump({"decision": "deny" if denied else "allow"}, sys.stdout)
"""

_RESPONDER = """
import asyncio, sys
import nats, orjson

async def main():
    client = await nats.connect(sys.argv[1])

    async def answer(message):
        event = orjson.loads(message.data)
        denied = "rm -rf" in event["arguments"]["command"]
        await message.respond(orjson.dumps({"decision": "deny" if denied else "allow"}))

    await client.subscribe("ask", cb=answer)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""

_DECIDER = """
import sys
from broker.client import Answer, Decider

with Decider([sys.argv[2]], name="guard", runtime_dir=sys.argv[1], gather=True) as asks:
    print("ready", flush=True)
    while True:
        for ask in asks.batch(timeout=1.0):
            denied = "rm -rf" in ask.event.payload["arguments"]["command"]
            ask.reply([Answer("guard", "deny" if denied else "allow")])
"""

_MORTAL = """
import sys
from broker.client import Decider
with Decider([sys.argv[2]], name="mortal", runtime_dir=sys.argv[1]) as asks:
    print("ready", flush=True)
    while True:
        if asks.batch(timeout=1.0):
            print("asked", flush=True)
"""


def measure(plan: Plan) -> Iterator[Cell]:
    """Round trips beside processes and beside requests, asks in flight, the death of a decider."""
    yield _beside_processes(plan)
    yield _beside_requests(plan)
    yield _in_flight(plan)
    yield _deaths(plan)


def _beside_processes(plan: Plan) -> Cell:
    turns = 10 if plan.tiny else 200 if plan.quick else 500
    cell = Cell(NAME, "round trip beside a process", {"asks": turns}, {"p50_us": "us", "p99_us": "us"})
    cell.goals = [
        Goal("p50_us", "prxbus", "process", 1 / 50, 1 / 80, best="low"),
        Goal("p50_us", "prxbus x 3", "process", 1 / 30, 1 / 60, best="low"),
    ]
    for number in range(plan.rounds):
        with ExitStack() as stack:
            one = stack.enter_context(_bus(1))
            three = stack.enter_context(_bus(3))
            ways: dict[str, Callable[[int], list[float]]] = {
                "prxbus": lambda count, bus=one: _asks(bus, count),  # type: ignore[misc]
                "prxbus x 3": lambda count, bus=three: _asks(bus, count),  # type: ignore[misc]
                "process": lambda count: _processes(max(5, count // 20)),
            }
            take_turns(cell, number, plan, ways, turns, TURN)
    return cell


def _beside_requests(plan: Plan) -> Cell:
    turns = 10 if plan.tiny else 500 if plan.quick else 2_000
    cell = Cell(NAME, "round trip beside a request", {"asks": turns}, {"p50_us": "us", "p99_us": "us"})
    cell.goals = [
        Goal("p50_us", "decider", "nats", 0.75, 0.5, best="low"),
        Goal("p50_us", "prxbus", "nats", 0.75, 0.5, best="low"),
    ]
    for number in range(plan.rounds):
        with ExitStack() as stack:
            bare = stack.enter_context(_decider())
            one = stack.enter_context(_bus(1))
            ways: dict[str, Callable[[int], list[float]]] = {
                "decider": lambda count, bus=bare: _asks(bus, count),  # type: ignore[misc]
                "prxbus": lambda count, bus=one: _asks(bus, count),  # type: ignore[misc]
            }
            if (why := absent("nats-server")) is None:
                url = stack.enter_context(_responder())
                ways["nats"] = lambda count, url=url: asyncio.run(_requests(url, count))  # type: ignore[misc]
            else:
                cell.skipped["nats"] = why
            take_turns(cell, number, plan, ways, turns, TURN)
    return cell


def _in_flight(plan: Plan) -> Cell:
    asks = 500 if plan.tiny else 10_000 if plan.quick else 20_000
    cell = Cell(
        NAME, f"{IN_FLIGHT} in flight, one decider", {"asks": asks}, {"asks_per_s": "/s", "cpu_us": "us"}
    )
    cell.goals = [Goal("asks_per_s", "decider", "one a second", 20_000, 60_000, yardstick=1.0)]
    for number in range(plan.rounds):
        with _decider() as bus:
            note(cell, "decider", number, plan.rounds, asyncio.run(_many_asks(bus, asks)))
        with _bus(1) as bus:
            note(cell, "prxbus", number, plan.rounds, asyncio.run(_many_asks(bus, asks)))
        if (why := absent("nats-server")) is None:
            with _responder() as url:
                note(cell, "nats", number, plan.rounds, asyncio.run(_many_requests(url, asks)))
        else:
            cell.skipped["nats"] = why
    return cell


def _deaths(plan: Plan) -> Cell:
    deaths = 2 if plan.tiny else 10
    cell = Cell(NAME, "a decider is killed", {"deaths": deaths}, {"p50_ms": "ms", "worst_ms": "ms"})
    cell.goals = [Goal("worst_ms", "prxbus", "a millisecond", 50, best="low", yardstick=1.0)]
    for number in range(plan.rounds):
        with broker_alone() as bus:
            times = sorted(_death(bus) for _ in range(deaths))
        note(cell, "prxbus", number, plan.rounds, {"p50_ms": statistics.median(times), "worst_ms": times[-1]})
    return cell


@contextmanager
def _bus(handlers: int) -> Iterator[str]:
    """`prxbus up` with a decide handler in each of so many files, each a process."""
    with up({f"guard{number}.py": _HANDLER for number in range(handlers)}) as bus:
        yield bus


@contextmanager
def _decider() -> Iterator[str]:
    """A broker and one process with a `Decider`."""
    with (
        broker_alone() as bus,
        subprocess.Popen(
            [sys.executable, "-P", "-c", _DECIDER, bus, TOPIC], stdout=subprocess.PIPE
        ) as process,
    ):
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield bus
        finally:
            stop(process)


def _asks(bus: str, count: int) -> list[float]:
    from broker.client import Publisher

    times = []
    with Publisher("benchmark", runtime_dir=bus, on_absent="raise") as agent:
        for _ in range(count):
            began = time.perf_counter_ns()
            decision = agent.ask(TOPIC, QUESTION, timeout=5.0)
            times.append((time.perf_counter_ns() - began) / 1e3)
            if decision.verdict != "allow" or decision.partial:
                raise RuntimeError(f"not decided: {decision}")
    return times


def _processes(count: int) -> list[float]:
    times = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "handler.py"
        script.write_text(_SCRIPT)
        for _ in range(count):
            began = time.perf_counter_ns()
            ended = subprocess.run(
                [sys.executable, str(script)],
                input=json.dumps(QUESTION).encode(),
                stdout=subprocess.PIPE,
                check=True,
            )
            decision = json.loads(ended.stdout)
            times.append((time.perf_counter_ns() - began) / 1e3)
            if decision != {"decision": "allow"}:
                raise RuntimeError(f"not decided: {decision}")
    return times


@contextmanager
def _responder() -> Iterator[str]:
    """A NATS server and one responder; its address."""
    port = free_port()
    with scratch() as folder:
        server = program("nats-server")
        assert server is not None
        with running([server, "-a", "127.0.0.1", "-p", str(port)], log=os.path.join(folder, "log")):
            deadline = time.monotonic() + 10
            while not listens(port):
                if time.monotonic() > deadline:
                    raise RuntimeError("nats-server does not listen")
                time.sleep(0.01)
            url = f"nats://127.0.0.1:{port}"
            with subprocess.Popen([sys.executable, "-c", _RESPONDER, url], stdout=subprocess.PIPE) as process:
                try:
                    assert process.stdout is not None
                    process.stdout.readline()
                    yield url
                finally:
                    stop(process)


async def _requests(url: str, count: int) -> list[float]:
    import nats
    import orjson

    client = await nats.connect(url)
    times = []
    for _ in range(count):
        began = time.perf_counter_ns()
        orjson.loads((await client.request("ask", orjson.dumps(QUESTION), timeout=5)).data)
        times.append((time.perf_counter_ns() - began) / 1e3)
    await client.close()
    return times


async def _many_asks(bus: str, count: int) -> dict[str, float]:
    from broker.client.aio import Publisher

    async with Publisher("benchmark", runtime_dir=bus, on_absent="raise") as agent:

        async def ask() -> None:
            decision = await agent.ask(TOPIC, QUESTION, timeout=20.0)
            if decision.verdict != "allow" or decision.partial:
                raise RuntimeError(f"not decided: {decision}")

        return await _keep_in_flight(ask, count)


async def _many_requests(url: str, count: int) -> dict[str, float]:
    import nats
    import orjson

    client = await nats.connect(url)

    async def request() -> None:
        orjson.loads((await client.request("ask", orjson.dumps(QUESTION), timeout=20)).data)

    figures = await _keep_in_flight(request, count)
    await client.close()
    return figures


async def _keep_in_flight(call: Callable[[], Any], count: int) -> dict[str, float]:
    """So many calls, 64 at a time: how many a second, and the caller's CPU for each."""
    for _ in range(100):
        await call()
    left = iter(range(count))

    async def worker() -> None:
        for _ in left:
            await call()

    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    seconds = time.perf_counter() - began
    return {"asks_per_s": count / seconds, "cpu_us": (time.process_time() - cpu) / count * 1e6}


def _death(bus: str) -> float:
    """Milliseconds from the kill to the end of the ask."""
    from broker.client import Decision, Publisher

    ended: list[tuple[float, Decision]] = []
    with (
        Publisher("benchmark", runtime_dir=bus, on_absent="raise") as agent,
        subprocess.Popen(
            [sys.executable, "-P", "-c", _MORTAL, bus, TOPIC], stdout=subprocess.PIPE
        ) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()

        def ask() -> None:
            decision = agent.ask(TOPIC, QUESTION, timeout=60.0)
            ended.append((time.perf_counter(), decision))

        thread = threading.Thread(target=ask)
        thread.start()
        process.stdout.readline()
        killed = time.perf_counter()
        process.send_signal(signal.SIGKILL)
        thread.join()
    when, decision = ended[0]
    if [each.silence for each in decision.heard] != ["died"]:
        raise RuntimeError(f"not heard: {decision}")
    return (when - killed) * 1e3
