"""One file of handlers over time: which worker is in service, which comes, which leaves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from subscribers.runner import python_unit
from subscribers.runner.python_unit import LEAVE_SECONDS, READY_SECONDS, SHRINK_SECONDS, Unit
from subscribers.runtimes.python_board import Underway
from subscribers.sources.handlers import HandlerUnit

UNIT = HandlerUnit("guard.py", "/w/guard.py", "named")
REFUSAL = {
    "is": "refused",
    "diagnostic": {
        "severity": "error",
        "code": "cannot_load",
        "path": "/w/guard.py",
        "line": 1,
        "column": None,
        "field": None,
        "message": "no",
        "hint": None,
    },
}
READY = {"is": "ready", "at_ns": 77}


class Fake:
    """A worker's process that notes what it is told."""

    def __init__(self, pid: int, share: str | None) -> None:
        self.pid = pid
        self.share = share
        self.started = 0.0
        self.counts: Mapping[str, int] = {}
        self.guards: tuple[str, ...] = ()
        self.is_ready = False
        self.kill_at: float | None = None
        self.said: list[Mapping[str, Any]] = []
        self.killed: list[str] = []
        self.late: list[Underway] = []
        self.ends = 0
        self.edits = 0

    def say(self, message: Mapping[str, Any]) -> None:
        """Hear it."""
        self.said.append(message)

    def overdue(self, now: float) -> list[Underway]:
        """What the test wants."""
        return self.late

    def kill(self, why: str) -> None:
        """Note why."""
        self.killed.append(why)

    def end(self) -> None:
        """Count it."""
        self.ends += 1

    @property
    def orders(self) -> list[Any]:
        """What it was told to do."""
        return [message["do"] for message in self.said]


class Stage:
    """A unit, and every process that it has started."""

    def __init__(self) -> None:
        self.started: list[Fake] = []
        self.fails = False
        self.edits = 0
        self.unit = Unit(UNIT, "digest", self.start)

    def start(self, unit: HandlerUnit, share: str | None, restarts: int) -> Fake:
        """Start one."""
        if self.fails:
            raise OSError(11, "no room")
        self.started.append(Fake(len(self.started), share))
        self.started[-1].edits = self.edits
        return self.started[-1]

    def hear(self, process: Fake, message: Mapping[str, Any], now: float = 0.0) -> None:
        """A process says something."""
        self.unit.heard(process, message, now)


def in_service() -> Stage:
    """One with a worker in service."""
    stage = Stage()
    stage.unit.load(0.0)
    stage.hear(stage.started[0], {"is": "loaded", "counts": {"decide": 2}})
    stage.hear(stage.started[0], READY)
    assert stage.unit.current is stage.started[0]
    return stage


def changing() -> Stage:
    """One whose next worker is coming."""
    stage = in_service()
    stage.unit.load(1.0)
    stage.hear(stage.started[0], {"is": "sharing"}, 1.0)
    assert stage.unit.coming is stage.started[1]
    return stage


def test_the_first_worker_needs_nobodys_leave() -> None:
    """It is started at once, without claims, and is in service when it is ready."""
    stage = in_service()
    assert stage.started[0].share is None
    assert stage.unit.settled
    assert stage.unit.counts == {"decide": 2}
    assert stage.unit.due is None


def test_a_change_is_loaded_beside_and_takes_over_when_ready() -> None:
    """Claims first, then the new one, then the old one leaves, then claims end and their folder goes."""
    stage = changing()
    old, new = stage.started
    assert old.orders == ["share"]
    assert new.share == old.said[0]["directory"]
    assert new.share is not None
    assert os.path.isdir(new.share)
    stage.hear(new, READY, 2.0)
    assert stage.unit.current is new
    assert old.said[-1] == {"do": "retire", "after_ns": 77}
    assert stage.unit.due == 2.0 + LEAVE_SECONDS
    stage.hear(old, {"is": "retired"}, 2.0)
    stage.unit.ended(old, "in order", 3.0)
    assert new.orders == ["alone"]
    assert os.path.isdir(new.share)
    stage.hear(new, {"is": "alone"}, 3.0)
    assert not os.path.exists(new.share)
    assert stage.unit.processes == [new]


def test_an_edit_during_a_change_is_loaded_after_it() -> None:
    """However many edits there were, once; and an old worker's late end does not end the newer change."""
    stage = changing()
    old, new = stage.started
    stage.unit.load(1.5)
    stage.unit.load(1.6)
    stage.hear(new, READY, 2.0)
    stage.hear(old, {"is": "retired"}, 2.0)
    stage.hear(new, {"is": "alone"}, 2.0)
    assert new.orders == ["alone", "share"]
    stage.unit.ended(old, "in order", 2.5)
    assert new.orders == ["alone", "share"]
    stage.hear(new, {"is": "sharing"}, 2.6)
    assert len(stage.started) == 3


