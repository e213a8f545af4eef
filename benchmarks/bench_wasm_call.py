"""What does a call of a WASM plugin cost beside a bare call of the same component?

The component is the example that is written as text, `examples/plugins/error-watch`; it is called in this
process, for an event that it counts and does nothing more about. `wasmtime` is the library's own call: no
deadline, no limit, no outcome. `prxbus` is what a plugin's worker does for an event. Warm calls share an
instance; fresh ones each make their own, as the first call does, and the one after a trap.

`python -m benchmarks.bench_wasm_call [ROUNDS]` prints the cells as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from wasmtime import Store
from wasmtime import component as wc

from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.wasm_component import Compiled, compile_component
from subscribers.runtimes.wasm_guest import CallLimits, Guest
from subscribers.runtimes.wasm_imports import link

from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "wasm_call"
_COMPONENT = Path(__file__).parents[1] / "examples" / "plugins" / "error-watch" / "error-watch.wat"
_EVENT = "tool_call"
_SIZES = (300, 65_536)
_WARM_US = 200.0
"""What a warm call at 300 bytes may take."""


class _Silence:
    """A host that has nothing and keeps nothing; the component asks for none of it here."""

    def log(self, _level: str, _message: str) -> None: ...

    def config(self) -> Mapping[str, str]:
        return {}

    def kv_get(self, _key: str) -> bytes | None: ...

    def kv_set(self, _key: str, _value: bytes) -> None: ...

    def kv_delete(self, _key: str) -> bool:
        return False

    def kv_keys(self, _prefix: str) -> list[str]:
        return []

    def publish(self, _topic: str, _payload: str) -> None: ...

    def subscribe(self, _pattern: str) -> int:
        return 0

    def unsubscribe(self, _number: int) -> None: ...

    def wrote(self, _data: bytes) -> None: ...


def measure(plan: Plan) -> Iterator[Cell]:
    """The time of one call: warm at two sizes, and with a fresh instance."""
    compiled = compile_component(_COMPONENT.read_bytes(), fuel=False, cache=None, wasi=False)
    deadlines = Deadlines()
    try:
        for size in plan.some(_SIZES, 1):
            yield _cell(plan, compiled, deadlines, size, fresh=False)
        if not plan.quick:
            yield _cell(plan, compiled, deadlines, _SIZES[0], fresh=True)
    finally:
        deadlines.close()


def _cell(plan: Plan, compiled: Compiled, deadlines: Deadlines, size: int, *, fresh: bool) -> Cell:
    title = f"{'fresh instance' if fresh else 'warm call'}, {size:,} B"
    conditions = {"component": _COMPONENT.name, "payload_bytes": size, "fresh": fresh}
    cell = Cell(NAME, title, conditions, {"p50_us": "µs", "p99_us": "µs"})
    if size == _SIZES[0] and not fresh:
        limit = Goal("p50_us", "prxbus", f"{_WARM_US:g} µs", 1.0, best="low", yardstick=_WARM_US)
        cell.goals.append(limit)
    number = 50 if plan.tiny else int(plan.seconds * 5_000)
    payload = _payload(size)
    return interleave(
        cell,
        plan.rounds,
        {
            "prxbus": partial(_figures, _prxbus(compiled, deadlines, payload, fresh=fresh), number),
            "wasmtime": partial(_figures, _wasmtime(compiled, payload, fresh=fresh), number),
        },
    )


def _payload(size: int) -> str:
    """An event of that many bytes, as a plugin gets it."""
    empty = {"event": _EVENT, "timestamp": "2026-03-21T08:15:30.123Z", "session_id": "s1", "payload": {}}
    tool = {"tool": "Bash", "success": True, "output": ""}
    missing = size - len(json.dumps({**empty, "payload": tool}))
    return json.dumps({**empty, "payload": {**tool, "output": "x" * missing}})


def _prxbus(compiled: Compiled, deadlines: Deadlines, payload: str, *, fresh: bool) -> Callable[[], None]:
    guest = Guest(compiled, _Silence(), CallLimits(64 << 20, 30.0, None), deadlines)

    def call() -> None:
        if fresh:
            guest.forget_instance()
        outcome = guest.call(_EVENT, payload)
        if outcome.status != "ok":
            raise RuntimeError(str(outcome))

    return call


def _wasmtime(compiled: Compiled, payload: str, *, fresh: bool) -> Callable[[], None]:
    linker = wc.Linker(compiled.engine)
    link(linker, list(compiled.imports), _Silence())

    def instance() -> tuple[Store, wc.Func]:
        store = Store(compiled.engine)
        store.set_epoch_deadline(1_000_000)
        made = linker.instantiate(store, compiled.component)
        index = made.get_export_index(store, "on-event", made.get_export_index(store, compiled.exported))
        function = None if index is None else made.get_func(store, index)
        assert function is not None
        return store, function

    kept = instance()

    def call() -> None:
        store, function = instance() if fresh else kept
        if function(store, _EVENT, payload) is not None:
            raise RuntimeError("the component refused its event")

    return call


def _figures(call: Callable[[], None], number: int) -> Figures:
    call()
    times = []
    for _ in range(number):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    cuts = statistics.quantiles(times, n=100)
    return {"p50_us": cuts[49] * 1e6, "p99_us": cuts[98] * 1e6}


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(json.dumps([cell.to_json() for cell in measure(Plan(rounds=rounds))], indent=1))
