"""What ``prxbus top`` shows, worked out from events and status reports.

Decides what is counted, over which time, and the order of the rows. Pure: times are arguments (seconds of
one monotonic clock); nothing here knows a screen. Every table is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ..protocol.errors import BusError
from ..protocol.events import Event
from .top_deciders import DeciderRow, Deciders

RUN_TOPIC: Final = "prx.hooks.run"
"""On it each run of a hook is reported, with ``hook``, ``event``, ``status`` and ``duration_ms``."""

TOPICS: Final = 2_000
HOOKS: Final = 500
"""Topics and hooks that are counted apart; what is beyond is counted together."""

DURATIONS: Final = 1_000
"""Latest runs of a hook that its percentiles are of."""


SAME_REPORT_SECONDS: Final = 0.1
"""Two reports of one subscriber are further apart than this."""


class TopicRow(NamedTuple):
    """Events of one topic: in the last interval, and since we watch."""

    topic: str
    per_second: float
    total: int


class SubscriberRow(NamedTuple):
    """A subscriber as it last reported itself: its rate and what it ``lost`` since the report before.

    ``per_second`` is None until there were two reports.
    """

    name: str
    pid: int
    per_second: float | None
    lag_ms: float
    missed: int
    lost: int
    gaps: Mapping[str, int]
    reported_s: float | None


class HookRow(NamedTuple):
    """Runs of one hook since we watch, each in one of ``ok``, ``failed``, ``timed_out``, ``not_started``.

    A run that was ended by a signal, or of which nobody knows how it ended, has ``failed``.
    """

    hook: str
    event: str
    runs: int
    ok: int
    failed: int
    timed_out: int
    not_started: int
    p50_ms: float | None
    p99_ms: float | None


class View(NamedTuple):
    """One moment. ``problem`` says why there is no report of the broker; ``missed`` is what we missed.

    ``asks`` are the broker's counters of asks.
    """

    watched_s: float
    broker: Mapping[str, Any]
    problem: str | None
    topics: Sequence[TopicRow]
    per_second: float
    total: int
    subscribers: Sequence[SubscriberRow]
    hooks: Sequence[HookRow]
    publishers: int
    dropped: int
    missed: int
    deciders: Sequence[DeciderRow] = ()
    asks: Mapping[str, Any] = MappingProxyType({})


ENDS: Final = {"ok": "ok", "timeout": "timed_out", "not_started": "not_started"}
"""Statuses of a run that are counted apart; every other one counts as failed."""


class Runs:
    """The runs of one hook, by how they ended."""

    __slots__ = ("durations", "ends", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.ends = {"ok": 0, "failed": 0, "timed_out": 0, "not_started": 0}
        self.durations: deque[float] = deque(maxlen=DURATIONS)

    def add(self, status: object, duration_ms: object) -> None:
        """Count a run. A run that did not start has no duration worth a percentile."""
        self.runs += 1
        self.ends[ENDS.get(status, "failed") if isinstance(status, str) else "failed"] += 1
        if status != "not_started" and isinstance(duration_ms, int | float):
            self.durations.append(float(duration_ms))


class Report(NamedTuple):
    """What a subscriber had said by its report at ``moment``, and what came of it."""

    moment: float
    received: int
    missed: int
    per_second: float | None
    lost: int


class Watch:
    """Counts events and keeps reports; :meth:`view` closes an interval and tells what it held."""

    def __init__(self, now: float) -> None:
        self._began = self._interval_began = now
        self._topics: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._further = 0
        self._runs: dict[tuple[str, str], Runs] = {}
        self._status: Mapping[str, Any] = {}
        self._problem: str | None = None
        self._reports: dict[tuple[str, int], Report] = {}
        self._deciders = Deciders()
        self._missed = 0

    def events(self, events: Iterable[Event], missed: int) -> None:
        """Count ``events``; ``missed`` is how many we ourselves have missed so far."""
        topics = self._topics
        self._missed = missed
        for event in events:
            topic = event.topic
            if topic in topics:
                topics[topic] += 1
            elif len(topics) < TOPICS:
                topics[topic] = 1
            else:
                self._further += 1
            if topic == RUN_TOPIC:
                self._run(event)

    def report(self, status: Mapping[str, Any] | None, now: float, problem: str | None = None) -> None:
        """The broker's status, or why there is none; the last one stays then."""
        self._problem = problem
        if status is not None:
            self._status = status
            before = self._reports
            self._reports = {
                key: _compare(before.get(key), row, now)
                for key, row in _by_key(status.get("subscribers", ()))
            }
            self._deciders.report(status.get("deciders", ()), now)

    def view(self, now: float) -> View:
        """What there is to see at ``now``, with the rates since the last call."""
        seconds = max(now - self._interval_began, 1e-3)
        counts = {**self._topics, "(further topics)": self._further} if self._further else self._topics
        topics = [
            TopicRow(topic, (count - self._before.get(topic, 0)) / seconds, count)
            for topic, count in counts.items()
        ]
        self._before = dict(counts)
        self._interval_began = now
        publishers = self._status.get("publishers", ())
        return View(
            watched_s=now - self._began,
            broker=self._status.get("broker", {}),
            problem=self._problem,
            topics=sorted(topics, key=_place),
            per_second=sum(row.per_second for row in topics),
            total=sum(row.total for row in topics),
            subscribers=self._subscribers(),
            hooks=self._hooks(),
            publishers=len(publishers),
            dropped=sum(row.get("dropped_absent", 0) + row.get("dropped_full", 0) for row in publishers),
            missed=self._missed,
            deciders=self._deciders.rows,
            asks=dict(self._status.get("asks", {})),
        )

    def _run(self, event: Event) -> None:
        try:
            payload = event.payload
        except BusError:
            return
        key = (str(payload.get("hook", "?")), str(payload.get("event", "?")))
        runs = self._runs.get(key)
        if runs is None:
            if len(self._runs) >= HOOKS:
                key = ("(further hooks)", "")
            runs = self._runs.setdefault(key, Runs())
        runs.add(payload.get("status"), payload.get("duration_ms"))

    def _subscribers(self) -> list[SubscriberRow]:
        rows = [
            SubscriberRow(
                *key,
                per_second=self._reports[key].per_second,
                lag_ms=row.get("lag_ms", 0.0),
                missed=row.get("missed", 0),
                lost=self._reports[key].lost,
                gaps=dict(sorted(row.get("gaps", {}).items(), key=lambda gap: -gap[1])),
                reported_s=row.get("reported_s"),
            )
            for key, row in _by_key(self._status.get("subscribers", ()))
        ]
        return sorted(rows, key=lambda row: (-row.missed, row.name, row.pid))

    def _hooks(self) -> list[HookRow]:
        rows = []
        for (hook, event), runs in self._runs.items():
            ordered = sorted(runs.durations)
            rows.append(
                HookRow(
                    hook,
                    event,
                    runs.runs,
                    **runs.ends,
                    p50_ms=percentile(ordered, 0.50),
                    p99_ms=percentile(ordered, 0.99),
                )
            )
        return sorted(rows, key=lambda row: (-(row.runs - row.ok).bit_length(), row.hook, row.event))


def _by_key(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, int], Mapping[str, Any]]]:
    return (((str(row.get("name", "?")), int(row.get("pid", 0))), row) for row in rows)


def _compare(before: Report | None, row: Mapping[str, Any], now: float) -> Report:
    """A subscriber reports when it likes: rates are of the time between its reports, not of ours."""
    received, missed, age = row.get("received", 0), row.get("missed", 0), row.get("reported_s")
    moment = now - (age or 0.0)
    if before is None or age is None:
        return Report(moment, received, missed, None, 0)
    seconds = moment - before.moment
    if seconds < SAME_REPORT_SECONDS:
        return before
    return Report(
        moment,
        received,
        missed,
        max(0, received - before.received) / seconds,
        max(0, missed - before.missed),
    )


def _place(row: TopicRow) -> tuple[int, str]:
    """Where a topic stands: by the order of magnitude of its rate, so that rows do not dance."""
    return -int(row.per_second).bit_length(), row.topic


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile of values in order; None of none."""
    if not ordered:
        return None
    rank = -(-len(ordered) * share // 1)  # rounded up
    return ordered[max(0, min(len(ordered), int(rank)) - 1)]
