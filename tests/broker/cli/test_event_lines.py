"""Events as lines for people."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.event_lines import EventLines, clock, payload_text
from broker.cli.terminal import width
from broker.protocol.envelope import Claim, encode_event
from broker.protocol.events import Event, decode_event

NOON_NS = 1_764_504_000_123_456_789  # 2025-11-30T12:00:00.123Z
PUBLISHER = bytes(16)


def event(
    payload: bytes | Claim = b'{"tool":"Bash"}',
    *,
    topic: str = "prx.lifecycle.tool_call",
    session_id: str | None = "s1",
    source: str = "agent",
    depth: int = 0,
) -> Event:
    """An event as it comes off the wire."""
    frame = encode_event(
        topic, PUBLISHER, 1, NOON_NS, payload, session_id=session_id, source=source, depth=depth
    )
    return decode_event(frame)


def run_event(topic: str = "prx.hooks.run") -> Event:
    """The report of a hook that failed."""
    report = {"hook": "tool_call#0", "status": "failed", "exit_code": 3, "duration_ms": 12.3}
    return event(
        json.dumps({**report, "command": "hooks/audit.sh", "stderr": "no such file\n"}).encode(), topic=topic
    )


def line(columns: int | None, shown: Event, *, colour: bool = False) -> str:
    """``shown`` as the first line that is formatted."""
    return EventLines(columns, colour=colour, zone=UTC).line(shown)


def test_a_line_has_time_topic_session_source_and_payload() -> None:
    """The parts stand in this order, two spaces apart."""
    assert line(None, event()) == '12:00:00.123  prx.lifecycle.tool_call  s1  agent  {"tool":"Bash"}'


def test_what_is_missing_is_a_dash() -> None:
    """An event without session and source keeps its columns."""
    shown = line(None, event(session_id=None, source=""))
    assert shown == '12:00:00.123  prx.lifecycle.tool_call  -  -  {"tool":"Bash"}'


def test_depth_is_shown_when_there_is_one() -> None:
    """Depth 0 is the rule and not worth a column."""
    assert "  agent  depth 3  {" in line(None, event(depth=3))
    assert "depth" not in line(None, event())


def test_columns_stay_aligned_once_they_have_grown() -> None:
    """A shorter topic, session or source is filled up to what was seen before."""
    lines = EventLines(None, colour=False, zone=UTC)
    first = lines.line(event(session_id="a-long-session"))
    second = lines.line(event(topic="x", session_id="s"))
    assert first.index("{") == second.index("{")


@pytest.mark.parametrize("columns", [50, 70, 80, 120])
def test_a_line_fits_the_terminal(columns: int) -> None:
    """The payload is cut with an ellipsis where the terminal ends."""
    shown = line(columns, event(b'{"output":"' + b"x" * 1000 + b'"}'))
    assert len(shown) == columns
    assert shown.endswith("…")


@pytest.mark.parametrize("columns", [1, 7, 20, 50, 80, 120, 300])
def test_no_line_is_ever_wider_than_the_terminal(columns: int) -> None:
    """One event with long names does not make the rows after it too wide: a column has its share."""
    lines = EventLines(columns, colour=False, zone=UTC)
    long = event(topic="a" * 60 + ".b" * 8, session_id="日本" * 40, source="q" * 120, depth=3)
    shown = [lines.line(each) for each in (long, event(), event(depth=1), run_event())]
    assert max(map(width, shown)) <= columns
    if columns >= 80:
        assert shown[1].count('{"tool"') == 1


def test_a_topic_is_cut_at_its_beginning() -> None:
    """Its end tells it apart."""
    assert "  ….turn_complete  " in line(50, event(topic="prx.lifecycle.turn_complete"))


def test_a_narrow_terminal_gives_up_source_and_milliseconds() -> None:
    """What is left is the time, what happened and as much of the payload as fits."""
    assert line(50, event()) == '12:00:00  …ycle.tool_call  s1  {"tool":"Bash"}'


@pytest.mark.parametrize("topic", ["prx.hooks.run", "prx.hooks.dead_letter"])
def test_the_report_of_a_run_is_told_in_words(topic: str) -> None:
    """On a terminal it has the room of session and source; into a file it has every column."""
    shown = line(110, run_event(topic))
    assert (
        shown == f"12:00:00.123  {topic}  tool_call#0  failed, exit 3, 12.3 ms  hooks/audit.sh  no such file"
    )
    whole = line(None, run_event(topic))
    assert f"  {topic}  s1  agent  tool_call#0  failed, exit 3, 12.3 ms  hooks/audit.sh" in whole


def test_what_only_looks_like_a_report_is_shown_as_it_is() -> None:
    """Anyone may publish there: another payload, no JSON, or a large one is a payload as any."""
    for payload in (b'{"hook":1}', b"no json", b'{"hook":"h"}'):
        shown = line(100, event(payload, topic="prx.hooks.run"))
        assert shown.endswith(payload.decode())
    claim = Claim(70_000, bytes(32), "ref", b'{"hook":"h","status":"ok"')
    assert "[70,000 bytes]" in line(100, event(claim, topic="prx.hooks.run"))


def test_columns_stay_aligned_beside_a_report() -> None:
    """A report of a run on a terminal neither widens the columns of other events nor fills its own."""
    lines = EventLines(100, colour=False, zone=UTC)
    before = lines.line(event())
    lines.line(run_event("prx.hooks.dead_letter"))
    assert lines.line(event()) == before


def test_long_names_are_cut_on_a_terminal_only() -> None:
    """A session of 256 bytes does not push the payload off the screen; a file gets all of it, once."""
    long = event(session_id="s" * 256)
    assert "s" * 13 not in line(100, long)
    lines = EventLines(None, colour=False, zone=UTC)
    assert "s" * 256 in lines.line(long)
    assert len(lines.line(event())) < 120


@given(st.text(max_size=40), st.text(min_size=1, max_size=30), st.binary(max_size=60), st.integers(20, 200))
def test_no_control_character_reaches_the_terminal(
    session: str, source: str, payload: bytes, columns: int
) -> None:
    """Whatever session, source and payload hold, the line is printable and of one line."""
    shown = EventLines(columns, colour=False, zone=UTC)
    claim = Claim(70_000, bytes(32), "ref", payload[:256])
    for content in (payload, claim):
        assert shown.line(event(content, session_id=session, source=source)).isprintable()


def test_a_payload_over_several_lines_becomes_one() -> None:
    """Line ends and indents between tokens are only layout."""
    assert payload_text(event(b'{\n  "a": 1,\r\n  "b": "x y"\n}'), None) == '{ "a": 1, "b": "x y" }'


def test_a_claimed_payload_shows_its_size_and_beginning() -> None:
    """It is described from its head, never loaded."""
    claim = Claim(70_012, bytes(32), "ref", b'{"output":"' + b"a" * 245)
    assert payload_text(event(claim), 30) == '[70,012 bytes] {"output":"aaa…'
    assert payload_text(event(claim), None).endswith("aaa…")


def test_a_character_cut_in_the_middle_is_left_out() -> None:
    """A head that ends inside a character shows no replacement mark for it."""
    claim = Claim(70_012, bytes(32), "ref", '{"é":"é'.encode()[:-1])
    assert payload_text(event(claim), None) == '[70,012 bytes] {"é":"…'


def test_wide_characters_count_twice() -> None:
    """A payload in Japanese fits by columns."""
    shown = payload_text(event('{"a":"日本語日本語"}'.encode()), 12)
    assert width(shown) <= 12
    assert shown == '{"a":"日本…'


@pytest.mark.parametrize(
    "topic,style", [("prx.lifecycle.error", "31;1"), ("prx.lifecycle.tool_call", "36;1")]
)
def test_colours_mark_the_parts_and_what_went_wrong(topic: str, style: str) -> None:
    """A topic that tells of an error is red; without the control sequences it is the plain line."""
    shown = line(None, event(topic=topic), colour=True)
    assert f"\x1b[{style}m{topic}\x1b[0m" in shown
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == line(None, event(topic=topic))


def test_the_clock_is_that_of_the_zone() -> None:
    """A time is shown in the zone asked for, with milliseconds."""
    moment = datetime(2025, 11, 30, 12, 0, 0, 999_999, UTC)
    assert clock(moment, timezone(timedelta(hours=5, minutes=30))) == "17:30:00.999"
