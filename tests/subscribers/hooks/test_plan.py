"""The plan: which hooks an event starts, and that a set in use never changes."""

from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.plan import EMPTY, Plan
from subscribers.hooks.spec import HookSpec

EVENTS = ("tool_call", "tool_call_start", "error")


def spec(event: str, index: int) -> HookSpec:
    """A hook of an event, told from others by its number."""
    return HookSpec(
        id=f"{event}#{index}",
        dialect="prx",
        path="hooks.json",
        line=index,
        event=event,
        command="/bin/true",
        args=(),
        env={},
        cwd=None,
        timeout_s=30.0,
        grace_s=5.0,
        stdin=False,
    )


specs = st.lists(st.sampled_from(EVENTS)).map(lambda names: [spec(name, i) for i, name in enumerate(names)])


def test_the_empty_plan_starts_nothing() -> None:
    """A workspace without hooks has a plan that answers with none."""
    assert EMPTY.for_event("tool_call") == ()
    assert EMPTY.events == ()
    assert len(EMPTY) == 0


@given(specs)
def test_an_event_starts_its_own_hooks_in_file_order(given_specs: list[HookSpec]) -> None:
    """The hooks of an event are those that name it, no more and no fewer, in the order given."""
    plan = Plan.of(given_specs)
    for event in EVENTS:
        assert plan.for_event(event) == tuple(s for s in given_specs if s.event == event)
    assert len(plan) == len(given_specs)
    assert set(plan.events) == {s.event for s in given_specs}


def test_a_prefix_of_an_event_is_another_event() -> None:
    """A hook of tool_call does not run for tool_call_start."""
    assert Plan.of([spec("tool_call", 0)]).for_event("tool_call_start") == ()


def test_a_plan_does_not_follow_the_list_it_was_made_from() -> None:
    """What was planned stays planned when the caller's list changes."""
    given_specs = [spec("error", 0)]
    plan = Plan.of(given_specs)
    given_specs.clear()
    assert len(plan) == 1
    assert plan.for_event("error") == (spec("error", 0),)
