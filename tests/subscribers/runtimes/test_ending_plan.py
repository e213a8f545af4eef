"""An ending goes from SIGTERM over a grace to SIGKILL, and stops as soon as nobody is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.runtimes.ending_plan import FIRST_PAUSE_S, LONGEST_PAUSE_S, EndingPlan, Step


def _step(plan: EndingPlan, now: float, leader: bool = True, others: bool = False) -> Step:
    return plan.step(now, leader_alive=leader, others_alive=others)


def test_sigterm_comes_first_and_sigkill_after_the_grace() -> None:
    """A leader that ignores SIGTERM is left alone until the grace is over, then gets SIGKILL repeatedly."""
    plan = EndingPlan(100.0, 5.0)
    assert plan.due == 100.0
    assert _step(plan, 100.5) is Step.TERM
    assert plan.due == 105.5  # the grace begins with the signal, and the leader's exit would wake us
    assert _step(plan, 103.0) is Step.WAIT
    assert not plan.killing
    assert _step(plan, 105.5) is Step.KILL
    assert plan.killing
    assert _step(plan, 105.6) is Step.KILL


def test_without_a_grace_sigkill_comes_at_once() -> None:
    """A grace of 0 sends no SIGTERM."""
    plan = EndingPlan(1.0, 0.0)
    assert plan.killing
    assert _step(plan, 1.0) is Step.KILL


def test_it_is_done_when_nobody_is_left() -> None:
    """Whoever ends within the grace is not waited for any longer, be it before or after SIGTERM."""
    plan = EndingPlan(0.0, 5.0)
    assert _step(plan, 0.0, leader=False) is Step.DONE
    assert _step(plan, 0.0) is Step.TERM
    assert _step(plan, 0.1, leader=False) is Step.DONE
    assert not plan.killing


def test_others_are_looked_for_while_they_outlive_the_leader() -> None:
    """After the leader's exit the pauses between looks grow to a quarter of a second at most."""
    plan = EndingPlan(0.0, 1.0)
    assert _step(plan, 0.0) is Step.TERM
    pauses, now = [], 0.1
    while _step(plan, now, leader=False, others=True) is Step.WAIT:
        pauses.append(plan.due - now)
        now = plan.due
    assert now == 1.0
    assert pauses[0] == pytest.approx(FIRST_PAUSE_S)
    assert max(pauses) <= LONGEST_PAUSE_S
    assert plan.killing


def test_hurry_cuts_the_grace_short() -> None:
    """In a hurry SIGKILL is next; hurrying an ending that is being killed changes nothing."""
    plan = EndingPlan(0.0, 60.0)
    assert _step(plan, 0.0) is Step.TERM
    plan.hurry(1.0)
    assert plan.due == 1.0
    assert _step(plan, 1.0) is Step.KILL
    due = plan.due
    plan.hurry(1.001)
    assert plan.due == due


@given(
    grace_s=st.integers(0, 10),
    looks=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=20),
)
def test_signals_come_in_order(grace_s: int, looks: list[tuple[int, bool, bool]]) -> None:
    """Law: SIGTERM at most once and first, SIGKILL not before the grace, DONE exactly when nobody is left."""
    plan, now, term_at = EndingPlan(0.0, grace_s), 0.0, 0.0
    steps: list[Step] = []
    for wait_s, leader, others in looks:
        now += wait_s
        step = _step(plan, now, leader, others)
        assert (step is Step.DONE) == (not leader and not others)
        if step is Step.TERM:
            assert not steps
            term_at = now
        if step is Step.KILL:
            assert now - term_at >= grace_s or grace_s == 0
        if step is not Step.DONE:
            steps.append(step)
            assert plan.due >= now


def test_nobody_is_signalled_before_it_begins() -> None:
    """Until then it is only looked, once a second, whether anybody is left; the grace begins with SIGTERM."""
    plan = EndingPlan(0.0, 5.0, begin=2.5)
    steps = []
    while plan.due < 2.5:
        steps.append((now := plan.due, _step(plan, now, leader=False, others=True)))
    assert steps == [(0.0, Step.WAIT), (1.0, Step.WAIT), (2.0, Step.WAIT)]
    assert _step(plan, plan.due, leader=False, others=True) is Step.TERM
    assert _step(plan, 7.5, leader=False, others=True) is Step.KILL


def test_it_is_done_before_it_begins_when_nobody_is_left() -> None:
    """What ends by itself is not waited for."""
    assert _step(EndingPlan(0.0, 5.0, begin=60.0), 1.0, leader=False) is Step.DONE


def test_it_can_begin_or_be_hurried_early() -> None:
    """A process that ends itself does not wait for its leftovers: SIGTERM is next, or SIGKILL."""
    early, hurried = EndingPlan(0.0, 5.0, begin=60.0), EndingPlan(0.0, 5.0, begin=60.0)
    early.begin(1.0)
    assert early.due == 1.0
    assert _step(early, 1.0, leader=False, others=True) is Step.TERM
    early.begin(2.0)
    assert _step(early, 2.0, leader=False, others=True) is Step.WAIT
    hurried.hurry(1.0)
    assert _step(hurried, 1.0, leader=False, others=True) is Step.KILL
