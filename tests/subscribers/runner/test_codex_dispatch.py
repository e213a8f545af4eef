"""Order, merging and profiles of Codex-family handlers for one event, without a bus and without processes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from broker.protocol.decisions import Heard, merge
from subscribers.hooks.outcome import Outcome
from subscribers.runner.codex_reports import OBSERVED
from subscribers.runner.codex_telling import CLAIM_S
from tests.subscribers.runner.codex_stage import BASH, Stage, block, only, printed
from tests.subscribers.runner.fake_ask import SECONDS, FakeAsk


def test_all_start_together_and_answer_in_configured_order(stage: Stage) -> None:
    """Each waits until all have started; the first one configured ends last, and comes first all the same."""
    together = threading.Barrier(3)
    ended = threading.Event()

    def first() -> Outcome:
        together.wait(SECONDS)
        ended.wait(SECONDS)
        return block("first")

    def other(said: Outcome) -> Callable[[], Outcome]:
        def run() -> Outcome:
            together.wait(SECONDS)
            return said

        return run

    def last() -> Outcome:
        together.wait(SECONDS)
        ended.set()
        return block("last")

    stage.file("codex", "PreToolUse", stage.says("a", first), stage.says("b", other(printed(""))))
    stage.file("bitfun", "PreToolUse", stage.says("c", last), matcher="Ba.h")
    ask = stage.ask("tool_call_start", BASH)
    assert ask.answers is not None
    assert [(each.verdict, each.reason) for each in ask.answers] == [("deny", "first"), ("deny", "last")]
    assert [each.handler.partition(":/")[0] for each in ask.answers] == ["pre-tool-use:0", "pre-tool-use:2"]
    heard = Heard("codex", "open", None, 0.1, tuple(ask.answers))
    assert merge([heard], {}).reason == "first"
    reports = stage.reports_of("prx.hooks.run", 3)
    assert {(each["native_event"], each["result"]) for each in reports} == {
        ("PreToolUse", "blocked"),
        ("PreToolUse", "completed"),
    }
    assert not [topic for topic, _ in stage.reports if topic == "prx.hooks.dead_letter"]
    assert {each["status"] for each in reports} == {"ok"}
    assert stage.dispatcher.outcomes == {"ok": 3}


def test_a_payload_is_each_profiles_own(stage: Stage) -> None:
    """Each handler reads its profile's names; what no handler is for is answered at once."""
    stage.file("codex", "PostToolUse", stage.says("x", printed("")))
    stage.file("claude", "PostToolUse", stage.says("c", printed("")))
    stage.ask("tool_call", {**BASH, "output": "o", "cwd": "/", "success": True})
    bodies = {command: orjson.loads(body) for command, body, _, _ in stage.runs.ran}
    assert bodies["x"]["tool_response"] == bodies["c"]["tool_response"] == "o"
    assert "turn_id" in bodies["x"]
    assert "turn_id" not in bodies["c"]
    for name in ("agent_start", "tool_call_start"):
        assert stage.ask(name, BASH).answers == []
    assert len(stage.runs.ran) == 2


def test_an_event_and_its_ask_are_one_run(stage: Stage) -> None:
    """Whichever comes first; an ask that comes when the handlers are done is answered with what they said."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    ask = stage.ask("tool_call_start", BASH)
    stage.dispatcher.event(ask.event)
    late = FakeAsk(stage.event("tool_call_start", BASH), SECONDS)
    stage.dispatcher.event(late.event)
    stage.pool.drain(SECONDS)
    stage.dispatcher.ask(late)
    assert [each.reason for each in late.wait().answers or ()] == ["no"]
    assert len(stage.runs.ran) == 2


def test_two_that_ask_about_one_event_hear_one_decision(stage: Stage) -> None:
    """Both hear the block, and one of them the rest; so does one that asks when all is done."""
    go = threading.Event()

    def late() -> Outcome:
        assert go.wait(SECONDS)
        return block("no")

    told = stage.says("told", printed(json.dumps({"systemMessage": "hear"})))
    stage.file("codex", "PreToolUse", stage.says("late", late), told)
    event = stage.event("tool_call_start", {"tool": "Bash", "arguments": {}})
    asks = [FakeAsk(event, SECONDS) for _ in range(3)]
    for ask in asks[:2]:
        stage.dispatcher.ask(ask)
    go.set()
    for ask in asks[:2]:
        ask.wait()
    stage.dispatcher.ask(asks[2])
    answers = [ask.wait().answers or [] for ask in asks]
    assert [[each.reason for each in found if each.verdict == "deny"] for found in answers] == [["no"]] * 3
    assert sum(each.system_message is not None for found in answers for each in found) == 1
    assert [ask.error for ask in asks] == [None] * 3
    assert len(stage.runs.ran) == 2


def test_a_failed_tool_call_is_an_event_of_its_own(stage: Stage) -> None:
    """For Claude Code's handlers of it, asked or not; those of PostToolUse are for the others."""
    stage.file("claude", "PostToolUseFailure", stage.says("failed", printed("")))
    stage.file("claude", "PostToolUse", stage.says("worked", printed("")))
    for success in (False, True):
        stage.dispatcher.event(stage.event("tool_call", {**BASH, "success": success}))
    stage.dispatcher.event(stage.event("turn_complete", {}))
    stage.pool.drain(SECONDS)
    assert sorted(command for command, *_ in stage.runs.ran) == ["failed", "worked"]


