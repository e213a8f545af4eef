"""How many calls there may be, which of them wait, and who is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.module_hook import ModuleCall, ModuleReturn
from subscribers.hooks.module_plan import State
from subscribers.runtimes import module_calls
from subscribers.runtimes.module_calls import CallBook, Flight, Listeners


def flight(hook_id: str = "a", size: int = 2, now: float = 0.0, timeout_s: float = 5.0) -> Flight:
    """A call."""
    call = ModuleCall("onEvent", b" " * size, None, None, timeout_s)
    return Flight(hook_id, call, lambda _: None, now)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=40), st.randoms())
def test_what_is_let_in_and_out_leaves_nothing_behind(steps: list[tuple[str, int]], chance: object) -> None:
    """There are never more calls than there is room for, and room comes back."""
    book, inside = CallBook(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_calls, "CALLS_PER_HOOK", 3)
        patch.setattr(module_calls, "CALLS", 5)
        patch.setattr(module_calls, "INPUT_BYTES", 12)
        for hook_id, size in steps:
            each = flight(hook_id, size)
            if book.admit(each) is None:
                inside.append(each)
            else:
                mine = [one for one in inside if one.hook_id == hook_id]
                total = sum(len(one.call.input) for one in inside)
                assert len(mine) == 3 or len(inside) == 5 or total + size > 12
                book.dismiss(inside.pop(0))
            assert book.total == len(inside)
    for each in inside:
        book.dismiss(each)
    assert book.total == 0
    assert book.admit(flight(size=0)) is None


def test_a_call_is_made_again_once_and_only_while_its_time_lasts() -> None:
    """Otherwise it is lost, or its time is over."""
    book = CallBook()
    again, late, closed = flight(), flight(), flight()
    for each in (again, late, closed):
        book.admit(each)
    assert book.again(again, "gone", 1.0) == []
    assert [*book.waiting] == [again]
    book.waiting.clear()
    assert book.again(again, "gone", 2.0) == [(again, ModuleReturn("lost", error="gone", seconds=2.0))]
    assert book.again(late, "gone", 5.0)[0][1][::3] == ("timeout", "not begun in time: gone")
    book.is_closed = True
    assert book.again(closed, "closed", 1.0)[0][1].error == "closed"
    assert (book.lost, book.retried, book.total) == (2, 1, 0)


def test_calls_whose_time_is_over_while_they_wait_are_taken_out() -> None:
    """The others go on waiting, in their order."""
    book = CallBook()
    calls = [flight(timeout_s=seconds) for seconds in (1, 3, 2, 4)]
    for each in calls:
        book.admit(each)
        book.waiting.append(each)
    assert book.overdue(0.5) == []
    assert book.overdue(2.0) == [calls[0], calls[2]]
    assert [*book.waiting] == [calls[1], calls[3]]
    assert book.total == 2


def test_states_are_told_in_order_and_only_when_they_change() -> None:
    """A listener that raises keeps nobody from hearing; one that is not there is no matter."""
    told: list[tuple[str, State]] = []

    def on_state(hook_id: str, state: State, /) -> None:
        told.append((hook_id, state))
        raise ValueError(hook_id)

    loading, loaded = State("loading"), State("loaded")
    listeners = Listeners(None, None, on_state)
    listeners.changed({}, {"a": loading, "b": None})
    listeners.changed({"a": loading, "c": loaded}, {"a": loaded, "c": loaded})
    listeners.tell_states()
    listeners.tell_states()
    assert told == [("a", loading), ("a", loaded)]
    listeners.log("a", "info", "hi", {})
    listeners.inject("a", None, "hi")
