"""Events of the Codex family end to end, without a bus and without processes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from broker.protocol.decisions import Answer, Heard, merge
from broker.protocol.events import PUBLISHER_BYTES, Event
from subscribers.config.hook_files import HookFile
from subscribers.hooks.outcome import Captured, Outcome
from subscribers.runner.codex_dispatch import INLINE_BYTES, NO_ROOM, OVER, CodexDispatcher
from subscribers.runner.codex_invocation import Scene
from subscribers.runner.codex_process import ASYNC_AT_ONCE
from subscribers.runner.codex_reports import OBSERVED
from subscribers.runner.codex_runs import Runs
from subscribers.runner.codex_selection import Chosen
from subscribers.runner.codex_spill_files import SpillFiles
from subscribers.runner.codex_telling import CLAIM_S, Teller
from subscribers.runtimes.deadlines import Deadlines
from subscribers.runtimes.pool import RunPool
from subscribers.runtimes.reaper import Reaper
from subscribers.sources.codex_documents import Configured, Documents, Places
from subscribers.sources.codex_layers import Switches

SECONDS = 30.0


def printed(text: str, *, exit_code: int = 0, stderr: str = "") -> Outcome:
    """The outcome of a command that printed this."""
    out, err = text.encode(), stderr.encode()
    captured = Captured(out, b"", len(out)), Captured(err, b"", len(err))
    return Outcome("failed" if exit_code else "ok", exit_code, None, 0.01, *captured)


def block(reason: str) -> Outcome:
    """The outcome of a command that blocks."""
    return printed("", exit_code=2, stderr=reason)


class FakeRuns(Runs):
    """Runs nothing: what each command says is in a table."""

    def __init__(self, commands: dict[str, Callable[[], Outcome]]) -> None:
        super().__init__(Reaper(), Deadlines())
        self.commands = commands
        self.unwanted: int | None = None
        self.ran: list[tuple[str, bytes, float, Scene]] = []

    def run(self, chosen: Chosen, scene: Scene, timeout_s: float, unwanted: int | None = None) -> Outcome:
        """What the table says."""
        self.unwanted = unwanted
        self.ran.append((chosen.handler.command, chosen.body, timeout_s, scene))
        return self.commands[chosen.handler.command]()

    def close(self) -> None:
        """End the threads of the parts that are never used."""
        self._reaper.close(time.monotonic())
        self._deadlines.close()


class FakeAsk:
    """An ask, and what it was answered."""

    def __init__(self, event: Event, seconds: float) -> None:
        self.event = event
        self.deadline = time.monotonic() + seconds
        self.cancelled = False
        self.answers: list[Answer] | None = None
        self.error: str | None = None
        self.answered = threading.Event()
        self.times = 0

    def reply(self, answers: Iterable[Answer], /) -> bool:
        """It is answered."""
        self.answers = list(answers)
        return self._done()

    def fail(self, why: str, /) -> bool:
        """There is no answer."""
        self.error = why
        return self._done()

    def _done(self) -> bool:
        self.times += 1
        self.answered.set()
        return self.times == 1

    def wait(self) -> FakeAsk:
        """Wait for the answer."""
        assert self.answered.wait(SECONDS)
        return self


class Stage:
    """A dispatcher with everything around it."""

    def __init__(self, root: Path, **pool: int) -> None:
        self.root = root
        self.workspace = root / "workspace"
        self.workspace.mkdir()
        self.files: list[HookFile] = []
        self.strict = False
        self.commands: dict[str, Callable[[], Outcome]] = {}
        self.runs = FakeRuns(self.commands)
        self.reports: list[tuple[str, dict[str, Any]]] = []
        self.reported = threading.Condition()
        self.teller = Teller(self._publish)
        self.pool = RunPool(**pool)
        self.background = RunPool(per_hook=ASYNC_AT_ONCE)
        self.preparing = RunPool(total=1)
        self.deadlines = Deadlines()
        self.spill = SpillFiles(str(root))
        self.documents = Documents(
            Places(str(root), str(self.workspace)),
            lambda: Configured(Switches(project=True, strict=self.strict), tuple(self.files)),
            lambda *_: None,
            {"XDG_CONFIG_HOME": str(root)},
        )
        self.dispatcher = CodexDispatcher(
            self.documents,
            self.runs,
            self.teller,
            pool=self.pool,
            background=self.background,
            preparing=self.preparing,
            deadlines=self.deadlines,
            spill=self.spill,
            workspace=str(self.workspace),
            runtime_dir=str(root),
            environ={"HOME": str(root)},
        )
        self._events = 0

    def _publish(self, topic: str, payload: dict[str, Any], _event: Event) -> None:
        with self.reported:
            self.reports.append((topic, orjson.loads(orjson.dumps(payload))))
            self.reported.notify_all()

    def file(self, profile: str, event: str, *handlers: dict[str, Any], **group: Any) -> None:
        """A hook file of the user's with one group of handlers."""
        path = self.root / f"{len(self.files)}.json"
        self.files.append(HookFile(str(path), profile, False))  # type: ignore[arg-type]
        self._write(path, event, handlers, group)

    def project(self, event: str, *handlers: dict[str, Any]) -> None:
        """The workspace's own hook file."""
        self._write(self.workspace / ".prxbus" / "hooks.json", event, handlers, {})

    def _write(
        self, path: Path, event: str, handlers: tuple[dict[str, Any], ...], group: dict[str, Any]
    ) -> None:
        path.parent.mkdir(exist_ok=True)
        whole = [{"type": "command", **handler} for handler in handlers]
        path.write_bytes(orjson.dumps({"hooks": {event: [{**group, "hooks": whole}]}}))
        self.documents.current()

    def says(self, command: str, said: Outcome | Callable[[], Outcome]) -> dict[str, Any]:
        """A handler whose command comes to that."""
        self.commands[command] = said if callable(said) else lambda: said
        return {"command": command}

    def event(self, name: str, payload: Any, session: str | None = "s") -> Event:
        """An event of an agent's."""
        self._events += 1
        body = payload if isinstance(payload, bytes) else orjson.dumps(payload)
        key = b"p" * PUBLISHER_BYTES
        return Event(
            f"prx.lifecycle.{name}", 0, key, self._events, time.time_ns(), session, "agent", None, body
        )

    def ask(self, name: str, payload: Any, seconds: float = SECONDS, session: str | None = "s") -> FakeAsk:
        """Ask about an event, and wait for the answer."""
        ask = FakeAsk(self.event(name, payload, session), seconds)
        self.dispatcher.ask(ask)
        return ask.wait()

    def reports_of(self, topic: str, count: int) -> list[dict[str, Any]]:
        """The first ``count`` reports of a topic, waiting for them."""
        with self.reported:
            found: list[dict[str, Any]] = []

            def enough() -> bool:
                found[:] = [payload for each, payload in self.reports if each == topic]
                return len(found) >= count

            assert self.reported.wait_for(enough, SECONDS), found
            return found

    def close(self) -> None:
        """End every thread."""
        for pool in (self.preparing, self.pool, self.background):
            pool.drain(SECONDS)
        self.deadlines.close()
        self.runs.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A stage without hook files."""
    made = Stage(tmp_path)
    yield made
    made.close()


def only(ask: FakeAsk) -> Answer:
    """The one answer that an ask was given."""
    assert ask.answers is not None
    (answer,) = ask.answers
    return answer


BASH = {"tool": "Bash", "arguments": {"command": "ls"}}


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


def test_a_file_that_fails_closed_and_cannot_be_read_denies_by_name(stage: Stage) -> None:
    """The reason names the file, and nothing is started."""
    stage.files.append(HookFile(str(stage.root / "team.json"), "codex", False, "block"))
    (stage.root / "team.json").write_text("{")
    said = only(stage.ask("tool_call_start", {"tool": "Bash", "arguments": {}}))
    assert said.verdict == "deny"
    assert f"{stage.root / 'team.json'} fails closed and cannot be used" in (said.reason or "")
    assert only(stage.ask("user_prompt", {"prompt": "go"})).verdict == "deny"


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


def test_a_remote_workspace_runs_nothing_and_says_so(stage: Stage) -> None:
    """Once for each session; an event without handlers says nothing."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    remote = {**BASH, "cwd": "ssh://build/srv"}
    assert stage.ask("user_prompt", {"cwd": "ssh://build/srv"}).answers == []
    answer = only(stage.ask("tool_call_start", remote))
    assert "no hooks run for ssh://build/srv: its workspace is remote" in (answer.system_message or "")
    assert stage.ask("tool_call_start", remote).answers == []
    assert stage.ask("tool_call_start", remote, session="t").answers != []
    assert (stage.runs.ran, stage.dispatcher.others["remote"]) == ([], 3)


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


