"""How long is an event on its way, one way, at 1,000 events a second?

Open loop: absolute deadlines, whatever the receiver does. The publisher writes the monotonic clock into the
payload immediately before it publishes; the subscriber reads the clock as soon as it holds the payload.
Same machine, same clock, no halved round trips.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from . import traffic
from .contenders import Contender, line_up
from .flow import one_way
from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "latency"
_NAMES = ("prxbus", "raw_proxy", "nats", "redis_plain", "mosquitto", "raw_pubsub")
_RATE = 1000.0
_SKIP = 100  # events at the start that are not counted
_GOALS = [
    Goal("p50_us", "prxbus", "nats", 0.9, 0.7, best="low"),
    Goal("p99_us", "prxbus", "nats", 1.0, 0.7, best="low"),
]


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell per size."""
    events = 200 if plan.tiny else 800 if plan.quick else 1500
    units = {"p50_us": "us", "p99_us": "us", "p999_us": "us", "lost": "events"}
    for size in plan.some(traffic.SIZES, 1):
        kind = traffic.stamped(size)
        conditions = {"payload": kind.name, "bytes": size, "rate": _RATE, "events": events}
        goals = _GOALS if size == 300 else []
        cell = Cell(NAME, f"{kind.name} at 1,000/s", conditions, units, list(goals))
        ready, cell.skipped = line_up(_NAMES[:3] if plan.quick else _NAMES, plan.contenders)
        yield interleave(
            cell,
            plan.rounds,
            {name: partial(_run, contender, kind, events) for name, contender in ready.items()},
        )


def _run(contender: Contender, kind: traffic.Traffic, events: int) -> Figures:
    latencies, lost = one_way(contender, kind, _RATE, events, _SKIP)
    cuts = statistics.quantiles(latencies, n=1000, method="inclusive")
    return {"p50_us": cuts[499], "p99_us": cuts[989], "p999_us": cuts[998], "lost": lost}
