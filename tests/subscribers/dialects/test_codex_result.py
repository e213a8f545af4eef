"""A run comes to what its profile's table says: statuses, texts and effects."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.decisions import NOTHING
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, PROFILES, Profile
from subscribers.dialects.codex_result import Terms, fails_closed, judge, refuse
from subscribers.dialects.codex_result_values import COMPLETED, Context, Entry, Judged
from subscribers.hooks.outcome import NOTHING as SILENT
from subscribers.hooks.outcome import Captured, Outcome


def stream(text: str) -> Captured:
    """An output stream that was kept whole."""
    return Captured(text.encode(), b"", len(text.encode()))


def exited(answer: object = "", code: int = 0, stderr: str = "") -> Outcome:
    """A run that ended by itself; ``answer`` is text, or a value as JSON."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return Outcome.exited(code, 0.1, stream(text), stream(stderr))


def specific(event: str, **values: object) -> dict[str, Any]:
    """An answer with a ``hookSpecificOutput``."""
    return {"hookSpecificOutput": {"hookEventName": event, **values}}


def failed(*texts: str) -> Judged:
    """A failed run: its error, and then what we say beside it."""
    return Judged("failed", (Entry("error", texts[0]), *(Entry("warning", text) for text in texts[1:])))


# ---- ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event, outcome, text",
    [
        ("PreToolUse", exited(code=1, stderr="boom"), "hook exited with code 1"),
        ("SessionStart", exited(code=2, stderr="boom"), "hook exited with code 2"),
        ("PreCompact", exited(code=2, stderr=" boom\n"), "boom"),
        ("PostCompact", exited(code=1), "hook exited with code 1"),
        ("SessionEnd", exited(code=1, stderr="boom"), "boom"),
        ("PreToolUse", exited(code=-9), "hook exited without a status code"),
        ("PreCompact", exited(code=-9), "hook process terminated without an exit code"),
        ("SessionEnd", exited(code=-9), "hook process terminated without an exit code"),
        ("PreToolUse", Outcome.not_started("no such file"), "no such file"),
        (
            "PreToolUse",
            Outcome("failed", None, None, 0.1, SILENT, SILENT, "nobody listens"),
            "nobody listens",
        ),
        (
            "PreToolUse",
            Outcome("not_started", None, None, 0.0, SILENT, SILENT),
            "hook could not be started",
        ),
        ("PreToolUse", Outcome("timeout", None, None, 1.004, SILENT, SILENT), "hook timed out after 1s"),
    ],
)
def test_a_run_that_went_wrong_fails_open(event: str, outcome: Outcome, text: str) -> None:
    """With upstream's text and no effect at all."""
    assert judge(event, CODEX, outcome) == failed(text)


def test_a_timeout_names_the_time_that_the_handler_had() -> None:
    """And not how long it took to notice."""
    outcome = Outcome("timeout", None, None, 1_000.4, SILENT, SILENT)
    assert judge("Stop", CODEX, outcome, Terms(timeout_s=1_000.0)) == failed("hook timed out after 1000s")


@pytest.mark.parametrize(
    "event, missing",
    [
        ("PreToolUse", "a blocking reason"),
        ("UserPromptSubmit", "a blocking reason"),
        ("PermissionRequest", "a denial reason"),
        ("PostToolUse", "feedback"),
        ("Stop", "a continuation prompt"),
        ("SubagentStop", "a continuation prompt"),
    ],
)
def test_exit_code_two_blocks_only_with_a_reason(event: str, missing: str) -> None:
    """Its stderr, trimmed; stdout is not looked at."""
    found = judge(event, CODEX, exited({"continue": False}, code=2, stderr=" why\n"))
    assert (found.status, found.effects.verdict, found.effects.reason) == ("blocked", "deny", "why")
    blank = judge(event, CODEX, exited(code=2, stderr=" \n"))
    assert blank == failed(f"{event} hook exited with code 2 but did not write {missing} to stderr")


def test_exit_code_two_of_an_asynchronous_handler_is_a_failure() -> None:
    """It is too late to block anything."""
    assert judge("Stop", CODEX, exited(code=2, stderr="x"), Terms(is_async=True)) == failed(
        "hook exited with code 2"
    )


