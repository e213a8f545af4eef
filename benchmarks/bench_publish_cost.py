"""What does `publish()` cost the agent that calls it?

Bursts of 100 calls, smaller than every queue, then a pause until they have been received: the figure is the
time inside the call, not the time of the transport. The yardstick is what any client must do: orjson.dumps,
msgpack.packb of an envelope, one raw socket send. Goals are set on the processor time of the calling thread:
it is the same as wall time on a quiet machine, and on a busy one it leaves out what others do meanwhile.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import repeat
from typing import Any

import msgpack
import orjson
import zmq

from . import traffic
from .board import Board
from .contenders import Contender, Server, line_up
from .flow import scratch, subscribers
from .measure import Cell, Figures, Goal, Plan, interleave
from .roles import Role, wait_until
from .traffic import TOPIC

NAME = "publish_cost"
_BURST = 100
_YARDSTICK = "dumps + packb + raw send"
_NORMAL = "prxbus publish(dict)"
_DEEP = "prxbus publish(dict, depth=8)"

Burst = Callable[[], None]
Times = tuple[float, float]  # wall and processor time of one call, ns


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell: every way to hand over one event."""
    bursts = 4 if plan.tiny else 50 if plan.quick else 200
    conditions = {"payload": "dict 300 B", "bytes": 300, "topic": TOPIC, "burst": _BURST, "bursts": bursts}
    cell = Cell(
        NAME,
        "one publish of a 300-byte dict",
        conditions,
        {"ns_per_call": "ns", "cpu_ns_per_call": "ns of the calling thread"},
    )
    ready, cell.skipped = line_up(("prxbus", "raw_proxy", "nats"), plan.contenders)
    runners: dict[str, Callable[[], Figures]] = {}
    if "raw_proxy" in ready:
        runners[_YARDSTICK] = partial(_run, ready["raw_proxy"], _yardstick, bursts, 1)
    if "prxbus" in ready:
        ours = ready["prxbus"]
        runners[_NORMAL] = partial(_run, ours, _publish, bursts, 1)
        runners["prxbus publish(1 KiB tool_call dict)"] = partial(_run, ours, _publish_tool_call, bursts, 1)
        runners["prxbus publish(bytes)"] = partial(_run, ours, _publish_bytes, bursts, 1)
        runners["prxbus publish(dict), nobody listens"] = partial(_run, ours, _publish, bursts, 0)
        runners[_DEEP] = partial(_run, ours, _publish_deep, bursts, 1)
        cell.goals = [
            Goal("cpu_ns_per_call", _NORMAL, _YARDSTICK, 2.5, 1.8, best="low"),
            Goal("cpu_ns_per_call", _DEEP, _NORMAL, 0.5, best="low"),
        ]
    if "nats" in ready:
        runners["nats-py dumps + publish"] = partial(_run, ready["nats"], _nats, bursts, 1)
        runners["nats-py dumps + publish, nobody listens"] = partial(_run, ready["nats"], _nats, bursts, 0)
    yield interleave(cell, plan.rounds, runners)


def _run(contender: Contender, caller: Callable[..., list[Times]], bursts: int, listeners: int) -> Figures:
    board = Board(listeners)
    with scratch() as directory, ExitStack() as stack:
        server = stack.enter_context(contender.serve(directory))
        stack.enter_context(subscribers(contender, server, board, [[TOPIC]] * listeners, as_dict=False))
        role = Role(f"{contender.name} caller", caller, server, board, bursts)
        try:
            times: list[Times] = role.answer(60.0)
        finally:
            role.end()
    wall, processor = zip(*times, strict=True)
    return {"ns_per_call": statistics.median(wall), "cpu_ns_per_call": statistics.median(processor)}


def _warm(board: Board, call: Burst) -> None:
    """Single events until every listener has had one."""

    def once() -> bool:
        call()
        return all(board.count(i) for i in range(board.subscribers))

    wait_until(once, "the listener receives events")


