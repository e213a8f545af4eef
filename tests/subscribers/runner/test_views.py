"""Which events a dialect sees, and that complete payloads pass byte for byte."""

import pytest

from broker.protocol.envelope import encode_event
from broker.protocol.errors import SchemaError
from broker.protocol.events import decode_event
from subscribers.runner.views import lifecycle_event, view

PUBLISHER = bytes(range(16))


@pytest.mark.parametrize(
    "topic, name",
    [
        ("prx.lifecycle.tool_call", "tool_call"),
        ("prx.lifecycle.my_event", "my_event"),
        ("prx.lifecycle.tool.call", None),
        ("prx.hooks.run", None),
        ("prx.lifecyclex.tool_call", None),
        ("tool_call", None),
    ],
)
def test_only_lifecycle_topics_are_events_of_a_dialect(topic: str, name: str | None) -> None:
    """Hooks see lifecycle events by their bare name and nothing else: never reports of themselves."""
    assert lifecycle_event(topic) == name


def test_a_complete_payload_passes_byte_for_byte() -> None:
    """Bytes that hold every documented field are not written anew, whatever their spacing."""
    body = b'{ "tool":"Bash" , "success":true,"output":"x", "more":1}'
    frame = encode_event("prx.lifecycle.tool_call", PUBLISHER, 1, 5, body, session_id="s", depth=2)
    seen = view("prx", "tool_call", decode_event(frame))
    assert (seen.payload_bytes, seen.session_id, seen.depth, seen.time_ns) == (body, "s", 2, 5)
    assert seen.id.endswith(":prx.lifecycle.tool_call:1")


def test_a_payload_of_many_lines_becomes_one() -> None:
    """A hook that reads one line gets the whole document."""
    body = b'{\n "tool":"Bash", "success":true,"output":"x"\n}'
    seen = view(
        "prx", "tool_call", decode_event(encode_event("prx.lifecycle.tool_call", PUBLISHER, 1, 5, body))
    )
    assert seen.payload_bytes == b'{"tool":"Bash","success":true,"output":"x"}'


def test_documented_fields_are_always_present() -> None:
    """A field that the publisher left out is null; the session is known from the envelope."""
    seen = view(
        "prx",
        "agent_start",
        decode_event(encode_event("prx.lifecycle.agent_start", PUBLISHER, 1, 5, b"{}", session_id="s1")),
    )
    assert seen.payload_bytes == b'{"agent":null,"session":"s1"}'


def test_an_empty_object_is_empty() -> None:
    """The page says that turn_complete has an empty object, and so it is."""
    frame = encode_event("prx.lifecycle.turn_complete", PUBLISHER, 1, 5, b'{"mode":"chat"}')
    assert view("prx", "turn_complete", decode_event(frame)).payload_bytes == b"{}"


def test_a_payload_that_is_no_object_has_no_view() -> None:
    """What cannot be decoded is an error of the bus, for the dispatcher to report."""
    with pytest.raises(SchemaError):
        view(
            "prx", "tool_call", decode_event(encode_event("prx.lifecycle.tool_call", PUBLISHER, 1, 5, b"[]"))
        )
