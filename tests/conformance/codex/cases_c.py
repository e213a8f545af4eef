"""Part C: what handlers' answers and exit codes come to, and what they read on stdin."""

from __future__ import annotations

import json
from typing import Any, Final

from broker.protocol.decisions import NOTHING
from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE
from subscribers.dialects.codex_events import EVENTS
from subscribers.dialects.codex_file import read_document
from subscribers.dialects.codex_merge import Finished, Merged, merge_judged
from subscribers.dialects.codex_payload import payload_for
from subscribers.dialects.codex_profiles import CODEX
from subscribers.dialects.codex_result import Terms, judge
from subscribers.dialects.codex_result_values import Context, Entry, Judged
from subscribers.hooks.outcome import NOTHING as SILENT
from subscribers.hooks.outcome import Captured, Outcome
from subscribers.runner.codex_reports import answer_name, run_reports
from tests.conformance.codex.conformance import Case

Entries = list[tuple[str, str]]


def stream(text: str) -> Captured:
    """An output stream that was kept whole."""
    data = text.encode("utf-8", "surrogateescape")
    return Captured(data, b"", len(data))


def run(event: str, answer: object = "", *, code: int = 0, stderr: str = "", **terms: Any) -> Judged:
    """What Codex makes of a handler that wrote ``answer`` (text, or a value as JSON)."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    outcome = Outcome.exited(code, 0.1, stream(text), stream(stderr))
    return judge(event, CODEX, outcome, Terms(strict=True, **terms))


def specific(event: str, **values: object) -> dict[str, object]:
    """An answer that has a ``hookSpecificOutput``."""
    return {"hookSpecificOutput": {"hookEventName": event, **values}}


def entries(judged: Judged) -> Entries:
    """The entries as pairs."""
    return [(entry.kind, entry.text) for entry in judged.entries]


def merged(event: str, *judged: Judged, ended: tuple[float, ...] | None = None) -> Merged:
    """What several handlers in configured order come to; ``ended`` is when each did."""
    times = ended or tuple(float(number) for number in range(len(judged)))
    runs = [Finished(f"h{i}", each, time) for i, (each, time) in enumerate(zip(judged, times, strict=True))]
    return merge_judged(event, CODEX, runs)


def completed(judged: Judged) -> None:
    """Nothing came of it, and nothing was said."""
    assert judged == Judged("completed")


def failed(judged: Judged, text: str) -> None:
    """It failed with this text, and nothing came of it."""
    assert judged == Judged("failed", (Entry("error", text),))


def stdin(event: str, **canonical: object) -> dict[str, Any]:
    """What a handler reads of an event about which this is known."""
    known = {"session": "s", "turn_id": "t", "cwd": "/w", "model": "m"}
    found: dict[str, Any] = json.loads(payload_for(event, CODEX, {**known, **canonical}))
    return found


# ---- C1: PreToolUse --------------------------------------------------------------------------------------

PRE: Final = "PreToolUse"


def deny(reason: str | None = "no", **more: object) -> dict[str, object]:
    """A refusal of a tool call."""
    return specific(PRE, permissionDecision="deny", permissionDecisionReason=reason, **more)


def c1_1() -> None:
    """The name is the tool's own."""
    assert stdin(PRE, tool="apply_patch", arguments={"command": "p"})["tool_name"] == "apply_patch"


def c1_2() -> None:
    """A denial blocks, and nothing else."""
    judged = run(PRE, deny("do not"))
    assert (judged.status, entries(judged)) == ("blocked", [("feedback", "do not")])
    assert (judged.effects.verdict, judged.effects.reason) == ("deny", "do not")
    assert (judged.effects.contexts, judged.effects.updated_input) == ((), NOTHING)


def rewrite(command: str) -> dict[str, object]:
    """A permission with another input."""
    return specific(PRE, permissionDecision="allow", updatedInput={"command": command})