# ---- what Codex does not support -------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
def test_unsupported_keys_are_named_in_their_order(event: str) -> None:
    """The first of continue, stopReason and suppressOutput is the error; a message is shown nevertheless."""
    answer = {"continue": False, "stopReason": "x", "suppressOutput": True, "systemMessage": "hi"}
    for name in ("continue:false", "stopReason", "suppressOutput"):
        found = judge(event, CODEX, exited(answer))
        text = f"{event} hook returned unsupported {name}"
        assert found.entries == (Entry("warning", "hi"), Entry("error", text))
        assert (found.status, found.effects.warnings) == ("failed", ("hi",))
        del answer[name.partition(":")[0]]
    assert judge(event, CODEX, exited(answer)).status == "completed"


@pytest.mark.parametrize(
    "answer, text",
    [
        (
            specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=" "),
            "permissionDecision:deny without a non-empty permissionDecisionReason",
        ),
        (
            specific("PreToolUse", updatedInput={"command": "x"}),
            "updatedInput without permissionDecision:allow",
        ),
        (
            specific("PreToolUse", permissionDecision="deny", updatedInput={}, permissionDecisionReason="x"),
            "updatedInput without permissionDecision:allow",
        ),
        (
            specific("PreToolUse", permissionDecisionReason="x"),
            "permissionDecisionReason without permissionDecision",
        ),
        (specific("PreToolUse", permissionDecision="allow"), "unsupported permissionDecision:allow"),
        (
            specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="x"),
            "unsupported permissionDecision:ask",
        ),
        ({"decision": "block"}, "decision:block without a non-empty reason"),
        ({"reason": "x"}, "reason without decision"),
        ({"decision": "approve", "reason": "x"}, "unsupported decision:approve"),
    ],
)
def test_a_permission_that_is_not_whole_fails(answer: dict[str, Any], text: str) -> None:
    """And neither blocks nor rewrites."""
    assert judge("PreToolUse", CODEX, exited(answer)) == failed(f"PreToolUse hook returned {text}")


def test_a_permission_switches_the_old_form_off() -> None:
    """A context alone does not."""
    old = {"decision": "block", "reason": "old"}
    new = specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "x"})
    assert judge("PreToolUse", CODEX, exited({**old, **new})).effects.verdict == "none"
    found = judge("PreToolUse", CODEX, exited({**old, **specific("PreToolUse", additionalContext="c")}))
    assert (found.effects.verdict, found.effects.contexts) == ("deny", (Context("c"),))


@pytest.mark.parametrize(
    "answer, text",
    [
        ({"suppressOutput": True}, "unsupported suppressOutput"),
        ({"reason": "x"}, "reason without decision"),
        ({"decision": "block", "reason": " "}, "decision:block without a non-empty reason"),
        (specific("PostToolUse", updatedMCPToolOutput=0), "unsupported updatedMCPToolOutput"),
    ],
)
def test_feedback_that_is_not_whole_fails(answer: dict[str, Any], text: str) -> None:
    """The result stays as it is."""
    assert judge("PostToolUse", CODEX, exited(answer)) == failed(f"PostToolUse hook returned {text}")


def test_a_stop_after_a_tool_is_looked_at_before_anything_unsupported() -> None:
    """Its feedback is the reason, else the stop reason."""
    found = judge("PostToolUse", CODEX, exited({"continue": False, "suppressOutput": True}))
    assert found.status == "stopped"
    found = judge("PostToolUse", CODEX, exited({"continue": False, "stopReason": "halt", "reason": " why "}))
    assert (found.effects.feedback, found.effects.stop_reason) == ("why", "halt")
    found = judge("PostToolUse", CODEX, exited({"continue": False, "stopReason": "halt", "reason": " "}))
    assert (found.effects.feedback, found.effects.output) == ("halt", "halt")


