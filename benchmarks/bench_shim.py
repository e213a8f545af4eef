"""What does an attached agent pay for each of its events: by its hook command, and over HTTP?

The hook command is a whole process, as an agent starts it, against an interpreter that does nothing, started
beside it: `prxbus up` is there and nobody decides. Over HTTP it is one round trip on a kept connection,
with one warm decider in Python, against the command hook that a user would write: `python3` that parses its
payload. `prxbus hook` is the same as a verb, for who does not write the fastest form.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from subscribers.cli.hook import SHIM, python
from subscribers.dialects.codex_profiles import CLAUDE
from subscribers.runner.agent_http import read_address
from subscribers.runner.agent_probe import HttpSender
from subscribers.sources.attach_plan import Wanted, entry_for

from .measure import Cell, Figures, Goal, Plan, interleave
from .up import up

NAME = "shim"
_PASS = "python3 -I -S -c pass"
_SHIM = "the attached hook command"
_SHELL = "the same by a shell, as it is written"
_HTTP = "HTTP hook, one warm decider"
_IDLE = "HTTP hook, nobody decides"
_COMMAND = "command hook: python3 that parses JSON"
_ROUNDS_PER_ROUND = 8  # a start is short and noisy: more rounds than elsewhere, each with few of them
_PARSES = "import json, sys; json.load(sys.stdin)"
_DECIDER = """
from subscribers.handlers import decide

@decide("tool_call_start")
def guard(event, ctx):
    return ctx.deny("no") if "rm -rf" in str(event.payload["arguments"]["command"]) else None
"""
_PAYLOAD = json.dumps(
    {
        "session_id": "0199c0de-7b6e-7c12-8c11-3f0e5d2a9b44",
        "transcript_path": "/tmp/session.jsonl",
        "cwd": "/tmp",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "pytest -q", "description": "Run the tests"},
        "tool_use_id": "toolu_01",
    }
).encode()
_QUIET = _PAYLOAD.replace(b"PreToolUse", b"PostToolUse")


def measure(plan: Plan) -> Iterator[Cell]:
    """Two cells: whole processes, and round trips."""
    with tempfile.TemporaryDirectory() as state:
        before = dict(os.environ)
        os.environ.update(XDG_STATE_HOME=state, PRXBUS_HTTP_STATE_DIR=state)
        try:
            with up({"guard.py": _DECIDER}, "--http", "0") as bus:
                yield _processes(plan, bus)
                yield _round_trips(plan, bus, Path(state) / "prxbus" / "hook-token")
        finally:
            os.environ.clear()
            os.environ.update(before)


def _processes(plan: Plan, bus: str) -> Cell:
    cell = Cell(
        NAME,
        "one event by a hook command, whole process, nobody decides",
        {"python": sys.version.split()[0], "payload_bytes": len(_QUIET)},
        {"ms": "ms"},
    )
    cell.goals.append(Goal("ms", _SHIM, _PASS, 1.4, 1.2, best="low"))
    cell.goals.append(Goal("ms", _SHELL, _PASS, 1.4, 1.2, best="low"))
    rounds, runs = (plan.rounds, 2) if plan.tiny else (plan.rounds * _ROUNDS_PER_ROUND, 4)
    bare = [python(), "-I", "-S"]
    shim = [*bare, SHIM, "claude", f"{bus}/hook.sock", "30", "closed"]
    verb = [
        str(Path(sys.executable).with_name("prxbus")),
        "hook",
        "--dialect",
        "claude",
        "--runtime-dir",
        bus,
    ]
    runners: dict[str, Callable[[], Figures]] = {
        _PASS: partial(_ends, [*bare, "-c", "pass"], runs),
        _SHIM: partial(_ends, shim, runs),
        _SHELL: partial(_ends, ["sh", "-c", _written(bus)], runs),
        "prxbus hook": partial(_ends, verb, 1),
        _COMMAND: partial(_ends, [sys.executable, "-c", _PARSES], runs),
    }
    return interleave(cell, rounds, runners)


def _written(bus: str) -> str:
    """The command as it stands in an agent's settings."""
    wanted = Wanted(python(), SHIM, f"{bus}/hook.sock", ("PostToolUse",))
    return str(entry_for(wanted, CLAUDE, "PostToolUse")["command"])


def _round_trips(plan: Plan, bus: str, token_file: Path) -> Cell:
    cell = Cell(
        NAME,
        "one event over HTTP, round trip",
        {"python": sys.version.split()[0], "payload_bytes": len(_PAYLOAD)},
        {"p50_ms": "ms", "p99_ms": "ms"},
    )
    cell.goals.append(Goal("p50_ms", _HTTP, _COMMAND, 1 / 15, best="low"))
    trips = 20 if plan.tiny else max(100, int(400 * plan.seconds))
    sender = HttpSender(
        f"{read_address(bus)}/hooks/claude?timeout=30&closed=1", f"Bearer {token_file.read_text().strip()}"
    )
    try:
        runners: dict[str, Callable[[], Figures]] = {
            _HTTP: partial(_posts, sender, _PAYLOAD, trips),
            _IDLE: partial(_posts, sender, _QUIET, trips),
            _COMMAND: partial(_hooks, max(4, trips // 20)),
        }
        return interleave(cell, plan.rounds, runners)
    finally:
        sender.close()


def _ends(argv: Sequence[str], runs: int) -> Figures:
    """The median of so many processes, one after the other."""
    return {"ms": statistics.median(_times(argv, _QUIET, runs)) * 1e3}


def _hooks(runs: int) -> Figures:
    return _percentiles(_times([sys.executable, "-c", _PARSES], _PAYLOAD, runs))


def _posts(sender: HttpSender, payload: bytes, trips: int) -> Figures:
    times = []
    for _ in range(trips):
        sent = sender.send(payload)
        if sent.failed is not None or sent.answer:
            raise RuntimeError(f"an event was not let through: {sent}")
        times.append(sent.seconds)
    return _percentiles(times)


def _times(argv: Sequence[str], payload: bytes, runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        done = subprocess.run(argv, input=payload, capture_output=True, timeout=30, check=False)
        times.append(time.perf_counter() - began)
        if done.returncode or done.stderr:
            raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {done.stderr[:200]!r}")
    return times


def _percentiles(times: Sequence[float]) -> Figures:
    cuts = statistics.quantiles(times, n=100)
    return {"p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3}


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(json.dumps([cell.to_json() for cell in measure(Plan(rounds=rounds))], indent=1))
