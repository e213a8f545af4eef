"""The laws by which answers become one decision, each as a property."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.decisions import (
    CONSTRAINTS,
    NOTHING,
    SILENCES,
    VERDICTS,
    Answer,
    Conflict,
    Decision,
    Heard,
    Refusal,
    Said,
    answer_of,
    input_of,
    merge,
)
from broker.protocol.errors import DecodeError
from broker.protocol.limits import PRIORITY

values = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3) | st.lists(st.integers(0, 2))
inputs = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)
texts = st.none() | st.text(max_size=5)
answers = st.builds(
    Answer,
    handler=st.sampled_from(["h1", "h2", "h3"]),
    verdict=st.sampled_from(VERDICTS),
    reason=texts,
    contexts=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    updated_input=st.none() | inputs,
    output=st.just(NOTHING) | values,
    stop=st.booleans(),
    stop_reason=texts,
    system_message=texts,
    priority=st.integers(-2, 2),
)
heard = st.builds(
    Heard,
    decider=st.sampled_from(["d1", "d2", "d3"]),
    failure=st.sampled_from(["open", "closed"]),
    silence=st.none() | st.sampled_from(SILENCES),
    elapsed_s=st.just(0.1),
    answers=st.lists(answers, max_size=3).map(tuple),
)
rounds = st.lists(heard, max_size=4)


def spoken(everyone: list[Heard]) -> list[Answer]:
    """All answers that were heard, by priority, then as they stand."""
    return sorted((a for h in everyone if h.silence is None for a in h.answers), key=lambda a: a.priority)


def one(*given_answers: Answer, failure: Any = "open") -> list[Heard]:
    """One decider that gave these answers."""
    return [Heard("d", failure, None, 0.0, given_answers)]


@given(answers)
def test_an_answer_survives_the_wire(answer: Answer) -> None:
    """What a handler answers arrives as it was said."""
    assert answer_of(msgpack.unpackb(msgpack.packb(answer.fields()))) == answer


@given(st.recursive(values, lambda inner: st.lists(inner, max_size=12), max_leaves=30))
def test_anything_is_an_answer_or_a_decode_error(fields: object) -> None:
    """No answer, however it is made, raises anything but a DecodeError."""
    try:
        found = answer_of(fields)
    except DecodeError as error:
        assert error.reason == "answer"
    else:
        assert answer_of(found.fields()) == found


GOOD = Answer("h").fields()


@pytest.mark.parametrize(
    "index, value, words",
    [
        (0, "", "handler"),
        (0, 5, "handler"),
        (0, "x" * 513, "handler"),
        (1, "maybe", "verdict of an answer is 'maybe'"),
        (1, ["deny"], "verdict"),
        (2, 1, "reason"),
        (3, ["ok", 1], "contexts"),
        (3, "text", "contexts"),
        (4, [1], "updated input"),
        (5, None, "output"),
        (5, [1, 2], "output"),
        (6, 1, "stop"),
        (6, 0, "stop"),
        (7, b"x", "stop reason"),
        (8, {}, "system message"),
        (9, "0", "priority"),
        (9, False, "priority"),
        (9, PRIORITY + 1, "priority"),
    ],
)
def test_each_field_of_an_answer_is_checked(index: int, value: object, words: str) -> None:
    """A field of the wrong type is refused by its name."""
    fields = [*GOOD]
    fields[index] = value
    with pytest.raises(DecodeError, match=words):
        answer_of(fields)


def test_an_answer_has_ten_fields() -> None:
    """A list of another length is no answer."""
    with pytest.raises(DecodeError, match="an array of 10"):
        answer_of(GOOD[:9])


@given(rounds, inputs)
def test_the_strictest_verdict_wins_in_any_order(everyone: list[Heard], original: Mapping[str, Any]) -> None:
    """Deny beats ask beats allow beats none, whatever the order of the deciders."""
    strictest = max((a.verdict for a in spoken(everyone)), key=VERDICTS.index, default="none")
    if any(h.silence is not None and h.failure == "closed" for h in everyone):
        strictest = "deny"
    assert merge(everyone, original).verdict == strictest
    assert merge(everyone[::-1], original).verdict == strictest


@given(rounds, heard, inputs)
def test_one_more_decider_only_tightens(
    everyone: list[Heard], more: Heard, original: Mapping[str, Any]
) -> None:
    """No answer makes a decision milder."""
    before, after = merge(everyone, original), merge([*everyone, more], original)
    assert VERDICTS.index(after.verdict) >= VERDICTS.index(before.verdict)
    assert after.stop >= before.stop


@given(rounds, inputs)
def test_the_reason_is_that_of_the_first_who_said_it(
    everyone: list[Heard], original: Mapping[str, Any]
) -> None:
    """Reason and handler belong to the first answer, in declared order, with the decision's verdict."""
    decision = merge(everyone, original)
    if decision.verdict == "none":
        assert (decision.reason, decision.by) == (None, None)
    elif all(h.silence is None for h in everyone):
        first = next(a for a in spoken(everyone) if a.verdict == decision.verdict)
        assert (decision.reason, decision.by) == (first.reason, first.handler)