@pytest.mark.parametrize(
    "event, text",
    [
        ("Stop", "hook returned invalid stop hook JSON output"),
        ("SubagentStop", "hook returned invalid subagent stop hook JSON output"),
        ("Interrupt", "Interrupt hook returned non-JSON stdout"),
    ],
)
def test_plain_text_is_a_failure_where_a_turn_ends(event: str, text: str) -> None:
    """Unless nobody waits for the handler."""
    assert judge(event, CODEX, exited("all done")) == failed(text)
    assert judge(event, CODEX, exited("all done"), Terms(is_async=True)) == COMPLETED


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "SubagentStart"])
def test_plain_text_is_context_at_three_events(event: str) -> None:
    """Trimmed, with the handler's limit."""
    found = judge(event, CODEX, exited(" hello\n"), Terms(context_limit=7))
    assert (found.entries, found.effects.contexts) == ((Entry("context", "hello"),), (Context("hello", 7),))


@pytest.mark.parametrize(
    "decision, text",
    [
        ({"behavior": "allow", "updatedInput": {}}, "updatedInput"),
        ({"behavior": "allow", "updatedInput": 0}, "updatedInput"),
        ({"behavior": "allow", "updatedPermissions": False}, "updatedPermissions"),
        ({"behavior": "deny", "interrupt": True}, "interrupt:true"),
    ],
)
def test_reserved_fields_of_a_request_fail(decision: dict[str, Any], text: str) -> None:
    """Whatever they hold; nothing is decided."""
    found = judge("PermissionRequest", CODEX, exited(specific("PermissionRequest", decision=decision)))
    assert found == failed(f"PermissionRequest hook returned unsupported {text}")


def test_what_is_wrong_beside_a_stop_costs_its_context() -> None:
    """It is a stop nevertheless."""
    context = specific("PostToolUse", additionalContext="c")
    for fault in ({"suppressOutput": True}, {"decision": "block"}):
        found = judge("PostToolUse", CODEX, exited({"continue": False, **fault, **context}))
        assert (found.status, found.effects.contexts) == ("stopped", ())
    found = judge("PostToolUse", CODEX, exited({"continue": False, "reason": "r", **context}))
    assert found.effects.contexts == (Context("c"),)


@pytest.mark.parametrize(
    "event, reason",
    [("PreToolUse", "r"), ("Stop", "r"), ("PostToolUse", " r\n"), ("UserPromptSubmit", " r\n")],
)
def test_a_reason_is_trimmed_but_for_two_events(event: str, reason: str) -> None:
    """There it stays as it was written."""
    assert judge(event, CODEX, exited({"decision": "block", "reason": " r\n"})).effects.reason == reason


def test_a_denied_request_has_a_reason_in_any_case() -> None:
    """Upstream's own where there is none."""
    answer = specific("PermissionRequest", decision={"behavior": "deny", "message": " ", "interrupt": False})
    found = judge("PermissionRequest", CODEX, exited(answer))
    assert (found.status, found.effects.reason) == ("blocked", "PermissionRequest hook denied approval")
    nothing = specific("PermissionRequest", decision=None)
    assert judge("PermissionRequest", CODEX, exited(nothing)) == COMPLETED


@pytest.mark.parametrize("event", ["PreCompact", "PostCompact"])
def test_a_compaction_stops_with_a_text_of_its_own(event: str) -> None:
    """Where the handler gave none."""
    found = judge(event, CODEX, exited({"continue": False}))
    assert found.entries == (Entry("stop", f"{event} hook stopped execution"),)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SubagentStop"])
def test_a_stop_without_a_reason_has_none(event: str) -> None:
    """And no entry."""
    found = judge(event, CODEX, exited({"continue": False}))
    assert (found.status, found.entries, found.effects.stop_reason) == ("stopped", (), None)


def test_a_reason_alone_is_harmless_where_a_turn_ends() -> None:
    """Unlike before and after a tool."""
    assert judge("Stop", CODEX, exited({"reason": "x"})) == COMPLETED


def test_entries_come_in_upstreams_order() -> None:
    """The message for the user, the context for the model, then what became of the run."""
    answer = {
        "systemMessage": "m",
        **specific(
            "PreToolUse",
            additionalContext="c",
            permissionDecision="deny",
            permissionDecisionReason="no",
        ),
    }
    found = judge("PreToolUse", CODEX, exited(answer))
    assert found.entries == (Entry("warning", "m"), Entry("context", "c"), Entry("feedback", "no"))
    found = judge("PreToolUse", CODEX, exited(answer), Terms(is_async=True))
    assert found.entries == (Entry("context", "c"), Entry("warning", "m"))


