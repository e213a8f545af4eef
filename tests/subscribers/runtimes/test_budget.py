"""A budget lets runs start within its bounds, makes the rest wait their turn, and drops what has no room."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from subscribers.runtimes.budget import Budget, Verdict

START, WAIT, DROP = Verdict.START, Verdict.WAIT, Verdict.DROP


def test_runs_start_until_the_total_is_reached_then_wait_then_are_dropped() -> None:
    """The total bounds what runs, the queue what waits."""
    budget: Budget[int] = Budget(total=2, per_hook=2, queue=1)
    assert [budget.offer(hook, 0) for hook in "abcd"] == [START, START, WAIT, DROP]
    assert (budget.running, budget.waiting) == (2, 1)


def test_one_hook_cannot_take_every_slot() -> None:
    """Beyond its own bound a hook waits while others still start."""
    budget: Budget[int] = Budget(total=4, per_hook=1, queue=4)
    assert [budget.offer(hook, 0) for hook in "aabb"] == [START, WAIT, START, WAIT]


def test_a_slot_goes_to_the_hook_whose_turn_it_is() -> None:
    """Waiting hooks take turns however much each has waiting, and a hook's own runs keep their order."""
    budget: Budget[int] = Budget(total=1, per_hook=1, queue=9)
    budget.offer("x", 0)
    for hook, run in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5)]:
        assert budget.offer(hook, run) is WAIT
    order, hook = [], "x"
    while following := budget.finish(hook):
        order.append(following)
        hook = following[0]
    assert order == [("a", 1), ("b", 4), ("c", 5), ("a", 2), ("a", 3)]
    assert (budget.running, budget.waiting) == (0, 0)


def test_a_hook_at_its_bound_is_passed_over() -> None:
    """A free slot of the total is not given to a hook that has all its own slots taken."""
    budget: Budget[int] = Budget(total=3, per_hook=2, queue=9)
    assert [budget.offer(hook, run) for run, hook in enumerate("aaabb")] == [START, START, WAIT, START, WAIT]
    assert budget.finish("b") == ("b", 4)
    assert budget.finish("b") is None
    assert budget.finish("a") == ("a", 2)


def test_what_waits_is_bounded_in_bytes() -> None:
    """Data that is shared counts once, the first may be of any size, and what runs is not counted."""
    budget: Budget[int] = Budget(total=1, per_hook=1, queue=9, queue_bytes=10)
    large, small = b"x" * 50, b"y" * 6
    assert budget.offer("a", 0, large) is START
    assert [budget.offer("a", 0, large), budget.offer("b", 0, large)] == [WAIT, WAIT]
    assert [budget.offer("a", 0, small), budget.offer("a", 0)] == [DROP, WAIT]
    assert (budget.waiting, budget.waiting_bytes) == (3, 50)
    assert budget.finish("a") == ("a", 0)
    assert budget.waiting_bytes == 50
    assert budget.finish("a") == ("b", 0)
    assert (budget.waiting, budget.waiting_bytes) == (1, 0)
    assert [budget.offer("a", 0, small), budget.offer("a", 0, b"z" * 5)] == [WAIT, DROP]
    assert budget.offer("a", 0, b"z" * 4) is WAIT


def test_what_waits_can_be_forgotten() -> None:
    """Forgetting says how many runs that were, and what runs is not affected."""
    budget: Budget[int] = Budget(total=1, per_hook=1, queue=9, queue_bytes=0)
    data = b"x"
    for hook in "aab":
        budget.offer(hook, 0, data)
    assert budget.forget_waiting() == 2
    assert budget.waiting_bytes == 0
    assert budget.finish("a") is None
    assert budget.offer("b", 0) is START


@pytest.mark.parametrize("bounds", [{"total": 0}, {"per_hook": 0}, {"queue": -1}])
def test_bounds_that_let_nothing_run_are_refused(bounds: dict[str, int]) -> None:
    """A budget without a slot is a mistake; a queue of 0 is a choice."""
    with pytest.raises(ValueError, match="a budget needs"):
        Budget[int](**bounds)
    assert Budget[int](queue=0).queue == 0


class BudgetLaws(RuleBasedStateMachine):
    """Laws: bounds hold, a hook's runs keep their order, and no slot idles while a run may use it."""

    TOTAL, PER_HOOK, QUEUE, BYTES = 3, 2, 4, 12
    DATA = tuple(bytes([number]) * number for number in range(0, 15, 2))
    hooks = st.sampled_from("abcd")
    data = st.sampled_from(DATA)

    def __init__(self) -> None:
        super().__init__()
        self.budget: Budget[int] = Budget(
            total=self.TOTAL, per_hook=self.PER_HOOK, queue=self.QUEUE, queue_bytes=self.BYTES
        )
        self.holds: dict[int, bytes] = {}
        self.running: Counter[str] = Counter()
        self.waiting: dict[str, list[int]] = defaultdict(list)
        self.number = 0

    def held(self, *more: bytes) -> int:
        """Bytes of the data that waiting runs hold, with more of them."""
        waiting = {self.holds[run] for runs in self.waiting.values() for run in runs}
        return sum(map(len, waiting.union(more)))

    @rule(hook=hooks, data=data)
    def offer(self, hook: str, data: bytes) -> None:
        """A run is dropped only when the queue is full in number or in bytes."""
        self.number += 1
        self.holds[self.number] = data
        verdict = self.budget.offer(hook, self.number, data)
        if verdict is START:
            self.running[hook] += 1
        elif verdict is WAIT:
            self.waiting[hook].append(self.number)
        else:
            is_full = sum(map(len, self.waiting.values())) == self.QUEUE
            assert is_full or self.held(data) > max(self.BYTES, self.held())

    @precondition(lambda self: self.running.total())
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """A slot that is given back goes to the oldest waiting run of its hook."""
        hook = data.draw(st.sampled_from(sorted(+self.running)))
        self.running[hook] -= 1
        following = self.budget.finish(hook)
        if following is not None:
            name, run = following
            assert self.waiting[name].pop(0) == run
            self.running[name] += 1

    @invariant()
    def bounds_hold_and_no_slot_idles(self) -> None:
        """What waits has a bound that holds it."""
        assert self.budget.running == self.running.total() <= self.TOTAL
        assert self.budget.waiting == sum(map(len, self.waiting.values())) <= self.QUEUE
        assert self.budget.waiting_bytes == self.held() <= max(self.BYTES, *map(len, self.DATA))
        assert all(count <= self.PER_HOOK for count in self.running.values())
        for hook, runs in self.waiting.items():
            if runs:
                assert self.budget.running == self.TOTAL or self.running[hook] == self.PER_HOOK


TestBudgetLaws = BudgetLaws.TestCase
TestBudgetLaws.settings = settings(max_examples=50, stateful_step_count=40)
