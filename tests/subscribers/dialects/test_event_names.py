"""Which event a name means: canonical, a topic, or what one of the systems says."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.protocol.catalogue import EVENTS
from broker.protocol.projections import DIALECT_EVENTS
from broker.protocol.topics import is_topic
from subscribers.dialects.event_names import Named, UnknownEvent, named


@pytest.mark.parametrize(
    "text,event",
    [
        ("tool_call", "tool_call"),
        (" Tool-Call ", "tool_call"),
        ("prx.lifecycle.tool_call", "tool_call"),
        ("agent:end", "agent_end"),
        ("tool.execute.before", "tool_call_start"),
        ("session.idle", "turn_complete"),
        ("PreToolUse", "tool_call_start"),
        ("Interrupt", "interrupt"),
    ],
)
def test_an_event_has_many_names(text: str, event: str) -> None:
    """The canonical name, the topic and every system's own name lead to the same topic."""
    assert named(text) == Named(f"prx.lifecycle.{event}")


@pytest.mark.parametrize("dialect", DIALECT_EVENTS)
def test_every_documented_name_is_known(dialect: str) -> None:
    """Each name in each dialect's table is found, with the dialect named and without."""
    for event, native in DIALECT_EVENTS[dialect].items():
        assert named(native, dialect).topic == f"prx.lifecycle.{event}"
        assert named(native).topic == f"prx.lifecycle.{event}"


def test_a_dialect_that_is_named_may_have_events_of_its_own() -> None:
    """Claude Code's Notification is an event only where Claude Code is meant."""
    assert named("Notification", "claude") == Named("prx.lifecycle.notification")
    with pytest.raises(UnknownEvent):
        named("Notification")
    with pytest.raises(UnknownEvent):
        named("Notification", "prx-plugin")


def test_any_topic_can_be_fired_and_a_near_name_is_mentioned() -> None:
    """Topics are free; where a catalogued name comes near, it was perhaps meant."""
    assert named("my.own.topic") == Named("my.own.topic")
    assert named("prx.lifecycle.tool_cal") == Named("prx.lifecycle.tool_cal", "tool_call")
    assert named("tool.execute.befor") == Named("tool.execute.befor", "tool.execute.before")


@pytest.mark.parametrize(
    "text,said",
    [
        ("tool_cal", 'there is no event "tool_cal"; did you mean tool_call?'),
        ("xyzzy", "there are gateway_startup, "),
        ("", 'there is no event ""'),
        ("*", "an event is one name or topic"),
        ("prx.lifecycle.*", "an event is one name or topic"),
        ("a..b", "an event is one name or topic"),
    ],
)
def test_a_name_of_nothing_is_refused_with_what_is_near(text: str, said: str) -> None:
    """The refusal names the nearest event, all of them, or what is wrong with the topic."""
    with pytest.raises(UnknownEvent) as refusal:
        named(text)
    assert said in str(refusal.value)


@given(st.text() | st.sampled_from([*EVENTS]), st.none() | st.sampled_from([*DIALECT_EVENTS]))
@example("PreToolUse", "librefang")  # another dialect's name
def test_any_text_is_a_topic_or_refused(text: str, dialect: str | None) -> None:
    """Whatever is typed, it comes to a topic that can be published, or to a refusal."""
    try:
        assert is_topic(named(text, dialect).topic)
    except UnknownEvent as error:
        assert str(error)
