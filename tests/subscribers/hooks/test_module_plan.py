"""Which hooks are in force, and who is to blame, whatever a process says and when it ends."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.module_hook import ModuleHook
from subscribers.hooks.module_plan import STRIKE_S, Change, ModulePlan, Standing, State
from subscribers.hooks.restarts import HEALTHY_SECONDS


def hook(name: str, digest: str = "1") -> ModuleHook:
    """A hook whose module is held to be ``digest``."""
    return ModuleHook(name, name, f"/role/{name}.py", digest, None, "role")


def in_force(*names: str) -> ModulePlan:
    """A plan whose hooks are loaded, each with an ``onEvent``."""
    plan = ModulePlan()
    plan.want(hook(name) for name in names)
    for name in names:
        plan.loaded(name, ["onEvent"], None, None)
    return plan


# -- wanting ----------------------------------------------------------------------------------


def test_what_is_equal_stays_and_what_changed_is_loaded() -> None:
    """Only new and changed hooks are loaded, and only vanished ones unloaded."""
    plan = in_force("a", "b", "c")
    change = plan.want([hook("a"), hook("b", "2"), hook("d")])
    assert change == Change((hook("b", "2"), hook("d")), ("c",))
    assert plan.want([hook("a"), hook("b", "2"), hook("d")]) == Change((), ())


def test_a_hook_that_was_never_loaded_is_not_unloaded() -> None:
    """What was refused has nothing that could be disposed."""
    plan = ModulePlan()
    plan.want([hook("a")])
    plan.refused("a", "no", None)
    assert plan.want([]) == Change((), ())
    assert plan.states() == {}


def test_a_changed_hook_that_is_refused_leaves_the_one_before_in_force() -> None:
    """The old instance is called until a new one has been loaded."""
    plan = in_force("a")
    plan.want([hook("a", "2")])
    assert plan.states()["a"] == State("loading", ("onEvent",), kept=True)
    assert plan.standing("a", "onEvent") == Standing("now")
    assert plan.refused("a", "SyntaxError", "trace")
    assert plan.states()["a"] == State("refused", ("onEvent",), "SyntaxError", "trace", kept=True)
    assert plan.standing("a", "onEvent") == Standing("now")


def test_going_back_to_what_is_in_force_needs_no_loading() -> None:
    """A module that was broken and mended again is the one that still runs."""
    plan = in_force("a")
    plan.want([hook("a", "broken")])
    plan.refused("a", "SyntaxError", None)
    assert plan.want([hook("a")]) == Change((), ())
    assert plan.states()["a"] == State("loaded", ("onEvent",))


def test_a_hook_that_is_wanted_again_while_it_is_unloaded_is_loaded_anew() -> None:
    """Answers to earlier orders are not taken for answers to later ones."""
    plan = ModulePlan()
    plan.want([hook("a")])
    assert plan.want([]) == Change((), ("a",))
    assert plan.want([hook("a")]) == Change((hook("a"),), ())
    assert not plan.loaded("a", ["onEvent"], None, None)  # the first, which is unloaded right behind
    assert plan.standing("a", "onEvent") == Standing("later")
    assert plan.loaded("a", ["onEvent"], None, None)
    assert plan.standing("a", "onEvent") == Standing("now")


def test_a_hook_that_changes_while_it_is_loaded_counts_when_the_last_answer_is_there() -> None:
    """Until then the one that came first is called."""
    plan = ModulePlan()
    plan.want([hook("a")])
    plan.want([hook("a", "2")])
    assert not plan.loaded("a", ["onLoad"], None, None)
    assert plan.states()["a"] == State("loading", ("onLoad",), kept=True)
    plan.want([hook("a", "3")])
    assert not plan.refused("a", "no", None)
    assert plan.loaded("a", ["onEvent"], "onLoad threw: x", "trace")
    assert plan.states()["a"] == State("loaded", ("onEvent",), "onLoad threw: x", "trace")


def test_what_nobody_asked_for_changes_nothing() -> None:
    """A process that speaks of strangers is not believed."""
    plan = in_force("a")
    before = dict(plan.states())
    plan.loading("x")
    plan.loading("a")
    assert not plan.loaded("x", [], None, None)
    assert not plan.loaded("a", [], None, None)
    assert not plan.refused("x", "no", None)
    assert not plan.quarantined("x", "no")
    assert plan.states() == before
    assert plan.state("a") == before["a"]
    assert plan.state("x") is None


def test_a_refusal_of_what_is_not_wanted_any_more_is_forgotten() -> None:
    """Its id is free again."""
    plan = ModulePlan()
    plan.want([hook("a")])
    plan.want([])
    assert plan.state("a") is None
    assert not plan.quarantined("a", "no")
    assert plan.want([]) == Change((), ())
    assert not plan.refused("a", "no", None)
    assert plan.is_settled


# -- standing ---------------------------------------------------------------------------------


def test_a_call_stands_as_its_hook_does() -> None:
    """Now, later, or not, and then why not."""
    plan = in_force("loaded", "guilty")
    plan.quarantined("guilty", "it hangs")
    plan.want([hook("loaded"), hook("guilty"), hook("loading"), hook("refused")])
    plan.refused("refused", "SyntaxError", None)
    assert plan.standing("loaded", "onEvent") == Standing("now")
    assert plan.standing("loaded", "onToolAfter") == Standing("absent", "its module has no onToolAfter")
    assert plan.standing("loading", "onEvent") == Standing("later")
    assert plan.standing("refused", "onEvent") == Standing("absent", "it was refused: SyntaxError")
    assert plan.standing("guilty", "onEvent") == Standing("lost", "it is quarantined: it hangs")
    assert plan.standing("stranger", "onEvent") == Standing("absent", "the hook is not loaded")


# -- quarantine and blame ---------------------------------------------------------------------


def test_a_quarantined_hook_comes_back_when_it_changes_and_not_before() -> None:
    """Its module or its config has to be another."""
    plan = in_force("a", "b")
    assert plan.quarantined("a", "it hangs")
    assert not plan.quarantined("a", "again")
    assert plan.want([hook("a"), hook("b")]) == Change((), ())
    assert plan.to_load() == (hook("b"),)
    assert plan.want([hook("a", "2"), hook("b")]) == Change((hook("a", "2"),), ())


def test_what_replaces_a_guilty_hook_is_not_guilty() -> None:
    """A hook that is quarantined while a newer one is on its way gives way to that."""
    plan = in_force("a")
    plan.want([hook("a", "2")])
    assert not plan.quarantined("a", "it hangs")
    assert plan.standing("a", "onEvent") == Standing("later")
    assert plan.loaded("a", ["onEvent"], None, None)


def test_a_hook_that_is_quarantined_while_it_is_loaded_is_out() -> None:
    """Also before it has ever been in force."""
    plan = ModulePlan()
    plan.want([hook("a")])
    assert plan.quarantined("a", "it hangs")
    assert plan.states()["a"] == State("quarantined", reason="it hangs")
    assert plan.is_settled


def test_a_single_suspect_is_guilty_at_once() -> None:
    """Nobody else can have ended the process."""
    plan = in_force("a", "b")
    due, guilty = plan.ended(["a", "a"], 100.0, "SIGSEGV")
    assert (due, guilty) == (100.0, ("a",))
    assert plan.states() == {"a": State("quarantined", reason="SIGSEGV"), "b": State("loading")}
    assert plan.to_load() == (hook("b"),)


def test_of_several_suspects_the_one_that_is_there_twice_is_guilty() -> None:
    """The first time is a strike, for each; the second is as good as guilt."""
    plan = in_force("a", "b", "c")
    assert plan.blame(["a", "b"], 1.0, "SIGSEGV") == ()
    assert plan.blame(["a", "c", "stranger"], 2.0, "SIGSEGV") == ("a",)
    assert plan.states()["a"].reason == "SIGSEGV, for the second time"
    assert plan.blame(["b", "c"], 2.0 + STRIKE_S, "SIGSEGV") == ()  # the strikes of before are forgotten
    assert plan.blame([], 3.0, "SIGSEGV") == ()


def test_a_changed_hook_has_no_strikes() -> None:
    """They belong to what it was."""
    plan = in_force("a")
    assert not plan.strike("a", 1.0, "lost")
    plan.want([hook("a", "2")])
    plan.loaded("a", ["onEvent"], None, None)
    assert not plan.strike("a", 2.0, "lost")
    assert plan.strike("a", 3.0, "lost")


def test_what_ends_its_process_while_it_is_loaded_is_refused() -> None:
    """So the next process does not end in the same way."""
    plan = in_force("a")
    plan.want([hook("a"), hook("b")])
    plan.loading("b")
    assert plan.ended([], 1.0, "exit 3")[1] == ("b",)
    assert plan.states()["b"] == State("refused", reason="while it was being loaded, exit 3")
    assert plan.to_load() == (hook("a"),)


def test_a_change_that_ends_its_process_costs_the_one_before_too() -> None:
    """That lived in the same process, and its module is not there any more."""
    plan = in_force("a")
    plan.want([hook("a", "2")])
    plan.loading("a")
    plan.ended([], 1.0, "exit 3")
    assert plan.states()["a"] == State("refused", reason="while it was being loaded, exit 3")


# -- processes that come and go ---------------------------------------------------------------


def test_a_process_starts_again_at_once_and_then_after_growing_pauses() -> None:
    """One that has worked for a while, or whose end was somebody's fault, starts without a pause."""
    plan = in_force("a")
    plan.started(0.0)
    assert [plan.ended([], 1.0, "x")[0] - 1.0 for _ in range(8)] == pytest.approx(
        [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]
    )
    assert plan.ended(["a"], 1.0, "x") == (1.0, ("a",))
    plan.started(10.0)
    assert plan.ended([], 10.0 + HEALTHY_SECONDS, "x")[0] == 10.0 + HEALTHY_SECONDS


