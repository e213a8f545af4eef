"""200 events a second, each of which starts a hook that sleeps for two seconds: what does it cost whom?

At most 32 such runs fit at once, 16 a second, so most events find no room. The publisher's own time for a
call is compared with the same publisher's when nobody listens; runs that are dropped are counted by the
service, and what it reports must add up; its memory is read from the kernel, once the queue is full and at
the end. `PRXBUS_FLOOD_SECONDS` makes it longer: 600 is the ten minutes of the promise.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .flow import scratch
from .hook_service import FIELDS, TOPIC, HookService, hook_service
from .measure import Cell, Figures, Goal, Plan, interleave
from .servers import stop

NAME = "hook_flood"
_RATE = 200.0
_QUEUE = 256
_SLEEPS = {"command": "sleep", "args": ["2"], "stdin_json": True}
_OPTIONS = ("--runs", "32", "--runs-per-hook", "32", "--queue", str(_QUEUE))


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell: the same publisher with nobody listening, and with the hook."""
    seconds = float(
        os.environ.get("PRXBUS_FLOOD_SECONDS") or (2.0 if plan.tiny else 6.0 if plan.quick else 30)
    )
    units = {"publish_p50_us": "us", "publish_p99_us": "us", "late_ms": "ms"}
    ours = {"waiting": "runs", "dropped": "runs", "unaccounted": "runs", "grown_kib": "KiB"}
    conditions = {"rate": _RATE, "seconds": seconds, "queue": _QUEUE}
    cell = Cell(NAME, "200 events/s, a hook that sleeps 2 s", conditions, units | ours)
    cell.goals = [
        Goal("publish_p50_us", "prxbus", "nobody listens", 1.5, best="low"),
        Goal("waiting", "prxbus", f"{_QUEUE} runs", 1.0, best="low", yardstick=_QUEUE),
        Goal("unaccounted", "prxbus", "1 run", 0.0, best="low", yardstick=1.0),
        Goal("grown_kib", "prxbus", "4 MiB", 1.0, best="low", yardstick=4_096.0),
    ]
    rounds = 1 if plan.tiny or "PRXBUS_FLOOD_SECONDS" in os.environ else min(plan.rounds, 3)
    yield interleave(
        cell, rounds, {"nobody listens": partial(_alone, seconds), "prxbus": partial(_run, seconds)}
    )


def _alone(seconds: float) -> Figures:
    from .contenders.prxbus import start_broker

    with scratch() as bus:
        broker = start_broker(bus)
        try:
            figures, _ = _publish(bus, seconds)
            return {**figures, "waiting": 0, "dropped": 0, "unaccounted": 0, "grown_kib": 0}
        finally:
            stop(broker)


def _run(seconds: float) -> Figures:
    with hook_service(_SLEEPS, *_OPTIONS) as at:
        figures, sizes = _publish(at.bus, seconds, at)
        counters = _settled(at, int(seconds * _RATE))
        runs = counters["runs"]
        known = sum(runs.values()) + counters["runs_now"] + counters["runs_waiting"]
        return {
            **figures,
            "waiting": counters["runs_waiting"],
            "dropped": runs.get("dropped", 0),
            "unaccounted": abs(int(seconds * _RATE) - known),
            "grown_kib": max(0, sizes[-1] - max(sizes[len(sizes) // 4 :][:1] or sizes)),
        }


def _publish(bus: str, seconds: float, at: HookService | None = None) -> tuple[Figures, list[int]]:
    """Publish on absolute deadlines; figures of the calls, and the service's size at each second."""
    from broker.client import Publisher

    times: list[float] = []
    sizes: list[int] = []
    late = 0.0
    with Publisher("benchmark", runtime_dir=bus, on_full="raise") as publisher:
        due = time.perf_counter()
        for number in range(int(seconds * _RATE)):
            due += 1.0 / _RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter()
            publisher.publish(TOPIC, FIELDS)
            times.append((time.perf_counter() - began) * 1e6)
            late = max(late, began - due)
            if at is not None and number % _RATE == 0:
                sizes.append(_resident_kib(at.pid))
        if at is not None:
            sizes.append(_resident_kib(at.pid))
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"publish_p50_us": cuts[49], "publish_p99_us": cuts[98], "late_ms": late * 1e3}, sizes


def _settled(at: HookService, events: int) -> dict[str, Any]:
    """The service's counters once they speak of every event."""
    from broker.client.tool import Tool

    deadline = time.monotonic() + 10.0
    while True:
        with Tool("benchmark", runtime_dir=at.bus) as tool:
            subscribers = tool.request("status").body["status"]["subscribers"]
        found: dict[str, Any] = next(each for each in subscribers if each["name"] == "shell")
        counters: dict[str, Any] = {"runs": {}, "runs_now": 0, "runs_waiting": 0} | found
        known = sum(counters["runs"].values()) + counters["runs_now"] + counters["runs_waiting"]
        if known == events or time.monotonic() > deadline:
            return counters
        time.sleep(0.2)


def _resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
