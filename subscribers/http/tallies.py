"""Counters that only grow, from reports of peers that come and go.

A publisher's or subscriber's own counters vanish with it and begin anew with the next one; a monitoring
system wants sums that never fall. Each report adds what has grown since the report before. Pure: beacons,
status documents and times come in as values. Everything is bounded; what is beyond a bound is counted
together.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from broker.protocol.beacons import Beacon

TOPICS: Final = 1_000
"""Topics that are counted apart."""

STREAMS: Final = 65_536
"""Pairs of publisher and topic whose last number is remembered."""

SOURCES: Final = 20_000
"""Peers whose last report is remembered."""

FORGET_SECONDS: Final = 600.0
"""A peer of which nothing was heard for so long is forgotten; silent publishers say more every 64 seconds."""

CLOSED_SECONDS: Final = 60.0
"""A publisher that has closed is forgotten after so long: the broker says its last word again for 30."""

SWEEP_SECONDS: Final = 1.0
"""Shortest time between two looks for what can be forgotten, however full a table is."""

LABELS: Final = 2_000
"""Sums that one counter keeps apart."""

STATUSES: Final = ("ok", "failed", "signalled", "timeout", "not_started")
"""How a run can end; any other word is counted as unknown."""

COUNTED: Final = (*STATUSES, "dropped", "unreadable")
"""What runners count: runs by how they ended, and those that never were."""

FURTHER: Final = "(further)"

PUBLISHER_DROPS: Final = {
    "dropped_absent": "no_bus",
    "dropped_full": "publisher_queue_full",
    "over_depth": "too_deep",
}
"""Counters of a publisher that are events lost, and the cause that each stands for."""

SUBSCRIBER_DROPS: Final = {"missed": "subscriber_missed", "runs_dropped": "hook_queue_full"}

DECIDER_DROPS: Final = {"runs_dropped": "hook_queue_full"}

_NUMBERED: Final = re.compile(r"[-_.:#/]*[0-9]+$")


class Growing:
    """Sums of counters that many sources report. ``totals`` is by label.

    Beyond :data:`LABELS` a label is counted under :data:`FURTHER`. Of a label that is a tuple only the first
    part is anybody's to choose: the other parts stay.
    """

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self.totals: dict[Hashable, float] = dict.fromkeys(labels, 0.0)
        self._last: dict[tuple[Hashable, Hashable], tuple[float, float]] = {}

    def report(self, source: Hashable, label: Hashable, value: float, now: float) -> None:
        """``source`` says that its counter stands at ``value``.

        Sources are never used again, so one that fell is two under one name, of which one has gone: better a
        little too few than the other one twice.
        """
        before = self._last.get((source, label), (0.0, 0.0))[0]
        if (source, label) not in self._last and len(self._last) >= SOURCES:
            return
        self._last[source, label] = (value, now)
        if label not in self.totals and len(self.totals) >= LABELS:
            label = (FURTHER, *label[1:]) if isinstance(label, tuple) else FURTHER
        self.totals[label] = self.totals.get(label, 0.0) + max(0.0, value - before)

    def forget(self, before: float) -> None:
        """Forget the sources that have not been heard since ``before``; what they counted stays."""
        self._last = {key: last for key, last in self._last.items() if last[1] >= before}


class _Told(NamedTuple):
    """The last number of a publisher's topic, until when it is remembered, and whether it was the last."""

    last: int
    until: float
    closed: bool


