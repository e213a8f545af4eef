"""Events and asks, the handlers of one file, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from broker.client.context import current
from broker.protocol.decisions import Answer
from broker.protocol.events import Event
from subscribers.handlers import Registration, decide, on
from subscribers.handlers.registration import collected
from subscribers.runner.python_claims import Claims
from subscribers.runner.python_dispatch import HandlerDispatcher, Limits
from subscribers.runner.python_lanes import Task
from subscribers.runner.python_reports import OBSERVED, Reporter
from subscribers.runtimes.python_caller import Caller
from subscribers.runtimes.python_threads import Threads

DEADLINE_S = 20.0


class Question:
    """An ask, and what was answered."""

    def __init__(self, event: Event, seconds: float = DEADLINE_S) -> None:
        self.event = event
        self.deadline = time.monotonic() + seconds
        self.cancelled = False
        self.told = threading.Event()
        self.answers: list[Answer] | None = None
        self.why: str | None = None

    def reply(self, answers: Iterable[Answer]) -> bool:
        """Answer, with what can be sent."""
        found = list(answers)
        for answer in found:
            if answer.system_message == "unsendable":
                raise ValueError("cannot be packed")
        assert not self.told.is_set()
        self.answers = found
        self.told.set()
        return True

    def fail(self, why: str) -> bool:
        """Say that there is no answer."""
        assert not self.told.is_set()
        self.why = why
        self.told.set()
        return True


def event(topic: str = "prx.lifecycle.x", payload: Any = None, sequence: int = 1, depth: int = 0) -> Event:
    """One event."""
    body = orjson.dumps({} if payload is None else payload)
    return Event.of(topic, depth, bytes(16), sequence, 0, "s1", "agent", None, body)


class Stage:
    """A dispatcher, what it has published and reported."""

    def __init__(self, registrations: list[Registration], limits: Limits) -> None:
        self.published: list[tuple[Event, str, Mapping[str, Any], str | None]] = []
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.caller = Caller()
        self.threads = Threads("dispatch of a test")
        self.reporter = Reporter(lambda topic, payload, _: self.reports.append((topic, payload)))
        self.dispatcher = HandlerDispatcher(
            registrations,
            name="f.py",
            publish=self.publish,
            caller=self.caller,
            threads=self.threads,
            reporter=self.reporter,
            limits=limits,
        )

    def publish(
        self, about: Event, topic: str, payload: Mapping[str, Any], /, *, session_id: str | None
    ) -> bool:
        """Note what a handler publishes."""
        self.published.append((about, topic, payload, session_id))
        return True

    def do(self, tasks: list[Task]) -> int:
        """Make the calls, here and now; how many there were."""
        for task in tasks:
            task(lambda: None)
        return len(tasks)

    def ask(self, question: Question, failure: Any = "open") -> int:
        """Put an ask."""
        return self.do(self.dispatcher.ask(question, failure))

    def close(self) -> None:
        """Report what is left."""
        self.reporter.close()
        self.caller.close()
        self.threads.close()


Open = Callable[..., Stage]


@pytest.fixture
def stage() -> Iterator[Open]:
    """Opens a stage for the functions that a definition decorates."""
    opened: list[Stage] = []

    def make(define: Callable[[], object], limits: Limits | None = None) -> Stage:
        with collected() as found:
            define()
        opened.append(Stage(found, limits or Limits()))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def runs(on_stage: Stage) -> list[dict[str, Any]]:
    """The reports of runs, all of them."""
    on_stage.reporter.close()
    return [payload for topic, payload in on_stage.reports if topic == "prx.hooks.run"]


def test_an_ask_is_answered_by_the_guards_that_it_is_for(stage: Open) -> None:
    """By topic, filter and policy; in the order of the file, each with its name and priority."""

    def define() -> None:
        decide("x", priority=5)(lambda e, c: c.deny(f"first {e.payload['tool']}"))
        decide("x", tools=["Bash"])(lambda e, c: c.context("second"))
        decide("x", tools=["Read"])(lambda e, c: c.deny("not for this tool"))
        decide("y")(lambda e, c: c.deny("not for this topic"))
        decide("x", failure="closed")(lambda e, c: c.deny("not asked here"))
        on("x")(lambda e, c: None)

    at = stage(define)
    question = Question(event(payload={"tool": "Bash"}))
    assert at.ask(question) == 2
    assert [(a.reason, a.contexts, a.priority) for a in question.answers or ()] == [
        ("first Bash", (), 5),
        (None, ("second",), 0),
    ]
    closed = Question(event(payload={"tool": "Bash"}))
    assert at.ask(closed, "closed") == 1
    assert [answer.reason for answer in closed.answers or ()] == ["not asked here"]


def test_nobody_concerned_answers_at_once(stage: Open) -> None:
    """No guard for a topic or a tool: there is nothing to say."""
    at = stage(lambda: decide("x", tools=["Bash"])(lambda e, c: c.deny("no")))
    question = Question(event(payload={"tool": "Read"}))
    assert (at.ask(question), question.answers) == (0, [])


def test_late_and_cancelled_asks_start_nothing(stage: Open) -> None:
    """Nobody would hear the answer."""
    at = stage(lambda: decide("x")(lambda e, c: c.deny("no")))
    late, cancelled = Question(event(), seconds=-1), Question(event())
    cancelled.cancelled = True
    assert (at.ask(late), at.ask(cancelled)) == (0, 0)
    assert at.dispatcher.counters()["runs"] == {"late": 2}


def test_a_payload_that_cannot_be_had_is_a_failure(stage: Open) -> None:
    """A guard that filters by it cannot tell, so the ask fails; a watcher is not called, which is counted."""

    def define() -> None:
        decide("x", tools=["Bash"])(lambda e, c: None)
        on("z", tools=["Bash"])(lambda e, c: None)

    at = stage(define)
    question = Question(replace(event(), payload_bytes=b"not json"))
    assert at.ask(question) == 0
    assert (question.why or "").startswith("the payload cannot be had")
    assert at.dispatcher.event(replace(event("prx.lifecycle.z"), payload_bytes=b"[]")) == []
    assert at.dispatcher.counters()["runs"] == {"unreadable": 1}


@pytest.mark.parametrize("first", ["ask", "copy"])
def test_a_guard_runs_once_for_an_event(stage: Open, first: str) -> None:
    """Whichever comes first starts the run; an ask that comes second gets its answer."""
    ran: list[str] = []

    def guard(happening: Any, ctx: Any) -> Any:
        ran.append(happening.id)
        return ctx.deny("no")

    at = stage(lambda: decide("x")(guard))
    question = Question(event())
    if first == "ask":
        assert (at.ask(question), at.do(at.dispatcher.event(event()))) == (1, 0)
    else:
        assert (at.do(at.dispatcher.event(event())), at.ask(question)) == (1, 0)
    again = Question(event())
    assert at.ask(again) == 0
    assert ran == [event().id]
    assert [q.answers is not None and q.answers[0].verdict for q in (question, again)] == ["deny", "deny"]
    assert [run["reason"] for run in runs(at)] == [None]


def test_an_ask_waits_for_a_run_that_is_under_way(stage: Open) -> None:
    """It is answered by whoever brings the result."""
    go = threading.Event()

    def guard(happening: Any, ctx: Any) -> Any:
        assert go.wait(DEADLINE_S)
        return ctx.deny("no")

    at = stage(lambda: decide("x")(guard))
    (task,) = at.dispatcher.event(event())
    thread = threading.Thread(target=task, args=(lambda: None,))
    thread.start()
    question = Question(event())
    assert at.ask(question) == 0
    assert not question.told.is_set()
    go.set()
    thread.join()
    assert question.answers is not None


def test_a_run_that_nobody_asked_for_is_observed(stage: Open) -> None:
    """Its report says so; what failed says both; the copy of a tool's result is never observed."""

    def define() -> None:
        decide("x")(lambda e, c: c.deny("no"))
        decide("y")(lambda e, c: 1 / 0)
        decide("tool_result")(lambda e, c: c.deny("no"))

    at = stage(define)
    assert at.do(at.dispatcher.event(event())) == 1
    assert at.do(at.dispatcher.event(event("prx.lifecycle.y"))) == 1
    assert at.dispatcher.event(event("prx.lifecycle.tool_result")) == []
    first, second = runs(at)
    assert (first["status"], first["reason"]) == ("ok", OBSERVED)
    assert second["status"] == "failed"
    assert second["reason"].startswith("ZeroDivisionError: division by zero (test_python_dispatch.py:")
    assert second["reason"].endswith(f"({OBSERVED})")


