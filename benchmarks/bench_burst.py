"""What does it gain to gather bursts, and what does it cost the events that are none?

Five questions, each answered side by side in one run: the processor time of a call in the middle of a burst;
eight topics in rotation beside one; an event every millisecond with gathering and without; the second of two
events after which the publisher computes for 10 ms, so that it must not wait for a thread of ours; and the
packages that could pack and unpack the rows of a batch.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import cycle, islice, repeat
from typing import Any

from . import traffic
from .board import Board, Tally
from .contenders import Contender, Server
from .contenders.prxbus import CONTENDER, Prxbus
from .flow import Load, flat_out, one_way, scratch, subscribers
from .measure import Cell, Figures, Goal, Plan, interleave
from .pace import Pace, drive, read_stamp, stamp
from .roles import Role, wait_until
from .traffic import TOPIC, Traffic

NAME = "burst"
_BURST = 2_000
_RATE = 1_000.0
_SKIP = 100
_COMPUTING_S = 0.01
_EMPTY_CALLS = 43.0
"""What 1.5 us are in empty calls where they were asked for, at 35 ns each. This machine runs at
two speeds, by the minute: a burst and the empty calls right after it see the same one.
"""
_ROWS = 176
"""Events of 300 bytes in a frame."""
_EVENTS = "agent_start tool_call_start tool_call llm_request llm_response turn_complete agent_step agent_end"
_TOPICS = tuple(f"prx.lifecycle.{name}" for name in _EVENTS.split())


class _Alone(Prxbus):
    """The product with each event in a frame of its own, as if a subscriber had asked for that."""

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        return _send(address, traffic, pace, gathers=False)


class _Rotating(Prxbus):
    """The product with a topic for each event in turn."""

    def __init__(self, topics: tuple[str, ...]) -> None:
        self._topics = topics

    def send(self, address: str, traffic: Traffic, pace: Pace) -> dict[str, Any]:
        return _send(address, traffic, pace, topics=self._topics)


def _send(
    address: str, traffic: Traffic, pace: Pace, *, gathers: bool = True, topics: tuple[str, ...] = (TOPIC,)
) -> dict[str, Any]:
    from broker.client import Publisher

    class Alone(Publisher):
        """There is no such option, for nobody needs it but this comparison."""

        def _gather(self, allowed: bool) -> None:
            super()._gather(allowed and gathers)

    with Alone("benchmark", runtime_dir=address, on_full="block", on_absent="block") as bus:
        rotation, publish = cycle(topics), bus.publish

        def send(payload: bytes, times: int) -> None:
            for topic in islice(rotation, times):
                publish(topic, payload)

        drive(pace, send, traffic.payload)
        return dict(bus.stats)


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell per question."""
    yield _calls(plan)
    yield _topics(plan)
    yield _pace(plan)
    yield _second(plan)
    yield _codecs(plan)


def _calls(plan: Plan) -> Cell:
    bursts = 4 if plan.tiny else 30 if plan.quick else 100
    small = traffic.dict_small()
    conditions = {"bytes": len(small.payload), "topic": TOPIC, "burst": _BURST, "bursts": bursts}
    goals = [
        Goal("cpu_ns_per_call", "bytes", "1.5 us", 1.0, 0.4, best="low", yardstick=1_500.0),
        Goal("empty_calls", "bytes", "43 empty calls", 1.0, 0.4, best="low", yardstick=_EMPTY_CALLS),
    ]
    units = {
        "cpu_ns_per_call": "ns of the calling thread",
        "least_ns_per_call": "ns, best burst",
        "empty_calls": "times a call of an empty function beside it",
    }
    cell = Cell(NAME, "publish() in the middle of a burst, 300 B", conditions, units, goals)
    payloads = {"bytes": small.payload, "dict": small.fields}
    return interleave(
        cell, plan.rounds, {name: partial(_call_run, payload, bursts) for name, payload in payloads.items()}
    )


