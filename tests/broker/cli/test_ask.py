"""Which exit code a decision is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.ask import ending
from broker.cli.exits import ASK_USER, DONE, REFUSED, TIMED_OUT
from broker.protocol.decision_document import timed_out
from broker.protocol.decisions import FAILURES, SILENCES, VERDICTS, Answer, Decision, Heard, merge

HEARD = st.lists(
    st.builds(
        Heard,
        decider=st.just("d"),
        failure=st.sampled_from(FAILURES),
        silence=st.none() | st.sampled_from(SILENCES),
        elapsed_s=st.just(0.1),
        answers=st.lists(st.sampled_from(VERDICTS).map(lambda said: Answer("h", said)), max_size=2).map(
            tuple
        ),
    ),
    max_size=4,
)


def said(verdict: str, silence: str | None = None) -> Decision:
    """A decision by one decider with another beside it that may be silent."""
    answers = (Answer("h", verdict),)  # type: ignore[arg-type]
    return merge((Heard("d", "open", None, 0.1, answers), Heard("e", "open", silence, 0.1)), {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "decision,code",
    [
        (Decision(), DONE),
        (said("none"), DONE),
        (said("allow"), DONE),
        (said("deny"), REFUSED),
        (said("ask"), ASK_USER),
        (said("none", "timeout"), TIMED_OUT),
        (said("allow", "timeout"), TIMED_OUT),
        (said("ask", "timeout"), TIMED_OUT),
        (said("deny", "timeout"), REFUSED),
        (said("allow", "died"), DONE),
        (said("allow", "failed"), DONE),
        (said("allow", "left"), DONE),
        (said("allow", "unreachable"), DONE),
    ],
)
def test_a_decision_has_its_exit_code(decision: Decision, code: int) -> None:
    """No beats late, late beats everything else; who failed open and is gone has no opinion."""
    assert ending(decision) == code


@given(HEARD)
def test_success_means_that_nobody_objects_and_nobody_was_late(heard: list[Heard]) -> None:
    """A script that goes on after 0 never passes over a no, a question or a late decider; 4 is a no."""
    decision = merge(heard, {})
    code = ending(decision)
    assert (code == DONE) == (decision.allowed and not timed_out(decision))
    assert (code == REFUSED) == decision.denied
