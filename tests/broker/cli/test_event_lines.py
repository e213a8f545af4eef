"""Events as lines for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.event_lines import EventLines, clock, payload_text
from broker.cli.terminal import width
from broker.protocol.events import Claim, Event, decode_event, encode_event

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


@pytest.mark.parametrize("columns", [70, 80, 120])
def test_a_line_fits_the_terminal(columns: int) -> None:
    """The payload is cut with an ellipsis where the terminal ends."""
    shown = line(columns, event(b'{"output":"' + b"x" * 1000 + b'"}'))
    assert len(shown) == columns
    assert shown.endswith("x…")


def test_a_narrow_terminal_still_shows_some_payload() -> None:
    """Below a least width the line wraps rather than hide the payload."""
    shown = line(10, event(b'{"output":"' + b"x" * 1000 + b'"}'))
    assert shown.endswith('{"output":"xxxxxxxx…')


def test_long_names_are_cut_on_a_terminal_only() -> None:
    """A session of 256 bytes does not push the payload off the screen; a file gets all of it, once."""
    long = event(session_id="s" * 256)
    assert "s" * 24 not in line(100, long)
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