@pytest.mark.parametrize("payload", [b"[1]", b"nonsense", b'"x"'])
def test_an_event_that_cannot_be_read_harms_no_other(stage: Stage, payload: bytes) -> None:
    """It is counted, and the ask fails at once."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    assert "the event cannot be read" in (stage.ask("tool_call_start", payload).error or "")
    assert stage.dispatcher.outcomes["unreadable"] == 1
    assert stage.ask("tool_call_start", BASH).answers


def test_a_large_payload_is_taken_apart_beside_the_others(stage: Stage) -> None:
    """It is handled like any other; where there is no room for it, the ask fails at once and is counted."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    large = {**BASH, "output": "x" * INLINE_BYTES}
    assert only(stage.ask("tool_call_start", large)).reason == "no"
    stage.preparing.drain(SECONDS)
    assert stage.ask("tool_call_start", large).error == NO_ROOM
    assert stage.dispatcher.outcomes["dropped"] == 1


def test_a_file_may_be_configured_to_block_where_it_fails(stage: Stage) -> None:
    """Also in a profile that has no such policy of its own; elsewhere a failure fails open."""
    for policy, verdicts in (("continue", []), ("block", ["deny"])):
        stage.files.clear()
        stage.file("codex", "PreToolUse", stage.says("guard", printed("", exit_code=1)))
        stage.files[0] = stage.files[0]._replace(on_failure=policy)  # type: ignore[arg-type]
        ask = stage.ask("tool_call_start", BASH)
        assert [each.verdict for each in ask.answers or ()] == verdicts


