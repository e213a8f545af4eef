"""Events put to the hooks of roles: order, edits, sessions, texts that wait, without processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from broker.protocol.events import Event
from subscribers.hooks.module_hook import ModuleCall, ModuleReturn
from subscribers.hooks.role_functions import Function, RoleFunctions
from subscribers.runner import roles_dispatch
from subscribers.runner.roles_dispatch import CLAIM_S, FUNCTIONS_TOPIC, LATE, NO_ROOM
from subscribers.runner.roles_lanes import PER_LANE
from subscribers.runner.roles_reports import OBSERVED
from tests.integration.waiting import until
from tests.subscribers.runner.fake_ask import SECONDS, FakeAsk
from tests.subscribers.runner.roles_stage import Stage, ok

BASH = {"tool": "Bash", "arguments": {"command": "ls"}}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage without roles."""
    made = Stage(str(tmp_path / "roles.db"))
    yield made
    made.close()


def appends(word: str) -> Any:
    """A handler that adds a word to the command."""

    def handle(call: ModuleCall) -> ModuleReturn:
        args = orjson.loads(call.input)["args"]
        return ok(edit={**args, "command": f"{args['command']} {word}"})

    return handle


def once(held: threading.Event) -> Any:
    """A handler that does nothing, once it may."""

    def handle(_: ModuleCall) -> ModuleReturn:
        assert held.wait(SECONDS)
        return ok()

    return handle


def test_hooks_of_one_event_see_each_other_s_edits_and_the_ask_returns_the_last(stage: Stage) -> None:
    """By phase and priority; a hook that fails is skipped, reported and logged, and only it."""
    stage.hook("late", "tool.execute.before", appends("4"))
    stage.hook("second", "tool.execute.before", appends("2"), "before", 20)
    stage.hook("broken", "tool.execute.before", lambda _: ModuleReturn("failed", error="no", detail="at x"))
    stage.hook("early", "tool.execute.before", appends("3"), "after", 1)
    stage.hook("first", "tool.execute.before", appends("1"), "before", 10)
    stage.hook("other", "tool.execute.before", appends("0"), tools=frozenset({"edit"}))
    stage.hook("without", "tool.execute.before", None)
    decision = stage.ask("tool_call_start", BASH).decision
    assert decision.updated_input == {"command": "ls 1 2 3 4"}
    assert decision.changed_by == {"command": "coder:late"}
    assert decision.conflicts == ()
    first = stage.hosts.calls[0][1]
    assert orjson.loads(first.input) == {"tool": "Bash", "args": {"command": "ls"}}
    assert (first.handler, first.session_id) == ("onToolBefore", "s")
    until(lambda: len(stage.runs()) == 5, "the reports")
    assert ("coder:broken", "failed", "no") in stage.runs()
    letters = [payload for topic, payload in stage.reports if topic == "prx.hooks.dead_letter"]
    assert [(each["hook"], each["dialect"], each["stderr"]) for each in letters] == [
        ("coder:broken", "rolebox", "at x")
    ]
    assert stage.dispatcher.outcomes == {"ok": 4, "failed": 1}


def test_an_agent_may_ask_for_each_phase(stage: Stage) -> None:
    """The hooks of one phase run in its ask, and what it hands on is what the second ones see."""
    stage.hook("late", "tool.execute.before", appends("after"))
    stage.hook("early", "tool.execute.before", appends("before"), "before")
    first = stage.ask("tool_call_start", {**BASH, "phase": "before"}).decision
    assert first.updated_input == {"command": "ls before"}
    second = {**BASH, "arguments": dict(first.updated_input), "phase": "after"}
    assert stage.ask("tool_call_start", second).decision.updated_input == {"command": "ls before after"}
    assert len(stage.hosts.calls) == 2


def test_injected_texts_are_one_element_of_the_next_prompt_and_then_gone(stage: Stage) -> None:
    """Joined by newlines, of its own session only; those of a before hook are in the same prompt."""
    stage.hook("check", "tool.execute.after", lambda call: ok("one", f"two {call.session_id}"))
    stage.hook("early", "system.transform", lambda _: ok("three"), "before")
    stage.ask("tool_call", {**BASH, "output": "x"}).wait()
    stage.ask("tool_call", {**BASH, "output": "x"}, "other").wait()
    assert stage.prompt() == ["base", "one\ntwo s\nthree"]
    assert stage.prompt() == ["base", "three"]
    assert stage.prompt("other") == ["base", "one\ntwo other\nthree"]