def test_what_is_refused_leaves_the_version_before_in_force() -> None:
    """The old one goes on alone, and the same content is not tried again."""
    stage = changing()
    old, new = stage.started
    stage.hear(new, REFUSAL, 2.0)
    assert stage.unit.ended(new, "it ended by itself with 1", 2.0)
    assert stage.unit.current is old
    assert old.orders == ["share", "alone"]
    stage.hear(old, {"is": "alone"}, 2.0)
    assert stage.unit.due is None
    stage.unit.look(1_000.0)
    assert len(stage.started) == 2


def test_what_does_not_come_without_a_word_is_tried_again() -> None:
    """A new worker that dies or cannot be started may do better later; the old one serves meanwhile."""
    stage = changing()
    old, new = stage.started
    stage.unit.ended(new, "it was ended by SIGKILL", 2.0)
    stage.hear(old, {"is": "alone"}, 2.0)
    assert stage.unit.current is old
    due = stage.unit.due
    assert due is not None
    stage.unit.look(due)
    stage.fails = True
    stage.hear(old, {"is": "sharing"}, due)
    stage.hear(old, {"is": "alone"}, due)
    assert stage.unit.due is not None
    stage.fails = False
    stage.unit.look(stage.unit.due)
    stage.hear(old, {"is": "sharing"}, due)
    assert len(stage.started) == 3


@pytest.mark.parametrize("serves", [False, True])
def test_a_file_that_ends_its_process_when_it_is_loaded_is_not_tried_all_the_time(
    serves: bool, said: list[dict[str, Any]]
) -> None:
    """After pauses that double from a second, and it is said what is in force; an edit is loaded at once."""
    stage = in_service() if serves else Stage()
    now, pauses = 0.0, []
    stage.unit.load(now)
    for _ in range(6):
        if serves:
            stage.hear(stage.started[0], {"is": "sharing"}, now)
        stage.unit.ended(stage.started[-1], "it ended by itself with 3", now)
        if serves:
            stage.hear(stage.started[0], {"is": "alone"}, now)
        due = stage.unit.due
        assert due is not None
        pauses.append(due - now)
        now = due
        stage.unit.look(now)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    kept = "the version before stays in force" if serves else "nothing of it is in force"
    assert [(each["kept"], each["again_in_s"]) for each in said] == [(kept, pause) for pause in pauses]
    assert (stage.unit.refusal or "").endswith("could not be loaded: it ended by itself with 3")
    if serves:
        stage.hear(stage.started[0], {"is": "sharing"}, now)
    stage.unit.load(now)  # an edit, while it is being loaded once more
    stage.unit.ended(stage.started[-1], "it ended by itself with 3", now)
    if serves:
        stage.hear(stage.started[0], {"is": "alone"}, now)
        stage.hear(stage.started[0], {"is": "sharing"}, now)
    stage.hear(stage.started[-1], READY, now)
    assert (stage.unit.current, stage.unit.refusal) == (stage.started[-1], None)


def test_one_that_never_gets_ready_is_killed() -> None:
    """A file that takes for ever to load costs its time, and is told as not loaded."""
    stage = changing()
    new = stage.started[1]
    stage.unit.look(1.0 + READY_SECONDS - 0.1)
    assert new.killed == []
    stage.unit.look(1.0 + READY_SECONDS)
    assert new.killed == ["it took too long"]


def test_a_dead_worker_is_started_again_after_a_pause() -> None:
    """The pauses grow while it keeps dying."""
    stage = in_service()
    pauses = []
    for turn in range(4):
        assert not stage.unit.ended(stage.started[-1], "it was ended by SIGSEGV", 0.0)
        due = stage.unit.due
        assert due is not None
        pauses.append(due)
        stage.unit.look(due)
        stage.hear(stage.started[-1], READY, 0.0)
        assert stage.unit.restarts.count == turn + 1
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1]


def test_one_that_dies_while_another_comes_is_replaced_by_that_one() -> None:
    """No third one is started."""
    stage = changing()
    old, new = stage.started
    assert not stage.unit.ended(old, "it was ended by SIGKILL", 2.0)
    stage.hear(new, READY, 2.5)
    assert stage.unit.current is new
    assert new.orders == ["alone"]
    stage.unit.look(100.0)
    assert len(stage.started) == 2