def test_a_failure_is_told_with_the_event_for_a_retry(stage: Stage) -> None:
    """A run's report names the run as upstream does; its dead letter holds what the agent sent."""
    stage.file("codex", "PreToolUse", stage.says("bad", printed('{"nonsense": 1}')))
    payload = {**BASH, "tool_use_id": "t1"}
    assert stage.ask("tool_call_start", payload).answers == []
    (letter,) = stage.reports_of("prx.hooks.dead_letter", 1)
    assert letter["run_id"] == f"pre-tool-use:0:{stage.root}/0.json:t1"
    assert (letter["result"], letter["payload"], letter["dialect"]) == ("failed", payload, "codex")
    assert letter["entries"][0] == {"kind": "error", "text": "hook returned invalid pre-tool-use JSON output"}


def test_an_event_that_is_asked_about_a_second_time_runs_nothing_again(stage: Stage) -> None:
    """The hook denies the first phase; the second ask, and its copy, are answered with nothing."""
    stage.file("codex", "PreToolUse", stage.says("a", block("no")))
    assert only(stage.ask("tool_call_start", {**BASH, "phase": "before"})).verdict == "deny"
    assert stage.ask("tool_call_start", {**BASH, "phase": "after"}).answers == []
    stage.dispatcher.event(stage.event("tool_call_start", {**BASH, "phase": "after"}))
    assert len(stage.runs.ran) == 1
