"""The status report as lines for people."""

from __future__ import annotations

from typing import Any

from broker.cli.status_lines import limit_lines, status_lines


def report(**changed: Any) -> dict[str, Any]:
    """A status report as a broker gives it, with some parts ``changed``."""
    return {
        "broker": {
            "pid": 7,
            "epoch": "00",
            "release": "0.1.0",
            "uptime_s": 424.66,
            "draining": False,
            "runtime_dir": "/run/prxbus",
            "memory_bytes": 35_684_352,
            "memory_limit_bytes": 2**32,
            "descriptors": 34,
            "descriptors_limit": 20_000,
            "limits": {"payload": 65_536, "spool_bytes": 7, "of_the_future": 1_234},
        },
        "rates": {"in_per_s": 1_234.5, "bytes_in_per_s": 2048.0, "out_per_s": 0.0, "bytes_out_per_s": 0.0},
        "forwarded": {"frames_in": 188_029, "bytes_in": 2**24, "frames_out": 0, "bytes_out": 0},
        "retained": {"topics": 0, "bytes": 0, "evicted": 0},
        "refused": {},
        "spool": {"files": 0, "bytes": 0, "limit_bytes": 2**29},
        "subscribers": [],
        "publishers": [],
        "lost_publishers": [],
        "peers": [],
        "omitted": {},
        **changed,
    }


def subscriber(**changed: Any) -> dict[str, Any]:
    """A subscriber's row."""
    counters = {"received": 1_000, "missed": 0, "late": 0, "away": 0, "lag_ms": 0.444}
    return {"name": "audit", "pid": 11, "reported_s": 0.5, "refused": {}, "gaps": {}, **counters, **changed}


def text(**changed: Any) -> str:
    """The whole report as one text."""
    return "\n".join(status_lines(report(**changed)))


def test_a_quiet_bus_is_told_in_a_few_lines() -> None:
    """Broker, memory and traffic, and that nobody is there."""
    assert text().splitlines() == [
        "broker      release 0.1.0, pid 7, up 7 min 4 s",
        "directory   /run/prxbus",
        "memory      34 MiB of at most 4.0 GiB; 34 of 20,000 descriptors",
        "in          1,234 frames/s, 2.0 KiB/s; 188,029 frames, 16 MiB since it started",
        "out         0 frames/s, 0 B/s; 0 frames, 0 B since it started",
        "",
        "SUBSCRIBER  PID  RECEIVED  MISSED  LAG  PATTERNS",
        "(none)",
        "",
        "PUBLISHER  PID  PUBLISHED  DROPPED: NO BUS  QUEUE FULL  TOO DEEP",
        "(none)",
    ]


def test_a_subscriber_stands_with_its_patterns() -> None:
    """The row of counters and the registration of the same name and process belong together."""
    peers = [
        {"name": "audit", "role": "subscriber", "pid": 11, "patterns": ["prx.*", "x"], "pattern_count": 22},
        {"name": "audit", "role": "publisher", "pid": 11, "patterns": [], "pattern_count": 0},
    ]
    lines = text(subscribers=[subscriber()], peers=peers)
    assert "audit        11     1,000       0  0.44 ms  prx.* x and 20 more" in lines


def test_what_a_subscriber_missed_is_named_below_it() -> None:
    """The topics with the largest gaps come first, and the rest is counted."""
    gaps = {f"t{n}": n for n in range(1, 8)}
    lines = text(subscribers=[subscriber(missed=28, gaps=gaps, away=2, refused={"size": 3}, runs=12)])
    assert "    missed 7 of t7\n    missed 6 of t6\n" in lines
    assert "    ... and some of 2 further topics" in lines
    assert "t2" not in lines
    assert "    was cut off and came back 2 times" in lines
    assert "    passed over frames that were no events: 3 size" in lines
    assert "    runs 12" in lines


def test_a_subscriber_that_runs_hooks_has_a_line_for_them() -> None:
    """Hooks, how their runs ended, and what is under way; other counters stay apart."""
    ends = {"ok": 1_200, "timeout": 2, "signalled": 1, "dropped": 9}
    counters = {"hooks": 5, "runs": ends, "runs_now": 3, "runs_waiting": 4, "runs_dropped": 9, "ending": 1}
    assert text(subscribers=[subscriber(**counters)]).splitlines()[8:10] == [
        (
            "    5 hooks; runs: 1,200 ok, 0 failed, 2 timed out, 0 not started, 1 signalled, 9 dropped; "
            "3 running, 4 waiting"
        ),
        "    ending 1",
    ]