def test_strict_says_of_an_answer_what_upstream_says_and_no_more(stage: Stage) -> None:
    """Without it a report also says what is wrong with an answer."""
    stage.file("codex", "PreToolUse", stage.says("half", printed("{")))
    text = "hook returned invalid pre-tool-use JSON output"
    for strict in (False, True):
        stage.strict = strict
        stage.documents.look_again()
        stage.ask("tool_call_start", BASH)
    loose, strictly = stage.reports_of("prx.hooks.run", 2)
    assert [entry["text"] for entry in strictly["entries"]] == [text]
    assert loose["entries"][0]["text"] == text
    assert "the answer was ignored" in loose["entries"][1]["text"]


def test_a_run_that_nobody_asked_about_is_observed(stage: Stage) -> None:
    """It is told a second later, with its decision ignored; one that an ask has claimed is told as asked."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    stage.dispatcher.event(stage.event("tool_call_start", BASH))
    claimed = FakeAsk(stage.event("tool_call_start", BASH), SECONDS)
    stage.dispatcher.event(claimed.event)
    stage.dispatcher.ask(claimed)
    claimed.wait()
    stage.pool.drain(SECONDS)
    stage.teller.tick(time.monotonic() + CLAIM_S)
    reasons = [each["reason"] for each in stage.reports_of("prx.hooks.run", 2)]
    assert sorted(reasons, key=str) == [None, OBSERVED]


def test_a_turn_is_kept_from_ending_as_often_as_the_profile_allows(stage: Stage) -> None:
    """Claude Code's eight in a row; then the turn ends, it is said, and the count begins anew."""
    stage.file("claude", "Stop", stage.says("go", block("go on")))
    verdicts = [[each.verdict for each in stage.ask("turn_complete", {}).answers or ()] for _ in range(10)]
    assert verdicts == [["deny"]] * 8 + [["none"], ["deny"]]
    stage.commands["go"] = lambda: printed("")
    assert stage.ask("turn_complete", {}).answers == []
    stage.commands["go"] = lambda: block("go on")
    assert [each.verdict for each in stage.ask("turn_complete", {}).answers or ()] == ["deny"]


def test_codex_keeps_a_turn_going_for_ever(stage: Stage) -> None:
    """There is no cap where the profile has none."""
    stage.file("codex", "Stop", stage.says("go", block("go on")))
    verdicts = [[each.verdict for each in stage.ask("turn_complete", {}).answers or ()] for _ in range(12)]
    assert verdicts == [["deny"]] * 12


def test_a_projects_hooks_are_for_its_sessions(stage: Stage) -> None:
    """A session that works elsewhere does not start them; one that says nothing does."""
    stage.file("codex", "PreToolUse", stage.says("user", printed("")))
    stage.project("PreToolUse", stage.says("project", printed("")))
    for cwd, both in ((str(stage.workspace), True), ("/", False), (None, True)):
        stage.runs.ran.clear()
        stage.ask("tool_call_start", {**BASH, **({} if cwd is None else {"cwd": cwd})})
        assert {command for command, *_ in stage.runs.ran} == ({"user", "project"} if both else {"user"})
        assert {scene.cwd for *_, scene in stage.runs.ran} == {cwd or str(stage.workspace)}


def test_equal_handlers_run_once_where_the_profile_says_so(stage: Stage) -> None:
    """Claude Code runs the same command of two files once, Codex twice."""
    for profile in ("claude", "claude", "codex", "codex"):
        stage.file(profile, "PreToolUse", stage.says("same", printed("")))
    stage.ask("tool_call_start", BASH)
    assert len(stage.runs.ran) == 3


def test_an_if_is_a_further_test_of_a_tool_call(stage: Stage) -> None:
    """Claude Code's ``if`` starts the handler for the commands that it is about."""
    stage.file("claude", "PreToolUse", {**stage.says("git", block("no")), "if": "Bash(git *)"})
    for command, verdicts in (("git push", ["deny"]), ("ls", [])):
        ask = stage.ask("tool_call_start", {"tool": "Bash", "arguments": {"command": command}})
        assert [each.verdict for each in ask.answers or ()] == verdicts


def test_a_long_text_is_saved_and_named(stage: Stage) -> None:
    """The model gets the ends and the file's name; the file has all of it."""
    text = "begin " + "x" * 40_000 + " end"
    stage.file("codex", "UserPromptSubmit", stage.says("long", printed(text)))
    answer = only(stage.ask("user_prompt", {"prompt": "x"}))
    kept, _, path = answer.contexts[0].partition("Full hook output saved to: ")
    assert len(kept) < 12_000
    assert Path(path).read_text() == text
    assert Path(path).is_relative_to(stage.root)


def test_an_event_that_is_asked_about_a_second_time_runs_nothing_again(stage: Stage) -> None:
    """The hook denies the first phase; the second ask, and its copy, are answered with nothing."""
    stage.file("codex", "PreToolUse", stage.says("a", block("no")))
    assert only(stage.ask("tool_call_start", {**BASH, "phase": "before"})).verdict == "deny"
    assert stage.ask("tool_call_start", {**BASH, "phase": "after"}).answers == []
    stage.dispatcher.event(stage.event("tool_call_start", {**BASH, "phase": "after"}))
    assert len(stage.runs.ran) == 1
