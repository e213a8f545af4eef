"""An event that is asked about a second time is nothing new to hooks that have no phases."""

from __future__ import annotations

import pytest

from broker.protocol.errors import SchemaError
from broker.protocol.events import Event
from subscribers.hooks.role_phase import TOPICS, is_second_phase


def event(topic: str, payload: bytes) -> Event:
    return Event.of(topic, 0, bytes(16), 1, 1, "s", "agent", None, payload)


def test_the_events_of_a_role_have_phases() -> None:
    """The four events that rolebox has a handler of their own for."""
    names = ("user_prompt", "tool_call_start", "tool_call", "system_transform")
    assert {f"prx.lifecycle.{name}" for name in names} == TOPICS


@pytest.mark.parametrize(
    "topic, payload, is_second",
    [
        ("prx.lifecycle.tool_call", b'{"tool": "t", "phase": "after"}', True),
        ("prx.lifecycle.tool_call", b'{"tool": "t", "phase": "before"}', False),
        ("prx.lifecycle.tool_call", b'{"tool": "t"}', False),
        ("prx.lifecycle.tool_call", b'{"arguments": {"phase": "after"}}', False),
        ("prx.lifecycle.deploy", b'{"phase": "after"}', False),
        ("prx.lifecycle.error", b'{"phase": "after"}', False),
        ("my.topic", b'{"phase": "after"}', False),
        ("my.topic", b"no json", False),
    ],
)
def test_only_the_second_ask_of_an_event_with_phases_is_one(
    topic: str, payload: bytes, is_second: bool
) -> None:
    """The first one counts, and in other events the word is the agent's own."""
    assert is_second_phase(event(topic, payload)) is is_second


def test_what_cannot_be_read_is_said_and_not_guessed() -> None:
    """Whoever handles events has to say of this one that it is unreadable."""
    with pytest.raises(SchemaError):
        is_second_phase(event("prx.lifecycle.tool_call", b'{"phase": "after"'))