def c1_3() -> None:
    """An allow with an input rewrites it."""
    judged = run(PRE, rewrite("b"))
    assert (judged.status, judged.entries) == ("completed", ())
    assert (judged.effects.updated_input, judged.effects.verdict) == ({"command": "b"}, "none")


def c1_4() -> None:
    """Who ended last rewrites, also where another was configured later."""
    both = run(PRE, rewrite("first")), run(PRE, rewrite("second"))
    assert merged(PRE, *both, ended=(2.0, 1.0)).updated_input == {"command": "first"}
    assert merged(PRE, *both, ended=(1.0, 2.0)).updated_input == {"command": "second"}


def c1_5() -> None:
    """An allow alone is an error; of an asynchronous handler the context counts."""
    answer = specific(PRE, permissionDecision="allow", additionalContext="c")
    failed(run(PRE, answer), "PreToolUse hook returned unsupported permissionDecision:allow")
    judged = run(PRE, answer, is_async=True)
    assert (judged.status, entries(judged)) == ("completed", [("context", "c")])


def c1_6() -> None:
    """The old form blocks."""
    judged = run(PRE, {"decision": "block", "reason": "old"})
    assert (judged.status, judged.effects.reason) == ("blocked", "old")


def c1_7() -> None:
    """The old form with a context blocks, the context said first."""
    judged = run(PRE, {"decision": "block", "reason": "old", **specific(PRE, additionalContext="c")})
    assert (judged.status, entries(judged)) == ("blocked", [("context", "c"), ("feedback", "old")])


def c1_8() -> None:
    """Nobody can be asked."""
    answer = specific(PRE, permissionDecision="ask", permissionDecisionReason="please")
    failed(run(PRE, answer), "PreToolUse hook returned unsupported permissionDecision:ask")


def c1_9() -> None:
    """The old approval is an error."""
    failed(run(PRE, {"decision": "approve"}), "PreToolUse hook returned unsupported decision:approve")


def c1_10() -> None:
    """A context beside a denial counts and carries the handler's limit."""
    judged = run(PRE, deny("no", additionalContext="c"), context_limit=13)
    assert (judged.status, entries(judged)) == ("blocked", [("context", "c"), ("feedback", "no")])
    assert judged.effects.contexts == (Context("c", 13),)


def c1_11() -> None:
    """Other text is ignored."""
    completed(run(PRE, "all is well"))


def c1_12() -> None:
    """What only begins like JSON is an error."""
    failed(run(PRE, '{"decision": '), "hook returned invalid pre-tool-use JSON output")


def c1_13() -> None:
    """Exit code 2 blocks with the trimmed stderr."""
    judged = run(PRE, "ignored", code=2, stderr="blocked by policy\n")
    assert (judged.status, entries(judged)) == ("blocked", [("feedback", "blocked by policy")])


# ---- C2: PostToolUse -------------------------------------------------------------------------------------

POST: Final = "PostToolUse"
STOPPED: Final = "PostToolUse hook stopped execution"


def c2_1() -> None:
    """The name is the tool's own."""
    assert stdin(POST, tool="apply_patch", output="o")["tool_name"] == "apply_patch"


def c2_2() -> None:
    """A block's reason is what the model reads."""
    judged = run(POST, {"decision": "block", "reason": "look again"})
    assert (judged.status, entries(judged)) == ("blocked", [("feedback", "look again")])
    assert (judged.effects.feedback, judged.effects.output) == ("look again", "look again")


def c2_3() -> None:
    """A context counts and carries its limit."""
    judged = run(POST, specific(POST, additionalContext="c"), context_limit=17)
    assert (judged.status, entries(judged)) == ("completed", [("context", "c")])
    assert judged.effects.contexts == (Context("c", 17),)


def c2_4() -> None:
    """Another output is an error; of an asynchronous handler the context counts."""
    answer = specific(POST, updatedMCPToolOutput={"a": 1}, additionalContext="c")
    failed(run(POST, answer), "PostToolUse hook returned unsupported updatedMCPToolOutput")
    judged = run(POST, answer, is_async=True)
    assert (judged.status, entries(judged)) == ("completed", [("context", "c")])


