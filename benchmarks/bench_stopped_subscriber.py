"""What does a stopped subscriber cost the others, and who finds out what it missed?

Three subscribers receive flat out, first alone, then beside a fourth that is stopped (SIGSTOP) for the
whole run and goes on afterwards. The rate of the three is compared; then the fourth says how many events it
missed, if its client library knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from . import traffic
from .contenders import Contender, line_up
from .flow import Load, fan_out, flat_out
from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "stopped_subscriber"
_NAMES = ("prxbus", "raw_proxy", "nats", "redis_pipeline", "mosquitto")
_OTHERS = 3
_SETTLE = 2.5  # seconds: two beacons, after which a subscriber that has come back can know its loss
_UNITS = {
    "delivered_per_s": "events/s to the three others",
    "lost": "events, the three others",
    "missed": "events, the stopped one",
    "reported": "of the missed events, counted by the client itself",
}


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell; every contender runs twice per round, without and with the stopped subscriber."""
    kind = traffic.bytes_of(300)
    seconds = plan.seconds if plan.tiny else max(1.5, plan.seconds)
    conditions = {"payload": kind.name, "others": _OTHERS, "stopped": 1, "seconds": seconds}
    cell = Cell(NAME, f"{kind.name}, 1 -> {_OTHERS}, and one more that is stopped", conditions, _UNITS)
    ready, cell.skipped = line_up(_NAMES[:3] if plan.quick else _NAMES, plan.contenders)
    runners = {}
    for name, contender in ready.items():
        runners[f"{name} alone"] = partial(_alone, contender, kind, seconds)
        runners[f"{name} beside a stopped one"] = partial(_beside, contender, kind, seconds)
    if "prxbus" in ready:
        cell.goals.append(Goal("delivered_per_s", "prxbus beside a stopped one", "prxbus alone", 0.9))
        cell.goals.append(Goal("reported", "prxbus beside a stopped one", "all", 1.0, yardstick=1.0))
    yield interleave(cell, plan.rounds, runners)


def _alone(contender: Contender, kind: traffic.Traffic, seconds: float) -> Figures:
    run = flat_out(contender, fan_out(kind, seconds, _OTHERS))
    return {"delivered_per_s": run.delivered_per_second, "lost": run.lost}


def _beside(contender: Contender, kind: traffic.Traffic, seconds: float) -> Figures:
    patterns = [[kind.topic]] * (_OTHERS + 1)
    run = flat_out(contender, Load(kind, seconds, patterns, stop_last=True, settle=_SETTLE))
    # The others received every event, so the difference is what the stopped one missed.
    missed = max(run.counts[:_OTHERS]) - run.counts[_OTHERS]
    reported = run.subscribers[_OTHERS].get("missed", 0)
    figures = {"delivered_per_s": run.delivered_per_second, "lost": run.lost, "missed": missed}
    return {**figures, "reported": reported / missed if missed else 1.0}
