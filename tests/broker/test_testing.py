"""The stub bus refuses and delivers as the real one does."""

import inspect
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from broker.client import Publisher, aio, handling
from broker.protocol.decisions import Answer
from broker.protocol.errors import ClaimExpired, ClosedError, LimitExceeded, SchemaError, TopicError
from broker.protocol.events import Event
from broker.protocol.limits import ASK_BYTES
from broker.testing import StubBus, StubPublisher

START = "prx.lifecycle.tool_call_start"
RESULT = "prx.lifecycle.tool_result"
BASH = {"tool": "Bash", "arguments": {"command": "rm -rf /"}}


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


# -- asking -------------------------------------------------------------------------------------------


def raising(error: Exception) -> Callable[[Event], None]:
    """A decider's function that ends with ``error``."""

    def judge(event: Event) -> None:
        raise error

    return judge


@pytest.mark.parametrize("twin", [Publisher.ask, aio.Publisher.ask])
def test_the_stub_is_asked_as_the_real_ones_are(twin: Callable[..., Any]) -> None:
    """Names, order, kinds, defaults and types of the arguments, and what comes back."""
    assert inspect.signature(StubPublisher.ask) == inspect.signature(twin)


def test_a_stub_decider_is_asked_and_the_copy_is_published() -> None:
    """The decision has reason and handler, and the event of the same id is on the bus."""
    bus = StubBus()
    audit = bus.subscriber(["prx.*"])
    guard = bus.decide(["prx.lifecycle.*"], lambda event: Answer("guard", "deny", "not here"), name="g")
    decision = bus.publisher("me").ask(START, BASH, session_id="s1")
    assert (decision.denied, decision.reason, decision.by) == (True, "not here", "guard")
    assert decision.input == BASH["arguments"]
    assert [(heard.decider, heard.silence) for heard in decision.heard] == [("g", None)]
    (seen,) = audit
    assert seen.id == guard.asked[0].id == bus.events[0].id
    assert (seen.payload, seen.session_id, guard.asked[0].source) == (BASH, "s1", "me")


def test_stub_deciders_have_their_order_and_are_merged() -> None:
    """By priority, then by name; of a key that is changed twice the later holds; who closed is not asked."""
    bus = StubBus()
    one, two = {"command": "ls"}, {"command": "pwd"}
    bus.decide("prx.*", lambda event: [Answer("b", updated_input=two)], name="b", priority=1)
    bus.decide(START, lambda event: Answer("a", "allow", updated_input=one, contexts=("c",)), name="a")
    bus.decide("other.*", raising(ValueError("not asked")))
    bus.decide("*", raising(ValueError("closed"))).close()
    bus.decide("*", lambda event: None, name="silent", priority=-1)
    decision = bus.publisher("me").ask(START, BASH)
    assert [heard.decider for heard in decision.heard] == ["silent", "a", "b"]
    assert (decision.verdict, decision.updated_input) == ("allow", two)
    assert [tuple(conflict) for conflict in decision.conflicts] == [("command", ("a", "b"))]
    assert not decision.partial


@pytest.mark.parametrize(
    "function,silence",
    [
        (raising(TimeoutError()), "timeout"),
        (raising(ValueError("x")), "failed"),
        (lambda event: [Answer("", "deny")], "failed"),
        (lambda event: [Answer("h", output=object())], "failed"),
    ],
)
def test_a_stub_decider_may_be_late_or_fail(function: Any, silence: str) -> None:
    """Its failure policy decides then, as on the real bus; what cannot travel is a failure."""
    bus = StubBus()
    bus.decide("a.*", function)
    assert bus.publisher("me").ask("a.b", {}).missing[0].silence == silence
    bus.decide("a.*", function, failure="closed")
    assert bus.publisher("me").ask("a.b", {}).denied


def test_nobody_to_ask_is_no_opinion() -> None:
    """Without a decider the event is published all the same."""
    bus = StubBus()
    assert bus.publisher("me").ask("a.b", b'{"n": 1}').verdict == "none"
    assert bus.events[0].payload == {"n": 1}


