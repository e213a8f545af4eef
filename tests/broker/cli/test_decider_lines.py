"""Asks and deciders in the status report."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cli.decider_lines import ask_lines, decider_lines
from broker.cli.status_lines import status_lines
from broker.control.asks import Asks


def asks(*, colour: bool = False, **counts: Any) -> list[str]:
    """The lines of a broker with these counts, as it gives them."""
    given = {"under_way": 0, **Asks().counts, "closed_and_dead": [], **counts}
    return list(ask_lines(given, 12, colour=colour))


def decider(**changed: Any) -> dict[str, Any]:
    """A decider's row."""
    counters = {"asked": 1_200, "answered": 1_198, "failed": 0, "too_late": 0, "cancelled": 0, "waiting": 0}
    about = {"name": "guards", "pid": 11, "priority": 0, "failure": "open", "patterns": ["prx.*"]}
    return {**counters, **about, "reported_s": 0.5, **changed}


def test_a_bus_without_asks_says_nothing_of_them() -> None:
    """Neither a line nor a table."""
    assert asks() == []
    assert list(ask_lines({}, 12, colour=False)) == []
    assert decider_lines([], [], colour=False) == []


def test_asks_are_counted_and_so_is_who_did_not_answer() -> None:
    """Whole asks stand in one line, single deciders in the next; a counter of the future has its name."""
    assert asks(under_way=2, asked=1_200, answered=1_190, cancelled=8) == [
        "asks        2 under way; 1,200 asked, 1,190 answered, 8 cancelled"
    ]
    assert asks(asked=3, answered=3, timeout=2, died=1, late=4, sleepy=1)[1] == (
        "deciders    4 late words, 2 too late, 1 died, 1 sleepy"
    )


def test_who_died_and_fails_closed_stands_out() -> None:
    """All that it decides is denied until it is back: that is red, and the first five are named."""
    (line,) = asks(closed_and_dead=["guards", "b\x1b[2J"])
    assert line == (
        "denied      what these decide, until they are back: guards, b\\x1b[2J (ended, and fail closed)"
    )
    (line,) = asks(closed_and_dead=[f"d{number}" for number in range(7)], colour=True)
    assert "d0, d1, d2, d3, d4 and 2 more" in line
    assert line.startswith("\x1b[31m")


def test_deciders_stand_in_their_order() -> None:
    """The lower priority first, then by name; what they report beside is told below."""
    rows = [decider(name="b", priority=5), decider(name="z", failure="closed"), decider(waiting=3, pid="?")]
    assert decider_lines(rows, ["x.*", "y", "prx.*"], colour=False) == [
        "DECIDER  PID  PRIORITY  FAILS   ASKED  ANSWERED  FAILED  TOO LATE  PATTERNS",
        "guards     ?         0  open    1,200     1,198       0         0  prx.*",
        "    waiting 3",
        "z         11         0  closed  1,200     1,198       0         0  y",
        "b         11         5  open    1,200     1,198       0         0  x.*",
    ]


def test_a_decider_that_runs_hooks_has_a_line_for_them() -> None:
    """As a subscriber has: hooks, how their runs ended, and what is under way."""
    counters = {"hooks": 2, "runs": {"ok": 3, "failed": 1}, "runs_now": 1, "runs_waiting": 0, "remote": 4}
    words = "2 hooks; runs: 3 ok, 1 failed, 0 timed out, 0 not started, 0 dropped; 1 running, 0 waiting"
    lines = decider_lines([decider(**counters)], [""], colour=False)
    assert lines[2:] == [f"    {words}", "    remote 4"]
    assert f"    \x1b[33m{words}\x1b[0m" in decider_lines([decider(**counters)], [""], colour=True)


@pytest.mark.parametrize("counter", ["failed", "too_late"])
def test_what_went_wrong_is_red(counter: str) -> None:
    """Failures and late answers of a decider stand out; a policy that denies is yellow."""
    lines = decider_lines([decider(**{counter: 7, "failure": "closed"})], [""], colour=True)
    assert "\x1b[31m7\x1b[0m" in lines[1]
    assert "\x1b[33mclosed\x1b[0m" in lines[1]
    assert "\x1b[2mwaiting 1\x1b[0m" in decider_lines([decider(waiting=1)], [""], colour=True)[2]


def test_a_decider_may_report_anything() -> None:
    """Another release's counters, or none yet, do no harm."""
    lines = decider_lines([{"asked": "many", "priority": None, "name": "n\n"}], [""], colour=False)
    assert lines[1].split() == ["n\\n", "?", "None", "?", "0", "0", "0", "0"]


def test_the_report_has_them_between_subscribers_and_publishers() -> None:
    """Patterns come from the registration of the same name and process; what is left out is counted."""
    peers = [
        {"name": "guards", "role": "decider", "pid": 11, "patterns": ["prx.*", "x"], "pattern_count": 22}
    ]
    lines = status_lines(
        {"asks": {"under_way": 1}, "deciders": [decider()], "peers": peers, "omitted": {"deciders": 2}}
    )
    text = "\n".join(lines)
    assert "asks        1 under way; 0 asked, 0 answered, 0 cancelled" in lines
    assert text.index("SUBSCRIBER") < text.index("DECIDER ") < text.index("PUBLISHER")
    assert "prx.* x and 20 more\n... and 2 more" in text
