"""The law of a role's chain, for every order of hooks and edits."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.decisions import Decision, Heard, merge
from subscribers.hooks.module_hook import ModuleReturn
from subscribers.hooks.role_chain import (
    CORE,
    CORE_NAME,
    MARGIN_S,
    NO_SUBJECT,
    Core,
    Happening,
    Link,
    Phase,
    Subject,
    Turn,
    Walk,
    ordered,
    same,
)

BEFORE = "tool.execute.before"
keys = st.sampled_from(["command", "path", "flag"])
scalars = st.sampled_from([None, True, 2, 2.5, "x", "y"])
values = st.one_of(scalars, st.lists(scalars, max_size=2), st.dictionaries(keys, scalars, max_size=1))
objects = st.dictionaries(keys, values, max_size=3)


class Step(NamedTuple):
    """A hook, and what it does: its status, the keys it sets and those it deletes."""

    link: Link
    status: Any
    sets: dict[str, Any]
    deletes: frozenset[str]

    def does(self, args: dict[str, Any]) -> ModuleReturn:
        """What comes of it when it is given ``args``."""
        edit = {key: value for key, value in {**args, **self.sets}.items() if key not in self.deletes}
        return ModuleReturn(self.status, edit=edit)


@st.composite
def roles(draw: st.DrawFn) -> list[Step]:
    """Hooks as they were registered, each with its deed."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["before", "after"]),
                st.sampled_from([10, 50, 50.5, 90]),
                st.sampled_from(["ok", "ok", "ok", "failed", "timeout", "lost", "absent"]),
                objects,
                st.frozensets(keys, max_size=1),
                st.floats(0.01, 10),
            ),
            max_size=6,
        )
    )
    return [
        Step(
            Link(f"i{n}", f"h{n}", "r", frozenset({BEFORE}), phase, priority, timeout_s=timeout),
            status,
            sets,
            deletes,
        )
        for n, (phase, priority, status, sets, deletes, timeout) in enumerate(drawn)
    ]


def walked(
    steps: list[Step], args: dict[str, Any], phase: Phase | None = None
) -> tuple[Walk, list[Link | Core]]:
    """The walk of a tool's call to its end, and whose turns there were."""
    does = {step.link.id: step for step in steps}
    walk = Walk(
        ordered(step.link for step in steps),
        Happening(BEFORE, "Bash"),
        phase,
        Subject(deepcopy(args), args, shape=dict),
        None,
    )
    seen: list[Link | Core] = []
    while (turn := walk.turn(0.0)) is not None:
        if isinstance(turn, Turn):
            seen.append(turn.link)
            walk.heard(does[turn.link.id].does(deepcopy(turn.value)))
        else:
            seen.append(turn)
    return walk, seen


def decided(walk: Walk, args: dict[str, Any]) -> Decision:
    """What the bus makes of the answers."""
    return merge([Heard("roles", "open", None, 0.0, tuple(walk.answers()))], args)


@given(roles())
def test_the_order_is_phase_then_priority_then_registration(steps: list[Step]) -> None:
    """Before hooks, the core, after hooks; by priority, and registration among equals."""
    _, seen = walked(steps, {})
    places = {id(step.link): place for place, step in enumerate(steps)}
    links = [each for each in seen if isinstance(each, Link)]
    assert sorted(map(id, links)) == sorted(places)
    ranks = [(link.phase == "after", link.priority, places[id(link)]) for link in links]
    assert ranks == sorted(ranks)
    assert seen.index(CORE) == sum(link.phase == "before" for link in links)


@given(roles(), objects)
def test_each_hook_sees_what_its_predecessors_left_and_a_failed_one_leaves_nothing(
    steps: list[Step], args: dict[str, Any]
) -> None:
    """The end is the deeds of those that came to their end, one after another."""
    walk, seen = walked(steps, args)
    expected = deepcopy(args)
    for step in sorted(steps, key=lambda each: (each.link.phase == "after", each.link.priority)):
        if step.status == "ok":
            expected = step.does(expected).edit
    assert same(walk.value, expected)
    assert walk.asked == len(steps) == len(seen) - 1