def test_one_that_dies_before_it_has_answered_is_started_again() -> None:
    """The change that it was told of begins without claims."""
    stage = in_service()
    stage.unit.load(1.0)
    stage.unit.ended(stage.started[0], "it was ended by SIGKILL", 2.0)
    due = stage.unit.due
    assert due is not None
    stage.unit.look(due)
    assert stage.started[1].share is None


def test_a_condemned_worker_stays_until_another_is_ready() -> None:
    """Its file is loaded again beside it, once, and it leaves as for any change."""
    stage = in_service()
    stage.hear(stage.started[0], {"is": "condemned", "handler": "f"}, 1.0)
    stage.hear(stage.started[0], {"is": "condemned", "handler": "g"}, 1.0)
    stage.hear(stage.started[0], {"is": "sharing"}, 1.0)
    stage.hear(stage.started[1], READY, 2.0)
    assert stage.started[0].orders == ["share", "retire"]
    assert len(stage.started) == 2


def test_a_frozen_worker_is_killed() -> None:
    """It should have told that a call's time is over, and has not."""
    stage = in_service()
    stage.started[0].late = [Underway(1, "guard.py:f", "id")]
    stage.unit.look(5.0)
    assert stage.started[0].killed == ["guard.py:f did not end in time, and nothing could interrupt it"]


def test_a_file_without_such_handlers_needs_no_worker() -> None:
    """At the start and after an edit: the one before leaves, and nothing is tried again."""
    stage = changing()
    old, new = stage.started
    stage.hear(new, {"is": "idle", "counts": {"transform": 1}}, 2.0)
    stage.unit.ended(new, "it ended by itself with 0", 2.0)
    assert stage.unit.current is None
    assert old.orders == ["share", "retire"]
    stage.unit.ended(old, "it ended by itself with 0", 3.0)
    assert (stage.unit.processes, stage.unit.due) == ([], None)


def guarded(*guards: str) -> tuple[Stage, Fake, Fake]:
    """One with two guards in service, and one that comes, at 2 s, with ``guards``."""
    stage = Stage()
    stage.unit.load(0.0)
    stage.hear(stage.started[0], {"is": "loaded", "counts": {"decide": 2}, "guards": ["g", "h"]})
    stage.hear(stage.started[0], READY)
    stage.unit.load(1.0)
    stage.hear(stage.started[0], {"is": "sharing"}, 1.0)
    old, new = stage.started
    if guards:
        stage.hear(new, {"is": "loaded", "counts": {"decide": len(guards)}, "guards": guards}, 2.0)
        stage.hear(new, READY, 2.0)
    else:
        stage.hear(new, {"is": "idle", "counts": {}}, 2.0)
        stage.unit.ended(new, "it ended by itself with 0", 2.0)
        stage.hear(old, {"is": "alone"}, 2.0)
    return stage, old, new


class Log:
    """Notes the facts of warnings and errors."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def info(self, text: str, **facts: Any) -> None:
        """Nobody has to do anything about it."""

    def warning(self, text: str, **facts: Any) -> None:
        """Note it."""
        self.said.append(facts)

    error = warning


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The facts of every warning and error."""
    log = Log()
    monkeypatch.setattr(python_unit, "log", log)
    return log.said


@pytest.mark.parametrize("guards", [(), ("h",)])
def test_a_version_that_lacks_guards_takes_over_a_moment_later(
    guards: tuple[str, ...], said: list[dict[str, Any]]
) -> None:
    """Those before stay in force until the file has stood still for a while; then it is said which go."""
    stage, old, new = guarded(*guards)
    stage.unit.look(2.0 + SHRINK_SECONDS - 0.1)
    assert stage.unit.current is old
    assert said == []
    stage.unit.look(2.0 + SHRINK_SECONDS)
    assert stage.unit.current is (new if guards else None)
    assert "retire" in old.orders
    (warning,) = said
    assert warning["guards"] == [name for name in ("g", "h") if name not in guards]
    stage.unit.look(50.0)
    assert len(said) == 1


@pytest.mark.parametrize("guards", [(), ("h",)])
def test_a_half_saved_file_takes_no_guard_away(guards: tuple[str, ...], said: list[dict[str, Any]]) -> None:
    """An edit within that moment: the half version never takes over, and the whole one does at once."""
    stage, old, new = guarded(*guards)
    stage.unit.load(2.0 + SHRINK_SECONDS / 2)
    stage.unit.look(2.0 + SHRINK_SECONDS)
    if guards:
        assert new.killed == ["its file has changed meanwhile"]
        stage.unit.ended(new, "it was ended by SIGKILL", 3.0)
        stage.hear(old, {"is": "alone"}, 3.0)
    assert stage.unit.current is old
    stage.hear(old, {"is": "sharing"}, 3.0)
    whole = stage.started[2]
    stage.hear(whole, {"is": "loaded", "counts": {"decide": 3}, "guards": ["g", "h", "i"]}, 3.0)
    stage.hear(whole, READY, 3.0)
    assert stage.unit.current is whole
    assert said == []


