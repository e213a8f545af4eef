"""A :class:`.top_view.View` on a terminal, with rich.

Decides what fits: what does not is counted in a last line. Names are foreign text and shown without
their control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .quantities import count, milliseconds, plural, span
from .terminal import printable
from .top_view import HookRow, SubscriberRow, TopicRow, View

FRAME_LINES: Final = 4
"""Lines of a table beside its rows: a blank one, title, head, and the line that says what is left out."""

HEAD_LINES: Final = 2
MOST_COLUMNS: Final = 120
"""Wider than this, a row is hard to follow with the eye."""

LEAST_ROWS: Final = 1
SLOW_MS: Final = 1_000.0
"""Lag from which a subscriber stands out."""


def screen(view: View, width: int, height: int) -> RenderableType:
    """``view`` in at most ``height`` lines, as long as that leaves each table a row."""
    width = min(width, MOST_COLUMNS)
    topics, subscribers, hooks = _shares(
        height - HEAD_LINES - 3 * FRAME_LINES, (len(view.topics), len(view.subscribers), len(view.hooks))
    )
    return Group(
        *_head(view),
        _topics(view.topics[:topics], width),
        *_more(len(view.topics) - topics),
        _subscribers(view.subscribers[:subscribers], width),
        *_more(len(view.subscribers) - subscribers),
        _hooks(view.hooks[:hooks], width),
        *_more(len(view.hooks) - hooks),
    )


def _shares(room: int, wanted: Sequence[int]) -> list[int]:
    """How many of the ``wanted`` rows each table gets of ``room``: an even share, and what others leave."""
    shares = [min(rows, LEAST_ROWS) for rows in wanted]
    while sum(shares) < room and shares != list(wanted):
        for index, rows in enumerate(wanted):
            if shares[index] < rows and sum(shares) < room:
                shares[index] += 1
    return shares


def _head(view: View) -> Iterator[Text]:
    broker = view.broker
    line = Text("prxbus top", style="bold")
    if broker:
        state = "draining" if broker.get("draining") else f"up {span(broker.get('uptime_s', 0.0))}"
        line.append(f"   broker pid {broker.get('pid', '?')}, {state}", style="default not bold")
        line.append(f"   {printable(str(broker.get('runtime_dir', '')))}", style="dim")
    yield line
    line = Text(
        f"{count(view.per_second)} events/s, {view.total:,} in {span(view.watched_s)}"
        f"   {plural(view.publishers, 'publisher')}"
    )
    if view.dropped:
        line.append(f", {view.dropped:,} dropped by them", style="red")
    if view.missed:
        line.append(f"   this view itself missed {view.missed:,}", style="red")
    if view.problem is not None:
        line.append(f"   {printable(view.problem)}", style="bold red")
    yield line


def _topics(rows: Sequence[TopicRow], width: int) -> Table:
    table = _table("topics", width, ("TOPIC", "left", 3), ("PER S", "right", 1), ("TOTAL", "right", 1))
    for row in rows:
        style = "" if row.per_second else "dim"
        table.add_row(Text(row.topic), count(row.per_second), f"{row.total:,}", style=style)
    return table


def _subscribers(rows: Sequence[SubscriberRow], width: int) -> Table:
    table = _table(
        "subscribers",
        width,
        ("NAME", "left", 2),
        ("PID", "right", 1),
        ("PER S", "right", 1),
        ("LAG", "right", 1),
        ("MISSED", "right", 1),
        ("GAPS", "left", 3),
    )
    for row in rows:
        lost = f" (+{row.lost:,})" if row.lost else ""
        table.add_row(
            Text(printable(row.name)),
            str(row.pid),
            "-" if row.per_second is None else count(row.per_second),
            Text(milliseconds(row.lag_ms), style="yellow" if row.lag_ms >= SLOW_MS else ""),
            Text(f"{row.missed:,}{lost}", style="red" if row.missed else ""),
            Text(", ".join(f"{printable(topic)} {number:,}" for topic, number in row.gaps.items())),
        )
    return table


def _hooks(rows: Sequence[HookRow], width: int) -> Table:
    table = _table(
        "hooks",
        width,
        ("HOOK", "left", 2),
        ("EVENT", "left", 2),
        ("RUNS", "right", 1),
        ("FAILED", "right", 1),
        ("TIMEOUT", "right", 1),
        ("P50", "right", 1),
        ("P99", "right", 1),
    )
    for row in rows:
        table.add_row(
            Text(printable(row.hook)),
            Text(printable(row.event)),
            f"{row.runs:,}",
            Text(f"{row.failed:,}", style="red" if row.failed else ""),
            Text(f"{row.timed_out:,}", style="red" if row.timed_out else ""),
            "-" if row.p50_ms is None else milliseconds(row.p50_ms),
            "-" if row.p99_ms is None else milliseconds(row.p99_ms),
        )
    return table


def _table(title: str, width: int, *columns: tuple[str, str, int]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold cyan", box=None, width=width)
    table.pad_edge = False
    table.header_style = "dim"
    for heading, justify, ratio in columns:
        table.add_column(
            heading,
            justify="right" if justify == "right" else "left",
            ratio=ratio,
            no_wrap=True,
            overflow="ellipsis",
        )
    return table


def _more(number: int) -> Iterator[Text]:
    if number > 0:
        yield Text(f"... and {number:,} more", style="dim")