def test_a_text_that_an_after_hook_injects_waits_for_the_next_prompt(stage: Stage) -> None:
    """And so does one that is injected outside of a call; one without a session is lost, and counted."""
    stage.hook("late", "system.transform", lambda _: ok("later"))
    stage.dispatcher.injected("late", "s", "timer")
    stage.dispatcher.injected("late", None, "nobody's")
    assert stage.prompt() == ["base", "timer"]
    assert stage.prompt() == ["base", "later"]
    assert stage.dispatcher.counters()["without_session"] == 1


def test_a_prompt_that_does_not_arrive_takes_nothing_away(stage: Stage) -> None:
    """The asker had given up when it was answered: what waited waits for the next one."""
    held = threading.Event()
    stage.hook("slow", "system.transform", once(held))
    stage.dispatcher.injected("slow", "s", "text")
    ask = stage.ask("system_transform", {"system": []})
    ask.cancelled = True
    held.set()
    assert stage.prompt() == ["base", "text"]
    assert stage.prompt() == ["base"]


def test_what_waits_is_stored_before_the_ask_is_answered(stage: Stage, tmp_path: Path) -> None:
    """Another process that opens the file then finds text, role and functions."""
    stage.role("coder", RoleFunctions(("review",)))
    stage.hook("check", "chat.message", lambda _: ok("remember"))
    found: list[list[str]] = []

    def look() -> None:
        again = Stage(str(tmp_path / "roles.db"))
        again.role("coder")
        found.append(again.prompt())
        again.close()

    ask = FakeAsk(stage.event("user_prompt", {"prompt": "hi"}), SECONDS)
    ask.on_reply = look
    stage.dispatcher.ask(ask)
    ask.wait()
    assert found == [["base", "remember", "Active functions: review"]]


def test_hooks_of_a_role_fire_for_its_sessions_only(stage: Stage) -> None:
    """The role is named at the start, and holds for the session; an unknown one, or none, fires nothing."""
    stage.hook("one", "tool.execute.after event", lambda _: ok(), role="coder")
    stage.hook("two", "tool.execute.after", lambda _: ok(), role="reviewer")
    stage.dispatcher.event(stage.event("session_start", {"role": "coder"}, "a"))
    stage.dispatcher.event(stage.event("agent_start", {"role": "reviewer", "agent": "bob"}, "b"))
    stage.dispatcher.event(stage.event("session_start", {"role": "cook"}, "c"))
    for session in "abcd":
        stage.ask("tool_call", BASH, session).wait()
    called = [(hook, call.session_id, call.agent) for hook, call in stage.hosts.calls]
    assert called == [("/coder#one", "a", None), ("/coder#one", "a", None), ("/reviewer#two", "b", "bob")]


def test_only_of_a_session_it_is_said_that_it_fires_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event of no session, such as that the bus is ready, is nobody's mistake."""
    said: list[str] = []
    monkeypatch.setattr(roles_dispatch, "log", SimpleNamespace(warning=said.append))
    stage.hook("one", "tool.execute.after event", lambda _: ok(), role="coder")
    stage.hook("two", "event", lambda _: ok(), role="reviewer")
    stage.ask("gateway_startup", {}, None).wait()
    assert said == []
    stage.ask("tool_call", BASH, "a").wait()
    stage.ask("tool_call", BASH, "b").wait()
    assert said == ["a session that names no role fires nothing, because 2 are loaded"]
    stage.ask("session_start", {"role": "cook"}, None).wait()
    assert said[1:] == [
        "a session plays 'cook', a role that is not loaded: it fires nothing; loaded: coder, reviewer"
    ]


def test_every_session_is_every_role_s_where_that_is_configured(tmp_path: Path) -> None:
    """And the priority orders the hooks of all of them."""
    stage = Stage(str(tmp_path / "roles.db"), "all")
    stage.hook("one", "tool.execute.before", appends("2"), priority=60, role="coder")
    stage.hook("two", "tool.execute.before", appends("1"), role="reviewer")
    decision = stage.ask("tool_call_start", BASH, None).decision
    assert decision.updated_input == {"command": "ls 1 2"}
    stage.close()