def c2_5() -> None:
    """Exit code 2 is feedback."""
    judged = run(POST, code=2, stderr="lint first\n")
    assert (judged.status, judged.effects.feedback) == ("blocked", "lint first")


def c2_6() -> None:
    """A stop has a text for the user and one for the model, and is no block."""
    judged = run(POST, {"continue": False, "stopReason": "halt", "reason": "for the model"})
    assert (judged.status, entries(judged)) == ("stopped", [("stop", "halt")])
    assert (judged.effects.feedback, judged.effects.verdict) == ("for the model", "none")


def c2_7() -> None:
    """A stop without a reason has a text of its own."""
    judged = run(POST, {"continue": False})
    assert (judged.status, entries(judged)) == ("stopped", [("stop", STOPPED)])
    assert judged.effects.feedback == STOPPED


def c2_8() -> None:
    """Other text is ignored."""
    completed(run(POST, "formatted 3 files"))


def ids_of_runs(event: str) -> None:
    """The event in kebab case, the place, the file and the call: the same whatever came of the run."""
    content = json.dumps({"hooks": {event: [{"hooks": [{"type": "command", "command": "x"}]}]}}).encode()
    (handler,) = read_document(content, "/h/hooks.json", CODEX, strict=True).handlers
    published = Event.of(LIFECYCLE + EVENTS[event].canonical, 0, b"p" * 16, 1, 0, None, "", None, b"{}")
    for outcome in (Outcome.exited(0, 0.1, SILENT, SILENT), Outcome.not_started("it cannot be written")):
        reports = run_reports(
            handler, published, outcome, judge(event, CODEX, outcome), 0.0, is_asked=True, tool_use_id="u7"
        )
        assert next(reports)[1]["run_id"] == f"{event_in_kebab(event)}:0:/h/hooks.json:u7"


def event_in_kebab(event: str) -> str:
    """As ids have it."""
    return {PRE: "pre-tool-use", POST: "post-tool-use"}[event]


# ---- C3: PermissionRequest, and shapes -------------------------------------------------------------------

ASK: Final = "PermissionRequest"


def request(**values: object) -> dict[str, object]:
    """An answer to a request for permission."""
    return specific(ASK, decision=values)


def c3_1() -> None:
    """A denial beats an allow that came first."""
    found = merged(
        ASK, run(ASK, request(behavior="allow")), run(ASK, request(behavior="deny", message="not this"))
    )
    assert (found.verdict, found.reason) == ("deny", "not this")


def c3_2() -> None:
    """Two that allow allow."""
    allow = run(ASK, request(behavior="allow"))
    assert merged(ASK, allow, allow).verdict == "allow"


def c3_3() -> None:
    """Nobody decides."""
    assert merged(ASK, run(ASK), run(ASK, "text")).verdict == "none"


def c3_4() -> None:
    """Another input is reserved, even an empty one."""
    answer = request(behavior="allow", updatedInput={})
    failed(run(ASK, answer), "PermissionRequest hook returned unsupported updatedInput")


def c3_5() -> None:
    """Other rules are reserved."""
    answer = request(behavior="allow", updatedPermissions=list[str]())
    failed(run(ASK, answer), "PermissionRequest hook returned unsupported updatedPermissions")


def c3_6() -> None:
    """An interruption is reserved."""
    answer = request(behavior="deny", interrupt=True)
    failed(run(ASK, answer), "PermissionRequest hook returned unsupported interrupt:true")


def c3_7() -> None:
    """Seven shapes that are no answer."""
    name = "UserPromptSubmit"
    for answer in (
        list[str](),
        {"systemMessage": 123},
        specific(name, additionalContext=123),
        {"hookSpecificOutput": {"additionalContext": "c"}},
        specific(name, updatedInput={}),
        {"unknown": 1},
        "{",
    ):
        failed(run(name, answer), "hook returned invalid user prompt submit JSON output")


