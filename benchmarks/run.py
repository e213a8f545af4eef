"""Run the benchmarks: `python benchmarks/run.py [--quick] [--only NAME] [--rounds N] [--out FILE]`.

Decides which questions are asked, how often and where the answers go; refuses to know how any of them is
measured. Figures go to a JSON file, a table to standard output, progress to standard error.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run as a script: import the package, and our own checkout of the product
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import machine, report
from benchmarks.contenders import NAMES
from benchmarks.measure import Cell, Plan, say

QUESTIONS = (
    "throughput",
    "latency",
    "stopped_subscriber",
    "patterns",
    "publish_cost",
    "burst",
    "startup",
    "memory",
    "restart",
    "children",
    "hook_latency",
    "hook_flood",
    "wasm_call",
    "ask",
    "transform",
    "codex",
    "shim",
    "roles",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the JSON file, print the table. 0: measured; 1: something failed that should have run;
    2: usage.
    """
    options = _parser().parse_args(arguments)
    plan = _plan(options)
    questions = options.only or QUESTIONS
    record: dict[str, Any] = {
        "format": 1,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine.facts(),
        "plan": {"rounds": plan.rounds, "seconds": plan.seconds, "quick": plan.quick, "tiny": plan.tiny},
        "cells": [],
    }
    out = Path(options.out)
    failed = False
    began = time.monotonic()
    for name in questions:
        for cell in _measure(name)(plan):
            failed |= any(reason.startswith("failed") for reason in cell.skipped.values())
            record["cells"].append(cell.to_json())
            record["seconds"] = round(time.monotonic() - began, 1)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(report.markdown(record))
    if options.plot:
        say(f"plot: {report.plot(record, Path(options.plot))}")
    say(f"figures: {out} ({time.monotonic() - began:.0f} s)")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run.py", description="prxbus beside its peers, in one interleaved run"
    )
    parser.add_argument(
        "--quick", action="store_true", help="the main comparisons in under two minutes, for a first look"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="prove that every benchmark starts; its figures mean nothing"
    )
    parser.add_argument(
        "--only", action="append", choices=QUESTIONS, metavar="NAME", help=", ".join(QUESTIONS)
    )
    parser.add_argument("--contender", action="append", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of each comparison (5; quick and tiny: 1)"
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="length of one throughput run (0.8)")
    parser.add_argument(
        "--out", default="benchmarks/results/latest.json", metavar="FILE", help="JSON file (%(default)s)"
    )
    parser.add_argument("--plot", metavar="FILE", help="also draw an SVG or PNG file (needs matplotlib)")
    return parser


def _plan(options: argparse.Namespace) -> Plan:
    brief = options.quick or options.tiny
    return Plan(
        rounds=max(1, options.rounds or (1 if brief else 5)),
        seconds=options.seconds or (0.1 if options.tiny else 0.5 if options.quick else 0.8),
        quick=options.quick,
        tiny=options.tiny,
        contenders=tuple(options.contender or ()),
    )


def _measure(name: str) -> Callable[[Plan], Iterable[Cell]]:
    measure: Callable[[Plan], Iterable[Cell]] = importlib.import_module(f"benchmarks.bench_{name}").measure
    return measure


if __name__ == "__main__":
    sys.exit(main())