def test_the_first_message_activates_functions_and_a_prompt_names_them(stage: Stage) -> None:
    """Once; locked ones stay whatever is asked for, and a session that begins anew has none."""
    role = RoleFunctions(
        ("review", "tests"), frozenset({"review"}), {"plan": Function("plan", "Look before you leap.")}
    )
    stage.role("coder", role)
    asked = stage.ask(FUNCTIONS_TOPIC, {}).decision
    assert asked.output == {"active": [], "locked": []}
    stage.dispatcher.event(stage.event("user_prompt", {"prompt": "hello"}))
    stage.ask("user_prompt", {"prompt": "|plan| it"}).wait()
    assert stage.prompt() == [
        "base",
        "Active functions: review (locked), tests, plan\n\n## plan\nLook before you leap.",
    ]
    asked = stage.ask(FUNCTIONS_TOPIC, {"deactivate": ["review", "tests", "plan"], "activate": "x"}).decision
    assert asked.output == {"active": ["review"], "locked": ["review"]}
    stage.dispatcher.event(stage.event("session_reset", {}))
    assert stage.prompt() == ["base"]


def test_a_session_that_plays_another_role_leaves_the_functions_of_the_one_before(stage: Stage) -> None:
    """Locked ones too; the same role by its other name, or once more, is no other one."""
    stage.role("coder", RoleFunctions(("review",), frozenset({"review"})), "The Coder")
    stage.role("cook", RoleFunctions(("taste",)))
    stage.ask("session_start", {"role": "coder"}).wait()
    stage.ask("user_prompt", {"prompt": "hello"}).wait()
    for role in ("coder", "The Coder"):
        stage.ask("session_start", {"role": role}).wait()
        assert stage.prompt() == ["base", "Active functions: review (locked)"]
    stage.ask("agent_start", {"role": "cook"}).wait()
    assert stage.prompt() == ["base"]
    stage.ask("user_prompt", {"prompt": "hello"}).wait()
    assert stage.prompt() == ["base", "Active functions: taste"]


def test_events_of_one_session_are_handled_in_their_order_and_others_meanwhile(tmp_path: Path) -> None:
    """The second event of a session waits for the first; another session does not."""
    stage = Stage(str(tmp_path / "roles.db"))
    waiting: dict[str, Any] = {}

    def later(hook_id: str, call: ModuleCall, done: Any, /) -> None:
        waiting[f"{call.session_id}{orjson.loads(call.input)['output']}"] = done

    stage.hook("h", "tool.execute.after", None)
    stage.hosts.call = later  # type: ignore[method-assign]
    asks = {f"{s}{n}": stage.ask("tool_call", {**BASH, "output": n}, s) for n in (1, 2) for s in "ab"}
    assert sorted(waiting) == ["a1", "b1"]
    assert stage.dispatcher.lanes.waiting == 2
    waiting["b1"](ok())
    assert asks["b1"].wait().answers == []
    assert sorted(waiting) == ["a1", "b1", "b2"]
    for key in ("a1", "a2", "b2"):
        waiting[key](ok())
    assert all(ask.answered.is_set() for ask in asks.values())
    assert stage.dispatcher.lanes.running == 0
    stage.close()


def test_what_a_hook_asks_in_its_own_session_does_not_wait_for_itself(tmp_path: Path) -> None:
    """Its event is under way, and so is what led to that; a hook is told depth and cause of what it asks."""
    stage, answers = Stage(str(tmp_path / "roles.db")), list[tuple[str, int, str | None]]()
    events = ["user_prompt", "tool_call_start", "tool_call"]
    stage.hook("h", "chat.message tool.execute.before tool.execute.after", lambda _: ok())
    asks: list[FakeAsk] = []

    def begin(cause: Event | None) -> FakeAsk:
        asks.append(FakeAsk(stage.event(events[len(asks)], BASH, cause=cause), SECONDS))
        stage.dispatcher.ask(asks[-1])
        return asks[-1] if cause is None else asks[cause.depth + 1]

    def ask_within(hook_id: str, call: ModuleCall, done: Any) -> None:
        answers.append((call.handler, call.depth, call.cause))
        if len(asks) < len(events):
            assert begin(asks[-1].event).answered.is_set()
        done(ok())

    stage.hosts.call = ask_within  # type: ignore[method-assign]
    begin(None)
    assert [ask.answered.is_set() for ask in asks] == [True] * 3
    told = zip(("onChatMessage", "onToolBefore", "onToolAfter"), (1, 2, 3), asks, strict=True)
    assert answers == [(handler, depth, ask.event.id) for handler, depth, ask in told]
    assert stage.dispatcher.lanes.running == 0
    stage.close()