def test_an_empty_context_is_a_context() -> None:
    """It is passed through."""
    found = judge("SessionStart", CODEX, exited(specific("SessionStart", additionalContext="")))
    assert found.effects.contexts == (Context(""),)


# ---- what we say beside upstream's text ------------------------------------------------------------------


def test_a_broken_answer_says_what_is_wrong() -> None:
    """In the normal mode; the strict one has upstream's words alone."""
    outcome = exited({"decison": "block"})
    error = "hook returned invalid pre-tool-use JSON output"
    assert judge("PreToolUse", CODEX, outcome, Terms(strict=True)) == failed(error)
    assert judge("PreToolUse", CODEX, outcome) == failed(error, "the answer was ignored: unknown key decison")


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kept, limit", [(1_048_576, "1 MiB"), (18, "18 bytes")])
def test_an_answer_of_which_the_middle_is_missing_says_so(kept: int, limit: str, strict: bool) -> None:
    """It cannot be read, and that is not the handler's mistake: the cut is named beside upstream's words."""
    body = b'{"reason":"aaa'.ljust(kept - 4, b"a")
    outcome = Outcome.exited(0, 0.1, Captured(body, b'aa"}', 2_000_000), SILENT)
    found = judge("PreToolUse", CODEX, outcome, Terms(strict=strict))
    why = (
        f"the answer was ignored: more than {limit} of output is cut, and it has 2,000,000 bytes; "
        "it may have been valid"
    )
    assert found == failed("hook returned invalid pre-tool-use JSON output", why)


@pytest.mark.parametrize("code, status", [(1, "failed"), (2, "blocked")])
def test_a_cut_is_named_also_where_another_exit_code_leaves_the_answer_aside(code: int, status: str) -> None:
    """Where an answer counts with any exit code, one that was cut away is told, and a block stays one."""
    outcome = Outcome.exited(code, 0.1, Captured(b'{"reason":"a', b'a"}', 2_000_000), stream("no"))
    found = judge("PreToolUse", CLAUDE, outcome)
    assert found.status == status
    assert "2,000,000 bytes" in found.entries[-1].text


DENY = json.dumps(specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="no")).encode()


@pytest.mark.parametrize(
    "stdout, status",
    [
        (DENY, "blocked"),
        (b"\xc2\xa0 " + DENY + b"\n\n", "blocked"),
        (DENY.replace(b"no", b"n\xff"), "blocked"),
        (DENY + DENY, "failed"),
        (DENY + b"\n" + DENY, "failed"),
        (b"starting up\n" + DENY, "completed"),
        (b"\xff" + DENY, "completed"),
        (DENY.replace(b'"no"', b"NaN"), "failed"),
        (b'{"continue": NaN}', "failed"),
        (DENY[:-1], "failed"),
        (DENY.replace(b"}}", b',"note":1}}'), "failed"),
        (b"[" + DENY + b"]", "failed"),
    ],
)
def test_what_is_written_beside_an_answer_decides_whether_it_is_one(stdout: bytes, status: str) -> None:
    """A banner, a second document, a bad byte, NaN: as upstream reads them, which is mostly open."""
    outcome = Outcome.exited(0, 0.1, Captured(stdout, b"", len(stdout)), SILENT)
    found = judge("PreToolUse", CODEX, outcome)
    assert found.status == status
    assert (found.effects.verdict == "deny") == (status == "blocked")


def test_a_key_that_no_decision_can_carry_is_named() -> None:
    """It is lost, and said to be; in the strict mode nothing is said."""
    answer = specific("UserPromptSubmit", sessionTitle="t", suppressOriginalPrompt=False)
    found = judge("UserPromptSubmit", CLAUDE, exited(answer))
    assert found.entries == (Entry("warning", "prxbus does not pass on: sessionTitle"),)
    assert judge("UserPromptSubmit", CLAUDE, exited(answer), Terms(strict=True)) == COMPLETED
    request = specific("PermissionRequest", decision={"behavior": "allow", "updatedPermissions": [{}]})
    found = judge("PermissionRequest", CLAUDE, exited(request))
    assert found.entries == (Entry("warning", "prxbus does not pass on: updatedPermissions"),)


