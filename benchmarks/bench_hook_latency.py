"""How long is it from publishing an event to the hook's being there, beside a bare spawn of the same program?

The program is `dd`, which writes one byte into a pipe as soon as it runs; the moment at which that byte
arrives counts for both. prxbus: from before `publish()`, over the broker and the shell service, with every
channel of the payload, a process group and a deadline. Bare: from before `posix_spawn`, with nothing. One
event at a time, with a pause, as on an idle machine; the two alternate event by event.

The program's own start, from exec to its byte, is in both figures; `exec_us` leaves it out: it is how much
later than the bare one the hook was there, plus the time that `posix_spawn` itself took to return, which is
when its program has been executed.
"""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from .hook_service import FIELDS, TOPIC, hook_service
from .measure import Cell, Goal, Plan, say

NAME = "hook_latency"
_PAUSE_S = 0.02
_WARM = 20


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell; each round alternates hook and bare spawn, event by event."""
    events = 10 if plan.tiny else 100 if plan.quick else 200
    units = {"p50_us": "us", "p99_us": "us", "exec_us": "us"}
    cell = Cell(NAME, "published to running", {"program": "dd, one byte", "events": events}, units)
    cell.goals = [
        Goal("exec_us", "prxbus", "posix_spawn", 3.0, best="low"),
        Goal("p50_us", "prxbus", "posix_spawn", 3.0, best="low"),
    ]
    program = shutil.which("dd") or "/bin/dd"
    from broker.client import Publisher

    for number in range(plan.rounds):
        with hook_service(_action(program)) as at, Publisher("benchmark", runtime_dir=at.bus) as bus:
            pipe = at.workspace / "pipe"
            os.mkfifo(pipe)
            byte = os.open(pipe, os.O_RDWR)
            try:
                hooks, bare, spawns = [], [], []
                for turn in range(_WARM + events):
                    began = time.perf_counter_ns()
                    bus.publish(TOPIC, FIELDS)
                    os.read(byte, 1)
                    hooks.append((time.perf_counter_ns() - began) / 1e3)
                    time.sleep(_PAUSE_S)
                    there, spawned = _bare(program, pipe, byte)
                    bare.append(there)
                    spawns.append(spawned)
                    time.sleep(_PAUSE_S)
                    if turn + 1 == _WARM:
                        hooks, bare, spawns = [], [], []
            finally:
                os.close(byte)
        spawn = statistics.median(spawns)
        later = statistics.median(hooks) - statistics.median(bare)
        figures = {"prxbus": _figures(hooks, spawn + later), "posix_spawn": _figures(bare, spawn)}
        for name, found in figures.items():
            cell.runs.setdefault(name, []).append(found)
            shown = "  ".join(f"{key}={value:,.6g}" for key, value in found.items())
            say(f"{NAME} | {cell.title} | {number + 1}/{plan.rounds} {name}: {shown}")
    yield cell


def _action(program: str) -> dict[str, object]:
    return {"command": program, "args": _arguments("pipe"), "stdin_json": True}


def _arguments(pipe: str) -> list[str]:
    return ["if=/dev/zero", f"of={pipe}", "bs=1", "count=1", "status=none"]


def _bare(program: str, pipe: Path, byte: int) -> tuple[float, float]:
    """Microseconds until the program's byte is there, and until `posix_spawn` has returned."""
    began = time.perf_counter_ns()
    pid = os.posix_spawn(program, [program, *_arguments(str(pipe))], {"PATH": "/usr/bin:/bin"})
    spawned = time.perf_counter_ns()
    os.read(byte, 1)
    there = time.perf_counter_ns()
    os.waitpid(pid, 0)
    return (there - began) / 1e3, (spawned - began) / 1e3


def _figures(times: list[float], executed: float) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"p50_us": cuts[49], "p99_us": cuts[98], "exec_us": executed}