def test_failures_leave_the_other_answers_alone(stage: Open) -> None:
    """One of two failed: the other's answer counts, when closed beside a denial; both: no answer."""

    def bad(happening: Any, ctx: Any) -> Any:
        raise KeyError("k")

    def define() -> None:
        decide("x")(bad)
        decide("x")(lambda e, c: c.context("fine"))
        decide("x", failure="closed", priority=3)(bad)
        decide("x", failure="closed")(lambda e, c: c.context("fine"))
        decide("y")(bad)

    at = stage(define)
    opened, closed, nothing = Question(event()), Question(event()), Question(event("prx.lifecycle.y"))
    at.ask(opened)
    at.ask(closed, "closed")
    at.ask(nothing)
    assert [answer.contexts for answer in opened.answers or ()] == [("fine",)]
    assert closed.answers is not None
    fine, denial = closed.answers
    assert (fine.contexts, denial.verdict, denial.priority) == (("fine",), "deny", 3)
    assert (denial.reason or "").endswith("and fails closed")
    assert (nothing.why or "").startswith("KeyError: 'k'")


def test_a_text_that_is_no_utf8_does_not_cost_the_report(stage: Open) -> None:
    """A lone surrogate in what is raised stands escaped, in the report, the letter and the answer."""

    def guard(happening: Any, ctx: Any) -> Any:
        raise RuntimeError("bad \udc80")

    at = stage(lambda: decide("x")(guard))
    question = Question(event())
    at.ask(question)
    assert (question.why or "").startswith("RuntimeError: bad \\udc80 (")
    at.reporter.close()
    assert [topic for topic, _ in at.reports] == ["prx.hooks.run", "prx.hooks.dead_letter"]
    for _, payload in at.reports:
        assert "RuntimeError: bad \\udc80" in orjson.loads(orjson.dumps(payload))["stderr"]


