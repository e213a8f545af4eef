"""Asynchronous handlers of the Codex family, without a bus and without processes."""

from __future__ import annotations

import threading

from subscribers.hooks.outcome import Outcome
from subscribers.runner.codex_dispatch import OVER
from tests.subscribers.runner.codex_stage import BASH, Stage, block, only, printed
from tests.subscribers.runner.fake_ask import SECONDS


def test_asynchronous_handlers_are_heard_at_the_next_safe_point(stage: Stage) -> None:
    """They are not waited for and control nothing; what they say comes before the next prompt, once."""
    hold = threading.Event()

    def said() -> Outcome:
        hold.wait(SECONDS)
        return printed(
            '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "tests pass"}}'
        )

    later = {**stage.says("later", said), "async": True}
    stage.file("codex", "PostToolUse", later, {**stage.says("deny", block("no")), "async": True})
    assert stage.ask("tool_call", {**BASH, "success": True}).answers == []
    hold.set()
    stage.reports_of("prx.hooks.run", 2)
    assert stage.ask("tool_call_start", BASH).answers == []
    assert stage.ask("user_prompt", {"prompt": "x"}, session="other").answers == []
    answer = only(stage.ask("user_prompt", {"prompt": "x"}))
    assert answer.contexts == ("tests pass",)
    assert stage.ask("user_prompt", {"prompt": "x"}).answers == []
    modes = {each["execution_mode"] for each in stage.reports_of("prx.hooks.run", 2)}
    assert modes == {"async"}


def test_what_a_run_says_that_outlives_a_reload_is_heard(stage: Stage) -> None:
    """Its handler is in no file any more: it ends as it began, and the session hears it."""
    hold, started = threading.Event(), threading.Event()

    def said() -> Outcome:
        started.set()
        hold.wait(SECONDS)
        return printed('{"systemMessage": "old"}')

    stage.file("codex", "PostToolUse", {**stage.says("before", said), "async": True})
    stage.ask("tool_call", {**BASH, "success": True})
    assert started.wait(SECONDS)
    stage.files.clear()
    stage.file("codex", "Stop", stage.says("after", printed("")))
    commands = [handler.command for handler in stage.documents.look_again().handlers]
    assert commands == ["after"]
    hold.set()
    stage.reports_of("prx.hooks.run", 1)
    assert only(stage.ask("user_prompt", {"prompt": "x"})).system_message == "old"


def test_at_most_eight_asynchronous_handlers_of_a_session_run_at_once(stage: Stage) -> None:
    """The rest wait; other sessions do not; what a session that has ended would have heard is discarded."""
    hold = threading.Event()
    started = threading.Semaphore(0)

    def slow() -> Outcome:
        started.release()
        hold.wait(SECONDS)
        return printed('{"systemMessage": "m"}')

    handlers = [{**stage.says(f"h{number}", slow), "async": True} for number in range(10)]
    stage.file("codex", "PreToolUse", *handlers)
    for session in ("s", "t"):
        stage.ask("tool_call_start", BASH, session=session)
    for _ in range(16):
        assert started.acquire(timeout=SECONDS)
    assert not started.acquire(blocking=False)
    stage.ask("session_end", {}, session="s")
    hold.set()
    runs = stage.reports_of("prx.hooks.run", 20)
    assert [each["reason"] for each in runs if each["status"] == "not_started"] == [OVER, OVER]
    assert stage.ask("user_prompt", {}, session="s").answers == []
    assert len(stage.ask("user_prompt", {}, session="t").answers or ()) == 10
    assert stage.dispatcher.sessions.dropped == 8


def test_a_wake_of_an_asynchronous_handler_is_kept(stage: Stage) -> None:
    """Claude Code's asyncRewake: exit code 2 hands stderr to the model."""
    handler = {**stage.says("watch", block("the build broke")), "async": True, "asyncRewake": True}
    stage.file("claude", "PreToolUse", handler)
    stage.ask("tool_call_start", BASH)
    stage.reports_of("prx.hooks.run", 1)
    answer = only(stage.ask("user_prompt", {}))
    assert answer.contexts == ("the build broke",)
