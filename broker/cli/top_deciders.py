"""The deciders that ``prxbus top`` shows, worked out from what they report.

Decides the rate of a decider, which is of the time between its own reports, and the order of the rows. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

SAME_REPORT_SECONDS: Final = 0.1
"""Two reports of one decider are further apart than this."""


class DeciderRow(NamedTuple):
    """A decider as it last reported itself; ``per_second`` (asks) is None until there were two reports."""

    name: str
    pid: int
    priority: int
    failure: str
    per_second: float | None
    asked: int
    answered: int
    failed: int
    too_late: int
    reported_s: float | None


class _Report(NamedTuple):
    """What a decider had been asked by its report at ``moment``."""

    moment: float
    asked: int
    per_second: float | None


class Deciders:
    """The deciders of the latest status report; remembers the report before of each that is still there."""

    def __init__(self) -> None:
        self.rows: list[DeciderRow] = []
        self._reports: dict[tuple[str, int], _Report] = {}

    def report(self, rows: Iterable[Mapping[str, Any]], now: float) -> None:
        """The rows of a status report that came at ``now``, in seconds of one monotonic clock."""
        before, self._reports = self._reports, {}
        found = []
        for row in rows:
            key = (str(row.get("name", "?")), int(row.get("pid", 0)))
            report = self._reports[key] = _compare(before.get(key), row, now)
            found.append(
                DeciderRow(
                    *key,
                    priority=row.get("priority", 0),
                    failure=str(row.get("failure", "?")),
                    per_second=report.per_second,
                    asked=row.get("asked", 0),
                    answered=row.get("answered", 0),
                    failed=row.get("failed", 0),
                    too_late=row.get("too_late", 0),
                    reported_s=row.get("reported_s"),
                )
            )
        self.rows = sorted(found, key=lambda row: (row.priority, row.name, row.pid))


def _compare(before: _Report | None, row: Mapping[str, Any], now: float) -> _Report:
    asked, age = row.get("asked", 0), row.get("reported_s")
    moment = now - (age or 0.0)
    if before is None or age is None:
        return _Report(moment, asked, None)
    seconds = moment - before.moment
    if seconds < SAME_REPORT_SECONDS:
        return before
    return _Report(moment, asked, max(0, asked - before.asked) / seconds)
