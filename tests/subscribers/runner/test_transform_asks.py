"""One ask from the event to the reply, and what is told of it afterwards."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from broker.protocol.decisions import Answer
from broker.protocol.errors import SpoolFull
from broker.protocol.events import Event
from subscribers.hooks.transform_chain import Fault, Handler, Passed, Said, Value
from subscribers.runner.transform_asks import Asks
from subscribers.runner.transform_reports import Who
from subscribers.runner.transform_steps import Question, Step
from subscribers.runtimes.pool import RunPool

DEADLINE_S = 20.0


def event_of(payload: Any, session: str | None = "s1") -> Event:
    """A tool's result as it comes from the bus."""
    content = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    return Event.of("prx.lifecycle.tool_result", 1, bytes(16), 7, 0, session, "agent", None, content)


class StubAsk:
    """An ask that remembers what it was answered; ``refuses`` is raised by the first reply."""

    def __init__(self, event: Event, left_s: float = 10.0, refuses: Exception | None = None) -> None:
        self.event = event
        self.deadline = time.monotonic() + left_s
        self.cancelled = False
        self.refuses = refuses
        self.taken = True
        self.answers: list[Answer] | None = None
        self.failure: str | None = None
        self.done = threading.Event()

    def reply(self, answers: Iterable[Answer], /) -> bool:
        """Remember the answers."""
        if self.refuses is not None:
            raise self.refuses
        self.answers = list(answers)
        self.done.set()
        return self.taken

    def fail(self, why: str, /) -> bool:
        """Remember the failure."""
        self.failure = why
        self.done.set()
        return True


class StubStep:
    """A link that says what it was made with."""

    def __init__(self, name: str, said: Said | Callable[[Question], Said]) -> None:
        self.who = Who(name, "function", "/w/f.py", 3, "")
        self._said = said
        self.asked: list[tuple[Question, float]] = []

    def ask(self, question: Question, timeout_s: float) -> Said:
        """Say it."""
        self.asked.append((question, timeout_s))
        return self._said(question) if callable(self._said) else self._said


class StubChain:
    """A chain of such links."""

    def __init__(self, *steps: StubStep) -> None:
        self.handlers: tuple[Handler[Step], ...] = tuple(Handler(s.who.handler, s, 5.0) for s in steps)
        self.inside = 0

    @contextmanager
    def in_force(self) -> Iterator[tuple[Handler[Step], ...]]:
        """Count who is inside."""
        self.inside += 1
        yield self.handlers
        self.inside -= 1


class Stage:
    """Asks on a chain, with what was published."""

    def __init__(self, *steps: StubStep, **pool: int) -> None:
        self.chain = StubChain(*steps)
        self.pool = RunPool(**pool)
        self.published: list[tuple[str, dict[str, Any]]] = []
        self.asks = Asks(self.chain, self.pool, self._publish)

    def _publish(self, topic: str, payload: dict[str, Any], event: Event) -> None:
        assert event.topic == "prx.lifecycle.tool_result"
        self.published.append((topic, payload))

    def answer(self, ask: StubAsk) -> StubAsk:
        """Have it answered, to the end of what follows."""
        self.asks.take(ask)
        assert self.pool.drain(DEADLINE_S) == 0
        return ask


def test_the_winner_answers_and_is_recorded_behind_the_reply() -> None:
    """The answer names the handler; the record comes after it, with those that passed and failed before."""
    stage = Stage(
        StubStep("passes", Passed()),
        StubStep("fails", Fault("failed", "why", 3)),
        StubStep("wins", Value("new")),
        StubStep("never", Value("never")),
    )
    ask = StubAsk(event_of({"tool": "Bash", "output": "raw", "agent_id": "a1"}))
    stage.answer(ask)
    assert ask.answers == [Answer("wins", output="new")]
    (run_topic, run), (topic, record) = stage.published
    assert (run_topic, topic) == ("prx.hooks.run", "prx.hooks.transform")
    assert (run["hook"], run["status"], run["exit_code"], run["reason"]) == ("fails", "failed", 3, "why")
    assert (record["handler"], record["passed"], record["skipped"]) == ("wins", 1, ["fails"])
    assert (record["delivered"], record["event_id"]) == (True, ask.event.id)
    assert stage.asks.outcomes == {"replaced": 1}
    assert stage.chain.inside == 0


def test_the_record_is_made_when_the_reply_is_out() -> None:
    """At the moment of the reply nothing has been published, and nothing digested."""
    before: list[int] = []
    stage = Stage(StubStep("wins", Value("new")))
    ask = StubAsk(event_of({"output": "raw"}))
    original = ask.reply

    def reply(answers: Iterable[Answer], /) -> bool:
        before.append(len(stage.published))
        return original(answers)

    ask.reply = reply  # type: ignore[method-assign]
    stage.answer(ask)
    assert (before, len(stage.published)) == ([0], 1)


def test_a_reply_that_comes_too_late_is_recorded_as_not_delivered() -> None:
    """The record says whether the asker has got it."""
    stage = Stage(StubStep("wins", Value("new")))
    ask = StubAsk(event_of({"output": "raw"}))
    ask.taken = False
    stage.answer(ask)
    assert [payload["delivered"] for _, payload in stage.published] == [False]
    assert stage.asks.outcomes == {"late": 1}


