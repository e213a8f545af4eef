"""The exposition: it parses, its names keep the conventions, and its series are bounded."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.protocol.beacons import Beacon
from subscribers.http import metrics as module
from subscribers.http import tallies
from subscribers.http.metrics import Metrics
from subscribers.http.tallies import FURTHER

STATUS: dict[str, Any] = {
    "broker": {"epoch": "e", "uptime_s": 12.5, "memory_bytes": 1000, "descriptors": "many"},
    "forwarded": {"frames_in": 3, "frames_out": 4, "bytes_in": 30, "bytes_out": 40},
    "refused": {"bad_topic": 1},
    "registered": 7,
    "publishers": [{"publisher": "aa", "dropped_full": 2}],
    "subscribers": [
        {"name": "shell", "pid": 1, "received": 9, "runs": {"ok": 5}, "runs_now": 2, "runs_waiting": 6},
        {"name": "shell", "pid": 2, "runs_now": 1, "runs_waiting": "x"},
    ],
    "deciders": [{"name": "codex", "pid": 3, "runs": {"timeout": 1}, "runs_now": 4, "runs_waiting": 0}],
}


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample by name and values of labels; it parses, and every name is ours and documented."""
    found = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        assert family.name.startswith("prxbus_")
        assert family.documentation
        for sample in family.samples:
            found[sample.name, tuple(sample.labels.values())] = sample.value
    return found


def test_the_bus_is_told() -> None:
    """Events by topic, drops by cause, runs by outcome, queue depths, as sums and as they are now."""
    metrics = Metrics()
    metrics.tallies.beacon(Beacon(b"1" * 16, "a", False, {"prx.a": (0, 5)}), 0.0)
    metrics.tallies.take_status(STATUS, 0.0)
    metrics.answered = lambda: {200: 3, 401: 1}
    metrics.stream_queues = lambda: [2, 3]
    metrics.stream_dropped = lambda: 4
    metrics.hooks = lambda: 8
    found = samples(metrics)
    expected = {
        ("prxbus_events_published_total", ("prx.a",)): 5,
        ("prxbus_events_received_total", ("shell",)): 9,
        ("prxbus_broker_frames_total", ("in",)): 3,
        ("prxbus_broker_bytes_total", ("out",)): 40,
        ("prxbus_drops_total", ("publisher_queue_full",)): 2,
        ("prxbus_drops_total", ("stream_queue_full",)): 4,
        ("prxbus_drops_total", ("no_bus",)): 0,
        ("prxbus_refused_messages_total", ("bad_topic",)): 1,
        ("prxbus_hook_runs_total", ("ok", "shell")): 5,
        ("prxbus_hook_runs_total", ("codex", "timeout")): 1,
        ("prxbus_hook_runs_running", ("shell",)): 3,
        ("prxbus_hook_runs_running", ("codex",)): 4,
        ("prxbus_hook_queue_depth", ("shell",)): 6,
        ("prxbus_up", ()): 1,
        ("prxbus_peers", ()): 7,
        ("prxbus_broker_uptime_seconds", ()): 12.5,
        ("prxbus_http_streams", ()): 2,
        ("prxbus_http_stream_queue_depth", ()): 5,
        ("prxbus_http_answers_total", ("401",)): 1,
        ("prxbus_hooks", ()): 8,
    }
    told = {(name, tuple(sorted(labels))): value for (name, labels), value in found.items()}
    assert {key: told[key] for key in expected} == expected
    assert ("prxbus_broker_descriptors", ()) not in found


def test_without_a_broker_only_its_absence_is_told() -> None:
    """What was counted stays; what is of now is left out."""
    metrics = Metrics()
    metrics.tallies.take_status(STATUS, 0.0)
    metrics.tallies.no_status()
    found = samples(metrics)
    assert found["prxbus_up", ()] == 0
    assert found["prxbus_drops_total", ("publisher_queue_full",)] == 2
    assert ("prxbus_peers", ()) not in found
    assert ("prxbus_hooks", ()) not in found


def test_runs_are_told_as_histograms() -> None:
    """Durations by event and outcome, waits over all; a report of another shape counts what it has."""
    metrics = Metrics()
    metrics.run({"event": "error", "status": "ok", "duration_ms": 20, "waited_ms": 0.5})
    metrics.run({"event": "error", "status": "ok", "duration_ms": 400_000, "waited_ms": 0.5})
    metrics.run({"status": "odd", "duration_ms": "x", "waited_ms": -1})
    found = samples(metrics)
    told = {(name, tuple(sorted(labels))): value for (name, labels), value in found.items()}
    assert told["prxbus_hook_run_duration_seconds_count", ("error", "ok")] == 2
    assert told["prxbus_hook_run_duration_seconds_bucket", ("0.025", "error", "ok")] == 1
    assert told["prxbus_hook_run_duration_seconds_sum", ("error", "ok")] == pytest.approx(400.02)
    assert told["prxbus_hook_run_duration_seconds_count", ("?", "unknown")] == 0
    assert told["prxbus_hook_run_wait_seconds_count", ()] == 2


def test_invented_events_do_not_grow_the_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may publish reports; beyond the bound they are counted together."""
    monkeypatch.setattr(module, "SERIES", 2)
    metrics = Metrics()
    for number in range(10):
        metrics.run({"event": f"e{number}", "status": "ok", "duration_ms": 1})
    found = samples(metrics)
    events = {labels[0] for name, labels in found if name == "prxbus_hook_run_duration_seconds_count"}
    assert events == {"e0", "e1", FURTHER}


def test_invented_subscribers_do_not_grow_the_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound they are added up, in the gauges and in the counters; nothing is left out."""
    monkeypatch.setattr(module, "GAUGES", 2)
    monkeypatch.setattr(tallies, "LABELS", 2)
    metrics = Metrics()
    rows = [
        {
            "name": f"shell-{letter}",
            "pid": 1,
            "runs_now": 1,
            "runs_waiting": 2,
            "received": 3,
            "runs": {"ok": 4},
        }
        for letter in "abcd"
    ]
    metrics.tallies.take_status({"subscribers": rows}, 0.0)
    found = samples(metrics)
    for name, value in (("prxbus_hook_runs_running", 1), ("prxbus_hook_queue_depth", 2)):
        told = {labels[0]: value for (sample, labels), value in found.items() if sample == name}
        assert told == {"shell-a": value, "shell-b": value, FURTHER: 2 * value}
    assert found["prxbus_events_received_total", (FURTHER,)] == 6
    assert found["prxbus_hook_runs_total", ("ok", FURTHER)] == 8