@given(roles(), objects)
def test_the_bus_makes_of_the_answers_what_the_chain_came_to(steps: list[Step], args: dict[str, Any]) -> None:
    """No conflicts, nothing lost, and every changed key by the one who set it last."""
    walk, _ = walked(steps, args)
    decision = decided(walk, args)
    assert decision.conflicts == ()
    assert same(dict(args if decision.updated_input is None else decision.updated_input), walk.value)
    last: dict[str, str] = {}
    now = deepcopy(args)
    for step in sorted(steps, key=lambda each: (each.link.phase == "after", each.link.priority)):
        if step.status == "ok":
            then, now = now, step.does(now).edit
            changed = [key for key in {**then, **now} if not same(_pick(then, key), _pick(now, key))]
            last |= dict.fromkeys(changed, step.link.label)
    assert dict(decision.changed_by) == {
        key: by for key, by in last.items() if not same(_pick(args, key), _pick(now, key))
    }


def _pick(args: dict[str, Any], key: str) -> list[Any]:
    return [args[key]] if key in args else []


@given(roles(), objects)
def test_the_two_halves_are_the_whole(steps: list[Step], args: dict[str, Any]) -> None:
    """An agent that asks for each phase, handing on the edit, gets what one that asks once gets."""
    whole, everybody = walked(steps, args)
    first, half = walked(steps, args, "before")
    second, rest = walked(steps, first.value, "after")
    assert half + rest == everybody
    assert half[-1] is CORE
    assert same(second.value, whole.value)


@given(roles(), st.floats(0.001, 5), st.floats(0, 1))
def test_no_hook_uses_up_the_time_of_those_behind_it(steps: list[Step], time_s: float, took: float) -> None:
    """Each gets at most its own limit and a fair share, and the core has its turn even when time is over."""
    walk = Walk(
        ordered(step.link for step in steps),
        Happening(BEFORE, "t"),
        None,
        Subject({}, {}, shape=dict),
        time_s,
    )
    now, cores, left = 0.0, 0, len(steps)
    while (turn := walk.turn(now)) is not None:
        if isinstance(turn, Core):
            cores += 1
            continue
        assert 0 < turn.allowance_s <= turn.link.timeout_s
        assert turn.allowance_s <= (time_s - now) / left + 1e-9
        now, left = now + turn.allowance_s * took, left - 1
        walk.heard(ModuleReturn("ok"))
    assert cores == 1
    assert walk.asked + walk.unasked == len(steps)
    assert walk.unasked == 0 or now >= time_s - max(MARGIN_S, time_s * 0.1) - 1e-9
    assert not walk.has_hooks


def test_who_finds_no_time_left_is_counted_and_not_asked() -> None:
    """The second of two is left out when the first has used up what there was after its own share."""
    links = [Link(f"i{n}", f"h{n}", "r", frozenset({BEFORE})) for n in range(2)]
    walk = Walk(links, Happening(BEFORE), None, NO_SUBJECT, 1.0)
    assert walk.has_hooks
    assert walk.turn(0.0) is CORE
    turn = walk.turn(0.0)
    assert isinstance(turn, Turn)
    walk.heard(ModuleReturn("timeout"))
    assert walk.turn(1.0) is None
    assert (walk.asked, walk.unasked) == (1, 1)


