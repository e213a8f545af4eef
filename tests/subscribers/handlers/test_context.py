"""What a handler can say, and that it can say nothing else."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from broker.logs import configure
from broker.protocol.decisions import NOTHING, Answer
from broker.protocol.events import Event
from subscribers.handlers import Context, HandlerError, HandlerEvent, decide
from subscribers.handlers.context import answer_in
from subscribers.handlers.registration import Registration, collected

EVENT = Event.of("prx.lifecycle.tool_call", 2, bytes(16), 7, 0, "s1", "agent", "cause", b'{"tool": "Bash"}')


def registration() -> Registration:
    """That of a guard."""
    with collected() as found:
        decide("x", priority=5)(lambda event, ctx: None)
    return found[0]


class Bus:
    """Notes what is published."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def publish(self, topic: str, payload: Mapping[str, Any], /, *, session_id: str | None) -> bool:
        """Take it."""
        self.said.append((topic, payload, session_id))
        return True


def context(bus: Bus | None = None) -> Context:
    """That of one call."""
    return Context(registration(), "guards.py:guard", 12.5, (bus or Bus()).publish, "s1")


@pytest.mark.parametrize(
    "say,expected",
    [
        (lambda c: c.allow(), {"verdict": "allow", "reason": None}),
        (lambda c: c.allow("fine"), {"verdict": "allow", "reason": "fine"}),
        (lambda c: c.deny("no"), {"verdict": "deny", "reason": "no"}),
        (lambda c: c.ask("sure?"), {"verdict": "ask", "reason": "sure?"}),
        (lambda c: c.context("text"), {"verdict": "none", "contexts": ("text",)}),
        (lambda c: c.context("a", context=["b", "c"]), {"contexts": ("a", "b", "c")}),
        (lambda c: c.rewrite({"a": 1}), {"verdict": "none", "updated_input": {"a": 1}}),
        (lambda c: c.replace_output(None), {"verdict": "none", "output": None}),
        (lambda c: c.stop("enough"), {"stop": True, "stop_reason": "enough"}),
        (lambda c: c.message("hi"), {"system_message": "hi"}),
        (
            lambda c: c.deny("no", context="t", updated_input={}, output=1, stop="s", message="m"),
            {"verdict": "deny", "contexts": ("t",), "updated_input": {}, "output": 1, "stop_reason": "s"},
        ),
    ],
)
def test_each_word_is_an_answer(say: Any, expected: dict[str, Any]) -> None:
    """It has what was said, the handler's name and priority, and nothing else."""
    answer = say(context())
    assert {name: getattr(answer, name) for name in expected} == expected
    assert (answer.handler, answer.priority) == ("guards.py:guard", 5)
    if "output" not in expected:
        assert answer.output is NOTHING


@pytest.mark.parametrize(
    "say,says",
    [
        (lambda c: c.deny(3), "the reason of an answer is a text, not 3"),
        (lambda c: c.deny("no", reasons="x"), "an answer has no 'reasons'; it may have context, message"),
        (lambda c: c.rewrite("ls"), "a rewritten input is a dict, not 'ls'"),
        (lambda c: c.allow(context=3), "a text or a list of them, not 3"),
        (lambda c: c.allow(context=[3]), "the context of an answer is a text, not 3"),
        (lambda c: c.message(None), None),
        (lambda c: c.stop(1), "the stop of an answer is a text, not 1"),
    ],
)
def test_what_is_no_answer_is_refused(say: Any, says: str | None) -> None:
    """The error names the part and what it has to be; a message of None is none."""
    if says is None:
        assert say(context()).system_message is None
        return
    with pytest.raises(HandlerError) as refusal:
        say(context())
    assert says in str(refusal.value)


def test_none_and_answers_may_be_returned_and_nothing_else() -> None:
    """A bool or a dict is an error, so that nobody takes it for a permission."""
    answer = Answer("x", "deny")
    assert answer_in(None, registration()) is None
    assert answer_in(answer, registration()) is answer
    wrongs: tuple[object, ...] = (True, False, {}, "deny", 0)
    for wrong in wrongs:
        with pytest.raises(HandlerError, match="it may return None, or an answer"):
            answer_in(wrong, registration())


def test_what_is_published_belongs_to_the_session() -> None:
    """The event's own, unless another is named."""
    bus = Bus()
    assert context(bus).publish("a.b", {"n": 1})
    assert context(bus).publish("a.b", {}, session_id="other")
    assert bus.said == [("a.b", {"n": 1}, "s1"), ("a.b", {}, "other")]


def test_the_log_has_the_handlers_name() -> None:
    """Each record says which handler wrote it."""
    stream = io.StringIO()
    configure("info", json=True, stream=stream)
    try:
        given = context()
        given.log.info("ran", tool="Bash")
        assert given.log is given.log
    finally:
        configure()
    record = orjson.loads(stream.getvalue())
    assert (record["handler"], record["event"], record["tool"]) == ("guards.py:guard", "ran", "Bash")


def test_an_event_has_what_its_publisher_said() -> None:
    """Every field is there, and the payload is one dict of the handler's own."""
    event = HandlerEvent(EVENT)
    assert (event.topic, event.name, event.session_id) == ("prx.lifecycle.tool_call", "tool_call", "s1")
    assert (event.id, event.depth, event.source, event.caused_by) == (EVENT.id, 2, "agent", "cause")
    assert event.time == EVENT.time
    event.payload["tool"] = "changed"
    assert event.payload == {"tool": "changed"}
    assert HandlerEvent(EVENT).payload == {"tool": "Bash"}
    assert HandlerEvent(replace(EVENT, topic="my.topic")).name == "my.topic"
    assert EVENT.id in repr(event)
