"""One event put to files: in a dry run, and to functions whose answers make one decision."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from subscribers.hooks.firing import Firing
from subscribers.runner import inspection
from subscribers.runner.fire import event_of, fire

pytestmark = pytest.mark.timeout(120)

HEAD = "from subscribers.handlers import decide, on\n"
PAYLOAD = b'{"tool": "Bash", "arguments": {"command": "rm -r build"}}'


def fired(path: Path, *, is_dry: bool = False) -> Firing:
    """A tool call put to what lies at ``path``."""
    here = inspection.world({**os.environ, "PRXBUS_CONFIG_DIR": "/nowhere"})
    files = inspection.explained([str(path)], None, here)
    event = event_of("prx.lifecycle.tool_call_start", PAYLOAD, "s1")
    return fire(event, files, here, "/nowhere", is_dry=is_dry)


def python(folder: Path, name: str, text: str) -> Path:
    """A file of handlers."""
    path = folder / ".prxbus" / "handlers" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + text)
    return path


def test_a_dry_run_matches_and_calls_nothing(tmp_path: Path) -> None:
    """What would run has neither outcome nor reason, and nobody was asked."""
    text = "@decide('tool_call_start')\ndef no(event, ctx): return ctx.deny('no')\n"
    done = fired(python(tmp_path, "a.py", text), is_dry=True)
    ((found,),) = (file.fired for file in done.files)
    assert (found.matched, found.reason, found.outcome, found.answer) == (True, None, None, None)
    assert (done.decision.verdict, done.decision.heard, done.has_failed) == ("none", (), False)


def test_the_answers_of_several_files_make_one_decision(tmp_path: Path) -> None:
    """Each file is a decider; the strictest verdict counts, and rewrites are changes of the input."""
    python(tmp_path, "a.py", "@decide('tool_call_start')\ndef yes(event, ctx): return ctx.allow('yes')\n")
    text = "@decide('tool_call_start')\n"
    text += "def no(event, ctx): return ctx.deny('no', updated_input={'command': 'ls'})\n"
    python(tmp_path, "b.py", text)
    python(tmp_path, "c.py", "@on('tool_call_start')\ndef watches(event, ctx): return 7\n")
    done = fired(tmp_path)
    assert (done.decision.verdict, done.decision.by, done.decision.reason) == ("deny", "b.py:no", "no")
    assert [heard.decider for heard in done.decision.heard] == ["python:a.py", "python:b.py"]
    assert done.decision.input == {"command": "rm -r build"}
    assert done.decision.updated_input == {"command": "ls"}
    assert not done.has_failed


def test_a_decider_of_which_everything_failed_has_no_answer(tmp_path: Path) -> None:
    """It counts as silent, as it would on a bus, and the firing has failed."""
    path = python(tmp_path, "a.py", "@decide('tool_call_start')\ndef breaks(event, ctx): raise KeyError\n")
    done = fired(path)
    (heard,) = done.decision.heard
    assert (heard.silence, heard.answers, done.has_failed) == ("failed", (), True)


def test_a_file_that_changes_between_looking_and_calling_is_told(tmp_path: Path) -> None:
    """Functions that are not there any more were not started, and that is the reason."""
    path = python(tmp_path, "a.py", "@decide('tool_call_start')\ndef yes(event, ctx): return None\n")
    here = inspection.world({**os.environ, "PRXBUS_CONFIG_DIR": "/nowhere"})
    files = inspection.explained([str(path)], None, here)
    path.write_text("(")
    event = event_of("prx.lifecycle.tool_call_start", PAYLOAD, None)
    ((found,),) = (file.fired for file in fire(event, files, here, "/nowhere").files)
    assert found.outcome is not None
    assert found.outcome.status == "not_started"
    assert "was never closed" in (found.outcome.reason or "")


def test_a_failure_in_half_characters_is_a_denial_all_the_same(tmp_path: Path) -> None:
    """A reason that no text can hold crosses as escapes, and the guard's own policy is told."""
    text = "@decide('tool_call_start', failure='closed')\n"
    text += "def guard(event, ctx): raise ValueError('b\\udc80oom')\n"
    done = fired(python(tmp_path, "a.py", text))
    assert (done.decision.verdict, done.decision.by) == ("deny", "a.py:guard")
    assert r"b\udc80oom" in (done.decision.reason or "")
    (heard,) = done.decision.heard
    assert (heard.decider, heard.failure, heard.silence) == ("python:a.py", "closed", None)
    ((found,),) = (file.fired for file in done.files)
    assert found.outcome is not None
    assert (found.outcome.status, "udc80oom" in found.outcome.stderr.text()) == ("failed", True)


