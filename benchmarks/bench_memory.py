"""How much memory does a broker hold, idle, under load, and with a subscriber that has stopped?

Resident memory of the server's process: when it has just started, at its peak under four subscribers at 300
B and at 64 KiB, and at its peak while a fifth subscriber is stopped and 64 KiB events go on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from . import traffic
from .contenders import Contender, line_up
from .flow import Load, flat_out, scratch
from .machine import resident_bytes
from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "memory"
_NAMES = ("prxbus", "raw_proxy", "nats", "redis_pipeline", "mosquitto")
_MIB = 1024 * 1024
_SETTLE = 1.0  # seconds after the start until a server counts as idle


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell; a fresh server for each figure, because a peak stays."""
    units = dict.fromkeys(("idle", "small_events", "large_events", "one_stopped"), "MiB")
    conditions = {"subscribers": 4, "small": 300, "large": 65_536, "stopped": "a fifth, 64 KiB events"}
    cell = Cell(NAME, "resident memory of the server, peak of each case", conditions, units)
    ready, cell.skipped = line_up(_NAMES[:2] if plan.quick else _NAMES, plan.contenders)
    if "prxbus" in ready:
        cell.goals = [
            Goal("idle", "prxbus", "40 MB", 1.0, best="low", yardstick=40e6 / _MIB),
            # What the limits allow: the queue of one subscriber, 4,000 frames of 64 KiB, beside what is idle.
            Goal("one_stopped", "prxbus", "300 MB", 1.0, best="low", yardstick=300e6 / _MIB),
        ]
    runners = {name: partial(_run, contender, plan) for name, contender in ready.items()}
    yield interleave(cell, plan.rounds, runners)


def _run(contender: Contender, plan: Plan) -> Figures:
    return {
        "idle": _idle(contender, 0.1 if plan.tiny else _SETTLE),
        "small_events": _loaded(contender, plan.seconds, 300, stopped=False),
        "large_events": _loaded(contender, plan.seconds, 65_536, stopped=False),
        "one_stopped": _loaded(contender, plan.seconds, 65_536, stopped=True),
    }


def _idle(contender: Contender, settle: float) -> float:
    with scratch() as directory, contender.serve(directory) as server:
        time.sleep(settle)
        return resident_bytes(server.pid or 0)[0] / _MIB


def _loaded(contender: Contender, seconds: float, size: int, *, stopped: bool) -> float:
    kind = traffic.bytes_of(size)
    with scratch() as directory, contender.serve(directory) as server:
        flat_out(contender, Load(kind, seconds, [[kind.topic]] * (4 + stopped), stop_last=stopped), server)
        return resident_bytes(server.pid or 0)[1] / _MIB