# ---- BitFun ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit"])
def test_bitfun_blocks_where_its_page_says_that_continue_works(event: str) -> None:
    """With the stop reason, or a text."""
    found = judge(event, BITFUN, exited({"continue": False, "stopReason": "why", "suppressOutput": True}))
    assert (found.status, found.effects.reason, found.effects.stop) == ("blocked", "why", False)
    found = judge(event, BITFUN, exited({"continue": False}))
    assert found.effects.reason == f"{event} hook stopped execution"


@pytest.mark.parametrize(
    "event",
    [event for event in BITFUN.outputs if event not in ("PreToolUse", "UserPromptSubmit")],
)
def test_bitfun_ignores_it_elsewhere(event: str) -> None:
    """Its page refers to the block."""
    assert judge(event, BITFUN, exited({"continue": False, "stopReason": "x"})) == COMPLETED


def test_bitfun_waives_the_question_and_ignores_suppression() -> None:
    """An allow alone counts; suppressOutput is parsed and ignored."""
    answer = {"suppressOutput": True, **specific("PreToolUse", permissionDecision="allow")}
    assert judge("PreToolUse", BITFUN, exited(answer)).effects.verdict == "allow"
    assert judge("PostToolUse", BITFUN, exited({"suppressOutput": True})) == COMPLETED


# ---- Claude Code -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer, verdict, reason, updated",
    [
        (specific("PreToolUse", permissionDecision="allow"), "allow", None, NOTHING),
        (
            specific(
                "PreToolUse", permissionDecision="ask", permissionDecisionReason="r", updatedInput={"a": 1}
            ),
            "ask",
            "r",
            {"a": 1},
        ),
        (specific("PreToolUse", permissionDecision="defer"), "ask", None, NOTHING),
        (specific("PreToolUse", permissionDecision="deny"), "deny", "Blocked by hook", NOTHING),
        (specific("PreToolUse", updatedInput={"a": 1}), "none", None, {"a": 1}),
        (specific("PreToolUse", permissionDecisionReason="r"), "none", None, NOTHING),
        ({"decision": "approve", "reason": "r"}, "allow", "r", NOTHING),
        ({"decision": "block"}, "deny", "Blocked by hook", NOTHING),
        ({"reason": "r"}, "none", None, NOTHING),
    ],
)
def test_claude_code_has_more_permissions(
    answer: dict[str, Any], verdict: str, reason: str | None, updated: object
) -> None:
    """Allow, ask and defer count, and a denial needs no reason."""
    effects = judge("PreToolUse", CLAUDE, exited(answer)).effects
    assert (effects.verdict, effects.reason, effects.updated_input) == (verdict, reason, updated)


def test_claude_code_stops_before_a_tool() -> None:
    """Which Codex does not."""
    found = judge("PreToolUse", CLAUDE, exited({"continue": False, "stopReason": "halt"}))
    assert (found.status, found.effects.stop_reason) == ("stopped", "halt")


def test_claude_code_answers_a_request_with_more_than_yes() -> None:
    """Another input, or the end of the turn."""
    decision: dict[str, Any] = {"behavior": "allow", "updatedInput": {"a": 1}}
    effects = judge(
        "PermissionRequest", CLAUDE, exited(specific("PermissionRequest", decision=decision))
    ).effects
    assert (effects.verdict, effects.updated_input) == ("allow", {"a": 1})
    decision = {"behavior": "deny", "message": "m", "interrupt": True}
    found = judge("PermissionRequest", CLAUDE, exited(specific("PermissionRequest", decision=decision)))
    assert (found.status, found.effects.stop, found.effects.stop_reason) == ("blocked", True, "m")


