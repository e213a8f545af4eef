"""What do 2,048 handlers of a Codex-family hook file cost: to load, and to match an event against?

Every handler has a group and a regular expression of its own. Each round has patterns that no round before it
had, so nothing is found in a cache. Loading is reading the file and building its index; `parse only` is
orjson. A value's first sight is the first question that an index gets, and the slowest of the next values
that it has not seen; `one by one` is Python's `re`, which tries each pattern in turn and, unlike RE2, can be
made to take for ever.

`python -m benchmarks.bench_codex [ROUNDS]` prints the cells as JSON.
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import orjson

from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_matcher import MatchIndex
from subscribers.dialects.codex_profiles import PROFILES, Profile

from .measure import Cell, Figures, Goal, Plan, interleave

NAME = "codex"
HANDLERS = 2_048
_LOAD_MS = 250.0
_FIRST_MS = 15.0
_SEEN_MS = 0.2
_PATH = "/home/me/.codex/hooks.json"
_NEW_VALUES = 20
_SALT = itertools.count()


def measure(plan: Plan) -> Iterator[Cell]:
    """Loading and matching, in each profile; a quick run takes the first."""
    number = 64 if plan.tiny else HANDLERS
    for profile in plan.some(list(PROFILES.values()), 1):
        yield _loading(plan, profile, number)
        yield _matching(plan, profile, number)


def _loading(plan: Plan, profile: Profile, number: int) -> Cell:
    cell = Cell(
        NAME,
        f"load {number:,} handlers, {profile.name}",
        {"handlers": number, "profile": profile.name},
        {"ms": "ms", "cpu_ms": "ms"},
    )
    cell.goals.append(Goal("ms", "prxbus", f"{_LOAD_MS:g} ms", 1.0, best="low", yardstick=_LOAD_MS))
    return interleave(
        cell,
        plan.rounds,
        {"prxbus": partial(_load, profile, number), "parse only": partial(_parse, number)},
    )


def _matching(plan: Plan, profile: Profile, number: int) -> Cell:
    units = {"first_ms": "ms", "new_ms": "ms", "seen_ms": "ms"}
    title = f"match against {number:,} patterns, {profile.name}"
    cell = Cell(NAME, title, {"handlers": number, "profile": profile.name}, units)
    for metric, limit in (("first_ms", _FIRST_MS), ("new_ms", _FIRST_MS), ("seen_ms", _SEEN_MS)):
        cell.goals.append(Goal(metric, "prxbus", f"{limit:g} ms", 1.0, best="low", yardstick=limit))
    return interleave(
        cell,
        plan.rounds,
        {
            "prxbus": partial(_match, partial(_index, profile, number)),
            "one by one": partial(_match, partial(_one_by_one, number)),
        },
    )


def patterns(number: int) -> list[str]:
    """Patterns as people write them for the tools of servers; no two calls give the same."""
    salt = next(_SALT)
    kinds = (
        "^mcp__server{n}_{salt}__.*write.*$",
        "mcp__(memory|notes){n}_{salt}__[a-z_]+",
        "^(Edit|Write|Tool{n}_{salt})$",
        "tool_[0-9]+_{n}_{salt}",
    )
    return [kinds[n % len(kinds)].format(n=n, salt=salt) for n in range(number)]


def document(number: int) -> bytes:
    """A hook file with as many handlers, indented as people's files are."""
    groups = [
        {
            "matcher": pattern,
            "hooks": [
                {
                    "type": "command",
                    "command": f'python3 "$HOME/hooks/check_{place}.py" --strict',
                    "timeout": 30,
                    "statusMessage": "checking",
                }
            ],
        }
        for place, pattern in enumerate(patterns(number))
    ]
    return json.dumps({"description": "made", "hooks": {"PreToolUse": groups}}, indent=2).encode()


def _load(profile: Profile, number: int) -> Figures:
    content = document(number)
    began, busy = time.perf_counter(), time.process_time()
    found = read_document(content, _PATH, profile)
    MatchIndex(found.handlers)
    took, used = time.perf_counter() - began, time.process_time() - busy
    if len(found.handlers) != number or found.diagnostics:
        raise RuntimeError(f"{len(found.handlers)} handlers, {found.diagnostics[:1]}")
    return {"ms": took * 1e3, "cpu_ms": used * 1e3}


def _parse(number: int) -> Figures:
    content = document(number)
    began, busy = time.perf_counter(), time.process_time()
    orjson.loads(content)
    return {"ms": (time.perf_counter() - began) * 1e3, "cpu_ms": (time.process_time() - busy) * 1e3}


Select = Callable[[str], int]
"""How many handlers a value starts."""


def _index(profile: Profile, number: int) -> Select:
    index = MatchIndex(read_document(document(number), _PATH, profile).handlers)
    return lambda value: len(index.select("PreToolUse", (value,)))


def _one_by_one(number: int) -> Select:
    compiled = [re.compile(pattern) for pattern in patterns(number)]
    return lambda value: sum(pattern.search(value) is not None for pattern in compiled)


def _match(make: Callable[[], Select]) -> Figures:
    select = make()
    first = _timed(select, "Edit")
    new = max(_timed(select, f"mcp__server{number}__write_file") for number in range(_NEW_VALUES))
    seen = statistics.median(_timed(select, "Edit") for _ in range(1_000 if first < 1e-3 else 20))
    if not select("Edit"):
        raise RuntimeError("no handler matches")
    return {"first_ms": first * 1e3, "new_ms": new * 1e3, "seen_ms": seen * 1e3}


def _timed(select: Select, value: str) -> float:
    began = time.perf_counter()
    select(value)
    return time.perf_counter() - began


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(json.dumps([cell.to_json() for cell in measure(Plan(rounds=rounds))], indent=1))
