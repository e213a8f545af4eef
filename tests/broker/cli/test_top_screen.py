"""A view on a terminal."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from broker.cli.top_screen import screen
from broker.cli.top_view import HookRow, SubscriberRow, TopicRow, View


def view(**changed: Any) -> View:
    """A view of a quiet bus, with some parts ``changed``."""
    parts: Mapping[str, Any] = {
        "watched_s": 10.0,
        "broker": {"pid": 7, "uptime_s": 424.0, "runtime_dir": "/run/prxbus"},
        "problem": None,
        "topics": [],
        "per_second": 0.0,
        "total": 0,
        "subscribers": [],
        "hooks": [],
        "publishers": 1,
        "dropped": 0,
        "missed": 0,
    }
    return View(**{**parts, **changed})


def drawn(shown: View, width: int = 100, height: int = 40) -> str:
    """What a terminal without colours would show."""
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None)
    console.print(screen(shown, width, height))
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def subscriber(**changed: Any) -> SubscriberRow:
    """A subscriber that does well."""
    row = SubscriberRow("audit", 11, 100.0, 0.5, 0, 0, {}, 0.5)
    return row._replace(**changed)


def test_the_head_tells_of_bus_and_traffic() -> None:
    """Which broker, since when, how much, from how many."""
    text = drawn(view(per_second=1234.5, total=12_345))
    assert "prxbus top   broker pid 7, up 7 min 4 s   /run/prxbus" in text
    assert "1,234 events/s, 12,345 in 10.0 s   1 publisher" in text


def test_losses_are_in_the_head() -> None:
    """What publishers dropped, what we missed ourselves, and why there is no answer."""
    text = drawn(view(dropped=3, missed=4, problem="no bus answers"), width=140)
    assert "3 dropped by them" in text
    assert "this view itself missed 4" in text
    assert "no bus answers" in text


def test_rows_show_their_numbers() -> None:
    """Topics, subscribers with gaps, hooks with percentiles."""
    text = drawn(
        view(
            topics=[TopicRow("prx.x", 5.0, 50)],
            subscribers=[
                subscriber(missed=12, lost=2, gaps={"prx.x": 12}),
                subscriber(name="new", per_second=None),
            ],
            hooks=[
                HookRow("h#0", "tool_call", 9, 2, 1, 1.5, 20.0),
                HookRow("i#0", "error", 1, 1, 0, None, None),
            ],
        )
    )
    rows = [line.split() for line in text.splitlines()]
    assert ["prx.x", "5", "50"] in rows
    assert ["audit", "11", "100", "0.50", "ms", "12", "(+2)", "prx.x", "12"] in rows
    assert ["new", "11", "-", "0.50", "ms", "0"] in rows
    assert ["h#0", "tool_call", "9", "2", "1", "1.5", "ms", "20.0", "ms"] in rows
    assert ["i#0", "error", "1", "1", "0", "-", "-"] in rows


@pytest.mark.parametrize("height", [17, 24, 50])
def test_the_screen_fits_the_terminal(height: int) -> None:
    """Rows that do not fit are counted; each table keeps some."""
    many = view(
        topics=[TopicRow(f"t{n}", 1.0, n) for n in range(300)],
        subscribers=[subscriber(pid=n) for n in range(200)],
        hooks=[HookRow(f"h{n}", "e", 1, 0, 0, 1.0, 1.0) for n in range(100)],
    )
    text = drawn(many, height=height)
    assert len(text.splitlines()) <= height
    assert text.count("... and ") == 3
    assert {"t0", "audit", "h0"} <= set(text.split())


def test_a_small_table_leaves_its_room_to_the_others() -> None:
    """Two hooks do not keep a third of the screen empty."""
    text = drawn(view(topics=[TopicRow(f"t{n}", 1.0, n) for n in range(300)]), height=40)
    assert len([line for line in text.splitlines() if line.startswith("t")]) >= 25


def test_foreign_names_do_no_harm() -> None:
    """Control characters are escaped and markup is only text."""
    text = drawn(view(subscribers=[subscriber(name="[red]\x1b[2J")]))
    assert "[red]\\x1b[2J" in text
    assert "\x1b" not in text


def test_a_wide_terminal_is_not_filled() -> None:
    """A row stays short enough to be followed with the eye."""
    text = drawn(view(topics=[TopicRow("prx.x", 5.0, 50)]), width=300)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 120


def test_a_bus_that_drains_says_so() -> None:
    """The state of the broker is in the first line."""
    assert "draining" in drawn(view(broker={"pid": 7, "draining": True}))