def test_other_events_may_be_asked_about_too(stage: Stage) -> None:
    """The handler of all others has its type and properties, and answers nothing."""
    stage.hook("watch", "event", lambda _: ok("idle"))
    ask = stage.ask("turn_complete", {"tokens": 3}).wait()
    assert (ask.answers, ask.error) == ([], None)
    ((_, call),) = stage.hosts.calls
    assert (call.handler, orjson.loads(call.input)) == (
        "onEvent",
        {"type": "session.idle", "properties": {"tokens": 3}},
    )
    assert stage.prompt() == ["base", "idle"]


def test_an_event_is_handled_once_however_it_comes(stage: Stage) -> None:
    """Ask, then copy: nothing more. Copy, then ask: the ask gets what came of it."""
    stage.hook("guard", "tool.execute.before", appends("1"))
    ask = stage.ask("tool_call_start", BASH)
    ask.wait()
    stage.dispatcher.event(ask.event)
    copy = stage.event("tool_call_start", BASH)
    stage.dispatcher.event(copy)
    assert len(stage.hosts.calls) == 1
    late = FakeAsk(copy, SECONDS)
    stage.dispatcher.ask(late)
    assert late.decision.updated_input == {"command": "ls 1"}
    later = FakeAsk(copy, SECONDS)
    stage.dispatcher.ask(later)
    assert later.decision.updated_input == {"command": "ls 1"}
    assert len(stage.hosts.calls) == 2
    assert stage.hosts.calls[1][1].timeout_s <= 5.0


def test_an_edit_that_nobody_asked_for_is_reported_as_observed(stage: Stage) -> None:
    """It runs once no ask has come for a moment, and the events behind it keep their order."""
    stage.hook("guard", "tool.execute.before", appends("1"))
    stage.hook("watch", "tool.execute.after", lambda _: ok())
    stage.dispatcher.event(stage.event("tool_call_start", BASH))
    stage.dispatcher.event(stage.event("tool_call", BASH))
    stage.dispatcher.event(stage.event("tool_call", BASH, "other"))
    until(lambda: stage.runs() == [("coder:watch", "ok", None)], "the report of the other session")
    stage.dispatcher.tick(time.monotonic())
    assert stage.dispatcher.counters()["runs_waiting"] == 2
    stage.dispatcher.tick(time.monotonic() + CLAIM_S)
    until(lambda: len(stage.runs()) == 3, "the reports")
    assert stage.runs()[1:] == [("coder:guard", "ok", OBSERVED), ("coder:watch", "ok", None)]


def test_a_prompt_that_is_only_published_takes_nothing_away(stage: Stage) -> None:
    """It waits for its ask, and without one its hooks run, but what waits goes on to."""
    stage.hook("watch", "system.transform", lambda _: ok())
    stage.dispatcher.injected("watch", "s", "text")
    published = stage.event("system_transform", {"system": []})
    stage.dispatcher.event(published)
    assert stage.hosts.calls == []
    stage.dispatcher.tick(time.monotonic() + CLAIM_S)
    until(lambda: len(stage.hosts.calls) == 1, "the call")
    assert stage.prompt() == ["base", "text"]


def test_a_late_guard_is_not_run_and_a_late_observer_is(stage: Stage) -> None:
    """Nobody waits for either: one is of no use any more, the other tells of what has happened."""
    held = threading.Event()
    stage.hook("slow", "chat.message", once(held))
    stage.hook("guard", "tool.execute.before", appends("1"))
    stage.hook("watch", "tool.execute.after", lambda _: ok("seen"))
    stage.ask("user_prompt", {"prompt": "x"})
    late = [stage.ask("tool_call_start", BASH), stage.ask("tool_call", BASH)]
    for ask in late:
        ask.deadline = 0.0
    held.set()
    assert [late[0].wait().error, late[1].wait().answers] == [LATE, []]
    assert [hook for hook, _ in stage.hosts.calls] == ["/coder#slow", "/coder#watch"]
    stage.ask("tool_call", BASH, seconds=-1.0)
    assert stage.dispatcher.others["late"] == 3


