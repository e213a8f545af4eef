"""How figures are shown."""

from __future__ import annotations

import orjson
import pytest

from broker.cli.bench import report_lines
from broker.cli.bench_measures import payload

FIGURES = {
    "release": "0.1.0",
    "python": "3.11.7",
    "cpus": 2,
    "load": 0.5,
    "bus": "temporary",
    "payload_bytes": 300,
    "throughput_dict": {"per_second": 123_456.7, "received": 250_000, "lost": 0},
    "throughput_bytes": {"per_second": 234_567.8, "received": 470_000, "lost": 3},
    "latency": {"p50_ms": 0.169, "p99_ms": 1.25, "rate": 999.9, "received": 2_000},
    "publish_cost": {"microseconds": 4.06, "bursts": 800},
}


def test_every_figure_has_its_unit_and_what_it_is_of() -> None:
    """One row a measure: value, unit, and how much was measured."""
    assert list(report_lines(FIGURES)) == [
        "prxbus 0.1.0, Python 3.11.7, 2 CPUs (load 0.5), a bus of its own, payloads of 300 bytes",
        "",
        "MEASURE                               VALUE  OF",
        "throughput 1 to 1, dict    123,457 events/s  250,000 received, 0 lost",
        "throughput 1 to 1, bytes   234,568 events/s  470,000 received, 3 lost",
        "latency one way, p50                0.17 ms  2,000 events at 1,000 a second",
        "latency one way, p99                 1.2 ms",
        "publish(), nobody listens            4.1 us  median of 800 bursts of 100",
    ]


def test_what_was_not_measured_has_no_figure() -> None:
    """Nothing stands in the place of a number that nobody measured."""
    figures = {
        **FIGURES,
        "bus": "/run/prxbus",
        "latency": {"p50_ms": None, "p99_ms": None, "rate": 10.0, "received": 0},
        "publish_cost": {"microseconds": None, "bursts": 0},
    }
    lines = list(report_lines(figures))
    assert "the bus in /run/prxbus" in lines[0]
    assert sum("not measured" in line for line in lines) == 3


@pytest.mark.parametrize("size", [128, 300, 4_096])
def test_a_payload_has_the_size_that_is_stated(size: int) -> None:
    """The JSON of the measured payload has exactly the bytes that the report names."""
    assert len(orjson.dumps(payload(size))) == size