def test_claude_code_replaces_an_output_and_keeps_a_block_beside_it() -> None:
    """The reason is feedback next to the result."""
    answer = {"decision": "block", "reason": "r", **specific("PostToolUse", updatedToolOutput={"a": 1})}
    effects = judge("PostToolUse", CLAUDE, exited(answer)).effects
    assert (effects.verdict, effects.feedback, effects.output) == ("deny", "r", {"a": 1})
    answer = specific("PostToolUse", updatedMCPToolOutput="x")
    assert judge("PostToolUse", CLAUDE, exited(answer)).effects.output == "x"
    assert (
        judge("PostToolUse", CLAUDE, exited({"decision": "block", "reason": "r"})).effects.output is NOTHING
    )


def test_claude_code_reads_an_answer_at_every_exit_code() -> None:
    """Exit 2 blocks in any case, and its answer's contexts and messages count."""
    deny = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="json")
    assert judge("PreToolUse", CLAUDE, exited(deny, code=1)).effects.reason == "json"
    assert judge("PreToolUse", CLAUDE, exited(deny, code=2, stderr="err")).effects.reason == "json"
    context = {"systemMessage": "m", **specific("PreToolUse", additionalContext="c")}
    found = judge("PreToolUse", CLAUDE, exited(context, code=2, stderr="err"))
    assert (found.effects.reason, found.effects.contexts) == ("err", (Context("c"),))
    assert found.entries == (Entry("warning", "m"), Entry("context", "c"), Entry("feedback", "err"))
    assert judge("PreToolUse", CLAUDE, exited({}, code=1)) == COMPLETED
    broken = exited("{ half }", code=1)
    assert judge("PreToolUse", CLAUDE, broken) == failed("hook exited with code 1")
    assert judge("PreToolUse", CODEX, exited(deny, code=1)) == failed("hook exited with code 1")


def test_claude_code_reads_half_a_document_as_text() -> None:
    """Which is context where text is."""
    found = judge("UserPromptSubmit", CLAUDE, exited("{ half"))
    assert found.effects.contexts == (Context("{ half"),)
    assert judge("Stop", CLAUDE, exited("done")) == COMPLETED


def test_claude_code_blocks_on_exit_two_without_a_word() -> None:
    """And does not deny a request by it."""
    assert judge("PreToolUse", CLAUDE, exited(code=2)).effects.reason == "No stderr output"
    assert judge("PermissionRequest", CLAUDE, exited(code=2, stderr="x")) == failed("hook exited with code 2")


def test_an_answer_to_somebody_elses_question_can_refuse() -> None:
    """To accept is no decision of ours."""
    for action, verdict in (("accept", "none"), ("decline", "deny"), ("cancel", "deny")):
        found = judge(
            "Elicitation", CLAUDE, exited(specific("Elicitation", action=action)), Terms(strict=True)
        )
        assert found.effects.verdict == verdict


def test_an_event_of_claude_code_that_controls_nothing_ends_well() -> None:
    """Whatever its handler says."""
    assert judge("Notification", CLAUDE, exited("text")) == COMPLETED
    assert judge("SessionEnd", CLAUDE, exited({"decision": "block"}, code=2)).status == "failed"


# ---- a handler's own failure policy ----------------------------------------------------------------------

CLOSED = Terms(on_failure="block")


@pytest.mark.parametrize(
    "outcome, how",
    [
        (exited(code=1), "failed"),
        (exited("{ }}"), "failed"),
        (Outcome.not_started("x"), "failed"),
        (Outcome("timeout", None, None, 1.0, SILENT, SILENT), "timed out"),
    ],
)
def test_a_handler_that_fails_closed_blocks(outcome: Outcome, how: str) -> None:
    """With the error first, and its own text as the reason."""
    found = judge("PreToolUse", CLAUDE, outcome, CLOSED)
    reason = f'PreToolUse hook {how}; blocking because onFailure is "block"'
    assert (found.status, found.effects.verdict, found.effects.reason) == ("blocked", "deny", reason)
    assert len(list(found.errors)) == 1


@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "TaskCompleted", "TeammateIdle", "Notification"])
def test_it_does_not_where_that_means_nothing(event: str) -> None:
    """Where a block would go on for ever, or there is nothing to block."""
    assert judge(event, CLAUDE, exited(code=1), CLOSED) == failed("hook exited with code 1")


def test_an_asynchronous_handler_never_fails_closed() -> None:
    """Nobody waits for it."""
    terms = Terms(on_failure="block", is_async=True)
    assert judge("PreToolUse", CLAUDE, exited(code=1), terms).status == "failed"


