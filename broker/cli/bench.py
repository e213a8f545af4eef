"""``prxbus bench``: how fast is the bus on this machine? A quick answer, measured here and now.

Decides which bus is measured and how the figures are shown; what is measured is :mod:`.bench_measures`'s.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from ..client.tool import Tool
from ..places import runtime_directory
from ..protocol.errors import BusUnreachable
from ..version import __version__
from . import bench_measures
from .exits import DONE, FAILED
from .options import add_json, duration
from .printing import emit, emit_json, note
from .quantities import milliseconds
from .tables import table
from .terminal import is_terminal

PARTS: Final = 4


class Bus(NamedTuple):
    """The bus that is measured, and whether it is our own."""

    directory: str
    temporary: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``bench``."""
    parser.add_argument(
        "--seconds", type=duration(0.4), default=8.0, metavar="S", help="length of all runs (default 8)"
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="start a bus of its own even where one runs (else that is measured)",
    )
    add_json(parser, "the figures")


def run(options: argparse.Namespace) -> int:
    """Measure and print; 1 when events were lost."""
    with _bus(options) as bus, tempfile.TemporaryDirectory(prefix="prxbus-bench-") as scratch:
        figures = _measure(bus, scratch, options.seconds / PARTS)
    if options.json:
        emit_json(figures)
    else:
        emit("\n".join(report_lines(figures)))
    lost = figures["throughput_dict"]["lost"] + figures["throughput_bytes"]["lost"]
    if lost:
        note("bench", f"{lost:,} events were lost; the rates are those of what arrived", as_json=options.json)
    return FAILED if lost else DONE


def _measure(bus: Bus, scratch: str, seconds: float) -> dict[str, Any]:
    directory = bus.directory
    _progress("1/4  throughput, dict in and dict out")
    dicts = bench_measures.throughput(directory, scratch, seconds, "dict")
    _progress("2/4  throughput, bytes in and bytes out")
    raw = bench_measures.throughput(directory, scratch, seconds, "bytes")
    _progress("3/4  latency at 1,000 events/s")
    delay = bench_measures.latency(directory, scratch, seconds)
    _progress("4/4  cost of publish()")
    cost = bench_measures.publish_cost(directory, seconds)
    _progress("")
    return {
        "release": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "bus": "temporary" if bus.temporary else directory,
        "payload_bytes": bench_measures.PAYLOAD_BYTES,
        "seconds_each": seconds,
        "throughput_dict": dicts._asdict(),
        "throughput_bytes": raw._asdict(),
        "latency": delay._asdict(),
        "publish_cost": cost._asdict(),
    }


def report_lines(figures: dict[str, Any]) -> Iterator[str]:
    """The figures as lines for people."""
    bus = "a bus of its own" if figures["bus"] == "temporary" else f"the bus in {figures['bus']}"
    yield (
        f"prxbus {figures['release']}, Python {figures['python']}, {figures['cpus']} CPUs (load "
        f"{figures['load']}), {bus}, payloads of {figures['payload_bytes']} bytes"
    )
    yield ""
    delay, cost = figures["latency"], figures["publish_cost"]
    rows = [
        (
            f"throughput 1 to 1, {form}",
            f"{got['per_second']:,.0f} events/s",
            f"{got['received']:,} received, {got['lost']:,} lost",
        )
        for form, got in (("dict", figures["throughput_dict"]), ("bytes", figures["throughput_bytes"]))
    ]
    held = f"{delay['received']:,} events at {delay['rate']:,.0f} a second"
    rows += [
        ("latency one way, p50", _or_not(delay["p50_ms"], milliseconds), held),
        ("latency one way, p99", _or_not(delay["p99_ms"], milliseconds), ""),
        (
            "publish(), nobody listens",
            _or_not(cost["microseconds"], "{:.1f} us".format),
            f"median of {cost['bursts']:,} bursts of {bench_measures.BURST}",
        ),
    ]
    yield from table(("MEASURE", "VALUE", "OF"), rows, right=(1,))


def _or_not(value: float | None, text: Any) -> str:
    return "not measured" if value is None else text(value)


@contextmanager
def _bus(options: argparse.Namespace) -> Iterator[Bus]:
    """The bus in the runtime directory if one answers there, else one of our own."""
    if not options.own:
        try:
            with Tool("prxbus-bench", runtime_dir=options.runtime_dir):
                pass
        except BusUnreachable:
            if options.runtime_dir is not None:
                raise
        else:
            yield Bus(runtime_directory(options.runtime_dir), temporary=False)
            return
    from ..testing import running_broker

    with running_broker() as directory:
        yield Bus(directory, temporary=True)


def _progress(text: str) -> None:
    """What is being measured now, on a terminal: one line that the next one replaces."""
    if is_terminal(sys.stderr):
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
