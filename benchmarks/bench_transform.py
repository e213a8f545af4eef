"""What does it cost to have a large tool result shortened before the model sees it?

A JSON dump of 5 MB goes in, its first 200 lines come out: `ask()` of a publisher, over the broker and the
spool, to a `@transform` function as `prxbus up` runs it, and back. Beside it, in the same process and round,
one `orjson.dumps` of the same payload and one `orjson.loads` of what it wrote.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from .measure import Cell, Goal, Plan, say
from .up import up

NAME = "transform"
TOPIC = "prx.lifecycle.tool_result"
BYTES = 5_000_000

_HANDLER = """
from subscribers.handlers import transform

@transform(tools=["dump"], timeout=20.0)
def first_lines(event, ctx):
    text = event.payload["tool_output"]
    end = -1
    for _ in range(200):
        end = text.find("\\n", end + 1)
    return text[:end]
"""


def measure(plan: Plan) -> Iterator[Cell]:
    """One cell; each round alternates the two, one at a time."""
    import orjson

    from broker.client import Publisher

    turns = 2 if plan.tiny else 10 if plan.quick else 20
    cell = Cell(NAME, "5 MB in, 200 lines out", {"turns": turns}, {"p50_ms": "ms"})
    cell.goals = [Goal("p50_ms", "prxbus", "dumps and loads", 5.0, best="low")]
    payload = {"agent_id": "a1", "tool_name": "dump", "tool_input": {}, "tool_output": _dump()}
    for number in range(plan.rounds):
        with up({"shorten.py": _HANDLER}) as bus, Publisher("benchmark", runtime_dir=bus) as agent:

            def ask(agent: Publisher = agent) -> Any:
                return agent.ask(TOPIC, payload, timeout=20.0).output

            if (lines := ask().count("\n") + 1) != 200:
                raise RuntimeError(f"not shortened: {lines} lines")
            ways: dict[str, Callable[[], Any]] = {
                "prxbus": ask,
                "dumps and loads": lambda: orjson.loads(orjson.dumps(payload)),
            }
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(turns):
                for name, way in ways.items():
                    began = time.perf_counter_ns()
                    way()
                    times[name].append((time.perf_counter_ns() - began) / 1e6)
        for name, found in times.items():
            figures = {"p50_ms": statistics.median(found)}
            cell.runs.setdefault(name, []).append(figures)
            say(f"{NAME} | {cell.title} | {number + 1}/{plan.rounds} {name}: p50_ms={figures['p50_ms']:.4g}")
    yield cell


def _dump() -> str:
    """An indented JSON text of 5 MB."""
    import orjson

    rows = [{"id": n, "name": f"row {n}", "tags": ["a", "b"], "value": n / 7} for n in range(40_000)]
    return orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode()[:BYTES]