def _call_run(payload: Any, bursts: int) -> Figures:
    board = Board(1)
    with scratch() as directory, ExitStack() as stack:
        server = stack.enter_context(CONTENDER.serve(directory))
        stack.enter_context(subscribers(CONTENDER, server, board, [[TOPIC]], as_dict=False))
        role = Role("prxbus caller", _call, server, board, payload, bursts)
        try:
            times: list[tuple[float, float]] = role.answer(60.0)
        finally:
            role.end()
    calls = [call for call, _empty in times]
    return {
        "cpu_ns_per_call": statistics.median(calls),
        "least_ns_per_call": min(calls),
        "empty_calls": statistics.median(call / empty for call, empty in times),
    }


def _nothing() -> None:
    """What a call costs at least."""


def _call(server: Server, board: Board, payload: Any, bursts: int) -> list[tuple[float, float]]:
    from broker.client import Publisher

    times = []
    with Publisher("benchmark", runtime_dir=server.address, on_full="block", on_absent="block") as bus:
        publish = bus.publish
        _warm(board, lambda: publish(TOPIC, payload))
        for _ in range(bursts):
            before = board.count(0)
            for _ in repeat(None, 50):  # the first events of a burst go alone
                publish(TOPIC, payload)
            began = time.thread_time_ns()
            for _ in repeat(None, _BURST):
                publish(TOPIC, payload)
            published = time.thread_time_ns()
            for _ in repeat(None, _BURST):
                _nothing()
            ended = time.thread_time_ns()
            times.append(((published - began) / _BURST, (ended - published) / _BURST))
            wait_until(partial(_has, board, before + 50 + _BURST), "the listener caught up")
    return times


def _warm(board: Board, call: Callable[[], Any]) -> None:
    def once() -> bool:
        call()
        return bool(board.count(0))

    wait_until(once, "the listener receives events")


def _has(board: Board, count: int) -> bool:
    return board.count(0) >= count


def _topics(plan: Plan) -> Cell:
    kind = traffic.bytes_of(300)
    conditions = {"payload": kind.name, "bytes": len(kind.payload), "subscribers": 1, "window": kind.window}
    goals = [Goal("delivered_per_s", "8 topics in rotation", "1 topic", 0.9)]
    units = {"delivered_per_s": "events/s", "lost": "events", "cpu_us": "us/event"}
    cell = Cell(NAME, "bytes 300 B, eight topics in rotation beside one, 1 -> 1", conditions, units, goals)
    runners = {
        name: partial(_rotate, topics, kind, plan.seconds)
        for name, topics in (("8 topics in rotation", _TOPICS), ("1 topic", (TOPIC,)))
    }
    return interleave(cell, plan.rounds, runners)


def _rotate(topics: tuple[str, ...], kind: Traffic, seconds: float) -> Figures:
    load = Load(kind, seconds, [["prx.lifecycle.*"]])
    figures = flat_out(_Rotating(topics), load).figures()
    return {name: figures[name] for name in ("delivered_per_s", "lost", "cpu_us")}


def _pace(plan: Plan) -> Cell:
    events = 200 if plan.tiny else 800 if plan.quick else 1500
    kind = traffic.stamped(300)
    conditions = {"payload": kind.name, "bytes": 300, "rate": _RATE, "events": events}
    goals = [
        Goal("p50_us", "gathering", "each alone", 1.15, 1.0, best="low"),
        Goal("p99_us", "gathering", "each alone", 1.3, 1.0, best="low"),
    ]
    units = {"p50_us": "us", "p99_us": "us", "lost": "events"}
    cell = Cell(NAME, "one way at 1,000/s, 300 B, with gathering and without", conditions, units, goals)
    contenders: dict[str, Contender] = {"gathering": CONTENDER, "each alone": _Alone()}
    return interleave(
        cell, plan.rounds, {name: partial(_one_way, each, kind, events) for name, each in contenders.items()}
    )


def _one_way(contender: Contender, kind: Traffic, events: int) -> Figures:
    latencies, lost = one_way(contender, kind, _RATE, events, _SKIP)
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    return {"p50_us": cuts[49], "p99_us": cuts[98], "lost": lost}