# ---- C4, C5: prompts and starts --------------------------------------------------------------------------

PROMPT: Final = "UserPromptSubmit"
START: Final = "SessionStart"
SUB: Final = "SubagentStart"


def c4_1() -> None:
    """A stopped prompt leaves its context."""
    answer = {"continue": False, "stopReason": "pause", **specific(PROMPT, additionalContext="c")}
    judged = run(PROMPT, answer)
    assert (judged.status, entries(judged)) == ("stopped", [("context", "c"), ("stop", "pause")])
    assert (judged.effects.stop_reason, judged.effects.contexts) == ("pause", (Context("c"),))


def c4_2() -> None:
    """A block says its context first."""
    answer = {"decision": "block", "reason": "no", **specific(PROMPT, additionalContext="c")}
    judged = run(PROMPT, answer)
    assert (judged.status, entries(judged)) == ("blocked", [("context", "c"), ("feedback", "no")])


def c4_3() -> None:
    """A block without a reason is an error; of an asynchronous handler the context counts."""
    answer = {"decision": "block", **specific(PROMPT, additionalContext="c")}
    failed(run(PROMPT, answer), "UserPromptSubmit hook returned decision:block without a non-empty reason")
    judged = run(PROMPT, answer, is_async=True)
    assert (judged.status, entries(judged)) == ("completed", [("context", "c")])


def c4_4() -> None:
    """Exit code 2 blocks, and is an ordinary failure of an asynchronous handler."""
    judged = run(PROMPT, code=2, stderr=" no \n")
    assert (judged.status, judged.effects.reason) == ("blocked", "no")
    failed(run(PROMPT, code=2, stderr="no", is_async=True), "hook exited with code 2")


def c5_1() -> None:
    """Plain text is context, trimmed, with the handler's limit."""
    judged = run(START, " hello \n", context_limit=7)
    assert (judged.status, judged.effects.contexts) == ("completed", (Context("hello", 7),))


def c5_2() -> None:
    """A stopped session keeps its context."""
    answer = {"continue": False, "stopReason": "pause", **specific(START, additionalContext="c")}
    judged = run(START, answer)
    assert (judged.status, judged.effects.contexts) == ("stopped", (Context("c"),))


def c5_3() -> None:
    """What only begins like JSON is no context."""
    failed(run(START, '{"hookSpecificOutput": '), "hook returned invalid session start JSON output")


def c5_4() -> None:
    """Plain text is context for a subagent; a turn goes with it."""
    assert run(SUB, "hello").effects.contexts == (Context("hello"),)
    assert stdin(SUB, agent_id="a", agent_type="b")["turn_id"] == "t"


def c5_5() -> None:
    """A subagent's start cannot be stopped."""
    judged = run(SUB, {"continue": False, "stopReason": "x", **specific(SUB, additionalContext="c")})
    assert (judged.status, entries(judged), judged.effects.stop) == ("completed", [("context", "c")], False)


# ---- C6: compaction --------------------------------------------------------------------------------------


def compaction(event: str) -> None:
    """The whole of what is read before or after a compaction."""
    assert stdin(event, trigger="manual") == {
        "session_id": "s",
        "turn_id": "t",
        "transcript_path": None,
        "cwd": "/w",
        "hook_event_name": event,
        "model": "m",
        "trigger": "manual",
    }


def c6_3() -> None:
    """A compaction cannot be blocked."""
    failed(
        run("PreCompact", {"decision": "block", "reason": "x"}),
        "hook returned invalid PreCompact hook JSON output",
    )


def c6_4() -> None:
    """It can be stopped before."""
    judged = run("PreCompact", {"continue": False, "stopReason": "nope"})
    assert (judged.status, entries(judged)) == ("stopped", [("stop", "nope")])