def test_guards_of_a_file_that_is_gone_are_named(said: list[dict[str, Any]]) -> None:
    """Whoever deletes a file learns what is no longer in force."""
    stage, _, _ = guarded("g", "h")
    stage.unit.remove(3.0)
    assert [warning["guards"] for warning in said] == [["g", "h"]]


@pytest.mark.parametrize("make", [in_service, changing])
def test_a_file_that_is_gone_takes_its_workers_along(make: Any) -> None:
    """The one in service leaves in order, one that was coming is killed, and nothing is started again."""
    stage = make()
    stage.unit.remove(2.0)
    for process in stage.started:
        stage.unit.ended(process, "gone", 3.0)
    assert stage.unit.processes == []
    stage.unit.look(1_000.0)
    assert stage.unit.due is None
    assert [process.orders[-1:] or process.killed for process in stage.started] == (
        [["retire"]] if len(stage.started) == 1 else [["retire"], ["its file is gone"]]
    )
    assert not any(process.share and os.path.exists(process.share) for process in stage.started)


def test_at_the_end_everything_is_told_to_end() -> None:
    """And nothing is started any more."""
    stage = changing()
    stage.unit.end()
    assert [process.ends for process in stage.started] == [1, 1]
    for process in stage.started:
        stage.unit.ended(process, "in order", 3.0)
    stage.unit.look(1_000.0)
    assert len(stage.started) == 2


class Life(RuleBasedStateMachine):
    """Any order of edits, deaths, freezes and answers: workers do what they are told, or die."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()
        self.now = 0.0
        self.edits = 0
        self.edit()

    @property
    def alive(self) -> list[Any]:
        """Processes that have not ended."""
        return self.stage.unit.processes

    @rule()
    def edit(self) -> None:
        """The file gets other content."""
        self.edits += 1
        self.stage.edits = self.edits
        self.stage.unit.load(self.now)

    @rule(seconds=st.floats(0.01, 20.0))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds
        self.stage.unit.look(self.now)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """A process ends by itself."""
        process = data.draw(st.sampled_from(self.alive))
        self.stage.unit.ended(process, "it was ended by SIGKILL", self.now)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        """A process does the next thing that it was told, or gets ready."""
        self._answer(data.draw(st.sampled_from(self.alive)))

    def _answer(self, process: object) -> bool:
        unit = self.stage.unit
        assert isinstance(process, Fake)
        if process.killed:
            unit.ended(process, process.killed[-1], self.now)
            return True
        if process is unit.coming and not process.is_ready:
            process.is_ready = True
            guards = ["g"] if process.edits % 2 else []
            self.stage.hear(process, {"is": "loaded", "guards": guards}, self.now)
            self.stage.hear(process, READY, self.now)
            return True
        if not process.said:
            return False
        order = process.said.pop(0)["do"]
        if order == "retire":
            self.stage.hear(process, {"is": "retired"}, self.now)
            self.stage.unit.ended(process, "it ended by itself with 0", self.now)
        else:
            self.stage.hear(process, {"is": {"share": "sharing", "alone": "alone"}[order]}, self.now)
        return True

    @invariant()
    def one_in_service_and_one_that_comes(self) -> None:
        """There are never two that come, and a share belongs to a change that is under way."""
        unit = self.stage.unit
        assert unit.coming is None or unit.coming is not unit.current
        assert len(set(map(id, self.alive))) == len(self.alive)
        share = None if unit.coming is None else unit.coming.share
        assert share is None or os.path.isdir(share)

    def teardown(self) -> None:
        """Left alone, everything settles: one worker, started after the last edit, and no claims."""
        for _ in range(200):
            if any(self._answer(process) for process in self.alive):
                continue
            due = self.stage.unit.due
            if due is None:
                break
            self.now = max(self.now, due)
            self.stage.unit.look(self.now)
        unit = self.stage.unit
        assert unit.processes == [unit.current]
        assert [p.edits for p in self.stage.started if p is unit.current] == [self.edits]
        assert not any(p.share and os.path.exists(p.share) for p in self.stage.started)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
