"""Which functions of a role are active."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.role_functions import (
    ACTIVE,
    FunctionState,
    RoleFunctions,
    element,
    on_message,
    requested,
)

REVIEW = RoleFunctions(("review", "tests"), locked=True, names=frozenset({"review", "tests", "deploy"}))
names = st.lists(st.sampled_from(["review", "tests", "deploy", "other"]), max_size=3)


def test_the_first_message_activates_once() -> None:
    """What was deactivated after the first message is not back with the second."""
    role = RoleFunctions(("review", "tests"))
    state = on_message(FunctionState(), "hello", [role])
    assert state == FunctionState(("review", "tests"), (), greeted=True)
    state = requested(state, (), ["review"])
    assert on_message(state, "again", [role]).active == ("tests",)


@given(st.lists(st.tuples(names, names), max_size=6))
def test_locked_functions_stay_active_whatever_is_requested(
    requests: list[tuple[list[str], list[str]]],
) -> None:
    """No series of requests deactivates one of them, and others obey."""
    state = on_message(FunctionState(), "hello", [REVIEW])
    for activate, deactivate in requests:
        state = requested(state, activate, deactivate)
        assert {"review", "tests"} <= set(state.active)
        assert not {"deploy", "other"} & set(deactivate) & set(state.active)
        assert len(set(state.active)) == len(state.active)


@pytest.mark.parametrize(
    "text, active",
    [
        ("|deploy| now", ("deploy",)),
        ("run |deploy|review| please", ("deploy", "review")),
        ("a | deploy | b", ()),
        ("|unknown|", ()),
        ("deploy", ()),
        ("|deploy", ()),
    ],
)
def test_a_message_activates_what_it_names_between_bars(text: str, active: tuple[str, ...]) -> None:
    """Only functions that the role has, and only by the documented form."""
    role = RoleFunctions(names=frozenset({"deploy", "review"}))
    state = on_message(FunctionState(), text, [role, RoleFunctions()])
    assert state == FunctionState(active, (), greeted=True)


def test_a_prompt_says_what_is_active() -> None:
    """In order of activation, with what is locked; nothing where nothing is."""
    state = requested(on_message(FunctionState(), "", [REVIEW]), ["deploy"], [])
    assert element(state) == "Active functions: review (locked), tests (locked), deploy"
    assert element(FunctionState()) is None


def test_active_functions_are_bounded() -> None:
    """No number of requests makes a session grow for ever."""
    state = requested(FunctionState(), map(str, range(10 * ACTIVE)), [])
    assert len(state.active) == ACTIVE