def c6_5() -> None:
    """And after."""
    judged = run("PostCompact", {"continue": False, "stopReason": "enough"})
    assert (judged.status, judged.effects.stop_reason) == ("stopped", "enough")


# ---- C7: Stop --------------------------------------------------------------------------------------------

STOP: Final = "Stop"
NO_REASON: Final = "Stop hook returned decision:block without a non-empty reason"


def c7_1() -> None:
    """A block is a prompt to go on."""
    judged = run(STOP, {"decision": "block", "reason": "run the tests"})
    assert judged.status == "blocked"
    content = json.dumps({"hooks": {STOP: [{"hooks": [{"type": "command", "command": "x"}]}]}}).encode()
    (handler,) = read_document(content, "/h/hooks.json", CODEX, strict=True).handlers
    found = merge_judged(STOP, CODEX, [Finished(answer_name(handler), judged, 0.0)])
    assert found.fragments == (("stop:0:/h/hooks.json", "run the tests"),)


def c7_2() -> None:
    """A block without a reason is an error, and nothing of an asynchronous handler."""
    failed(run(STOP, {"decision": "block"}), NO_REASON)
    completed(run(STOP, {"decision": "block"}, is_async=True))


def c7_3() -> None:
    """A stop beats a block."""
    judged = run(STOP, {"continue": False, "stopReason": "done", "decision": "block", "reason": "x"})
    assert (judged.status, entries(judged)) == ("stopped", [("stop", "done")])
    assert merged(STOP, judged).continuation is None


def c7_4() -> None:
    """Of exit code 2 only stderr counts."""
    judged = run(STOP, {"decision": "block", "reason": "stdout"}, code=2, stderr="stderr")
    assert (judged.status, judged.effects.reason) == ("blocked", "stderr")


def c7_5() -> None:
    """Exit code 2 without a word blocks nothing."""
    text = "Stop hook exited with code 2 but did not write a continuation prompt to stderr"
    failed(run(STOP, code=2, stderr="  \n"), text)


def c7_6() -> None:
    """Blanks are no reason."""
    failed(run(STOP, {"decision": "block", "reason": "   "}), NO_REASON)


def c7_7() -> None:
    """Plain text is an error, and nothing of an asynchronous handler."""
    failed(run(STOP, "done"), "hook returned invalid stop hook JSON output")
    completed(run(STOP, "done", is_async=True))


def c7_8() -> None:
    """Prompts are joined in declared order."""
    two = [run(STOP, {"decision": "block", "reason": text}) for text in ("first", "second")]
    found = merged(STOP, *two, ended=(2.0, 1.0))
    assert found.continuation == "first\n\nsecond"
    assert [said.text for said in found.fragments] == ["first", "second"]


# ---- C8: SessionEnd, Interrupt ---------------------------------------------------------------------------

CUT: Final = "Interrupt"


def c8_1() -> None:
    """Nothing that is said at the end counts."""
    completed(run("SessionEnd", {"continue": False, "decision": "block", "reason": "x"}))


def c8_2() -> None:
    """A message is for the user."""
    judged = run(CUT, {"systemMessage": "cleaned up"})
    assert (judged.status, entries(judged)) == ("completed", [("warning", "cleaned up")])


def c8_3() -> None:
    """No other key, and no half a document."""
    for answer in (
        {"continue": True},
        {"stopReason": None},
        {"suppressOutput": False},
        {"decision": "block"},
        "{",
    ):
        assert run(CUT, answer).status == "failed"


def c8_4() -> None:
    """Plain text is an error."""
    failed(run(CUT, "bye"), "Interrupt hook returned non-JSON stdout")


def c8_5() -> None:
    """No exit code controls anything."""
    for code in (1, 2):
        failed(run(CUT, code=code, stderr="x"), f"hook exited with code {code}")


# ---- C9: payloads ----------------------------------------------------------------------------------------

SUBAGENT_EVENTS: Final = (PRE, ASK, POST, PROMPT, "PreCompact", "PostCompact")


