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
