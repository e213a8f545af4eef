"""What does running a hook cost beside a bare spawn of the same program?

Every contender gives `/bin/true` the same payload: in a file, and on a pipe to its standard input; two more
pipes take its outputs. `prxbus` is the whole way: events are published, the shell service runs the hook for
each and reports each run, and the time ends with the last report. `runtime` is the inside of that service,
without a bus. `posix_spawn` does no more than the above, from one thread with so many programs in flight
(threads would only fight for the interpreter): no timeout, no cap, no bound, no group that could be ended.
`subprocess` is `subprocess.run` with a timeout on as many threads, which is what a program without a hook
runtime would write. All files are on the same file system.

`python -m benchmarks.bench_children [ROUNDS]` prints the cells as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from broker.client import Event, Publisher, Subscriber
from subscribers.hooks.invocation import Invocation
from subscribers.runner.reports import RUN_TOPIC
from subscribers.runtimes.child import run
from subscribers.runtimes.payload_files import PayloadFiles
from subscribers.runtimes.pool import RunPool
from subscribers.runtimes.reaper import Reaper

from .hook_service import FIELDS, TOPIC, hook_service
from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "children"
_PROGRAM = "/bin/true"
_PAYLOAD = json.dumps({"event": "tool_call", "payload": FIELDS}).encode()
_PARALLEL = (1, 4, 16)
_FILE = "ZERO_HOOK_PAYLOAD_FILE"
_ACTION = {"command": _PROGRAM, "stdin_json": True}


def measure(plan: Plan) -> Iterator[Cell]:
    """Runs a second and the median time of one run, at several numbers of runs at once."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        for parallel in plan.some(_PARALLEL, 2):
            conditions = {"program": _PROGRAM, "payload_bytes": len(_PAYLOAD), "parallel": parallel}
            units = {"runs_per_s": "runs/s", "p50_us": "µs", "p99_us": "µs"}
            cell = Cell(NAME, f"{_PROGRAM}, {parallel} at once", conditions, units)
            cell.goals.append(Goal("runs_per_s", "prxbus", "posix_spawn", 0.6))
            cell.goals.append(Goal("runs_per_s", "runtime", "posix_spawn", 0.6))
            number = 40 if plan.tiny else max(100, int(plan.seconds * 1_000))
            with ExitStack() as stack:
                yield interleave(cell, plan.rounds, _contenders(stack, directory, parallel, number))


def _contenders(
    stack: ExitStack, directory: str, parallel: int, number: int
) -> Mapping[str, Callable[[], Figures]]:
    files = stack.enter_context(PayloadFiles(os.path.join(directory, f"payloads-{parallel}")))
    reaper = stack.enter_context(Reaper())
    service = stack.enter_context(hook_service(_ACTION, *_options(parallel, number)))
    bus = stack.enter_context(Publisher("benchmark", runtime_dir=service.bus, on_full="block"))
    reports = stack.enter_context(Subscriber([RUN_TOPIC], name="benchmark", runtime_dir=service.bus))
    return {
        "prxbus": partial(_served, bus, reports, number),
        "runtime": partial(_pooled, partial(_prxbus, files, reaper), parallel, number),
        "posix_spawn": partial(_posix_spawn, directory, parallel, number),
        "subprocess": partial(_threaded, partial(_subprocess, directory), parallel, number),
    }


def _options(parallel: int, number: int) -> tuple[str, ...]:
    runs = str(parallel)
    return ("--runs", runs, "--runs-per-hook", runs, "--queue", str(number))


def _served(bus: Publisher, reports: Subscriber, number: int) -> Figures:
    """Publish so many events and wait for as many reports; a run's time is the one that its report tells."""
    got: list[Event] = []
    began = time.perf_counter()
    for _ in range(number):
        bus.publish(TOPIC, FIELDS)
    while len(got) < number and (batch := reports.batch(timeout=30.0)):
        got += batch
    seconds = time.perf_counter() - began
    said = [event.payload for event in got]
    if len(said) != number or any(report["status"] != "ok" for report in said):
        raise RuntimeError(f"{len(said)} of {number} runs were reported, or not all of them well")
    return _figures([report["duration_ms"] / 1e3 for report in said], seconds)