def c9_3() -> None:
    """A turn's events carry its id."""
    names = (*SUBAGENT_EVENTS, SUB, "SubagentStop", STOP)
    assert len(names) == 9
    assert {stdin(name)["turn_id"] for name in names} == {"t"}


def c9_4() -> None:
    """Inside a subagent six events say so."""
    for name in SUBAGENT_EVENTS:
        found = stdin(name, agent_id="a", agent_type="b")
        assert list(found)[2:4] == ["agent_id", "agent_type"]


def c9_5() -> None:
    """The fields are flat, and absent without a subagent."""
    found = stdin(
        PRE, tool="Bash", arguments={"command": "ls"}, tool_use_id="u", agent_id="a", agent_type="b"
    )
    whole = {
        "session_id": "s",
        "turn_id": "t",
        "agent_id": "a",
        "agent_type": "b",
        "transcript_path": None,
        "cwd": "/w",
        "hook_event_name": PRE,
        "model": "m",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "u",
    }
    assert found == whole
    assert {"agent_id", "agent_type"}.isdisjoint(stdin(PRE))


_SCHEMAS: Final = "tests/subscribers/dialects/test_codex_payload_schemas.py"
_NOTIFY: Final = (
    "`notify` is a program of Codex's own configuration, not a hook; prxbus publishes turn_complete"
)

