"""The event patterns of a manifest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects import prx_plugin_rules as rules
from subscribers.dialects.findings import Findings
from subscribers.dialects.prx_plugin_patterns import EventPatterns, read_pattern
from subscribers.dialects.prx_rules import PAGE_EVENTS

KNOWN = ("session_start",)


def read(text: str) -> tuple[EventPatterns | None, Findings]:
    """What a pattern matches, and what is said about it."""
    findings = Findings(rules.CODES)
    return read_pattern(text, (), KNOWN, findings), findings


@pytest.mark.parametrize("text", ["*", "prx.*", "prx.lifecycle.*", " * "])
def test_a_prefix_and_the_star_match_every_lifecycle_event(text: str) -> None:
    """All three mean the same: lifecycle events are what hooks are for."""
    patterns, findings = read(text)
    assert patterns == EventPatterns(True, frozenset())
    assert findings.kept == []


@pytest.mark.parametrize("event", PAGE_EVENTS)
@pytest.mark.parametrize("form", ["{}", "prx.lifecycle.{}"])
def test_an_event_is_named_bare_or_by_its_topic(event: str, form: str) -> None:
    """Both spellings match that event and no other one."""
    patterns, findings = read(form.format(event))
    assert patterns == EventPatterns(False, frozenset({event}))
    assert findings.kept == []
    assert [other for other in PAGE_EVENTS if patterns.match(other)] == [event]


def test_an_event_beyond_the_page_may_be_named_and_is_remarked_upon() -> None:
    """Any event of the catalogue is good here, although PRX would not send it."""
    patterns, findings = read("session-start")
    assert patterns == EventPatterns(False, frozenset({"session_start"}))
    assert [finding.code for finding in findings.kept] == ["extension_event"]


@pytest.mark.parametrize(
    "text,code,hint",
    [
        ("tool_cal", "unknown_event", "did you mean tool_call?"),
        ("prx.lifecycle.tool.call", "unknown_event", "did you mean tool_call?"),
        ("zzzz", "unknown_event", "the events are agent_start"),
        ("", "unknown_event", "the events are"),
        ("tool_*", "bad_pattern", "prx.lifecycle.*"),
        ("**", "bad_pattern", "prx.lifecycle.*"),
        ("prx.lifecycle.tool_*", "bad_pattern", "name each event"),
        ("*.tool_call", "bad_pattern", "name each event"),
        ("prx.metrics.*", "not_lifecycle", "events.subscribe"),
        ("weather.update", "not_lifecycle", "events.subscribe"),
    ],
)
def test_what_matches_nothing_is_said_with_what_to_write(text: str, code: str, hint: str) -> None:
    """Each kind of mistake has its code, and the hint says what was probably meant."""
    patterns, findings = read(text)
    assert patterns is None
    (finding,) = findings.kept
    assert finding.code == code
    assert finding.hint is not None
    assert hint in finding.hint


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_a_finding(text: str) -> None:
    """Nothing is raised, and a pattern that matches nothing is never silent."""
    patterns, findings = read(text)
    assert bool(patterns) or len(findings.kept) == 1
