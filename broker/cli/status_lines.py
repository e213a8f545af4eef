"""The broker's status report as lines for people.

Decides what stands out: losses do. It shows what the report has and leaves out what it lacks, so that it
reads the report of an older or newer broker too. Names in it are foreign text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..protocol.limits import TABLE
from .decider_lines import ask_lines, decider_lines
from .quantities import count, milliseconds, plural, size, span
from .runner_lines import RUNNER, runner_line, runs_hooks
from .tables import Cell, table
from .terminal import cut, paint, printable

Row = Mapping[str, Any]

NAME_COLUMNS: Final = 32
PATTERN_COLUMNS: Final = 48
GAPS_SHOWN: Final = 5
"""Topics that are named below a subscriber that missed events, those with the most first."""

LABEL: Final = 12
"""Columns of the labels of the first lines."""

REPEATED: Final = frozenset({"spool_bytes", "claim_seconds", "ask_bytes"})
"""Limits that the broker tells a second time, under the names that clients look for."""

KNOWN: Final = frozenset(
    {
        *("received", "missed", "late", "away", "overdelivered", "repeated", "forgotten", "lag_ms"),
        *("name", "pid", "reported_s"),
    }
)
"""Counters of a subscriber that stand elsewhere or tell only a developer something."""


def status_lines(status: Row, columns: int | None = None, *, colour: bool = False) -> list[str]:
    """The whole report; ``columns`` is the width of the terminal, to which names and patterns are cut."""
    parts = (
        _broker(status, colour=colour),
        _subscribers(status, columns, colour=colour),
        _deciders(status, columns, colour=colour),
        _publishers(status, columns, colour=colour),
        _lost(status, columns, colour=colour),
    )
    lines: list[str] = []
    for part in parts:
        found = list(part)
        lines += [""] * bool(lines and found) + found
    return lines


def limit_lines(status: Row) -> list[str]:
    """The limits that the broker tells its clients, with what happens beyond them where we know it."""
    known = {limit.name.replace(" ", "_"): limit for limit in TABLE}
    rows = []
    for name, value in status.get("broker", {}).get("limits", {}).items():
        limit = known.get(name)
        if limit is not None:
            rows.append((limit.name, f"{value:,.0f}", limit.unit, limit.beyond))
        elif name not in REPEATED:
            rows.append((printable(str(name)), f"{value:,}", "", ""))
    return table(("LIMIT", "VALUE", "UNIT", "BEYOND IT"), rows, right=(1,))


def name_of(row: Row) -> str:
    """The name of a peer, made fit to be shown."""
    return cut(printable(str(row.get("name", "?"))), NAME_COLUMNS)


def missed_cell(number: int) -> str | Cell:
    """A number of lost events: red when there are any."""
    return Cell(f"{number:,}", "red") if number else "0"


def _broker(status: Row, *, colour: bool) -> Iterator[str]:
    broker: Row = status.get("broker", {})
    release, pid, uptime = broker.get("release", "?"), broker.get("pid", "?"), broker.get("uptime_s", 0)
    draining = ", draining" if broker.get("draining") else ""
    yield _labelled("broker", f"release {printable(str(release))}, pid {pid}, up {span(uptime)}{draining}")
    if "runtime_dir" in broker:
        yield _labelled("directory", printable(str(broker["runtime_dir"])))
    if "memory_bytes" in broker:
        memory = f"{size(broker['memory_bytes'])} of at most {size(broker.get('memory_limit_bytes', 0))}"
        held, most = broker.get("descriptors", 0), broker.get("descriptors_limit", 0)
        yield _labelled("memory", f"{memory}; {held:,} of {most:,} descriptors")
    yield from _traffic(status.get("rates", {}), status.get("forwarded", {}))
    yield from _holdings(status.get("retained", {}), status.get("spool", {}))
    yield from ask_lines(status.get("asks", {}), LABEL, colour=colour)
    refused: Row = status.get("refused", {})
    if refused:
        yield _labelled("refused", _counted(refused))


def _traffic(rates: Row, totals: Row) -> Iterator[str]:
    for way in ("in", "out"):
        now = f"{count(rates.get(f'{way}_per_s', 0))} frames/s, {size(rates.get(f'bytes_{way}_per_s', 0))}/s"
        frames, held = totals.get(f"frames_{way}", 0), totals.get(f"bytes_{way}", 0)
        yield _labelled(way, f"{now}; {frames:,} frames, {size(held)} since it started")


def _holdings(retained: Row, spool: Row) -> Iterator[str]:
    if retained.get("topics") or retained.get("evicted"):
        evicted = f", {retained['evicted']:,} evicted" if retained.get("evicted") else ""
        held = f"{plural(retained.get('topics', 0), 'topic')}, {size(retained.get('bytes', 0))}"
        yield _labelled("retained", held + evicted)
    if spool.get("files"):
        held = f"{size(spool.get('bytes', 0))} of at most {size(spool.get('limit_bytes', 0))}"
        yield _labelled("spool", f"{plural(spool['files'], 'large payload')}, {held}")


def _subscribers(status: Row, columns: int | None, *, colour: bool) -> Iterator[str]:
    rows: Sequence[Row] = status.get("subscribers", ())
    patterns = _registered(status, "subscriber")
    cells = [
        (
            name_of(row),
            str(row.get("pid", "?")),
            f"{row.get('received', 0):,}",
            missed_cell(row.get("missed", 0)),
            milliseconds(row.get("lag_ms", 0.0)),
            _patterns(patterns.get(_key(row), {})),
        )
        for row in rows
    ]
    titles = ("SUBSCRIBER", "PID", "RECEIVED", "MISSED", "LAG", "PATTERNS")
    lines = table(titles, cells, right=(1, 2, 3, 4), colour=colour, flexible=(5, 0), columns=columns)
    yield from _with_remarks(lines, rows, colour=colour)
    yield from _omitted(status, "subscribers")


def _with_remarks(lines: Sequence[str], rows: Sequence[Row], *, colour: bool) -> Iterator[str]:
    """The table with what there is to say about a row below it; a word where there is no row."""
    yield lines[0]
    if not rows:
        yield "(none)"
    for line, row in zip(lines[1:], rows, strict=True):
        yield line
        for remark, style in _remarks(row):
            yield "    " + (paint(remark, style) if colour else remark)


def _remarks(row: Row) -> Iterator[tuple[str, str]]:
    gaps = sorted(row.get("gaps", {}).items(), key=lambda gap: -gap[1])
    for topic, number in gaps[:GAPS_SHOWN]:
        yield f"missed {number:,} of {printable(str(topic))}", "red"
    if len(gaps) > GAPS_SHOWN:
        yield f"... and some of {plural(len(gaps) - GAPS_SHOWN, 'further topic')}", "red"
    if row.get("away"):
        yield f"was cut off and came back {plural(row['away'], 'time')}", "yellow"
    if row.get("refused"):
        yield f"passed over frames that were no events: {_counted(row['refused'])}", "yellow"
    runner = runs_hooks(row)
    if runner:
        yield runner_line(row)
    told = KNOWN | RUNNER if runner else KNOWN
    further = [
        f"{printable(str(name))} {count(value)}"
        for name, value in row.items()
        if name not in told and isinstance(value, int | float) and value
    ]
    if further:
        yield ", ".join(further), "dim"


def _deciders(status: Row, columns: int | None, *, colour: bool) -> Iterator[str]:
    rows: Sequence[Row] = status.get("deciders", ())
    registered = _registered(status, "decider")
    patterns = [_patterns(registered.get(_key(row), row)) for row in rows]
    yield from decider_lines(rows, patterns, columns, colour=colour)
    yield from _omitted(status, "deciders")


def _publishers(status: Row, columns: int | None, *, colour: bool) -> Iterator[str]:
    rows: Sequence[Row] = status.get("publishers", ())
    cells = [
        (
            name_of(row),
            str(row.get("pid", "?")),
            f"{row.get('published', 0):,}",
            missed_cell(row.get("dropped_absent", 0)),
            missed_cell(row.get("dropped_full", 0)),
            f"{row.get('over_depth', 0):,}",
        )
        for row in rows
    ]
    titles = ("PUBLISHER", "PID", "PUBLISHED", "DROPPED: NO BUS", "QUEUE FULL", "TOO DEEP")
    lines = table(titles, cells, right=(1, 2, 3, 4, 5), colour=colour, flexible=(0,), columns=columns)
    yield from lines if rows else (lines[0], "(none)")
    yield from _omitted(status, "publishers")


def _lost(status: Row, columns: int | None, *, colour: bool) -> Iterator[str]:
    rows: Sequence[Row] = status.get("lost_publishers", ())
    if not rows:
        return
    cells = [
        (
            name_of(row),
            str(row.get("pid", "?")),
            f"{row.get('published', 0):,}",
            f"{printable(str(row.get('how', '?')))} {span(row.get('ended_s', 0))} ago",
        )
        for row in rows
    ]
    titles = ("LOST PUBLISHER", "PID", "LAST REPORTED", "ENDED")
    yield from table(titles, cells, right=(1, 2), colour=colour, flexible=(0,), columns=columns)
    yield from _omitted(status, "lost_publishers")
    yield "What these published after their last report is unknown."


def _omitted(status: Row, part: str) -> Iterator[str]:
    number = status.get("omitted", {}).get(part, 0)
    if number:
        yield f"... and {number:,} more"


def _registered(status: Row, role: str) -> dict[object, Row]:
    return {_key(peer): peer for peer in status.get("peers", ()) if peer.get("role") == role}


def _key(row: Row) -> object:
    return row.get("name"), row.get("pid")


def _patterns(peer: Row) -> str:
    listed = [printable(str(pattern)) for pattern in peer.get("patterns", ())]
    more = peer.get("pattern_count", 0) - len(listed)
    text = cut(" ".join(listed), PATTERN_COLUMNS)
    return f"{text} and {more:,} more" if more > 0 else text


def _counted(counts: Row) -> str:
    return ", ".join(f"{number:,} {printable(str(name))}" for name, number in counts.items())


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}"
