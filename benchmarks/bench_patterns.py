"""Does throughput depend on how many patterns are subscribed?

Ten subscribers, each with one pattern that matches what is published and many that do not: 1, 10 and 1,000
patterns each, so 10, 100 and 10,000 in all. What is delivered is the same in the three cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from . import traffic
from .contenders import Contender, line_up
from .flow import Load, flat_out
from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "patterns"
_NAMES = ("prxbus", "raw_proxy", "nats", "redis_pipeline", "mosquitto")
_SUBSCRIBERS = 10
_EACH = (1, 10, 1000)


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell; within a round every contender runs with few, more and many patterns."""
    kind = traffic.bytes_of(300)
    each = (_EACH[0], 20) if plan.tiny else _EACH
    conditions = {
        "payload": kind.name,
        "subscribers": _SUBSCRIBERS,
        "patterns": [n * _SUBSCRIBERS for n in each],
    }
    units = {"delivered_per_s": "events/s", "lost": "events"}
    cell = Cell(
        NAME,
        f"{kind.name}, 1 -> {_SUBSCRIBERS}, up to {each[-1] * _SUBSCRIBERS:,} patterns",
        conditions,
        units,
    )
    ready, cell.skipped = line_up(_NAMES[:3] if plan.quick else _NAMES, plan.contenders)
    runners = {}
    for name, contender in ready.items():
        for number in each:
            runners[_label(name, number)] = partial(_run, contender, kind, plan.seconds, number)
    if "prxbus" in ready:
        few, many = _label("prxbus", each[0]), _label("prxbus", each[-1])
        cell.goals.append(Goal("delivered_per_s", many, few, 0.8))
    yield interleave(cell, plan.rounds, runners)


def patterns_of(subscriber: int, number: int, topic: str) -> list[str]:
    """`number` patterns for one subscriber: the topic itself last, the others of its own and never
    published.
    """
    idle = [f"bench.area{subscriber}.group{i}.*" for i in range(number - 1)]
    return [*idle, topic]


def _run(contender: Contender, kind: traffic.Traffic, seconds: float, number: int) -> Figures:
    patterns = [patterns_of(i, number, kind.topic) for i in range(_SUBSCRIBERS)]
    run = flat_out(contender, Load(kind, seconds, patterns))
    return {"delivered_per_s": run.delivered_per_second, "lost": run.lost}


def _label(name: str, each: int) -> str:
    return f"{name}, {each * _SUBSCRIBERS:,} patterns"