CASES: Final[tuple[Case, ...]] = (
    Case("C1.1", "PreToolUse: stdin has the tool's own name", c1_1),
    Case("C1.2", "PreToolUse: deny with a reason blocks", c1_2),
    Case("C1.3", "PreToolUse: allow with updatedInput rewrites", c1_3),
    Case("C1.4", "PreToolUse: the rewrite of who ended last", c1_4),
    Case("C1.5", "PreToolUse: allow alone fails open", c1_5),
    Case("C1.6", "PreToolUse: the old block blocks", c1_6),
    Case("C1.7", "PreToolUse: the old block keeps its context", c1_7),
    Case("C1.8", "PreToolUse: ask fails open", c1_8),
    Case("C1.9", "PreToolUse: the old approve fails open", c1_9),
    Case("C1.10", "PreToolUse: a context is kept, with its limit", c1_10),
    Case("C1.11", "PreToolUse: plain text is ignored", c1_11),
    Case("C1.12", "PreToolUse: half a document fails", c1_12),
    Case("C1.13", "PreToolUse: exit code 2 blocks", c1_13),
    Case("C1.14", "PreToolUse: the id of a run has the call's", lambda: ids_of_runs(PRE)),
    Case("C1.15", "PreToolUse: also of one that read nothing", lambda: ids_of_runs(PRE)),
    Case("C2.1", "PostToolUse: stdin has the tool's own name", c2_1),
    Case("C2.2", "PostToolUse: a block's reason is feedback", c2_2),
    Case("C2.3", "PostToolUse: a context is kept, with its limit", c2_3),
    Case("C2.4", "PostToolUse: updatedMCPToolOutput fails open", c2_4),
    Case("C2.5", "PostToolUse: exit code 2 is feedback", c2_5),
    Case("C2.6", "PostToolUse: a stop with its reasons", c2_6),
    Case("C2.7", "PostToolUse: a stop without a reason", c2_7),
    Case("C2.8", "PostToolUse: plain text is ignored", c2_8),
    Case("C2.9", "PostToolUse: the id of a run has the call's", lambda: ids_of_runs(POST)),
    Case("C2.10", "PostToolUse: also of one that read nothing", lambda: ids_of_runs(POST)),
    Case("C3.1", "PermissionRequest: deny beats an earlier allow", c3_1),
    Case("C3.2", "PermissionRequest: allow where nobody denies", c3_2),
    Case("C3.3", "PermissionRequest: nothing where nobody decides", c3_3),
    Case("C3.4", "PermissionRequest: updatedInput is reserved", c3_4),
    Case("C3.5", "PermissionRequest: updatedPermissions is reserved", c3_5),
    Case("C3.6", "PermissionRequest: interrupt is reserved", c3_6),
    Case("C3.7", "seven answers of wrong shape or type", c3_7),
    Case(
        "C3.8",
        "every schema can be read, where PRXBUS_SCHEMAS names their folder",
        shown_by=(f"{_SCHEMAS}::test_every_schema_is_one_of_an_event",),
    ),
    Case("C4.1", "UserPromptSubmit: a stop keeps its context", c4_1),
    Case("C4.2", "UserPromptSubmit: a block blocks", c4_2),
    Case("C4.3", "UserPromptSubmit: a block needs a reason", c4_3),
    Case("C4.4", "UserPromptSubmit: exit code 2 blocks", c4_4),
    Case("C5.1", "SessionStart: plain text is context", c5_1),
    Case("C5.2", "SessionStart: a stop keeps its context", c5_2),
    Case("C5.3", "SessionStart: half a document is no context", c5_3),
    Case("C5.4", "SubagentStart: plain text is context", c5_4),
    Case("C5.5", "SubagentStart: a stop is ignored", c5_5),
    Case("C6.1", "PreCompact: the whole payload", lambda: compaction("PreCompact")),
    Case("C6.2", "PostCompact: the whole payload", lambda: compaction("PostCompact")),
    Case("C6.3", "PreCompact: a block is no answer", c6_3),
    Case("C6.4", "PreCompact: a stop", c6_4),
    Case("C6.5", "PostCompact: a stop", c6_5),
    Case("C6.6", "PreCompact: plain text is ignored", lambda: completed(run("PreCompact", "text"))),
    Case("C6.7", "PostCompact: plain text is ignored", lambda: completed(run("PostCompact", "text"))),
    Case("C7.1", "Stop: a block is a prompt, under the run's id", c7_1),
    Case("C7.2", "Stop: a block needs a reason", c7_2),
    Case("C7.3", "Stop: a stop beats a block", c7_3),
    Case("C7.4", "Stop: of exit code 2 only stderr counts", c7_4),
    Case("C7.5", "Stop: exit code 2 without stderr blocks nothing", c7_5),
    Case("C7.6", "Stop: a blank reason is none", c7_6),
    Case("C7.7", "Stop: plain text fails", c7_7),
    Case("C7.8", "Stop: prompts are joined in declared order", c7_8),
    Case("C8.1", "SessionEnd: what is written is ignored", c8_1),
    Case("C8.2", "Interrupt: a message", c8_2),
    Case("C8.3", "Interrupt: no other key", c8_3),
    Case("C8.4", "Interrupt: plain text fails", c8_4),
    Case("C8.5", "Interrupt: exit codes control nothing", c8_5),
    Case(
        "C9.1",
        "payloads are what the contract lists; and the schemas, where PRXBUS_SCHEMAS names their folder",
        shown_by=(
            f"{_SCHEMAS}::test_every_payload_is_what_the_contract_lists",
            f"{_SCHEMAS}::test_the_table_of_fields_is_the_schemas",
        ),
    ),
    Case(
        "C9.2",
        "hookEventName is constant in six output schemas, where PRXBUS_SCHEMAS names their folder",
        shown_by=(f"{_SCHEMAS}::test_six_output_schemas_name_their_event",),
    ),
    Case("C9.3", "turn_id in nine payloads", c9_3),
    Case("C9.4", "agent_id and agent_type may stand in six payloads", c9_4),
    Case("C9.5", "they are flat, and absent when unknown", c9_5),
    Case("C10.1", "the legacy notification's fields", not_applicable=_NOTIFY),
    Case("C10.2", "the legacy notification's environment", not_applicable=_NOTIFY),
    Case(
        "C10.3",
        "the internal form of an after-agent event",
        not_applicable="internal to Codex: nothing outside its process reads it",
    ),
)
