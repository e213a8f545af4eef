"""What is told and decided when handlers of the Codex family fail, without a bus and without processes."""

from __future__ import annotations

import pytest

from subscribers.config.hook_files import HookFile
from tests.subscribers.runner.codex_stage import BASH, Stage, block, only, printed


def test_a_file_that_fails_closed_and_cannot_be_read_denies_by_name(stage: Stage) -> None:
    """The reason names the file, and nothing is started."""
    stage.files.append(HookFile(str(stage.root / "team.json"), "codex", False, "block"))
    (stage.root / "team.json").write_text("{")
    said = only(stage.ask("tool_call_start", {"tool": "Bash", "arguments": {}}))
    assert said.verdict == "deny"
    assert f"{stage.root / 'team.json'} fails closed and cannot be used" in (said.reason or "")
    assert only(stage.ask("user_prompt", {"prompt": "go"})).verdict == "deny"


@pytest.mark.parametrize("payload", [b"[1]", b"nonsense", b'"x"'])
def test_an_event_that_cannot_be_read_harms_no_other(stage: Stage, payload: bytes) -> None:
    """It is counted, and the ask fails at once."""
    stage.file("codex", "PreToolUse", stage.says("guard", block("no")))
    assert "the event cannot be read" in (stage.ask("tool_call_start", payload).error or "")
    assert stage.dispatcher.outcomes["unreadable"] == 1
    assert stage.ask("tool_call_start", BASH).answers


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