@given(rounds, inputs)
def test_texts_are_joined_in_order(everyone: list[Heard], original: Mapping[str, Any]) -> None:
    """Contexts and system messages keep the declared order, each with who said it."""
    decision = merge(everyone, original)
    said = spoken(everyone)
    assert decision.contexts == tuple(Said(a.handler, text) for a in said for text in a.contexts)
    messages = tuple(Said(a.handler, a.system_message) for a in said if a.system_message is not None)
    assert decision.system_messages == messages


@given(rounds, inputs)
def test_the_first_output_and_the_first_stop_hold(everyone: list[Heard], original: Mapping[str, Any]) -> None:
    """Of several outputs, as of several stops, the first in declared order is taken."""
    decision = merge(everyone, original)
    outputs = [a for a in spoken(everyone) if a.output is not NOTHING]
    assert decision.replaced == bool(outputs)
    if outputs:
        assert (decision.output, decision.output_by) == (outputs[0].output, outputs[0].handler)
    stops = [a for a in spoken(everyone) if a.stop]
    assert decision.stop == bool(stops)
    if stops:
        assert (decision.stop_reason, decision.stop_by) == (stops[0].stop_reason, stops[0].handler)


@given(rounds, inputs)
def test_the_original_is_kept_and_not_changed(everyone: list[Heard], original: dict[str, Any]) -> None:
    """A decision holds the input as it was asked about, and rewriting touches nobody's object."""
    before = dict(original)
    decision = merge(everyone, original)
    assert decision.input is original
    assert original == before
    assert decision.heard == tuple(everyone)
    assert decision.partial == any(h.silence is not None for h in everyone)
    assert decision.missing == tuple(h for h in everyone if h.silence is not None)


def same(left: object, right: object) -> bool:
    """Equal also as JSON: a bool is no number."""
    return type(left) is type(right) and left == right


@given(st.lists(inputs, max_size=4), inputs)
def test_rewrites_merge_key_by_key(rewrites: list[dict[str, Any]], original: dict[str, Any]) -> None:
    """Each key has the value of the last rewrite that changed it, else the original's."""
    decision = merge(
        one(*(Answer(f"h{n}", updated_input=updated) for n, updated in enumerate(rewrites))), original
    )
    missing = object()
    expected: dict[str, Any] = dict(original)
    changers: dict[str, list[str]] = {}
    for number, updated in enumerate(rewrites):
        for key in {*original, *updated}:
            old, new = original.get(key, missing), updated.get(key, missing)
            if not same(old, new):
                changers.setdefault(key, []).append(f"h{number}")
                if new is missing:
                    expected.pop(key, None)
                else:
                    expected[key] = new
    if not changers:
        assert decision.updated_input is None
    else:
        assert decision.updated_input == expected
    assert decision.changed_by == {key: by[-1] for key, by in changers.items()}
    conflicts = {Conflict(key, tuple(by)) for key, by in changers.items() if len(by) > 1}
    assert set(decision.conflicts) == conflicts


@pytest.mark.parametrize(
    "before,after",
    [
        (1, True),
        ({"a": [1]}, {"a": [True]}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, [2]], [1, [2, 3]]),
        ([{"a": 0}], [{"a": False}]),
        ([1], {"a": 1}),
    ],
)
def test_true_is_not_one_at_any_depth(before: Any, after: Any) -> None:
    """A rewrite from 1 to true is a change: to JSON they are different values."""
    decision = merge(one(Answer("h", updated_input={"n": after})), {"n": before})
    assert repr(decision.updated_input) == repr({"n": after})
    assert decision.changed_by == {"n": "h"}
    assert merge(one(Answer("h", updated_input={"n": before})), {"n": before}).updated_input is None


