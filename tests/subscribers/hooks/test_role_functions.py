"""Which functions of a role are active, and what a prompt says of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.role_functions import (
    ACTIVE,
    ELEMENT_CHARACTERS,
    Function,
    FunctionState,
    RoleFunctions,
    element,
    on_message,
    requested,
)

LOCKED = RoleFunctions(("review", "tests"), frozenset({"review", "tests"}))
HAS = RoleFunctions(
    functions={
        name: Function(name, params=(("focus", "correctness"), ("severity", "normal")))
        for name in ("deploy", "review")
    }
)
names = st.lists(st.sampled_from(["review", "tests", "deploy", "other"]), max_size=3)


def test_the_first_message_activates_once() -> None:
    """What was deactivated after the first message is not back with the second."""
    role = RoleFunctions(("review", "tests"))
    assert role.does_something
    state = on_message(FunctionState(), "hello", [role])
    assert state == FunctionState(("review", "tests"), greeted=True)
    state = requested(state, (), ["review"])
    assert on_message(state, "again", [role]).active == ("tests",)


@given(st.lists(st.tuples(names, names), max_size=6))
def test_locked_functions_stay_active_whatever_is_requested(
    requests: list[tuple[list[str], list[str]]],
) -> None:
    """No series of requests deactivates one of them, and others obey."""
    state = on_message(FunctionState(), "hello", [LOCKED])
    for activate, deactivate in requests:
        state = requested(state, activate, deactivate)
        assert {"review", "tests"} <= set(state.active)
        assert not {"deploy", "other"} & set(deactivate) & set(state.active)
        assert len(set(state.active)) == len(state.active)


@pytest.mark.parametrize(
    "text, active, given",
    [
        ("|deploy| now", ("deploy",), ()),
        ("first\n|deploy|review| please", ("deploy", "review"), ()),
        ("|deploy||review|", ("deploy", "review"), ()),
        ("|review:security,strict| the module", ("review",), (("focus", "security"), ("severity", "strict"))),
        ("|review: ,strict| it", ("review",), (("severity", "strict"),)),
        ("|review severity=strict| it", ("review",), (("severity", "strict"),)),
        ("|review:severity=strict| it", ("review",), (("severity", "strict"),)),
        ("|review:other=strict| it", ("review",), (("focus", "other=strict"),)),
        ("|review words| it", (), ()),
        ("please |deploy| it", (), ()),
        ("| deploy | b", (), ()),
        ("|unknown|", (), ()),
        ("deploy", (), ()),
        ("|deploy", (), ()),
    ],
)
def test_a_message_activates_what_it_names_at_the_beginning_of_a_line(
    text: str, active: tuple[str, ...], given: tuple[tuple[str, str], ...]
) -> None:
    """Only functions that the role has, with parameters by place or by name."""
    state = on_message(FunctionState(), text, [HAS, RoleFunctions()])
    expected = ((active[0], given),) if given else ()
    assert state == FunctionState(active, (), expected, greeted=True)
    assert not RoleFunctions().does_something


def test_a_prompt_says_what_is_active_and_how_it_is_done() -> None:
    """Names first, then instructions by priority, filled in, unless what they require is missing."""
    role = RoleFunctions(
        functions={
            "review": Function(
                "review", "With **{focus}** and {other}.\n", (("focus", "care"),), priority=60
            ),
            "plan": Function("plan"),
            "ship": Function("ship", "Ship it.", requires=("plan", "tests")),
            "early": Function("early", "First.", priority=1),
        }
    )
    state = on_message(FunctionState(), "|review|plan|ship|early|", [role])
    assert element(state, [role]) == (
        "Active functions: review, plan, ship, early\n\n"
        "## early\nFirst.\n\n"
        "## ship\nactivate required functions first: tests\n\n"
        "## review\nWith **care** and {other}."
    )
    state = on_message(state, "|review:speed|", [role])
    assert "With **speed**" in str(element(state, [role]))
    state = requested(state, (), ["review"])
    assert state.given == ()
    assert "review" not in str(element(state, [role]))
    locked = on_message(FunctionState(), "", [LOCKED])
    assert element(locked, [LOCKED]) == "Active functions: review (locked), tests (locked)"
    assert element(FunctionState(), [role]) is None


def test_functions_are_bounded() -> None:
    """No number of requests makes a session grow for ever, and no instructions make a prompt do."""
    assert len(requested(FunctionState(), map(str, range(10 * ACTIVE)), []).active) == ACTIVE
    role = RoleFunctions(
        ("long", "more"),
        functions={name: Function(name, "x" * ELEMENT_CHARACTERS) for name in ("long", "more")},
    )
    text = element(on_message(FunctionState(), "hi", [role]), [role])
    assert text is not None
    assert text.startswith("Active functions: long, more")
    assert ELEMENT_CHARACTERS < len(text) < ELEMENT_CHARACTERS + 100