def test_a_successor_takes_over_what_it_has_loaded() -> None:
    """What the one before still had in force, and the new one refuses, is gone then."""
    plan = in_force("a", "b", "c")
    plan.want([hook("a"), hook("b"), hook("c", "2"), hook("d")])
    plan.refused("c", "SyntaxError", None)
    assert plan.to_load() == (hook("a"), hook("b"), hook("d"))
    assert plan.standing("a", "onEvent") == Standing("now")  # in the one that still serves
    plan.loaded("a", ["onEvent"], None, None)
    plan.refused("b", "gone", None)
    assert not plan.is_settled
    assert plan.states()["b"].kept
    plan.switched()
    assert plan.standing("a", "onEvent") == Standing("now")
    assert plan.states()["b"] == State("refused", reason="gone")
    assert plan.states()["c"] == State("refused", reason="SyntaxError")
    assert plan.states()["d"] == State("loading")
    plan.loaded("d", [], None, None)
    assert plan.is_settled


def test_a_successor_that_ends_takes_nothing_from_the_one_that_serves() -> None:
    """Its hooks are in force there as before."""
    plan = in_force("a")
    plan.to_load()
    plan.loading("a")
    plan.want([])
    plan.want([hook("a"), hook("b")])
    plan.ended([], 1.0, "exit 3", serving=True)
    plan = in_force("a")
    plan.to_load()
    assert plan.ended([], 1.0, "exit 3", serving=True)[1] == ()
    assert plan.standing("a", "onEvent") == Standing("now")
    assert plan.to_load() == (hook("a"),)