def test_answers_of_several_deciders_stand_by_priority() -> None:
    """A lower priority comes first, also when its decider comes later; equal ones keep their order."""
    everyone = [
        Heard("d1", "open", None, 0.0, (Answer("late", "deny", "l", priority=5), Answer("a", "deny", "a"))),
        Heard("d2", "open", None, 0.0, (Answer("first", "deny", "f", priority=-1), Answer("b", "deny"))),
    ]
    decision = merge(everyone, {})
    assert (decision.by, decision.reason) == ("first", "f")


def test_silence_of_one_that_fails_closed_is_a_denial() -> None:
    """A closed decider that does not answer denies under its own name; an open one has no opinion."""
    closed = merge([Heard("gate", "closed", "died", 0.0)], {})
    assert (closed.verdict, closed.by) == ("deny", "gate")
    assert closed.reason == "gate did not answer (died) and fails closed"
    opened = merge([Heard("gate", "open", "timeout", 0.0)], {})
    assert opened == Decision(heard=(Heard("gate", "open", "timeout", 0.0),))
    assert opened.allowed
    assert opened.partial


def test_one_without_an_opinion_gives_none() -> None:
    """A reason belongs to a verdict: of an answer that is none, nothing is left but that it was heard."""
    heard = [Heard("d", "open", None, 0.0, (Answer("h", "none", "because"),))]
    assert merge(heard, {"a": 1}) == Decision(input={"a": 1}, heard=tuple(heard))


def test_nobody_is_no_opinion() -> None:
    """Without deciders there is no opinion, and nothing is in the way."""
    decision = merge([], {"a": 1})
    assert decision == Decision(input={"a": 1})
    assert decision.allowed
    assert not decision.denied
    assert not decision.partial


def test_what_the_constraints_refuse_stays_refused() -> None:
    """The agent's own refusal is final, whatever is answered."""
    decision = merge(one(Answer("h", "allow", "fine")), {}, forbidden="never")
    assert (decision.verdict, decision.reason, decision.by) == ("deny", "never", CONSTRAINTS)
    assert decision.denied
    assert merge([], {}, forbidden="never").denied


def test_a_rewrite_that_does_not_validate_is_refused_alone() -> None:
    """A refused rewrite is listed with the reason and leaves the others in force."""
    everyone = one(Answer("bad", updated_input={"a": -1}), Answer("good", updated_input={"a": 1, "b": 2}))
    decision = merge(everyone, {"a": 1}, revalidate=lambda new: "negative" if new["a"] < 0 else None)
    assert decision.updated_input == {"a": 1, "b": 2}
    assert decision.refused == (Refusal("bad", "negative"),)
    assert decision.changed_by == {"b": "good"}


def test_rewrites_are_also_validated_together() -> None:
    """Two rewrites that are valid by themselves and not together: the second is refused."""

    def exclusive(new: Mapping[str, Any]) -> str | None:
        return "a excludes b" if "a" in new and "b" in new else None

    everyone = one(Answer("h1", updated_input={"a": 1}), Answer("h2", updated_input={"b": 1}))
    decision = merge(everyone, {}, revalidate=exclusive)
    assert decision.updated_input == {"a": 1}
    assert decision.refused == (Refusal("h2", "a excludes b"),)


@pytest.mark.parametrize(
    "payload, expected",
    [
        ({"tool": "Bash", "arguments": {"command": "ls"}}, {"command": "ls"}),
        ({"tool_name": "Bash", "tool_input": {"command": "ls"}}, {"command": "ls"}),
        ({"tool": "Bash", "args": {"command": "ls"}}, {"command": "ls"}),
        ({"tool": "x", "arguments": "text"}, {"tool": "x", "arguments": "text"}),
        ({"prompt": "hello"}, {"prompt": "hello"}),
    ],
)
def test_the_input_is_the_tool_s_arguments_or_the_payload(
    payload: dict[str, Any], expected: dict[str, Any]
) -> None:
    """What may be rewritten is the tool's input, and of an event without one the payload itself."""
    assert input_of(payload) == expected


def test_no_value_at_all_has_a_name() -> None:
    """A printed decision says that nothing was replaced, not where that object lies in memory."""
    assert repr(NOTHING) == "NOTHING"
    assert "output=NOTHING" in repr(Decision())