def _time(board: Board, call: Burst, bursts: int, *, delivered: bool = True) -> list[Times]:
    """Wall and processor time per call of each burst, in ns; between bursts the listeners, if any, catch
    up.
    """
    times: list[Times] = []
    for _ in range(bursts):
        before = [board.count(i) for i in range(board.subscribers)]
        began, used = time.perf_counter_ns(), time.thread_time_ns()
        for _ in repeat(None, _BURST):
            call()
        times.append(_per_call(began, used))
        if delivered and before:
            wait_until(partial(_caught_up, board, before), "the listener caught up")
        else:
            time.sleep(0.01)
    return times


def _per_call(began: int, used: int) -> Times:
    return (time.perf_counter_ns() - began) / _BURST, (time.thread_time_ns() - used) / _BURST


def _caught_up(board: Board, before: list[int]) -> bool:
    return all(board.count(i) >= count + _BURST for i, count in enumerate(before))


def _yardstick(server: Server, board: Board, bursts: int) -> list[Times]:
    context = zmq.Context()
    socket = context.socket(zmq.PUB)
    socket.connect(f"{server.address}/in.sock")
    fields, key = traffic.dict_small().fields, TOPIC.encode() + b"\0"
    publisher, send, dumps, pack, now = b"p" * 16, socket.send, orjson.dumps, msgpack.packb, time.time_ns

    def call() -> None:
        send(key + pack([1, publisher, 1, now(), "session-1", "benchmark", None, dumps(fields)]))

    _warm(board, call)
    times = _time(board, call, bursts)
    socket.close(linger=0)
    context.term()
    return times


def _publish(server: Server, board: Board, bursts: int) -> list[Times]:
    return _with_publisher(server, board, bursts, traffic.dict_small().fields)


def _publish_tool_call(server: Server, board: Board, bursts: int) -> list[Times]:
    return _with_publisher(server, board, bursts, traffic.dict_tool_call().fields)


def _publish_bytes(server: Server, board: Board, bursts: int) -> list[Times]:
    return _with_publisher(server, board, bursts, traffic.dict_small().payload)


def _publish_deep(server: Server, board: Board, bursts: int) -> list[Times]:
    return _with_publisher(server, board, bursts, traffic.dict_small().fields, depth=8)


def _with_publisher(
    server: Server, board: Board, bursts: int, payload: dict[str, Any] | bytes, depth: int | None = None
) -> list[Times]:
    from broker.client import Publisher

    with Publisher("benchmark", runtime_dir=server.address, on_absent="block") as bus:
        publish = bus.publish

        def shallow() -> None:
            publish(TOPIC, payload, session_id="session-1")

        def deep() -> None:
            publish(TOPIC, payload, session_id="session-1", depth=depth)

        _warm(board, shallow)
        times = _time(board, shallow if depth is None else deep, bursts, delivered=depth is None)
        dropped = bus.stats["dropped_full"] + bus.stats["dropped_absent"]
    if dropped:
        raise RuntimeError(f"{dropped} events were dropped: the figure would be that of a drop")
    return times


def _nats(server: Server, board: Board, bursts: int) -> list[Times]:
    return asyncio.run(_nats_calls(server, board, bursts))


async def _nats_calls(server: Server, board: Board, bursts: int) -> list[Times]:
    import nats

    client = await nats.connect(server.address)
    fields, publish, dumps = traffic.dict_small().fields, client.publish, orjson.dumps
    times: list[Times] = []
    while not all(board.count(i) for i in range(board.subscribers)):
        await publish(TOPIC, dumps(fields))
        await client.flush()
    for _ in range(bursts):
        began, used = time.perf_counter_ns(), time.thread_time_ns()
        for _ in repeat(None, _BURST):
            await publish(TOPIC, dumps(fields))
        times.append(_per_call(began, used))
        await client.flush()
    await client.close()
    return times
