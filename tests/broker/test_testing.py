"""The stub bus refuses and delivers as the real one does."""

import pytest

from broker.client import handling
from broker.protocol.errors import ClosedError, LimitExceeded, SchemaError, TopicError
from broker.testing import StubBus


def test_published_events_reach_those_who_ask_for_them() -> None:
    """A subscriber gets the events of its patterns in order, the bus keeps all."""
    bus = StubBus()
    audit = bus.subscriber(["prx.lifecycle.*"])
    with bus.publisher("me") as agent:
        assert agent.publish("prx.lifecycle.tool_call", {"tool": "Bash"}, session_id="s1")
        assert agent.publish("other.topic", b'{"a":1}')
        assert agent.publish_acknowledged("prx.lifecycle.error", {"message": "m"}) == 1
    assert [event.topic for event in audit] == ["prx.lifecycle.tool_call", "prx.lifecycle.error"]
    assert [event.sequence for event in bus.events] == [1, 1, 1]
    assert agent.stats["published"] == 3


def test_a_large_payload_comes_whole() -> None:
    """A payload beyond 64 KiB travels as a claim and loads."""
    bus = StubBus()
    audit = bus.subscriber("prx.*")
    bus.publisher("me").publish("prx.x", {"output": "y" * 100_000})
    (event,) = audit.batch()
    assert event.claim is not None
    assert len(event.payload["output"]) == 100_000
    assert bus.events[0].payload == event.payload


def test_the_last_retained_value_comes_first() -> None:
    """A subscriber that asks for last values gets them."""
    bus = StubBus()
    agent = bus.publisher("me")
    agent.publish("prx.x", {"n": 1}, retain=True)
    agent.publish("prx.x", {"n": 2}, retain=True)
    assert [event.payload for event in bus.subscriber(["prx.x"], last=True)] == [{"n": 2}]
    assert bus.subscriber(["prx.x"]).batch() == []


def test_a_handler_publishes_one_level_deeper_until_eight() -> None:
    """Depth and cause follow the event that is being handled; depth 8 is dropped and counted."""
    bus = StubBus()
    agent = bus.publisher("me")
    agent.publish("prx.x", {})
    for _ in range(10):
        with handling(bus.events[-1]):
            agent.publish("prx.x", {})
    assert [event.depth for event in bus.events] == list(range(8))
    assert bus.events[1].caused_by == bus.events[0].id
    assert agent.stats["over_depth"] == 3


def test_what_the_bus_refuses_the_stub_refuses() -> None:
    """Bad topics, payloads, sessions and depths raise what they raise on the real bus."""
    agent = StubBus().publisher("me")
    with pytest.raises(TopicError):
        agent.publish("prx.*", {})
    with pytest.raises(SchemaError):
        agent.publish("prx.lifecycle.tool_call", {"success": "yes"})
    with pytest.raises(LimitExceeded):
        agent.publish("prx.x", {}, session_id="s" * 257)
    with pytest.raises(LimitExceeded):
        agent.publish("prx.x", {}, depth=-1)
    with pytest.raises(LimitExceeded):
        agent.publish("prx.x", {"output": "x" * 70_000_000})


def test_after_close_nothing_goes() -> None:
    """Closed stubs raise as closed clients do, and receive nothing more."""
    bus = StubBus()
    agent, audit = bus.publisher("me"), bus.subscriber(["*"])
    audit.close()
    assert agent.publish_acknowledged("prx.x", {}) == 0
    agent.close()
    with pytest.raises(ClosedError):
        agent.publish("prx.x", {})
    with pytest.raises(ClosedError), audit:
        audit.batch()
