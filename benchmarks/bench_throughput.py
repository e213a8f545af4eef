"""How many events per second reach 1, 4 and 16 subscribers, and at what cost in processor time?

One publisher, flat out, inside a closed lossless window (`pace.py`). "Delivered" is the sum over the
subscribers. The bytes cells hand over finished JSON; the dict cells encode with orjson on every publish and
decode at every subscriber.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from . import traffic
from .contenders import Contender, line_up
from .flow import fan_out, flat_out
from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "throughput"
_ALL = (
    "prxbus",
    "raw_proxy",
    "nats",
    "redis_pipeline",
    "redis_plain",
    "mosquitto",
    "raw_pubsub",
    "bare_envelope",
)
_DICT = ("prxbus", "nats", "bare_envelope")
_SMALL_ONLY = ("redis_plain", "bare_envelope")  # what they tell is told at 300 B
_FAN_OUT = (1, 4, 16)
_UNITS = {
    "delivered_per_s": "events/s",
    "lost": "events",
    "cpu_us": "us/event",
    "cpu_publisher_us": "us/event",
    "cpu_server_us": "us/event",
    "cpu_subscribers_us": "us/event",
}
_AGAINST_NATS = {
    number: Goal("delivered_per_s", "prxbus", "nats", must, aim)
    for number, must, aim in ((1, 4.0, 5.5), (4, 5.0, 7.0), (16, 5.5, 8.0))
}
_AGAINST_PROXY = Goal("delivered_per_s", "prxbus", "raw_proxy", 0.5, 0.6)
_DICT_AGAINST_NATS = {
    number: Goal("delivered_per_s", "prxbus", "nats", must, aim)
    for number, must, aim in ((1, 2.8, 3.8), (4, 1.4, 2.0), (16, 1.4, 2.0))
}


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell per kind of event and number of subscribers."""
    fan_out = plan.some(_FAN_OUT, 3)
    for kind in plan.some((traffic.dict_small(), traffic.dict_tool_call()), 1):
        for subscribers in fan_out:
            goals = [_DICT_AGAINST_NATS[subscribers]] if kind.name == "dict 300 B" else []
            yield _cell(plan, kind, subscribers, _DICT, goals)
    for size in plan.some(traffic.SIZES, 1):
        names = _ALL[:3] if plan.quick else tuple(n for n in _ALL if size == 300 or n not in _SMALL_ONLY)
        for subscribers in fan_out:
            goals = [_AGAINST_NATS[subscribers], _AGAINST_PROXY] if size == 300 else []
            yield _cell(plan, traffic.bytes_of(size), subscribers, names, goals)


def _cell(
    plan: Plan, kind: traffic.Traffic, subscribers: int, names: tuple[str, ...], goals: list[Goal]
) -> Cell:
    conditions = {
        "payload": kind.name,
        "bytes": len(kind.payload),
        "subscribers": subscribers,
        "window": kind.window,
    }
    cell = Cell(NAME, f"{kind.name}, 1 -> {subscribers}", conditions, _UNITS, goals)
    ready, cell.skipped = line_up(names, plan.contenders)
    runners = {
        name: partial(_run, contender, kind, plan.seconds, subscribers) for name, contender in ready.items()
    }
    return interleave(cell, plan.rounds, runners)


def _run(contender: Contender, kind: traffic.Traffic, seconds: float, subscribers: int) -> Figures:
    return flat_out(contender, fan_out(kind, seconds, subscribers)).figures()