@pytest.mark.parametrize("payload", [b"[]", b"{", b'{"system": 1, "tool": 2, "args": 3, "phase": 4}'])
def test_what_is_no_event_keeps_nobody_waiting(stage: Stage, payload: bytes) -> None:
    """It fails or is handled as far as it can be, and the next event of the session is handled."""
    stage.hook("h", "tool.execute.before system.transform", lambda _: ok())
    for name in ("tool_call_start", "system_transform", FUNCTIONS_TOPIC):
        ask = stage.ask(name, payload).wait()
        assert (ask.error is None) is (payload.endswith(b"4}"))
    assert stage.ask("tool_call_start", BASH).decision.updated_input is None


def test_events_of_a_session_that_find_no_room_are_counted_and_said(stage: Stage) -> None:
    """The ask fails at once, and what waits is handled."""
    held = threading.Event()
    stage.hook("slow", "chat.message", once(held))
    asks = [stage.ask("user_prompt", {"prompt": "x"}) for _ in range(PER_LANE + 2)]
    assert asks[-1].error == NO_ROOM
    held.set()
    assert [ask.wait().error for ask in asks[:-1]] == [None] * (PER_LANE + 1)
    assert stage.dispatcher.counters()["runs_dropped"] == 1


def test_many_hooks_without_a_handler_are_passed_over(stage: Stage) -> None:
    """Whatever is answered at once adds nothing to the stack."""
    stage.hook(" ".join(f"h{number}" for number in range(1_500)), "tool.execute.before", None)
    stage.hook("last", "tool.execute.before", appends("1"), priority=99)
    assert stage.ask("tool_call_start", BASH).decision.updated_input == {"command": "ls 1"}


@pytest.mark.parametrize("value", ["half a \ud83d", 2**80, {1: 2}])
def test_an_edit_that_cannot_be_sent_is_one_hook_s_failure(stage: Stage, value: object) -> None:
    """The others of the event are called, and their edits are answered."""
    stage.hook("bad", "tool.execute.before", lambda _: ok(edit={"command": value}))
    stage.hook("good", "tool.execute.before", appends("1"))
    assert stage.ask("tool_call_start", BASH).decision.updated_input == {"command": "ls 1"}
    until(lambda: len(stage.runs()) == 2, "the reports")
    assert stage.runs()[0][:2] == ("coder:bad", "failed")
    assert "cannot be handed on" in str(stage.runs()[0][2])


def test_half_a_character_that_is_injected_spoils_no_prompt(stage: Stage) -> None:
    """It is replaced; whole ones are as they were."""
    stage.hook("h", "tool.execute.after", lambda _: ok("half \ud83d", "whole \U0001f600"))
    stage.ask("tool_call", BASH).wait()
    assert stage.prompt() == ["base", "half \ufffd\nwhole \U0001f600"]


def test_nobody_sees_a_result_before_it_was_transformed(stage: Stage) -> None:
    """The ask with a tool's raw output is passed over; its copy, which does not have it, is an event."""
    stage.hook("watch", "event", lambda _: ok())
    ask = stage.ask("tool_result", {"tool": "Bash", "output": "secret"})
    assert ask.wait().answers == []
    stage.dispatcher.event(replace(ask.event, payload_bytes=b'{"tool": "Bash"}'))
    until(lambda: len(stage.runs()) == 1, "the report")
    assert [b"secret" in call.input for _, call in stage.hosts.calls] == [False]


def test_a_hook_that_is_out_of_force_is_not_called(stage: Stage) -> None:
    """Nor is it reported with each event, until it is back."""
    stage.hook("bad", "tool.execute.before", appends("bad"))
    stage.hook("good", "tool.execute.before", appends("good"))
    stage.dispatcher.out = frozenset({"/coder#bad"})
    assert stage.ask("tool_call_start", BASH).decision.updated_input == {"command": "ls good"}
    stage.dispatcher.out = frozenset()
    assert stage.ask("tool_call_start", BASH).decision.updated_input == {"command": "ls bad good"}


def test_an_event_that_no_hook_listens_to_costs_nothing(stage: Stage) -> None:
    """Nothing is remembered of it."""
    stage.hook("h", "tool.execute.before", lambda _: ok())
    stage.dispatcher.event(stage.event("llm_request", b"no json"))
    stage.dispatcher.event(stage.event("my.topic", b"no json"))
    assert stage.dispatcher.outcomes == {}
    assert stage.ask("error", {"message": "x"}).wait().answers == []
