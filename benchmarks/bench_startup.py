"""How long does each command take from start to exit, against an interpreter that only imports the bus's
libraries?

Whole processes, wall time, one after the other, all commands once per round. Those that go on run until they
say that they are ready, or until their first line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from .contenders import Contender, line_up
from .flow import scratch
from .measure import Cell, Figures, Goal, Plan, interleave
from .servers import program, stop

NAME = "startup"
_IMPORTS = 'python3 -c "import zmq, orjson, msgpack"'
_PUB = "prxbus pub"
_ASK = "prxbus ask (nobody decides)"
_HOOKS = str(Path(__file__).parents[1] / "examples" / "prx" / "hooks.json")
_ROUNDS_PER_ROUND = 3  # a start is short and noisy: three times as many rounds as elsewhere


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell: our commands, the interpreter alone, and the peers' own one-shot publishers."""
    cell = Cell(NAME, "from start to exit, whole process", {"python": sys.version.split()[0]}, {"ms": "ms"})
    ready, cell.skipped = line_up(("prxbus", "nats", "redis_plain", "mosquitto"), plan.contenders)
    rounds = plan.rounds if plan.tiny else plan.rounds * _ROUNDS_PER_ROUND
    with ExitStack() as stack:
        runners: dict[str, Callable[[], Figures]] = {
            "python3 -c pass": partial(_exits, [sys.executable, "-c", "pass"]),
            _IMPORTS: partial(_exits, [sys.executable, "-c", "import zmq, orjson, msgpack"]),
        }
        for name, contender in ready.items():
            runners.update(_commands(stack, name, contender))
        if _PUB in runners:
            cell.goals.append(Goal("ms", _PUB, _IMPORTS, 1.4, 1.1, best="low"))
            cell.goals.append(Goal("ms", _ASK, _PUB, 1.15, 1.05, best="low"))
        yield interleave(cell, rounds, runners)


def _commands(stack: ExitStack, name: str, contender: Contender) -> dict[str, Callable[[], Figures]]:
    """The commands of one contender, with its server running for as long as `stack`."""
    server = stack.enter_context(contender.serve(stack.enter_context(scratch())))
    if name == "prxbus":
        return _ours(server.address)
    host, _, port = server.address.removeprefix("nats://").partition(":")
    if name == "nats":
        return {"nats-py one-shot publish": partial(_exits, [sys.executable, "-c", _NATS, server.address])}
    tools = {
        "redis_plain": ("redis-cli", ["-h", host, "-p", port, "publish", "a.b", "{}"]),
        "mosquitto": ("mosquitto_pub", ["-h", host, "-p", port, "-t", "a/b", "-m", "{}"]),
    }
    tool, arguments = tools[name]
    path = program(tool)
    return {f"{tool} (C)": partial(_exits, [path, *arguments])} if path else {}


_NATS = """
import asyncio, sys, nats
async def main():
    client = await nats.connect(sys.argv[1])
    await client.publish("a.b", b"{}")
    await client.close()
asyncio.run(main())
"""


def _ours(directory: str) -> dict[str, Callable[[], Figures]]:
    command = str(Path(sys.executable).with_name("prxbus"))
    env = {**os.environ, "PRXBUS_RUNTIME_DIR": directory}
    event = ["prx.lifecycle.tool_call", '{"tool":"Bash","success":true,"output":"ok"}']

    def exits(*arguments: str, codes: Sequence[int] = (0,)) -> Callable[[], Figures]:
        return partial(_exits, [command, *arguments], env, codes)

    return {
        _PUB: exits("pub", *event),
        _ASK: exits("ask", "prx.lifecycle.tool_call_start", '{"tool":"Bash","arguments":{"command":"ls"}}'),
        "prxbus tap (until it gives up)": exits(
            "tap", "bench.nothing", "--count", "1", "--timeout", "0.01", codes=(5,)
        ),
        "prxbus status --json": exits("status", "--json"),
        "prxbus schema tool_call": exits("schema", "tool_call"),
        "prxbus config show": exits("config", "show"),
        "prxbus check (the example's hooks.json)": exits("check", _HOOKS),
        "prxbus fire --dry-run (the same)": exits("fire", "tool_call", "--dry-run", "--config", _HOOKS),
        "prxbus --version": exits("--version"),
        "prxbus --help": exits("--help"),
        "prxbus completion bash": exits("completion", "bash"),
        "prxbus top --once (0.1 s)": exits("top", "--once", "--interval", "0.1", "--json"),
        "prxbus bench --seconds 0.4": exits("bench", "--own", "--seconds", "0.4"),
        "prxbus demo (until its first line)": partial(_ready, [command, "demo"], dict(os.environ)),
        "prxbus up (until it is ready)": partial(_ready, [command, "up", "--json"], dict(os.environ)),
    }


def _exits(argv: Sequence[str], env: dict[str, str] | None = None, codes: Sequence[int] = (0,)) -> Figures:
    began = time.perf_counter()
    ended = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    took = time.perf_counter() - began
    if ended.returncode not in codes:
        raise RuntimeError(
            f"{' '.join(argv[:3])} ended with {ended.returncode}: {ended.stderr.strip()[:200]}"
        )
    return {"ms": took * 1e3}


def _ready(argv: Sequence[str], env: dict[str, str]) -> Figures:
    with scratch() as directory:
        env = {**env, "PRXBUS_RUNTIME_DIR": f"{directory}/bus"}
        began = time.perf_counter()
        child = subprocess.Popen(
            argv, env=env, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            took = time.perf_counter() - began
        finally:
            stop(child)
            if child.stdout is not None:
                child.stdout.close()
    if not line:
        raise RuntimeError(f"{' '.join(argv)} ended before it was ready")
    return {"ms": took * 1e3}
