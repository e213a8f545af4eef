"""One event and the handlers of some files: what matches, why the rest does not, and the JSON of it."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest

from broker.protocol.decisions import Answer, merge
from subscribers.hooks.diagnostics import Diagnostic
from subscribers.hooks.explanation import Explained, ExplainedFile, Handler, Status
from subscribers.hooks.firing import ONCE, Fired, FiredFile, Firing, Published, document, match
from subscribers.hooks.outcome import Captured, Outcome

TOPIC = "prx.lifecycle.error"
GOOD = Handler("error", 0, "error#0", "shell", "ok", topics=(TOPIC,))
FAULT = Diagnostic("error", "missing_command", "hooks.json", 1, None, None, "no such program", None)
REMARK = Diagnostic("info", "disabled", "hooks.json", 1, None, None, "it is disabled", None)
OK = Outcome("ok", 0, None, 0.25, Captured(b"out", b"", 3), Captured(), None)


def test_only_handlers_of_the_event_match() -> None:
    """A topic and a pattern of topics match; what is for another event says which."""
    other = replace(GOOD, topics=("prx.lifecycle.tool_call", "prx.lifecycle.agent_end"))
    every = replace(GOOD, name="x", topics=("prx.lifecycle.*",))
    found = match([GOOD, other, every], TOPIC)
    assert [(fired.matched, fired.reason) for fired in found] == [
        (True, None),
        (False, "it is for prx.lifecycle.tool_call, prx.lifecycle.agent_end"),
        (True, None),
    ]


@pytest.mark.parametrize(
    "status,said,reason",
    [
        ("dead", (REMARK, FAULT), "dead: no such program"),
        ("refused", (FAULT,), "refused: no such program"),
        (
            "dead",
            (REMARK, replace(FAULT, severity="warning", message="no such runtime")),
            "dead: no such runtime",
        ),
        ("skipped", (REMARK,), "skipped: it is disabled"),
        ("skipped", (), "skipped"),
    ],
)
def test_what_matches_and_cannot_run_says_why(
    status: Status, said: tuple[Diagnostic, ...], reason: str
) -> None:
    """The first remark that keeps it from running is the reason; without topics it is told as well."""
    handler = replace(GOOD, status=status, diagnostics=said)
    (found,) = match([handler], TOPIC)
    assert (found.matched, found.reason) == (True, reason)
    (found,) = match([replace(handler, topics=())], TOPIC)
    assert (found.matched, found.reason) == (False, reason)


def test_a_hook_with_several_patterns_runs_once() -> None:
    """Of the patterns of one plugin that match, the first is chosen; functions are called each by itself."""
    first, second = replace(GOOD, runtime="wasm"), replace(GOOD, runtime="wasm", event="*", index=1)
    assert [fired.reason for fired in match([first, second], TOPIC)] == [None, ONCE]
    functions = [replace(GOOD, runtime="python"), replace(GOOD, runtime="python")]
    assert [fired.reason for fired in match(functions, TOPIC)] == [None, None]


def firing(*fired: Fired, is_dry: bool = False) -> Firing:
    """A firing of one file."""
    file = ExplainedFile("hooks.json", "prx", "its name", "/w", True, Explained((GOOD,), (), False))
    payload = {"message": "x"}
    return Firing(TOPIC, "s1", payload, True, is_dry, (FiredFile(file, fired),), merge([], payload))


def test_a_file_that_cannot_be_used_is_named_with_its_first_reason() -> None:
    """An error of the file as a whole counts, and so does that all of it is refused; a remark does not."""
    fired = firing()
    assert fired.unusable == ()
    (file,) = fired.files
    for explained, reason in (
        (Explained((), (REMARK, FAULT), True), "no such program"),
        (Explained((), (FAULT,), False), "no such program"),
        (Explained((), (REMARK,), True), "it is refused"),
        (Explained((), (REMARK,), False), None),
    ):
        found = replace(fired, files=(replace(file, file=replace(file.file, explained=explained)),))
        assert found.unusable == (() if reason is None else (("hooks.json", reason),))


def test_a_firing_fails_with_a_run_that_failed_or_could_not_be() -> None:
    """A failed run and a dead handler of the event fail it; others, and a dry run, do not."""
    dead = replace(GOOD, status="dead")
    assert not firing(Fired(GOOD, True, None, OK)).has_failed
    assert firing(Fired(GOOD, True, None, Outcome.not_started("no room"))).has_failed
    assert firing(Fired(dead, True, "dead")).has_failed
    assert not firing(Fired(dead, True, "dead"), is_dry=True).has_failed
    assert not firing(Fired(dead, False, "dead")).has_failed
    assert not firing(Fired(replace(GOOD, status="skipped"), True, "skipped")).has_failed


def test_the_document_has_the_handlers_with_what_came_of_them() -> None:
    """Run, answer and what was published stand beside the fields of the explanation."""
    answer = Answer("h", "deny", "no", ("text",), {"a": 1}, output="short", stop=True, stop_reason="enough")
    fired = Fired(GOOD, True, None, OK, answer, (Published("a.b", {"x": 1}),))
    told = orjson.loads(orjson.dumps(document(firing(fired), {"verdict": "deny"})))
    assert (told["topic"], told["session_id"], told["sample"], told["dry_run"]) == (TOPIC, "s1", True, False)
    (file,) = told["files"]
    (handler,) = file["handlers"]
    assert (handler["name"], handler["matched"], handler["reason"]) == ("error#0", True, None)
    assert handler["run"] == {
        "status": "ok",
        "exit_code": 0,
        "signal": None,
        "duration_ms": 250.0,
        "stdout": "out",
        "stderr": "",
        "reason": None,
    }
    assert (handler["answer"]["verdict"], handler["answer"]["output"]) == ("deny", "short")
    assert handler["published"] == [{"topic": "a.b", "payload": {"x": 1}}]
    assert told["decision"] == {"verdict": "deny"}
    assert (file["printed"], file["path"]) == ("", "hooks.json")


def test_an_output_that_nobody_replaced_is_not_in_the_document() -> None:
    """There is no field for it, so that null can be an output."""
    told = document(firing(Fired(GOOD, True, None, None, Answer("h"))), {})
    assert "output" not in told["files"][0]["handlers"][0]["answer"]
    assert told["files"][0]["handlers"][0]["run"] is None