def _environment(path: str) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "ZERO_HOOK_EVENT": "tool_call", _FILE: path}


def _prxbus(files: PayloadFiles, reaper: Reaper) -> None:
    with files.holding(_PAYLOAD) as path:
        invocation = Invocation((_PROGRAM,), _environment(path), "/", _PAYLOAD, 30.0, 5.0, marker=_FILE)
        outcome = run(invocation, reaper)
    if outcome.status != "ok":
        raise RuntimeError(f"{_PROGRAM}: {outcome}")


@dataclass
class _Spawned:
    """A program in flight."""

    began: float
    pid: int
    outputs: tuple[int, int]
    path: str


def _posix_spawn(directory: str, parallel: int, number: int) -> Figures:
    """Keep `parallel` programs in flight and always finish the oldest."""
    times = []
    flying: deque[_Spawned] = deque()
    began = time.perf_counter()
    for _ in range(number):
        if len(flying) == parallel:
            times.append(_finish(flying.popleft()))
        flying.append(_launch(directory))
    times.extend(_finish(flying.popleft()) for _ in range(len(flying)))
    return _figures(times, time.perf_counter() - began)


def _launch(directory: str) -> _Spawned:
    began = time.perf_counter()
    descriptor, path = tempfile.mkstemp(dir=directory)
    os.write(descriptor, _PAYLOAD)
    os.close(descriptor)
    stdin_read, stdin_write = os.pipe()
    stdout_read, stdout_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    pid = os.posix_spawn(
        _PROGRAM,
        [_PROGRAM],
        _environment(path),
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin_read, 0),
            (os.POSIX_SPAWN_DUP2, stdout_write, 1),
            (os.POSIX_SPAWN_DUP2, stderr_write, 2),
        ],
    )
    for end in (stdin_read, stdout_write, stderr_write):
        os.close(end)
    with suppress(BrokenPipeError):  # the program has ended already
        os.write(stdin_write, _PAYLOAD)
    os.close(stdin_write)
    return _Spawned(began, pid, (stdout_read, stderr_read), path)


def _finish(spawned: _Spawned) -> float:
    for end in spawned.outputs:
        while os.read(end, 65_536):
            pass
        os.close(end)
    os.waitpid(spawned.pid, 0)
    os.unlink(spawned.path)
    return time.perf_counter() - spawned.began


def _subprocess(directory: str) -> None:
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        file.write(_PAYLOAD)
        file.flush()
        subprocess.run(
            [_PROGRAM],
            input=_PAYLOAD,
            capture_output=True,
            timeout=30,
            env=_environment(file.name),
            cwd="/",
            check=True,
        )


def _threaded(once: Callable[[], None], parallel: int, number: int) -> Figures:
    with ThreadPoolExecutor(parallel) as threads:
        began = time.perf_counter()
        times = list(threads.map(lambda _: _timed(once), range(number)))
        return _figures(times, time.perf_counter() - began)


def _pooled(once: Callable[[], None], parallel: int, number: int) -> Figures:
    """The same through the pool with its budget, which is the way a hook goes."""
    pool = RunPool(total=parallel, per_hook=parallel, queue=number)
    times: list[float] = []
    began = time.perf_counter()
    for _ in range(number):
        pool.submit("true#0", lambda: times.append(_timed(once)))
    if pool.drain(60.0) or len(times) != number:
        raise RuntimeError(f"{len(times)} of {number} runs succeeded: {pool.stats}")
    return _figures(times, time.perf_counter() - began)


def _timed(once: Callable[[], None]) -> float:
    began = time.perf_counter()
    once()
    return time.perf_counter() - began


def _figures(times: list[float], seconds: float) -> Figures:
    cuts = statistics.quantiles(times, n=100)
    return {"runs_per_s": len(times) / seconds, "p50_us": cuts[49] * 1e6, "p99_us": cuts[98] * 1e6}


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(json.dumps([cell.to_json() for cell in measure(Plan(rounds=rounds))], indent=1))