def test_what_cannot_be_sent_is_a_failure(stage: Open) -> None:
    """The asker hears that there is no answer, and why."""
    at = stage(lambda: decide("x")(lambda e, c: c.message("unsendable")))
    question = Question(event())
    at.ask(question)
    assert "cannot be sent: ValueError('cannot be packed')" in (question.why or "")


def deep() -> Any:
    """5,000 lists in each other."""
    value: Any = []
    for _ in range(5_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "answer,why",
    [
        (lambda c: c.rewrite({"paths": {"a"}}), "TypeError"),
        (lambda c: c.rewrite({1: "a"}), "int"),
        (lambda c: c.replace_output(deep()), "recursion limit"),
        (lambda c: c.deny("bad \udc80"), "surrogates not allowed"),
        (lambda c: c.deny("no", context="bad \udc80"), "surrogates not allowed"),
        (lambda c: Answer("f.py:h", "perhaps"), "verdict"),  # type: ignore[arg-type]
    ],
)
def test_a_run_whose_answer_cannot_be_sent_has_failed(
    stage: Open, answer: Callable[[Any], Answer], why: str
) -> None:
    """Its report says so with handler, place, event and reason; other guards of the ask are heard."""

    def guard(happening: Any, ctx: Any) -> Any:
        return answer(ctx)

    def define() -> None:
        decide("x")(guard)
        decide("x")(lambda e, c: c.deny("no", context="näh", message="m"))

    at = stage(define)
    question = Question(event())
    at.ask(question)
    assert [each.reason for each in question.answers or ()] == ["no"]
    at.reporter.close()
    failed = [payload for _, payload in at.reports if payload["hook"].endswith("guard")]
    assert [topic for topic, _ in at.reports].count("prx.hooks.dead_letter") == 1
    assert len(failed) == 2
    for each in failed:
        assert (each["status"], each["path"], each["event_id"]) == ("failed", __file__, event().id)
        assert "its answer cannot be sent: " in each["reason"]
        assert why in each["reason"]
        assert f"(test_python_dispatch.py:{guard.__code__.co_firstlineno})" in each["reason"]


def test_what_a_handler_publishes_is_caused_by_its_event(stage: Open) -> None:
    """Through its context and through any publisher of this process, whichever kind of handler it is."""
    depths: list[Any] = []
    done = threading.Event()

    async def later(happening: Any, ctx: Any) -> None:
        await asyncio.sleep(0)
        depths.append(current.get())
        done.set()

    def now(happening: Any, ctx: Any) -> None:
        depths.append(current.get())
        ctx.publish("a.b", {"n": 1})

    def define() -> None:
        on("x")(now)
        on("x")(later)

    at = stage(define)
    about = event(depth=3)
    assert at.do(at.dispatcher.event(about)) == 2
    assert done.wait(DEADLINE_S)
    assert [(cause.depth, cause.event) for cause in depths] == [(4, about.id)] * 2
    assert at.published == [(about, "a.b", {"n": 1}, "s1")]
    assert current.get() is None