# ---- laws ------------------------------------------------------------------------------------------------

words = st.sampled_from(["", " ", "x", "{", "{}", '{"continue":false}', "[1]"])
answers = st.fixed_dictionaries(
    {},
    optional={
        "continue": st.booleans(),
        "stopReason": st.sampled_from([None, "", "s"]),
        "suppressOutput": st.booleans(),
        "systemMessage": st.sampled_from([None, "m"]),
        "decision": st.sampled_from([None, "block", "approve"]),
        "reason": st.sampled_from([None, " ", "r"]),
        "hookSpecificOutput": st.fixed_dictionaries(
            {"hookEventName": st.just("PreToolUse")},
            optional={
                "permissionDecision": st.sampled_from([None, "allow", "deny", "ask"]),
                "permissionDecisionReason": st.sampled_from([None, " ", "r"]),
                "updatedInput": st.sampled_from([None, {"command": "x"}]),
                "additionalContext": st.sampled_from([None, "c"]),
                "decision": st.sampled_from([None, {"behavior": "allow"}, {"behavior": "deny"}]),
            },
        ),
    },
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[Profile, str, Outcome]:
    """A profile, an event of it, and any end of a run."""
    profile = draw(st.sampled_from(list(PROFILES.values())))
    event = draw(st.sampled_from(sorted(profile.outputs)))
    return (
        profile,
        event,
        exited(draw(words | answers), draw(st.sampled_from([0, 0, 0, 1, 2, -9])), draw(words)),
    )


@given(runs())
def test_a_failed_run_has_no_effect_but_its_messages(run: tuple[Profile, str, Outcome]) -> None:
    """Every failure fails open, and is told; whatever blocks has a reason that is not blank."""
    profile, event, outcome = run
    found = judge(event, profile, outcome)
    effects = found.effects
    if found.status == "failed":
        assert list(found.errors)
        assert (effects.verdict, effects.stop, effects.updated_input) == ("none", False, NOTHING)
        assert effects.contexts == ()
    if effects.verdict == "deny":
        assert found.status == "blocked"
        assert effects.reason is not None
        assert effects.reason.strip()


@given(runs())
def test_an_asynchronous_handler_controls_nothing(run: tuple[Profile, str, Outcome]) -> None:
    """Only texts for the model and for the user come of it."""
    profile, event, outcome = run
    found = judge(event, profile, outcome, Terms(is_async=True))
    effects = found.effects
    assert found.status in ("completed", "failed")
    assert (effects.verdict, effects.stop, effects.updated_input, effects.output) == (
        "none",
        False,
        NOTHING,
        NOTHING,
    )


@given(runs())
def test_the_strict_mode_differs_in_what_is_said_and_in_nothing_else(
    run: tuple[Profile, str, Outcome],
) -> None:
    """Status and effects are the same; the normal mode only adds warnings."""
    profile, event, outcome = run
    normal, strict = judge(event, profile, outcome), judge(event, profile, outcome, Terms(strict=True))
    assert (normal.status, normal.effects) == (strict.status, strict.effects)
    assert [entry for entry in normal.entries if entry in strict.entries] == list(strict.entries)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_what_fails_closed_is_what_a_failure_denies(profile: Profile) -> None:
    """A handler that is to block then denies there when it fails, but for events that end a turn."""
    for event in profile.outputs:
        denied = judge(event, profile, exited(code=1), Terms(on_failure="block")).effects.verdict == "deny"
        goes_on = profile.exit_two.get(event) == "continue"
        assert fails_closed(event, profile) == (denied and not goes_on), event
    assert fails_closed("PreToolUse", profile)
    assert not fails_closed("Stop", profile)


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest", "UserPromptSubmit", "PostToolUse"])
def test_what_cannot_be_known_is_refused_with_the_reason(event: str) -> None:
    """The denial says why, and is a block as any other."""
    found = refuse(event, CLAUDE, "it is broken")
    assert (found.status, found.effects.verdict, found.effects.reason) == ("blocked", "deny", "it is broken")
    assert found.entries == (Entry("feedback", "it is broken"),)
