"""What the metrics know of a bus, beside faults that nobody foresaw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import zmq

from broker.client import Publisher
from broker.testing import running_broker
from subscribers.http import bus_watch
from subscribers.http.bus_watch import RUN_TOPIC, BusWatch
from subscribers.http.metrics import Metrics
from tests.integration.waiting import until


def test_a_fault_does_not_end_the_watch(runtime_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where the broker cannot be asked for want of descriptors, nor where a report is a fault."""
    monkeypatch.setattr(bus_watch, "STATUS_SECONDS", 0.05)
    metrics = Metrics()
    ask, count, faults = bus_watch.ask_status, metrics.run, 0
    told: list[bool] = []  # at each fault, whether the broker counts as one that answers

    def asking(directory: str) -> dict[str, Any]:
        nonlocal faults
        if 1 <= faults < 4:
            faults += 1
            told.append(metrics.tallies.status is not None)
            raise zmq.ZMQError(24, "no descriptors")
        return ask(directory)

    def counting(report: Any) -> None:
        nonlocal faults
        if not faults:
            faults = 1
            raise RuntimeError("not foreseen")
        count(report)

    monkeypatch.setattr(bus_watch, "ask_status", asking)
    monkeypatch.setattr(metrics, "run", counting)
    with running_broker(runtime_dir) as bus:
        watch = BusWatch(bus, metrics, 10.0)
        try:
            with Publisher("agent", runtime_dir=bus, on_absent="raise") as agent:
                agent.publish(RUN_TOPIC, {"event": "lost"})
                until(lambda: faults == 4, "the faults")
                agent.publish(RUN_TOPIC, {"event": "told", "status": "ok", "duration_ms": 1})
                until(lambda: b'event="told"' in metrics.text(), "the second report")
            until(lambda: metrics.tallies.status is not None, "a status after the faults")
            assert told == [True, False, False]
        finally:
            watch.close()