def _second(plan: Plan) -> Cell:
    pairs = 20 if plan.tiny else 100 if plan.quick else 300
    conditions = {"bytes": 300, "pairs": pairs, "computing_s": _COMPUTING_S}
    goals = [Goal("second_p50_us", "prxbus", "600 us", 1.0, best="low", yardstick=600.0)]
    units = {"first_p50_us": "us", "second_p50_us": "us", "second_p99_us": "us", "lost": "events"}
    cell = Cell(NAME, "two events, then 10 ms of computing: one way", conditions, units, goals)
    return interleave(cell, plan.rounds, {"prxbus": partial(_second_run, pairs)})


def _second_run(pairs: int) -> Figures:
    board = Board(1)
    with scratch() as directory, CONTENDER.serve(directory) as server:
        receiver = Role("prxbus subscriber", _stamps, server, board.tally(0))
        publisher = Role("prxbus publisher", _compute, server, board, pairs)
        try:
            base: int = publisher.answer(60.0)
            seen: list[float] = receiver.answer(60.0)
        finally:
            board.finish()
            publisher.end()
            receiver.end()
    measured = seen[base : base + 2 * pairs]
    cuts = statistics.quantiles(measured[1::2], n=100, method="inclusive")
    return {
        "first_p50_us": statistics.median(measured[::2]),
        "second_p50_us": cuts[49],
        "second_p99_us": cuts[98],
        "lost": 2 * pairs - len(measured),
    }


def _compute(server: Server, board: Board, pairs: int) -> int:
    """Two events and 10 ms of Python without a pause, again and again; how many came before that."""
    from broker.client import Publisher

    template = traffic.stamped(300).payload
    with Publisher("benchmark", runtime_dir=server.address, on_full="block", on_absent="block") as bus:

        def call() -> None:
            bus.publish(TOPIC, stamp(template, time.monotonic_ns()))

        _warm(board, call)
        time.sleep(0.2)  # what was sent to warm up has arrived
        base = board.count(0)
        for _ in range(pairs):
            call()
            call()
            until = time.monotonic() + _COMPUTING_S
            while time.monotonic() < until:
                pass
        wait_until(partial(_has, board, base + 2 * pairs), "all pairs arrived")
        board.finish()
        call()
    return base


def _stamps(server: Server, tally: Tally) -> list[float]:
    seen: list[float] = []

    def take(payload: bytes) -> None:
        seen.append((time.monotonic_ns() - read_stamp(payload)) / 1e3)

    CONTENDER.each(server.address, TOPIC, take, tally)
    return seen


def _codecs(plan: Plan) -> Cell:
    repeats = 5 if plan.tiny else 40 if plan.quick else 100
    conditions = {"rows": _ROWS, "bytes": 300, "repeats": repeats}
    units = {"pack_ns": "ns/event, least", "unpack_ns": "ns/event, least"}
    cell = Cell(NAME, "rows of a batch: packing, and unpacking into tuples", conditions, units)
    runners: dict[str, Callable[[], Figures]] = {}
    for name in ("msgpack", "ormsgpack", "msgspec"):
        if importlib.util.find_spec(name) is None:
            cell.skipped[name] = "not installed"
        else:
            runners[name] = partial(_codec_run, name, repeats)
    return interleave(cell, plan.rounds, runners)


def _codec_run(name: str, repeats: int) -> Figures:
    payload = traffic.bytes_of(300).payload
    rows = [
        (0, index, 1_700_000_000_000_000_000 + index, "session-1", None, payload) for index in range(_ROWS)
    ]
    pack, unpack = _codec(name)
    packed = pack(rows)
    if [*map(tuple, unpack(packed))] != rows:
        raise RuntimeError(f"{name} reads something else than was written")
    return {
        "pack_ns": _least(lambda: pack(rows), repeats),
        "unpack_ns": _least(lambda: unpack(packed), repeats),
    }


def _codec(name: str) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Packing and unpacking, each as quick as the package can do it; msgspec also checks types."""
    if name == "msgpack":
        import msgpack

        return msgpack.packb, partial(msgpack.unpackb, use_list=False)
    if name == "ormsgpack":
        import ormsgpack

        return ormsgpack.packb, ormsgpack.unpackb
    import msgspec

    row = tuple[int, int, int, str | None, str | None, bytes]
    return msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[row]).decode


def _least(call: Callable[[], Any], repeats: int) -> float:
    return min(timeit.repeat(call, number=20, repeat=repeats)) / 20 / _ROWS * 1e9