def test_what_constraints_forbid_is_not_asked() -> None:
    """Their refusal is final; each rewrite is judged by the agent's own validator."""
    bus = StubBus()
    guard = bus.decide(START, lambda event: Answer("g", "allow", updated_input={"command": 1}))
    agent = bus.publisher("me")
    forbidden = agent.ask(START, BASH, constraints=lambda given: f"no {given['command']}")
    assert (forbidden.reason, forbidden.by, guard.asked) == ("no rm -rf /", "constraints", [])
    assert len(bus.events) == 1
    checked = agent.ask(START, BASH, constraints=lambda given: None, revalidate=lambda given: "no text")
    assert (checked.updated_input, [tuple(each) for each in checked.refused]) == (None, [("g", "no text")])


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_tool_s_result_is_published_without_its_text(size: int) -> None:
    """Deciders read it, subscribers find size and digest, and nothing of it is kept."""
    bus = StubBus()
    redact = bus.decide(RESULT, lambda event: Answer("r", output=event.payload["output"][:6]))
    output = "secret" + "x" * size
    decision = bus.publisher("me").ask(RESULT, {"tool": "Bash", "output": output})
    assert (decision.output, decision.output_by) == ("secret", "r")
    assert bus.events[0].payload == {
        "tool": "Bash",
        "output_bytes": len(output),
        "output_sha256": sha256(output.encode()).hexdigest(),
    }
    if redact.asked[0].claim is not None:
        with pytest.raises(ClaimExpired):
            redact.asked[0].payload_bytes  # noqa: B018 - loads


def test_a_large_payload_is_asked_by_claim() -> None:
    """It is whole for deciders and for subscribers."""
    bus = StubBus()
    guard = bus.decide("a.b", lambda event: Answer("g", "allow", str(len(event.payload["text"]))))
    assert bus.publisher("me").ask("a.b", {"text": "y" * 100_000}).reason == "100000"
    assert guard.asked[0].claim is not None
    assert bus.events[0].payload == guard.asked[0].payload


def test_too_deep_is_no_opinion() -> None:
    """At depth 8 nobody is asked and nothing is published; a handler asks one level deeper."""
    bus = StubBus()
    agent = bus.publisher("me")
    guard = bus.decide("a.*", lambda event: Answer("g", "deny"))
    assert not agent.ask("a.b", {}, depth=8).denied
    assert (bus.events, agent.stats["over_depth"]) == ([], 1)
    agent.publish("a.b", {}, depth=3)
    with handling(bus.events[0]):
        assert agent.ask("a.b", {}).denied
    assert (guard.asked[0].depth, guard.asked[0].caused_by) == (4, bus.events[0].id)
    assert guard.asked[0].sequence == 2


def test_what_the_bus_refuses_to_ask_the_stub_refuses() -> None:
    """Bad topics, payloads, sessions, times and deciders raise what they raise on the real bus."""
    bus = StubBus()
    agent = bus.publisher("me")
    with pytest.raises(TopicError):
        agent.ask("a.*", {})
    with pytest.raises(SchemaError):
        agent.ask(START, {"tool": 1})
    for wrong in ({"session_id": "s" * 257}, {"timeout": 0}, {"timeout": 3601}, {"depth": -1}):
        with pytest.raises(LimitExceeded):
            agent.ask("a.b", {}, **wrong)
    with pytest.raises(LimitExceeded):
        agent.ask("a.b", {"text": "x" * ASK_BYTES})
    assert bus.events == []
    agent.close()
    with pytest.raises(ClosedError):
        agent.ask("a.b", {})
    for wrong, error in (
        ({"patterns": "a.*b"}, TopicError),
        ({"name": ""}, LimitExceeded),
        ({"priority": 2_000_000}, LimitExceeded),
        ({"failure": "ajar"}, ValueError),
    ):
        with pytest.raises(error):
            bus.decide(**{"patterns": "a", "function": lambda event: None, **wrong})  # type: ignore[arg-type]