@pytest.mark.parametrize(
    "tools, types, happening, passes",
    [
        (None, None, Happening("tool.execute.after", "edit"), True),
        ({"edit"}, None, Happening("tool.execute.after", "edit"), True),
        ({"edit"}, None, Happening("tool.execute.before", "Edit"), False),
        ({"edit"}, None, Happening("tool.execute.before", None), False),
        (set(), None, Happening("tool.execute.before", "edit"), False),
        ({"edit"}, None, Happening("chat.message"), True),
        ({"edit"}, {"session.idle"}, Happening("event", None, "session.idle"), True),
        (None, {"session.idle"}, Happening("event", None, "session.error"), False),
        (None, {"session.idle"}, Happening("event"), False),
        (None, None, Happening("event", None, "my.type"), True),
        (None, {"session.idle"}, Happening("system.transform"), True),
        (None, None, Happening("interrupt"), False),
    ],
)
def test_filters_hold_where_they_mean_something(
    tools: set[str] | None, types: set[str] | None, happening: Happening, passes: bool
) -> None:
    """Tools for the events of a tool, types for `event`; to the letter, and what has no name passes none."""
    events = frozenset({"chat.message", BEFORE, "tool.execute.after", "system.transform", "event"})
    link = Link(
        *("i", "n", "r", events),
        tools=None if tools is None else frozenset(tools),
        event_types=None if types is None else frozenset(types),
    )
    assert link.is_for(happening) is passes


def test_a_system_prompt_is_edited_as_a_whole_and_the_core_comes_between_the_phases() -> None:
    """What a before hook and the core add is there for the after hook, whose word is the last."""
    event, payload = frozenset({"system.transform"}), {"system": ["a"], "session": "s"}
    links = ordered([Link("2", "late", "r", event), Link("1", "early", "r", event, "before")])
    walk = Walk(links, Happening("system.transform"), None, Subject(["a"], payload, "system", list), None)
    first = walk.turn(0.0)
    assert isinstance(first, Turn)
    assert first.link.name == "early"
    walk.heard(ModuleReturn("ok", edit=["a", "b"]))
    assert walk.turn(0.0) is CORE
    walk.append([])
    assert [each.handler for each in walk.answers()] == ["r:early"]
    walk.append(["pending", "functions"])
    decision = decided(walk, payload)
    assert decision.updated_input == {"system": ["a", "b", "pending", "functions"], "session": "s"}
    assert decision.changed_by == {"system": CORE_NAME}
    last = walk.turn(0.0)
    assert isinstance(last, Turn)
    assert last.value == ["a", "b", "pending", "functions"]
    walk.heard(ModuleReturn("ok", edit=["a"]))
    assert walk.answers() == []  # it is as it was


@pytest.mark.parametrize(
    "subject, edit",
    [
        (NO_SUBJECT, {"x": 1}),
        (Subject({}, {}, shape=dict), ["x"]),
        (Subject([], {}, "system", list), {"x": 1}),
        (Subject({}, {}, shape=dict), None),
    ],
)
def test_what_is_no_edit_of_this_event_changes_nothing(subject: Subject, edit: object) -> None:
    """A list is no arguments, an object no prompt, and most events have nothing to edit."""
    link = Link("i", "h", "r", frozenset({"x"}))
    walk = Walk([link], Happening("x"), "after", subject, None)
    walk.turn(0.0)
    walk.heard(ModuleReturn("ok", edit=edit))
    assert walk.answers() == []


def test_arguments_that_are_no_object_are_replaced_under_their_own_key() -> None:
    """A tool that was called with a text may be given an object instead."""
    payload = {"tool": "t", "args": "text"}
    walk = Walk(
        [Link("i", "h", "r", frozenset({BEFORE}))],
        *(Happening(BEFORE, "t"), "after", Subject("text", payload, "args", dict), None),
    )
    walk.turn(0.0)
    walk.heard(ModuleReturn("ok", edit={"text": "text"}))
    assert decided(walk, payload).updated_input == {"tool": "t", "args": {"text": "text"}}


@pytest.mark.parametrize(
    "one, other, is_same",
    [
        (1, 1.0, True),
        (1, True, False),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 2], False),
        ([1, {"a": "x"}], [1, {"a": "x"}], True),
        (None, False, False),
        ("1", 1, False),
        ([], {}, False),
    ],
)
def test_values_are_compared_as_json_means_them(one: object, other: object, is_same: bool) -> None:
    """A truth is no number, and a whole number is one however it is written."""
    assert same(one, other) is is_same
    assert same(other, one) is is_same