class Tallies:
    """What the metrics tell of the bus. Times are seconds of one steady clock."""

    def __init__(self) -> None:
        self.topics: dict[str, int] = {}
        self.drops = Growing([*PUBLISHER_DROPS.values(), *SUBSCRIBER_DROPS.values()])
        self.refused = Growing()
        self.frames = Growing()
        self.received = Growing()
        self.runs = Growing()
        self.status: Mapping[str, Any] | None = None
        self._streams: dict[tuple[bytes, str], _Told] = {}
        self._next_sweep = float("-inf")

    def beacon(self, beacon: Beacon, now: float) -> None:
        """A publisher has said how far it is on each topic."""
        for topic, (_, last) in beacon.topics.items():
            key = (beacon.publisher, topic)
            told = self._streams.get(key)
            if told is None and not self._has_room(now):
                continue
            before = 0 if told is None else told.last
            if told is not None and told.closed:  # said again: that makes it live no longer
                self._streams[key] = told._replace(last=max(before, last))
            else:
                until = now + (CLOSED_SECONDS if beacon.closing else FORGET_SECONDS)
                self._streams[key] = _Told(max(before, last), until, beacon.closing)
            if last > before:
                name = topic if topic in self.topics or len(self.topics) < TOPICS else FURTHER
                self.topics[name] = self.topics.get(name, 0) + last - before

    def _has_room(self, now: float) -> bool:
        """Whether one more stream can be remembered."""
        if len(self._streams) >= STREAMS and now >= self._next_sweep:
            self.forget(now)
        return len(self._streams) < STREAMS

    def forget(self, now: float) -> None:
        """Forget publishers and peers that are gone; what they counted stays."""
        self._next_sweep = now + SWEEP_SECONDS
        self._streams = {key: told for key, told in self._streams.items() if told.until >= now}
        for growing in (self.drops, self.refused, self.frames, self.received, self.runs):
            growing.forget(now - FORGET_SECONDS)

    def no_status(self) -> None:
        """The broker did not answer."""
        self.status = None

    def take_status(self, status: Mapping[str, Any], now: float) -> None:
        """The broker's status as it was just answered."""
        self.status = status
        epoch = as_map(status.get("broker")).get("epoch")
        for name, value in _numbers(status.get("forwarded")):
            self.frames.report(epoch, name, value, now)
        for reason, value in _numbers(status.get("refused")):
            self.refused.report(epoch, reason, value, now)
        for row in as_rows(status.get("publishers")):
            source = row.get("publisher") or (row.get("name"), row.get("pid"))
            self._drops(source, row, PUBLISHER_DROPS, now)
        for (name, pid), row in _merged(as_rows(status.get("subscribers"))).items():
            self._subscriber(name, pid, row, now)
        for (name, pid), row in _merged(as_rows(status.get("deciders"))).items():
            source = ("decider", name, pid)
            self._drops(source, row, DECIDER_DROPS, now)
            self._runs(source, kind_of(name), row, now)

    def _subscriber(self, name: str, pid: object, row: Mapping[str, Any], now: float) -> None:
        source, kind = (name, pid), kind_of(name)
        self._drops(source, row, SUBSCRIBER_DROPS, now)
        for counter, value in _numbers(row):
            if counter in ("received", "missed"):
                self.received.report(source, (kind, counter), value, now)
        self._runs(source, kind, row, now)

    def _runs(self, source: Hashable, kind: str, row: Mapping[str, Any], now: float) -> None:
        """What a subscriber or decider that runs hooks says of their runs."""
        runs: dict[str, float] = {}
        for word, value in _numbers(row.get("runs")):
            status = word if word in COUNTED else "unknown"
            runs[status] = runs.get(status, 0.0) + value
        for status, value in runs.items():
            self.runs.report(source, (kind, status), value, now)

    def _drops(self, source: Hashable, row: Mapping[str, Any], causes: Mapping[str, str], now: float) -> None:
        for counter, cause in causes.items():
            value = row.get(counter, 0)
            if isinstance(value, int | float):
                self.drops.report(source, cause, value, now)


def kind_of(name: str) -> str:
    """A subscriber's name without its number."""
    return _NUMBERED.sub("", name) or name


def _merged(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, object], dict[str, Any]]:
    """Rows by name and process; the counters of two subscribers that share both are added."""
    found: dict[tuple[str, object], dict[str, Any]] = {}
    for row in rows:
        key = (str(row.get("name", "?")), row.get("pid"))
        before = found.get(key)
        if before is None:
            found[key] = dict(row)
            continue
        for name, value in _numbers(row):
            before[name] = before.get(name, 0) + value
    return found


def as_map(value: object) -> Mapping[str, Any]:
    """``value`` if it is a map, else an empty one: a status may come from a broker of another release."""
    return value if isinstance(value, Mapping) else {}


def as_rows(value: object) -> Iterable[Mapping[str, Any]]:
    """The maps in ``value`` if it is a list, else none."""
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list | tuple) else []


def _numbers(value: object) -> list[tuple[str, float]]:
    """Those entries of a report that are numbers: a peer may report anything."""
    return [
        (str(name), number)
        for name, number in as_map(value).items()
        if isinstance(number, int | float) and not isinstance(number, bool)
    ]
