"""An event as the hooks of a role see it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from broker.protocol.events import Event
from subscribers.hooks.role_chain import NO_SUBJECT, Happening
from subscribers.runner.roles_view import see


def event(payload: dict[str, Any], session: str | None = "s") -> Event:
    return Event.of("x", 0, bytes(16), 1, 1, session, "agent", None, orjson.dumps(payload))


@pytest.mark.parametrize(
    "name, payload, happening, handler, given",
    [
        (
            "tool_call_start",
            {"tool": "edit", "arguments": {"a": 1}, "phase": "before"},
            Happening("tool.execute.before", "edit"),
            "onToolBefore",
            {"tool": "edit", "args": {"a": 1}},
        ),
        (
            "tool_call",
            {"tool_name": "edit", "tool_input": {"a": 1}, "output": {"x": []}},
            Happening("tool.execute.after", "edit"),
            "onToolAfter",
            {"tool": "edit", "args": {"a": 1}, "output": {"x": []}},
        ),
        ("user_prompt", {"prompt": "hi"}, Happening("chat.message"), "onChatMessage", {"text": "hi"}),
        (
            "system_transform",
            {"system": ["a"]},
            Happening("system.transform"),
            "onSystemTransform",
            {"system": ["a"]},
        ),
        (
            "turn_complete",
            {"x": 1, "phase": "after"},
            Happening("event", None, "session.idle"),
            "onEvent",
            {"type": "session.idle", "properties": {"x": 1, "phase": "after"}},
        ),
        (
            "deploy",
            {"type": "my.deploy", "properties": {"y": 2}},
            Happening("event", None, "my.deploy"),
            "onEvent",
            {"type": "my.deploy", "properties": {"y": 2}},
        ),
    ],
)
def test_handlers_get_exactly_the_documented_inputs(
    name: str, payload: dict[str, Any], happening: Happening, handler: str, given: dict[str, Any]
) -> None:
    """By the page's table, whatever the agent calls the fields."""
    seen = see(name, event(payload))
    assert (seen.happening, seen.handler) == (happening, handler)
    assert orjson.loads(seen.input(seen.subject.value)) == given
    assert seen.phase == (payload.get("phase") if happening.event != "event" else None)


@pytest.mark.parametrize(
    "name, payload, value, asked, key",
    [
        ("tool_call_start", {"arguments": {"a": 1}}, {"a": 1}, {"a": 1}, None),
        ("tool_call_start", {"args": "text"}, "text", {"args": "text"}, "args"),
        ("tool_call_start", {"tool": "t"}, None, {"tool": "t"}, "arguments"),
        ("system_transform", {"system": ["a"]}, ["a"], {"system": ["a"]}, "system"),
        ("system_transform", {"session": "x"}, [], {"session": "x"}, "system"),
    ],
)
def test_what_may_be_edited_is_what_the_asker_merges(
    name: str, payload: dict[str, Any], value: Any, asked: dict[str, Any], key: str | None
) -> None:
    """The arguments where they are an object, else what stands under their name; the parts of a prompt."""
    subject = see(name, event(payload)).subject
    assert (subject.value, subject.input, subject.key) == (value, asked, key)
    assert see("tool_call", event(payload)).subject == NO_SUBJECT


def test_session_agent_and_role_are_taken_from_wherever_they_stand() -> None:
    """The envelope's session first; a role only from the events that may name one."""
    seen = see("session_start", event({"session": "x", "agent": "bob", "role": "coder"}))
    assert (seen.session, seen.agent, seen.role) == ("s", "bob", "coder")
    seen = see("agent_start", event({"session_id": "x", "agent_name": "bob", "role": 3}, None))
    assert (seen.session, seen.agent, seen.role) == ("x", "bob", None)
    assert see("tool_call", event({"role": "coder"}, None))[6:] == (None, None, None)
