"""What events of the Codex family cost in time and room, without a bus and without processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from subscribers.hooks.outcome import Outcome
from subscribers.runner.codex_dispatch import INLINE_BYTES, NO_ROOM
from tests.subscribers.runner.codex_stage import BASH, Stage, block, only, printed
from tests.subscribers.runner.fake_ask import SECONDS, FakeAsk


def test_a_handler_has_its_own_time_and_the_ask_has_all_of_it(stage: Stage) -> None:
    """The shorter of both holds; a denial that is there in time is told, although another is not done."""
    hold = threading.Event()

    def slow() -> Outcome:
        hold.wait(SECONDS)
        return printed("")

    stage.file("codex", "PreToolUse", stage.says("deny", block("no")), {"command": "own", "timeout": 2})
    stage.commands["own"] = lambda: printed("")
    stage.ask("tool_call_start", BASH, 60.0)
    times = {command: timeout for command, _, timeout, _ in stage.runs.ran}
    assert times["own"] == 2.0
    assert 50.0 < times["deny"] < 60.0
    stage.commands["own"] = slow
    ask = stage.ask("tool_call_start", BASH, 1.0)
    assert [each.reason for each in ask.answers or ()] == ["no"]
    assert time.monotonic() < ask.deadline + SECONDS
    hold.set()
    stage.pool.drain(SECONDS)
    assert ask.times == 1


def test_a_handler_that_is_not_done_in_time_is_one_that_failed(stage: Stage) -> None:
    """Its run was begun by the event's copy, with all its own time; the ask hears by the handler's policy."""
    hold = threading.Event()

    def slow() -> Outcome:
        hold.wait(SECONDS)
        return printed("")

    for policy, verdicts in (("continue", []), ("block", ["deny"])):
        stage.files.clear()
        stage.file("claude", "PreToolUse", {**stage.says("slow", slow), "onFailure": policy})
        ask = FakeAsk(stage.event("tool_call_start", BASH), 1.0)
        stage.dispatcher.event(ask.event)
        stage.dispatcher.ask(ask)
        assert [each.verdict for each in ask.wait().answers or ()] == verdicts
    assert [timeout for _, _, timeout, _ in stage.runs.ran] == [600.0, 600.0]
    hold.set()


def test_an_ask_that_nobody_waits_for_runs_nothing(stage: Stage) -> None:
    """It is cancelled, or its time is over before it comes."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    for deadline, cancelled in ((-1.0, False), (SECONDS, True)):
        ask = FakeAsk(stage.event("tool_call_start", BASH), deadline)
        ask.cancelled = cancelled
        stage.dispatcher.ask(ask)
    assert (stage.runs.ran, stage.dispatcher.others["late"]) == ([], 2)


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Stage]:
    """A stage with room for one run."""
    made = Stage(tmp_path, total=1, queue=0)
    yield made
    made.close()


def test_what_finds_no_room_is_told_and_counted(narrow: Stage) -> None:
    """The others are heard; a handler that is to block then does."""
    stage = narrow
    hold = threading.Event()

    def slow() -> Outcome:
        hold.wait(SECONDS)
        return printed('{"systemMessage": "heard"}')

    stage.file("claude", "PreToolUse", stage.says("a", slow), {"command": "b", "onFailure": "block"})
    stage.commands["b"] = lambda: printed("")
    ask = FakeAsk(stage.event("tool_call_start", BASH), SECONDS)
    stage.dispatcher.ask(ask)
    hold.set()
    ask.wait()
    assert ask.answers is not None
    assert [each.verdict for each in ask.answers] == ["none", "deny"]
    assert ask.answers[1].reason == 'PreToolUse hook failed; blocking because onFailure is "block"'
    assert stage.dispatcher.outcomes["dropped"] == 1
    letters = stage.reports_of("prx.hooks.dead_letter", 1)
    assert (letters[0]["reason"], letters[0]["payload"]) == (NO_ROOM, BASH)


def test_a_large_payload_is_taken_apart_beside_the_others(stage: Stage) -> None:
    """It is handled like any other; where there is no room for it, the ask fails at once and is counted."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    large = {**BASH, "output": "x" * INLINE_BYTES}
    assert only(stage.ask("tool_call_start", large)).reason == "no"
    stage.preparing.drain(SECONDS)
    assert stage.ask("tool_call_start", large).error == NO_ROOM
    assert stage.dispatcher.outcomes["dropped"] == 1