def test_calls_are_bounded_per_handler_and_in_what_waits(stage: Open) -> None:
    """The second call of a slow handler waits, the third is dropped, others of the file are not affected."""
    go, ended = threading.Event(), threading.Semaphore(0)

    def slow(happening: Any, ctx: Any) -> Any:
        assert go.wait(DEADLINE_S)
        ended.release()
        return ctx.deny("slow")

    def define() -> None:
        decide("x")(slow)
        decide("y")(lambda e, c: c.deny("quick"))

    at = stage(define, Limits(total=4, per_handler=1, queue=1))
    questions = [Question(event(sequence=number)) for number in (1, 2, 3)]
    tasks = [at.dispatcher.ask(question, "open")[0] for question in questions]
    thread = threading.Thread(target=tasks[0], args=(lambda: None,))
    thread.start()
    deadline = time.monotonic() + DEADLINE_S
    while not at.dispatcher.running:
        assert time.monotonic() < deadline
    for task in tasks[1:]:
        task(lambda: None)
    assert questions[2].why == "too many calls wait for it"
    assert (at.dispatcher.waiting, at.dispatcher.counters()["runs_dropped"]) == (1, 1)
    quick = Question(event("prx.lifecycle.y"))
    at.ask(quick)
    assert quick.answers is not None
    go.set()
    thread.join()
    for question in questions[:2]:
        assert question.told.wait(DEADLINE_S)
        assert question.answers is not None
    assert ended.acquire(timeout=DEADLINE_S)
    assert ended.acquire(timeout=DEADLINE_S)


def test_a_call_whose_askers_have_gone_takes_no_slot(stage: Open) -> None:
    """Past the deadline or cancelled when its turn comes it is counted; one that somebody wants is made."""
    go = threading.Event()
    ran: list[str] = []

    def slow(happening: Any, ctx: Any) -> Any:
        ran.append(happening.id)
        assert go.wait(DEADLINE_S)
        return ctx.deny("slow")

    at = stage(lambda: decide("x", timeout=DEADLINE_S)(slow), Limits(total=4, per_handler=1, queue=9))
    questions = [Question(event(sequence=number)) for number in range(1, 6)]
    tasks = [at.dispatcher.ask(question, "open")[0] for question in questions]
    shared = Question(questions[3].event)  # waits for the same run as the fourth
    assert at.ask(shared) == 0
    tasks += at.dispatcher.event(event(sequence=7))
    thread = threading.Thread(target=tasks[0], args=(lambda: None,))
    thread.start()
    deadline = time.monotonic() + DEADLINE_S
    while not ran:
        assert time.monotonic() < deadline
    for task in tasks[1:]:
        task(lambda: None)
    for late in (questions[1], questions[3]):
        late.deadline = 0.0
    questions[2].cancelled = True
    go.set()
    thread.join()
    for question in (*questions, shared):
        assert question.told.wait(DEADLINE_S)
    while len(ran) < 4 or at.dispatcher.running:
        assert time.monotonic() < deadline
    wanted = (questions[0], questions[3], questions[4])
    assert set(ran) == {*(question.event.id for question in wanted), event(sequence=7).id}
    assert at.dispatcher.counters()["runs"] == {"ok": 4, "late": 2}
    assert [question.answers is not None for question in questions] == [True, False, False, True, True]
    assert shared.answers is not None
    again = Question(event(sequence=9), seconds=DEADLINE_S)
    (task,) = at.dispatcher.ask(again, "open")
    again.deadline = 0.0  # before its turn comes in the thread that received it
    task(lambda: None)
    assert (again.why, len(ran)) == ("nobody waited for it any more when its turn came", 4)


def test_two_versions_in_service_share_events(stage: Open, tmp_path: Path) -> None:
    """Of an ask put to both one decides; an observer waits, and is caught up on once afterwards."""
    ran: list[tuple[str, str]] = []

    def define(version: str) -> Callable[[], None]:
        def guard(happening: Any, ctx: Any) -> Any:
            ran.append((version, happening.id))
            return ctx.deny(version)

        def watch(happening: Any, ctx: Any) -> None:
            ran.append((f"{version} watches", happening.id))

        def decorate() -> None:
            decide("x")(guard)
            on("w")(watch)

        return decorate

    old, new = stage(define("old")), stage(define("new"))
    for each in (old, new):
        each.dispatcher.share(Claims(str(tmp_path)))
    asked, lonely, watched = event(sequence=1), event(sequence=2), event("prx.lifecycle.w")
    first, second = Question(asked), Question(asked)
    assert (new.do(new.dispatcher.event(asked)), old.do(old.dispatcher.event(asked))) == (0, 0)
    old.ask(first)
    new.ask(second)
    assert ([a.reason for a in first.answers or ()], second.answers) == (["old"], [])
    for each in (old, new):
        each.do(each.dispatcher.event(lonely))
        each.do(each.dispatcher.event(watched))
    assert ran == [("old", asked.id), ("old watches", watched.id)]
    old.dispatcher.alone()
    new.dispatcher.alone()
    deadline = time.monotonic() + DEADLINE_S
    while len(ran) < 3:
        assert time.monotonic() < deadline
    assert sorted(run[1] for run in ran) == sorted([asked.id, lonely.id, watched.id])
    assert new.do(new.dispatcher.event(asked)) == 0, "a late copy of what the other one decided"
