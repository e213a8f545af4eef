"""The law of the transform chain, for every order of handlers and answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from subscribers.hooks.transform_chain import (
    MARGIN_S,
    Fault,
    Handler,
    Passed,
    Said,
    ToolResult,
    Value,
    Walk,
    fits,
)

RAW = ToolResult("a1", "s1", "Bash", {"command": "git diff"}, "raw")

texts = st.sampled_from(["", "raw", "x", "longer text"])
faults = st.builds(Fault, st.sampled_from(["failed", "timeout", "not_started"]), st.just("why"))
answers: st.SearchStrategy[Said] = st.one_of(st.builds(Value, texts), st.just(Passed()), faults)
names = st.sampled_from(["Bash", "Read", "a1", "a2"])
filters = st.lists(names, max_size=2, unique=True).map(tuple)


@st.composite
def chains(draw: st.DrawFn) -> list[Handler[Said]]:
    """Handlers in order, each with what it will say."""
    said = draw(st.lists(st.tuples(answers, filters, filters, st.floats(0.01, 10)), max_size=6))
    return [
        Handler(f"h{n}", answer, timeout, tools, agents)
        for n, (answer, tools, agents, timeout) in enumerate(said)
    ]


results = st.builds(
    ToolResult,
    st.sampled_from([None, "a1", "a2"]),
    st.just("s1"),
    st.sampled_from([None, "Bash", "Read"]),
    st.just({}),
    st.just("raw"),
)


def walked(chain: list[Handler[Said]], result: ToolResult, took: float = 0.0) -> tuple[Walk[Said], list[str]]:
    """The walk to its end, each handler taking a share of its allowance, and who was asked."""
    now, asked = 0.0, []
    walk = Walk(chain, result, deadline=100.0)
    while (turn := walk.turn(now)) is not None:
        asked.append(turn.handler.name)
        now += turn.allowance_s * took
        walk.heard(turn.handler.what)
    return walk, asked


@given(chains(), results)
def test_the_first_value_wins_and_nothing_runs_after_it(
    chain: list[Handler[Said]], result: ToolResult
) -> None:
    """Asked are those that the filters let through, in order, up to the first that returns a value."""
    walk, asked = walked(chain, result)
    let_through = [handler for handler in chain if handler.is_for(result)]
    winners = [n for n, handler in enumerate(let_through) if isinstance(handler.what, Value)]
    expected = let_through[: winners[0] + 1] if winners else let_through
    assert asked == [handler.name for handler in expected]
    if winners:
        winner = let_through[winners[0]]
        assert isinstance(winner.what, Value)
        assert (walk.value, walk.by) == (winner.what.text, winner)
    else:
        assert (walk.value, walk.by) == (None, None)


@given(chains(), results)
def test_everybody_who_was_asked_is_accounted_for(chain: list[Handler[Said]], result: ToolResult) -> None:
    """Each is the winner, one that passed, or one that was skipped with its fault; nobody is left unasked."""
    walk, asked = walked(chain, result)
    assert len(asked) == (walk.by is not None) + walk.passed + len(walk.skipped)
    failed = {handler.name: handler.what for handler in chain if isinstance(handler.what, Fault)}
    assert all(failed[skipped.handler] == skipped.fault for skipped in walk.skipped)
    assert walk.unasked == 0


@given(chains(), results, st.data())
def test_a_fault_changes_nothing_but_itself(
    chain: list[Handler[Said]], result: ToolResult, data: st.DataObject
) -> None:
    """With a failing handler put in anywhere, the outcome is what it was without."""
    place = data.draw(st.integers(0, len(chain)))
    fault = data.draw(faults)
    bad: Handler[Said] = Handler("bad", fault, 1.0)
    with_fault = [*chain[:place], bad, *chain[place:]]
    without, _ = walked(chain, result)
    walk, _ = walked(with_fault, result)
    assert (walk.value, walk.passed) == (without.value, without.passed)
    assert [s for s in walk.skipped if s.handler != "bad"] == without.skipped


@given(results, filters, filters)
def test_filters_are_lists_of_names(
    result: ToolResult, tools: tuple[str, ...], agents: tuple[str, ...]
) -> None:
    """An empty filter lets everybody through, any other only the names that are in it."""
    handler = Handler("h", None, 1.0, tools, agents)
    tool_fits = not tools or (result.tool_name is not None and result.tool_name in tools)
    agent_fits = not agents or (result.agent_id is not None and result.agent_id in agents)
    assert handler.is_for(result) == (tool_fits and agent_fits)


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
@example("a*b*a", "aa")  # what stands between two stars is not there
@example("*b*", "aba")
def test_a_star_stands_for_any_characters(pattern: str, name: str) -> None:
    """A pattern fits a name exactly where the regular expression that says the same does."""
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert fits(pattern, name) == (re.fullmatch(expression, name) is not None)


def test_an_agent_goes_by_any_of_its_names() -> None:
    """A filter finds an agent by its id and by its other names; one without a name finds no filter."""
    handler = Handler("h", None, 1.0, agents=("review*",))
    assert handler.is_for(RAW._replace(agent_id=None, agent_names=("x", "reviewer")))
    assert handler.is_for(RAW._replace(agent_id="review-2"))
    assert not handler.is_for(RAW._replace(agent_id=None))


@given(st.lists(st.floats(0.01, 30), min_size=1, max_size=8), st.floats(0.001, 20), st.floats(0, 1))
def test_nobody_uses_up_the_time_of_those_behind(limits: list[float], total: float, took: float) -> None:
    """Even if each takes all that it may, everybody is asked with time, and the reply still has some."""
    chain = [Handler(f"h{n}", None, limit) for n, limit in enumerate(limits)]
    walk, now = Walk(chain, RAW, total), 0.0
    for handler in chain:
        turn = walk.turn(now)
        assert turn is not None
        assert turn.handler is handler
        assert 0 < turn.allowance_s <= handler.timeout_s
        now += turn.allowance_s * took
        walk.heard(Passed())
    assert walk.turn(now) is None
    assert now < total


def test_the_last_handler_has_all_the_time_that_is_left() -> None:
    """What a quick first one did not need goes to the one behind it, less the way back."""
    walk = Walk([Handler("a", None, 9.0), Handler("b", None, 9.0)], RAW, deadline=2.0)
    first = walk.turn(0.0)
    assert first is not None
    assert first.allowance_s == pytest.approx((2.0 - MARGIN_S) / 2)
    walk.heard(Passed())
    second = walk.turn(0.1)
    assert second is not None
    assert second.allowance_s == pytest.approx(1.9 - MARGIN_S)


def test_a_turn_can_be_asked_for_again() -> None:
    """Asking twice whose turn it is names the same handler: only an answer moves the walk on."""
    walk = Walk([Handler("a", None, 1.0), Handler("b", None, 1.0)], RAW, deadline=10.0)
    turns = [walk.turn(0.0), walk.turn(0.0)]
    assert [turn is not None and turn.handler.name for turn in turns] == ["a", "a"]


def test_nobody_is_asked_when_the_time_is_over() -> None:
    """After the deadline the walk ends, and says how many were not asked."""
    walk = Walk([Handler("a", None, 1.0), Handler("b", None, 1.0)], RAW, deadline=1.0)
    assert walk.turn(1.0) is None
    assert (walk.unasked, walk.value) == (2, None)
    assert walk.turn(0.0) is None