@pytest.mark.parametrize("failure,verdict", [("closed", "deny"), ("open", "allow")])
def test_a_handler_that_ends_its_process_costs_the_others_nothing(
    tmp_path: Path, failure: str, verdict: str
) -> None:
    """The others are called, in order, and the lost call of a guard is what its policy says."""
    text = f"""import os
@on('tool_call_start')
def first(event, ctx): print('first')
@decide('tool_call_start', failure='{failure}', priority=3)
def ends(event, ctx): os._exit(9)
@decide('tool_call_start')
def allows(event, ctx): return ctx.allow('yes')
@on('tool_call_start')
def dies(event, ctx): os.kill(os.getpid(), 9)
@on('tool_call_start')
def last(event, ctx): print('last')
"""
    done = fired(python(tmp_path, "a.py", text))
    (file,) = done.files
    outcomes = [each.outcome for each in file.fired]
    assert [outcome and outcome.status for outcome in outcomes] == ["ok", "failed", "ok", "failed", "ok"]
    assert [outcome and outcome.reason for outcome in outcomes if outcome and outcome.reason] == [
        "it ended its process (exit code 9)", "it ended its process (signal 9)",
    ]  # fmt: skip
    assert file.printed == "first\nlast\n"
    assert (done.decision.verdict, done.has_failed) == (verdict, True)
    names = ["python:a.py", "python:a.py (open)"] if failure == "closed" else ["python:a.py"]
    assert [heard.decider for heard in done.decision.heard] == names
    if failure == "closed":
        assert done.decision.reason == (
            "a.py:ends failed (it ended its process (exit code 9)) and fails closed"
        )


def test_no_transform_is_asked_in_a_new_process_about_what_was_replaced(tmp_path: Path) -> None:
    """That an earlier one has replaced the output outlives the process in which it did."""
    text = """import os
from subscribers.handlers import transform
@transform
def shortens(event, ctx): return 'short'
@on('tool_result')
def ends(event, ctx): os._exit(1)
@transform
def late(event, ctx): return 'late'
"""
    path = python(tmp_path, "a.py", text)
    here = inspection.world({**os.environ, "PRXBUS_CONFIG_DIR": "/nowhere"})
    files = inspection.explained([str(path)], None, here)
    event = event_of("prx.lifecycle.tool_result", b'{"tool": "Bash", "output": "abcdef"}', None)
    done = fire(event, files, here, "/nowhere")
    assert done.decision.output == "short"
    assert done.files[0].fired[2].reason == "an earlier one has replaced the output"


def test_the_lost_call_of_a_guard_that_cannot_be_loaded_again_is_a_denial(tmp_path: Path) -> None:
    """A file that changes meanwhile starts nothing, and a guard of it that fails closed denies."""
    text = "@decide('tool_call_start', failure='closed')\ndef yes(event, ctx): return ctx.allow('y')\n"
    path = python(tmp_path, "a.py", text)
    here = inspection.world({**os.environ, "PRXBUS_CONFIG_DIR": "/nowhere"})
    files = inspection.explained([str(path)], None, here)
    path.write_text(HEAD)
    event = event_of("prx.lifecycle.tool_call_start", PAYLOAD, None)
    done = fire(event, files, here, "/nowhere")
    assert done.decision.reason == "a.py:yes failed (the file has changed meanwhile) and fails closed"