def test_what_is_not_wanted_is_not_loaded_by_the_next_process() -> None:
    """Nor is it remembered."""
    plan = ModulePlan()
    plan.want([hook("a"), hook("b")])
    plan.want([hook("b")])
    assert plan.to_load() == (hook("b"),)
    assert list(plan.states()) == ["b"]


# -- laws -------------------------------------------------------------------------------------


class Process:
    """A process as the protocol wants it: does what it is told, in order; modules called bad are refused."""

    def __init__(self) -> None:
        self.has: dict[str, ModuleHook] = {}
        self.orders: deque[ModuleHook | str] = deque()
        self.disposed: list[ModuleHook] = []

    def told(self, change: Change) -> None:
        """Queue what it is to do."""
        self.orders.extend(change.unload)
        self.orders.extend(change.load)

    def step(self, plan: ModulePlan) -> None:
        """Do the next thing and say so."""
        order = self.orders.popleft()
        if isinstance(order, str):
            if order in self.has:
                self.disposed.append(self.has.pop(order))
            return
        plan.loading(order.id)
        if order.digest == "bad":
            plan.refused(order.id, "bad", None)
            return
        if order.id in self.has:
            self.disposed.append(self.has[order.id])
        self.has[order.id] = order
        plan.loaded(order.id, ["onEvent"], None, None)


NAMES = st.sampled_from("abc")
HOOKS = st.dictionaries(NAMES, st.sampled_from(["1", "2", "bad"]), max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("want"), HOOKS),
        st.tuples(st.just("step"), st.just(0)),
        st.tuples(st.just("quarantine"), NAMES),
        st.tuples(st.just("crash"), st.lists(NAMES, max_size=2, unique=True)),
    ),
    max_size=25,
)


@given(STEPS)
def test_what_the_plan_says_is_what_the_process_has(steps: list[tuple[str, object]]) -> None:
    """Whatever happens, in whatever order: in the end the process has what is wanted and not out."""
    plan, process = ModulePlan(), Process()
    out: dict[str, ModuleHook] = {}
    wanted: dict[str, ModuleHook] = {}

    def order(change: Change) -> None:
        assert not [each for each in change.load if out.get(each.id) == each], "it is out, and the same"
        process.told(change)

    for what, argument in steps:
        if what == "want":
            assert isinstance(argument, dict)
            wanted = {name: hook(name, digest) for name, digest in argument.items()}
            out = {name: each for name, each in out.items() if wanted.get(name) == each}
            order(plan.want(wanted.values()))
        elif what == "step" and process.orders:
            process.step(plan)
        elif what == "quarantine":
            assert isinstance(argument, str)
            if process.has.pop(argument, None) and plan.quarantined(argument, "it hangs"):
                out[argument] = wanted[argument]
                order(Change((), (argument,)))
        elif what == "crash":
            assert isinstance(argument, list)
            _, guilty = plan.ended([name for name in argument if name in process.has], 0.0, "exit")
            out.update({name: wanted[name] for name in guilty})
            process = Process()
            order(Change(plan.to_load(), ()))
    while process.orders:
        process.step(plan)
    assert plan.is_settled
    assert plan.states().keys() == wanted.keys()
    for name, state in plan.states().items():
        assert (state.name == "loaded") == (process.has.get(name) == wanted[name])
        assert (plan.standing(name, "onEvent").name == "now") == (name in process.has)
        assert state.kept == (name in process.has and state.name != "loaded")
        assert state.name != "loaded" or name not in out
    assert process.has.keys() <= wanted.keys()
