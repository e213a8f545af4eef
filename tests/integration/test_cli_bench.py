"""``prxbus bench`` measures what it says, with a bus of its own or a running one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.command import prxbus, temporary_bus

pytestmark = pytest.mark.timeout(240)


def check(figures: dict[str, dict[str, float]]) -> None:
    """Every figure is there, and it is of something."""
    for form in ("throughput_dict", "throughput_bytes"):
        assert figures[form]["per_second"] > 0
        assert figures[form]["received"] > 0
        assert figures[form]["lost"] == 0
    assert 0 < figures["latency"]["p50_ms"] <= figures["latency"]["p99_ms"]
    assert figures["latency"]["received"] > 100
    assert figures["publish_cost"]["microseconds"] > 0


def test_it_brings_a_bus_where_none_runs(runtime_dir: Path) -> None:
    """The temporary bus and every file of the measurement are gone afterwards."""
    scratch = runtime_dir / "tmp"
    scratch.mkdir()
    env = {"PRXBUS_RUNTIME_DIR": str(runtime_dir), "TMPDIR": str(scratch)}
    ran = prxbus("bench", "--seconds", "2", "--json", env=env)
    assert (ran.returncode, ran.stderr) == (0, "")
    figures = json.loads(ran.stdout)
    assert (figures["bus"], figures["payload_bytes"], figures["seconds_each"]) == ("temporary", 300, 0.5)
    check(figures)
    assert list(scratch.iterdir()) == []


def test_it_measures_the_bus_that_runs() -> None:
    """Without --own the bus in the runtime directory is the one that is measured."""
    with temporary_bus() as bus:
        ran = prxbus("bench", "--seconds", "2", "--runtime-dir", bus)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"the bus in {bus}" in ran.stdout
    assert ran.stdout.count("events/s") == 2
    assert "not measured" not in ran.stdout


def test_a_bus_that_was_named_must_be_there(runtime_dir: Path) -> None:
    """Who names a directory wants that bus measured and no other."""
    ran = prxbus("bench", "--runtime-dir", str(runtime_dir))
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "no bus answers in" in ran.stderr
