"""The metrics in Prometheus' text format.

It decides names, labels and bounds; what is counted is :mod:`.tallies`'s. Names follow Prometheus'
conventions: base units, ``_total`` for what only grows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .tallies import FURTHER, STATUSES, Tallies, as_map, as_rows, kind_of

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Upper bounds of the duration histograms, in seconds: from a warm program to the longest timeout."""

SERIES: Final = 200
"""Pairs of event and status that a histogram tells apart; anybody may publish a report of a run."""


GAUGES: Final = 200
"""Subscribers whose runs are told apart; those beyond are added up, as their counters are."""


class Metrics:
    """Everything that ``/metrics`` tells. ``lock`` guards ``tallies``."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tallies = Tallies()
        self.monitor_missed = 0
        self.answered: Callable[[], Mapping[int, int]] = dict
        self.stream_queues: Callable[[], list[int]] = list
        self.stream_dropped: Callable[[], int] = int
        self.hooks: Callable[[], int | None] = lambda: None
        self._registry = CollectorRegistry(auto_describe=False)
        self._series: set[tuple[str, str]] = set()
        self._durations = Histogram(
            "prxbus_hook_run_duration_seconds",
            "Time from asking for a hook's start to its end.",
            ("event", "status"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._waits = Histogram(
            "prxbus_hook_run_wait_seconds",
            "Time between an event's arrival at the hook runner and the start of the hook.",
            registry=self._registry,
            buckets=BUCKETS,
        )
        self._registry.register(_Families(self))

    def run(self, report: Mapping[str, Any]) -> None:
        """Count a report of a hook's run (``prx.hooks.run``)."""
        event, status = str(report.get("event", "?"))[:64], report.get("status")
        series = (event, status if status in STATUSES else "unknown")
        if series not in self._series and len(self._series) >= SERIES:
            series = (FURTHER, series[1])
        self._series.add(series)
        for histogram, field in (
            (self._durations.labels(*series), "duration_ms"),
            (self._waits, "waited_ms"),
        ):
            value = report.get(field)
            if isinstance(value, int | float) and value >= 0:
                histogram.observe(value / 1_000)

    def text(self) -> bytes:
        """The exposition."""
        return generate_latest(self._registry)


class _Families(Collector):
    """What is told from the tallies and from the state of this moment."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """The families, for one scrape."""
        dropped = self._metrics.stream_dropped()
        with self._metrics.lock:
            found = list(_of_tallies(self._metrics.tallies, dropped))
        return [*found, *self._of_this_process()]

    def _of_this_process(self) -> Iterator[Metric]:
        metrics = self._metrics
        queues = metrics.stream_queues()
        yield _gauge("prxbus_http_streams", "Open event streams.", len(queues))
        yield _gauge(
            "prxbus_http_stream_queue_depth", "Events that wait for stream clients, over all.", sum(queues)
        )
        yield _counter(
            "prxbus_http_answers",
            "Answers of the HTTP API.",
            ("status",),
            {(str(status),): count for status, count in sorted(metrics.answered().items())},
        )
        yield _counter(
            "prxbus_monitor_missed",
            "Reports of hook runs that did not reach this monitor, and so are not in the histograms.",
            (),
            {(): metrics.monitor_missed},
        )
        hooks = metrics.hooks()
        if hooks is not None:
            yield _gauge("prxbus_hooks", "Hooks in the workspace's hooks.json, disabled ones too.", hooks)


def _of_tallies(tallies: Tallies, stream_dropped: int) -> Iterator[Metric]:
    yield _counter(
        "prxbus_events_published",
        "Events published, by topic, as publishers report them.",
        ("topic",),
        {(topic,): count for topic, count in tallies.topics.items()},
    )
    directions = {"frames_in": "in", "frames_out": "out"}
    yield _counter(
        "prxbus_broker_frames",
        "Frames that the broker took in and gave out; reports and beacons are frames too.",
        ("direction",),
        {(directions[str(name)],): n for name, n in tallies.frames.totals.items() if name in directions},
    )
    directions = {"bytes_in": "in", "bytes_out": "out"}
    yield _counter(
        "prxbus_broker_bytes",
        "Bytes that the broker took in and gave out.",
        ("direction",),
        {(directions[str(name)],): n for name, n in tallies.frames.totals.items() if name in directions},
    )
    for counter, words in (
        ("received", "Events that subscribers received"),
        ("missed", "Events for subscribers that never arrived"),
    ):
        yield _counter(
            f"prxbus_events_{counter}",
            f"{words}, as they report it.",
            ("subscriber",),
            {
                (label[0],): count
                for label, count in tallies.received.totals.items()
                if isinstance(label, tuple) and label[1] == counter
            },
        )
    yield _counter(
        "prxbus_drops",
        "Events and runs lost, by cause.",
        ("cause",),
        {
            **{(str(cause),): count for cause, count in tallies.drops.totals.items()},
            ("stream_queue_full",): stream_dropped,
        },
    )
    yield _counter(
        "prxbus_refused_messages",
        "Control messages that the broker refused, by reason.",
        ("reason",),
        {(str(reason),): count for reason, count in tallies.refused.totals.items()},
    )
    yield _counter(
        "prxbus_hook_runs",
        "Runs of hooks, by how they ended.",
        ("subscriber", "status"),
        {label: count for label, count in tallies.runs.totals.items() if isinstance(label, tuple)},
    )
    yield from _of_status(tallies.status)


def _of_status(status: Mapping[str, Any] | None) -> Iterator[Metric]:
    yield _gauge("prxbus_up", "Whether the broker answered when it was last asked.", int(status is not None))
    if status is None:
        return
    broker = as_map(status.get("broker"))
    for name, words, value in (
        ("broker_uptime_seconds", "Time since the broker started.", broker.get("uptime_s")),
        ("broker_memory_bytes", "Memory of the broker.", broker.get("memory_bytes")),
        ("broker_descriptors", "Descriptors that the broker holds.", broker.get("descriptors")),
        ("peers", "Registered clients.", status.get("registered")),
        ("retained_topics", "Topics with a last value.", as_map(status.get("retained")).get("topics")),
        ("spool_bytes", "Bytes of large payloads in the spool.", as_map(status.get("spool")).get("bytes")),
    ):
        if isinstance(value, int | float):
            yield _gauge(f"prxbus_{name}", words, value)
    running = GaugeMetricFamily("prxbus_hook_runs_running", "Hook runs under way.", labels=("subscriber",))
    depth = GaugeMetricFamily("prxbus_hook_queue_depth", "Hook runs that wait.", labels=("subscriber",))
    sums: dict[tuple[str, str], float] = {}
    names: set[str] = set()
    for row in (*as_rows(status.get("subscribers")), *as_rows(status.get("deciders"))):
        for counter in ("runs_now", "runs_waiting"):
            value = row.get(counter)
            if isinstance(value, int | float):
                name = kind_of(str(row.get("name", "?")))
                key = (counter, name if name in names or len(names) < GAUGES else FURTHER)
                names.add(key[1])
                sums[key] = sums.get(key, 0.0) + value
    for (counter, name), value in sums.items():
        (running if counter == "runs_now" else depth).add_metric((name,), value)
    yield running
    yield depth


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)


def _counter(
    name: str, words: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], float]
) -> Metric:
    family = CounterMetricFamily(name, words, labels=labels)
    for label, value in values.items():
        family.add_metric(label, value)
    return family
