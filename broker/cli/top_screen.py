"""A :class:`.top_view.View` on a terminal, with rich.

Decides which rows fit: those that do not are counted in a last line. Names are foreign text and shown without
their control characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .quantities import count, milliseconds, plural, span
from .terminal import cut_front, printable
from .top_columns import GAP, NAME, Column, fitted
from .top_deciders import DeciderRow
from .top_view import HookRow, SubscriberRow, TopicRow, View

FRAME_LINES: Final = 4
"""Lines of a table beside its rows: a blank one, title, head, and the line that says what is left out."""

MOST_COLUMNS: Final = 120
"""Wider than this, a row is hard to follow with the eye."""

LEAST_ROWS: Final = 1
SPACE: Final = "   "
"""Between the pieces of the first lines."""

SLOW_MS: Final = 1_000.0
"""Lag from which a subscriber stands out."""


def screen(view: View, width: int, height: int) -> RenderableType:
    """``view`` in at most ``height`` lines, as long as that leaves each table a row."""
    width = min(width, MOST_COLUMNS)
    head = _head(view, width)
    tables = 3 + bool(view.deciders)
    wanted = [len(rows) for rows in (view.topics, view.subscribers, view.deciders, view.hooks)]
    topics, subscribers, deciders, hooks = _shares(height - len(head) - tables * FRAME_LINES, wanted)
    return Group(
        *head,
        _topics(view.topics[:topics], width),
        *_more(len(view.topics) - topics),
        _subscribers(view.subscribers[:subscribers], width),
        *_more(len(view.subscribers) - subscribers),
        *([_deciders(view.deciders[:deciders], width)] if view.deciders else ()),
        *_more(len(view.deciders) - deciders),
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


def _head(view: View, width: int) -> list[Text]:
    """The first lines: their pieces go on a further line where they do not fit beside one another."""
    broker = view.broker
    first = [Text("prxbus top", style="bold")]
    if broker:
        state = "draining" if broker.get("draining") else f"up {span(broker.get('uptime_s', 0.0))}"
        first.append(Text(f"broker pid {broker.get('pid', '?')}, {state}"))
        first.append(Text(printable(str(broker.get("runtime_dir", ""))), style="dim"))
    second = [
        Text(f"{count(view.per_second)} events/s"),
        Text(f"{view.total:,} in {span(view.watched_s)}"),
        Text(plural(view.publishers, "publisher")),
    ]
    if view.asks.get("asked"):
        second.append(Text(f"{view.asks['asked']:,} asks, {view.asks.get('under_way', 0):,} under way"))
    dead = view.asks.get("closed_and_dead")
    if dead:
        names = ", ".join(printable(str(name)) for name in dead)
        second.append(Text(f"denied until they are back: {names}", style="bold red"))
    if view.dropped:
        second.append(Text(f"{view.dropped:,} dropped by publishers", style="red"))
    if view.missed:
        second.append(Text(f"this view itself missed {view.missed:,}", style="red"))
    if view.problem is not None:
        second.append(Text(printable(view.problem), style="bold red"))
    return [*_flowing(first, width), *_flowing(second, width)]


def _flowing(pieces: Sequence[Text], width: int) -> Iterator[Text]:
    line = Text()
    for piece in pieces:
        piece.truncate(width, overflow="ellipsis")
        if line and line.cell_len + len(SPACE) + piece.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, SPACE, piece) if line else piece
    yield line


def _topics(rows: Sequence[TopicRow], width: int) -> Table:
    columns = (Column("TOPIC", NAME, front=True), Column("PER S"), Column("TOTAL"))
    cells = [(Text(row.topic), Text(count(row.per_second)), Text(f"{row.total:,}")) for row in rows]
    return _table("topics", width, columns, cells, ["" if row.per_second else "dim" for row in rows])


def _subscribers(rows: Sequence[SubscriberRow], width: int) -> Table:
    columns = (
        Column("NAME", NAME),
        Column("PID", drop=3),
        Column("PER S", drop=2),
        Column("LAG", drop=1),
        Column("MISSED"),
        Column("GAPS", NAME, drop=4, blank=False),
    )
    cells = []
    for row in rows:
        lost = f" (+{row.lost:,})" if row.lost else ""
        gaps = ", ".join(f"{printable(topic)} {number:,}" for topic, number in row.gaps.items())
        cells.append(
            (
                Text(printable(row.name)),
                Text(str(row.pid)),
                Text("-" if row.per_second is None else count(row.per_second)),
                Text(milliseconds(row.lag_ms), style="yellow" if row.lag_ms >= SLOW_MS else ""),
                Text(f"{row.missed:,}{lost}", style="red" if row.missed else ""),
                Text(gaps),
            )
        )
    return _table("subscribers", width, columns, cells)


def _deciders(rows: Sequence[DeciderRow], width: int) -> Table:
    columns = (
        Column("DECIDER", NAME),
        Column("PID", drop=4),
        Column("PRIORITY", drop=5),
        Column("FAILS", NAME, drop=3),
        Column("PER S", drop=2),
        Column("ASKED", drop=1),
        Column("ANSWERED", drop=6),
        Column("FAILED"),
        Column("TOO LATE"),
    )
    cells = [
        (
            Text(printable(row.name)),
            Text(str(row.pid)),
            Text(str(row.priority)),
            Text(printable(row.failure), style="yellow" if row.failure == "closed" else ""),
            Text("-" if row.per_second is None else count(row.per_second)),
            Text(f"{row.asked:,}"),
            Text(f"{row.answered:,}"),
            *(Text(f"{number:,}", style="red" if number else "") for number in (row.failed, row.too_late)),
        )
        for row in rows
    ]
    return _table("deciders", width, columns, cells)


def _hooks(rows: Sequence[HookRow], width: int) -> Table:
    columns = (
        Column("HOOK", NAME, front=True),
        Column("EVENT", NAME, drop=6),
        Column("RUNS", drop=1),
        Column("OK", drop=4),
        Column("FAILED"),
        Column("TIMEOUT"),
        Column("NO START", drop=2),
        Column("P50", drop=3),
        Column("P99", drop=5),
    )
    cells = [
        (
            Text(printable(row.hook)),
            Text(printable(row.event)),
            Text(f"{row.runs:,}"),
            Text(f"{row.ok:,}"),
            *(
                Text(f"{number:,}", style="red" if number else "")
                for number in (row.failed, row.timed_out, row.not_started)
            ),
            *(Text("-" if ms is None else milliseconds(ms)) for ms in (row.p50_ms, row.p99_ms)),
        )
        for row in rows
    ]
    return _table("hooks", width, columns, cells)


def _table(
    title: str,
    width: int,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Text]],
    styles: Sequence[str] = (),
) -> Table:
    widths = fitted(
        columns,
        [[column.heading, *(row[at].plain for row in rows)] for at, column in enumerate(columns)],
        width,
    )
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold cyan", box=None)
    table.pad_edge = False
    table.padding = (0, len(GAP), 0, 0)
    table.header_style = "dim"
    for at, wide in widths.items():
        column = columns[at]
        table.add_column(
            column.heading,
            justify="left" if column.kind == NAME else "right",
            width=wide,
            no_wrap=True,
            overflow="ellipsis",
        )
    for number, row in enumerate(rows):
        cells = (_cell(row[at], columns[at], wide) for at, wide in widths.items())
        table.add_row(*cells, style=styles[number] if styles else "")
    return table


def _cell(text: Text, column: Column, wide: int) -> Text:
    return Text(cut_front(text.plain, wide)) if column.front else text


def _more(number: int) -> Iterator[Text]:
    if number > 0:
        yield Text(f"... and {number:,} more", style="dim")