def test_a_peer_may_report_anything_of_its_hooks() -> None:
    """What is no number is as if it were not there."""
    row = subscriber(hooks="many", runs={"ok": 1, "failed": "x"}, runs_now=None)
    assert "    0 hooks; runs: 1 ok, 0 failed, " in text(subscribers=[row])


def test_publishers_tell_what_they_dropped() -> None:
    """No bus, a full queue and too deep are three different things."""
    row = {"name": "agent", "pid": 9, "published": 5, "dropped_absent": 1, "dropped_full": 2, "over_depth": 3}
    assert "agent        9          5                1           2         3" in text(publishers=[row])


def test_publishers_that_broke_off_are_listed_with_the_doubt() -> None:
    """What a killed publisher sent after its last report is unknown, and that is said."""
    row = {"name": "agent", "pid": 9, "published": 5, "how": "died", "ended_s": 3.0}
    lines = text(lost_publishers=[row])
    assert "died 3.0 s ago" in lines
    assert "What these published after their last report is unknown." in lines


def test_holdings_and_refusals_are_shown_when_there_are_any() -> None:
    """Retained values, large payloads and refusals have a line of their own then."""
    lines = text(
        retained={"topics": 1, "bytes": 512, "evicted": 2},
        spool={"files": 2, "bytes": 131_076, "limit_bytes": 2**29},
        refused={"limit_exceeded": 1},
    )
    assert "retained    1 topic, 512 B, 2 evicted" in lines
    assert "spool       2 large payloads, 128 KiB of at most 512 MiB" in lines
    assert "refused     1 limit_exceeded" in lines


def test_rows_that_did_not_fit_are_counted() -> None:
    """A report that was shortened says so."""
    assert text(subscribers=[subscriber()], omitted={"subscribers": 1_200}).count("... and 1,200 more") == 1


def test_foreign_names_are_made_fit_to_be_shown() -> None:
    """A name with control characters in it, or a long one, does no harm."""
    lines = text(subscribers=[subscriber(name="\x1b[31m" + "x" * 100)])
    assert "\\x1b[31mxxxx" in lines
    assert "\x1b" not in lines
    assert "x" * 33 not in lines


def test_losses_are_red_in_colour() -> None:
    """What stands out is what was lost."""
    row = subscriber(missed=12, gaps={"prx.x": 12})
    lines = "\n".join(status_lines(report(subscribers=[row]), colour=True))
    assert "\x1b[31m12\x1b[0m" in lines
    assert "\x1b[31mmissed 12 of prx.x\x1b[0m" in lines


def test_a_draining_broker_says_so() -> None:
    """A bus that is about to stop is no ordinary one."""
    assert "up 1.0 s, draining" in text(broker={"uptime_s": 1.0, "draining": True})


def test_an_empty_report_is_no_error() -> None:
    """A broker of another release may leave out anything."""
    assert status_lines({})[0] == "broker      release ?, pid ?, up 0.00 ms"


def test_limits_have_their_unit_and_consequence() -> None:
    """What we know of a limit stands beside the broker's value; an unknown one is shown as it is."""
    lines = limit_lines(report())
    assert lines[0].split() == ["LIMIT", "VALUE", "UNIT", "BEYOND", "IT"]
    assert lines[1] == "payload        65,536  bytes  claim check, or refused with oversize='reject'"
    assert lines[2] == "of_the_future   1,234"
    assert len(lines) == 3


def test_a_terminal_gets_tables_that_fit_it() -> None:
    """Patterns are cut first, then names; numbers never, and what is no terminal gets all."""
    name = "a-subscriber-with-a-long-name"
    patterns = ["prx.lifecycle.tool_call_start", "prx.lifecycle.tool_result"]
    peers = [
        {"name": name, "role": role, "pid": 4_194_303, "patterns": patterns, "pattern_count": 2}
        for role in ("subscriber", "decider")
    ]
    row = subscriber(name=name, pid=4_194_303, received=123_456_789)
    decider = {"name": name, "pid": 4_194_303, "failure": "open"}
    publisher = {"name": name, "pid": 4_194_303, "published": 123_456_789}
    lost = [{**publisher, "how": "lost", "ended_s": 5}]
    given = report(
        subscribers=[row], deciders=[decider], publishers=[publisher], lost_publishers=lost, peers=peers
    )
    assert max(map(len, status_lines(given))) > 100
    assert " ".join(patterns)[:40] in "\n".join(status_lines(given))
    lines = status_lines(given, 80)
    tables = lines[lines.index("") + 1 :]
    assert max(map(len, tables)) <= 80
    assert sum("123,456,789" in line for line in tables) == 3
    assert "    for prx.lifecycle.tool_call_start prx.lifecycle.too…" in tables