@pytest.mark.parametrize("said", [Passed(), Fault("timeout", "slow")])
def test_no_text_is_no_answer_and_a_failure_is_told(said: Said) -> None:
    """When all passed there is nothing to say; when one failed, the ask has failed, and fails open."""
    stage = Stage(StubStep("first", Passed()), StubStep("second", said))
    ask = stage.answer(StubAsk(event_of({"output": "raw"})))
    if isinstance(said, Passed):
        assert (ask.answers, ask.failure) == ([], None)
        assert stage.asks.outcomes == {"passed": 1}
    else:
        assert (ask.answers, ask.failure) == (None, "1 failed (second), 0 were not asked")
        assert stage.asks.outcomes == {"failed": 1}


def test_no_time_is_a_failure() -> None:
    """An ask that comes when its time is over reaches no handler."""
    step = StubStep("wins", Value("new"))
    ask = Stage(step).answer(StubAsk(event_of({"output": "raw"}), left_s=-1.0))
    assert ask.failure == "0 failed (), 1 were not asked"
    assert step.asked == []


def test_no_handler_gets_more_than_its_share() -> None:
    """Two handlers share what is left; what the first did not use is the second's."""
    steps = [StubStep("a", Passed()), StubStep("b", Passed())]
    Stage(*steps).answer(StubAsk(event_of({"output": "raw"}), left_s=4.0))
    (_, first), (_, second) = steps[0].asked[0], steps[1].asked[0]
    assert first <= 2.0 < second <= 4.0


@pytest.mark.parametrize("payload", [{}, {"output": None}, {"tool": "Bash"}])
def test_without_an_output_there_is_nothing_to_transform(payload: dict[str, Any]) -> None:
    """An event that brings no output asks nobody."""
    step = StubStep("wins", Value("new"))
    ask = Stage(step).answer(StubAsk(event_of(payload)))
    assert (ask.answers, step.asked) == ([], [])


def test_an_empty_chain_does_not_even_read_the_payload() -> None:
    """With no handler there is nothing to say, whatever the payload is."""
    ask = Stage().answer(StubAsk(event_of(b"no JSON")))
    assert (ask.answers, ask.failure) == ([], None)


def test_a_payload_that_cannot_be_read_is_told_without_its_words() -> None:
    """The failure names the kind of error and repeats nothing of what was sent."""
    stage = Stage(StubStep("wins", Value("new")))
    ask = stage.answer(StubAsk(event_of(b"[SECRET")))
    assert ask.failure is not None
    assert "cannot be read" in ask.failure
    assert "SECRET" not in ask.failure
    assert (stage.asks.outcomes, stage.published) == ({"unreadable": 1}, [])


def test_a_refusal_answers_everything() -> None:
    """Where nothing may run, every ask hears why."""
    step = StubStep("wins", Value("new"))
    stage = Stage(step)
    stage.asks.refusal = "no sandbox"
    assert stage.answer(StubAsk(event_of({"output": "raw"}))).failure == "no sandbox"
    assert step.asked == []


def test_an_asker_that_has_gone_is_answered_by_nobody() -> None:
    """A cancelled ask starts nothing; one that is cancelled under way goes to no further handler."""
    step = StubStep("wins", Value("new"))
    stage = Stage(step)
    gone = StubAsk(event_of({"output": "raw"}))
    gone.cancelled = True
    stage.answer(gone)
    assert (gone.answers, gone.failure, step.asked) == (None, None, [])

    leaving = StubAsk(event_of({"output": "raw"}))

    def leave(_question: Question) -> Said:
        leaving.cancelled = True
        return Passed()

    later = StubStep("later", Value("new"))
    stage = Stage(StubStep("first", leave), later)
    stage.answer(leaving)
    assert (leaving.answers, later.asked) == (None, [])
    assert stage.asks.outcomes == {"cancelled": 1}


def test_a_replacement_that_cannot_be_sent_fails_the_ask() -> None:
    """When the spool has no room for it, the asker hears that at once, and nobody is told it was replaced."""
    stage = Stage(StubStep("wins", Value("new")))
    ask = stage.answer(StubAsk(event_of({"output": "raw"}), refuses=SpoolFull("SECRET")))
    assert ask.failure == "the replacement of wins could not be sent"
    assert [payload["delivered"] for _, payload in stage.published] == [False]


def test_what_finds_no_room_fails_at_once() -> None:
    """With one thread and no queue the second ask is refused while the first is under way."""
    release = threading.Event()

    def wait(_question: Question) -> Said:
        release.wait(DEADLINE_S)
        return Value("new")

    stage = Stage(StubStep("waits", wait), total=1, per_hook=1, queue=0)
    first, second = StubAsk(event_of({"output": "a"})), StubAsk(event_of({"output": "b"}))
    stage.asks.take(first)
    stage.asks.take(second)
    assert second.failure == "too many results are being transformed at once"
    release.set()
    assert first.done.wait(DEADLINE_S)
    assert stage.pool.drain(DEADLINE_S) == 0
    assert stage.asks.outcomes == {"dropped": 1, "replaced": 1}
