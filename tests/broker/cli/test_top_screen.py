"""A view on a terminal."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from broker.cli.top_deciders import DeciderRow
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
    assert "1,234 events/s   12,345 in 10.0 s   1 publisher" in text


def test_losses_are_in_the_head() -> None:
    """What publishers dropped, what we missed ourselves, and why there is no answer."""
    text = drawn(view(dropped=3, missed=4, problem="no bus answers"), width=140)
    assert "3 dropped by publishers" in text
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
                HookRow("h#0", "tool_call", 9, 3, 2, 1, 3, 1.5, 20.0),
                HookRow("i#0", "error", 1, 0, 1, 0, 0, None, None),
            ],
        )
    )
    rows = [line.split() for line in text.splitlines()]
    assert ["prx.x", "5", "50"] in rows
    assert ["audit", "11", "100", "0.50", "ms", "12", "(+2)", "prx.x", "12"] in rows
    assert ["new", "11", "-", "0.50", "ms", "0"] in rows
    assert ["h#0", "tool_call", "9", "3", "2", "1", "3", "1.5", "ms", "20.0", "ms"] in rows
    assert ["i#0", "error", "1", "0", "1", "0", "0", "-", "-"] in rows


@pytest.mark.parametrize("height", [17, 24, 50])
def test_the_screen_fits_the_terminal(height: int) -> None:
    """Rows that do not fit are counted; each table keeps some."""
    many = view(
        topics=[TopicRow(f"t{n}", 1.0, n) for n in range(300)],
        subscribers=[subscriber(pid=n) for n in range(200)],
        hooks=[HookRow(f"h{n}", "e", 1, 1, 0, 0, 0, 1.0, 1.0) for n in range(100)],
    )
    text = drawn(many, height=height)
    assert len(text.splitlines()) <= height
    assert text.count("... and ") == 3
    assert {"t0", "audit", "h0"} <= set(text.split())


@pytest.mark.parametrize("width", [30, 50, 80, 120])
def test_no_number_is_cut_and_no_line_too_wide(width: int) -> None:
    """Names are shortened and columns left out; a number is whole or not there."""
    shown = view(
        total=123_456_789,
        dropped=1_234_567,
        topics=[TopicRow("prx.lifecycle." + "x" * 80, 123_456.0, 123_456_789)],
        subscribers=[subscriber(name="n" * 60, missed=1_234_567, lost=7_654, gaps={"prx.x": 1_234_567})],
        hooks=[
            HookRow("tool_call#" + "1" * 40, "tool_call", 9_999, 1_111, 2_222, 3_333, 4_444, 123.0, 456.0)
        ],
    )
    text = drawn(shown, width=width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    for line in lines:
        for word in line.split():
            if word.endswith("…"):
                assert not word.replace(",", "")[:-1].isdigit(), line
    assert "1,234,567 (+7,654)" in text
    assert "123,456,789" in text
    assert "3,333" in text


def test_gaps_have_a_column_only_when_there_are_any() -> None:
    """A column that is blank everywhere is left out."""
    assert "GAPS" not in drawn(view(subscribers=[subscriber()]))
    assert "GAPS" in drawn(view(subscribers=[subscriber(), subscriber(missed=1, gaps={"a": 1})]))


def test_a_hook_keeps_the_end_of_its_name() -> None:
    """The number behind its event tells it apart."""
    row = HookRow("a_very_long_event_name_of_somebody#12", "e", 1, 1, 0, 0, 0, None, None)
    assert "#12 " in drawn(view(hooks=[row]), width=50)


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


def decider(**changed: Any) -> DeciderRow:
    """A decider that does well."""
    return DeciderRow("guards", 11, 10, "open", 100.0, 1_200, 1_198, 0, 0, 0.5)._replace(**changed)


def test_deciders_have_a_table_where_there_are_any() -> None:
    """Without one, nothing is said of asks; with one, its policy, rate and counters are shown."""
    assert "deciders" not in drawn(view())
    text = drawn(view(deciders=[decider(), decider(name="b\x1b[2J", per_second=None, failed=7)]))
    assert "DECIDER" in text
    assert "guards" in text
    assert "1,200" in text
    assert "b\\x1b[2J" in text
    assert "deciders" in text


def test_asks_are_in_the_head() -> None:
    """How many, how many now, and who died and fails closed: what it decides is denied meanwhile."""
    asks = {"asked": 1_200, "under_way": 3, "closed_and_dead": ["guards", "b\n"]}
    text = drawn(view(asks=asks), width=140)
    assert "1,200 asks, 3 under way" in text
    assert "denied until they are back: guards, b\\n" in text


def test_deciders_share_the_room() -> None:
    """Those that do not fit are counted in a line."""
    text = drawn(view(deciders=[decider(name=f"d{number}") for number in range(50)]), height=30)
    assert len(text.splitlines()) <= 30
    assert " more" in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_deciders_fit_a_narrow_terminal(width: int) -> None:
    """Columns give way, and what went wrong is the last to go."""
    text = drawn(view(deciders=[decider(failed=7, name="a long name of a decider" * 4)]), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "FAILED" in text
