"""What an agent reads is what was decided, or something stricter, and never something it calls invalid."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.decisions import NOTHING, VERDICTS, Decision, Said
from subscribers.dialects.codex_profiles import BITFUN, CLAUDE, CODEX, PROFILES, Profile
from subscribers.dialects.codex_render import NO_OPINION, Rendered, render, render_http
from subscribers.dialects.codex_result import Terms, judge
from subscribers.dialects.codex_result_values import Judged
from subscribers.hooks.outcome import Captured, Outcome


def deny(reason: str | None = "no", **more: Any) -> Decision:
    """A denial by a handler."""
    return Decision("deny", reason, "guards.py:guard", **more)


def written(event: str, profile: Profile, decision: Decision) -> Any:
    """What the hook command writes, decoded; None: nothing."""
    found = render(event, profile, decision)
    assert (found.stderr, found.exit_code) == (b"", 0)
    assert found.stdout == render_http(event, profile, decision)
    return orjson.loads(found.stdout) if found.stdout else None


def read_back(event: str, profile: Profile, found: Rendered) -> Judged:
    """What the agent itself makes of it."""
    out, err = (Captured(data, b"", len(data)) for data in (found.stdout, found.stderr))
    return judge(event, profile, Outcome.exited(found.exit_code, 0.1, out, err), Terms(strict=True))


def permission(**values: object) -> dict[str, object]:
    """An answer to PreToolUse."""
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **values}}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_no_opinion_is_no_output(profile: Profile) -> None:
    """Nothing is written, on every event, and the command ends well."""
    for event in profile.outputs:
        assert render(event, profile, Decision()) == NO_OPINION
        assert render_http(event, profile, Decision()) == b""


# ---- a no ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event, profile, expected",
    [
        ("PreToolUse", CODEX, permission(permissionDecision="deny", permissionDecisionReason="no")),
        (
            "PermissionRequest",
            CODEX,
            {
                "hookSpecificOutput": {
                    "hookEventName": "PermissionRequest",
                    "decision": {"behavior": "deny", "message": "no"},
                }
            },
        ),
        ("PostToolUse", CODEX, {"decision": "block", "reason": "no"}),
        ("UserPromptSubmit", BITFUN, {"decision": "block", "reason": "no"}),
        ("Stop", CODEX, {"decision": "block", "reason": "no"}),
        ("SessionStart", CODEX, {"continue": False, "stopReason": "no"}),
        ("SessionStart", BITFUN, None),
        ("PreCompact", CODEX, {"continue": False, "stopReason": "no"}),
        ("PreCompact", CLAUDE, {"decision": "block", "reason": "no"}),
        ("PostCompact", CODEX, None),
        ("SessionEnd", CODEX, None),
        ("Interrupt", CODEX, None),
        (
            "PostToolUseFailure",
            CLAUDE,
            {"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "no"}},
        ),
        (
            "Elicitation",
            CLAUDE,
            {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "decline"}},
        ),
    ],
)
def test_a_denial_is_said_as_the_event_wants_it(event: str, profile: Profile, expected: object) -> None:
    """And not at all where nothing can be refused."""
    assert written(event, profile, deny()) == expected


def test_an_event_that_knows_exit_codes_alone_is_refused_by_one() -> None:
    """Over HTTP there is none: then the turn is stopped."""
    assert render("TaskCreated", CLAUDE, deny("keine Aufgabe ü")) == Rendered(
        b"", "keine Aufgabe ü".encode(), 2
    )
    assert orjson.loads(render_http("TaskCreated", CLAUDE, deny())) == {"continue": False, "stopReason": "no"}


@pytest.mark.parametrize("reason", [None, "", "  "])
def test_a_denial_never_goes_out_without_a_reason(reason: str | None) -> None:
    """A blank one would count nowhere."""
    found = written("PreToolUse", CODEX, deny(reason))
    assert found == permission(
        permissionDecision="deny", permissionDecisionReason="denied by guards.py:guard"
    )
    assert written("Stop", CODEX, Decision("deny", reason))["reason"] == "denied by a handler"


# ---- a question ------------------------------------------------------------------------------------------


def test_a_question_is_asked_where_it_can_be() -> None:
    """Claude Code asks; a changed input goes with it."""
    decision = Decision("ask", "sure?", "a", updated_input={"a": 1})
    assert written("PreToolUse", CLAUDE, decision) == permission(
        permissionDecision="ask", permissionDecisionReason="sure?", updatedInput={"a": 1}
    )
    assert written("PreToolUse", CLAUDE, Decision("ask", None, "a")) == permission(permissionDecision="ask")


@pytest.mark.parametrize("profile", [CODEX, BITFUN])
def test_a_question_that_cannot_be_asked_is_a_denial(profile: Profile) -> None:
    """And says why; the changed input is not run either."""
    wants = "g wants the user to be asked, which cannot be done here"
    found = written("PreToolUse", profile, Decision("ask", "sure?", "g", updated_input={"a": 1}))
    assert found == permission(permissionDecision="deny", permissionDecisionReason=f"sure? ({wants})")
    found = written("PreToolUse", profile, Decision("ask", None, "g"))
    assert found["hookSpecificOutput"]["permissionDecisionReason"] == wants


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_request_is_a_question_already(profile: Profile) -> None:
    """No answer: the user is asked."""
    assert written("PermissionRequest", profile, Decision("ask", "sure?", "g")) is None


# ---- a yes -----------------------------------------------------------------------------------------------


def test_an_allow_is_written_where_it_means_something() -> None:
    """Codex asks by its own policy, whatever a hook allows."""
    decision = Decision("allow", "fine", "g")
    assert written("PreToolUse", CODEX, decision) is None
    for profile in (BITFUN, CLAUDE):
        assert written("PreToolUse", profile, decision) == permission(
            permissionDecision="allow", permissionDecisionReason="fine"
        )
        assert written("PreToolUse", profile, Decision("allow")) == permission(permissionDecision="allow")
    assert written("PermissionRequest", CODEX, decision)["hookSpecificOutput"]["decision"] == {
        "behavior": "allow"
    }


def test_a_rewrite_alone_does_not_spare_the_question() -> None:
    """It comes with an allow only where that spares nothing."""
    decision = Decision(updated_input={"command": "x"})
    assert written("PreToolUse", CODEX, decision) == permission(
        permissionDecision="allow", updatedInput={"command": "x"}
    )
    for profile in (BITFUN, CLAUDE):
        assert written("PreToolUse", profile, decision) == permission(updatedInput={"command": "x"})


def test_a_request_for_something_else_is_not_allowed_unchanged() -> None:
    """Where the answer cannot carry the new input there is none."""
    decision = Decision("allow", updated_input={"command": "x"})
    assert written("PermissionRequest", CODEX, decision) is None
    assert written("PermissionRequest", CLAUDE, decision)["hookSpecificOutput"]["decision"] == {
        "behavior": "allow",
        "updatedInput": {"command": "x"},
    }


# ---- a stop ----------------------------------------------------------------------------------------------


def test_a_stop_is_a_stop_where_there_is_one() -> None:
    """With its reason, where it has one."""
    stop = Decision(stop=True, stop_reason="halt")
    assert written("SessionStart", CODEX, stop) == {"continue": False, "stopReason": "halt"}
    assert written("Stop", CLAUDE, Decision(stop=True)) == {"continue": False}
    assert written("Stop", CODEX, deny("go on", stop=True)) == {"continue": False}
    assert written("PreToolUse", CLAUDE, stop) == {"continue": False, "stopReason": "halt"}


def test_a_stop_that_an_event_does_not_have_is_a_denial_or_nothing() -> None:
    """What was about to happen does not."""
    stop = Decision(stop=True, stop_reason="halt", stop_by="g")
    assert written("PreToolUse", CODEX, stop) == permission(
        permissionDecision="deny", permissionDecisionReason="halt"
    )
    unsaid = written("PreToolUse", CODEX, Decision(stop=True, stop_by="g"))
    assert unsaid["hookSpecificOutput"]["permissionDecisionReason"] == "denied by g"
    assert written("PostToolUse", BITFUN, stop) == {"decision": "block", "reason": "halt"}
    assert written("Stop", BITFUN, stop) is None
    assert written("SubagentStart", CODEX, stop) is None


def test_a_refused_request_can_end_the_turn_in_claude_code() -> None:
    """Elsewhere the field is reserved."""
    stop = deny(stop=True)
    found = written("PermissionRequest", CLAUDE, stop)
    assert found["hookSpecificOutput"]["decision"] == {"behavior": "deny", "message": "no", "interrupt": True}
    found = written("PermissionRequest", CODEX, stop)
    assert found["hookSpecificOutput"]["decision"] == {"behavior": "deny", "message": "no"}


# ---- texts and outputs -----------------------------------------------------------------------------------


def test_contexts_are_one_text_and_messages_another() -> None:
    """Contexts stand apart from each other by a blank line; messages are for the user."""
    decision = Decision(
        contexts=(Said("a", "one"), Said("b", "two")), system_messages=(Said("a", "x"), Said("b", "y"))
    )
    assert written("SessionStart", CODEX, decision) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "one\n\ntwo"},
        "systemMessage": "x\ny",
    }
    assert written("Stop", CODEX, decision) == {"systemMessage": "x\ny"}
    assert written("Interrupt", CODEX, decision) == {"systemMessage": "x\ny"}
    assert written("SessionEnd", CODEX, decision) is None


@pytest.mark.parametrize(
    "output, text", [("x", "x"), ({"a": 1}, '{"a":1}'), (" ", "[output removed]"), (None, "null")]
)
def test_a_replaced_output_replaces_it(output: object, text: str) -> None:
    """Where there is no field for it, as the reason of a block."""
    decision = Decision(output=output, output_by="g")
    assert written("PostToolUse", CODEX, decision) == {"decision": "block", "reason": text}
    assert written("PostToolUse", CLAUDE, decision) == {
        "hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": output}
    }


def test_feedback_of_a_stop_is_not_lost() -> None:
    """The text for the model goes beside that for the user."""
    decision = Decision(output="feedback", stop=True, stop_reason="halt")
    assert written("PostToolUse", CODEX, decision) == {
        "continue": False,
        "stopReason": "halt",
        "reason": "feedback",
    }
    both = deny("why", output="feedback")
    assert written("PostToolUse", CODEX, both) == {"decision": "block", "reason": "why"}
    assert written("PostToolUse", CLAUDE, both)["hookSpecificOutput"]["updatedToolOutput"] == "feedback"
    same = deny("why", output="why")
    assert written("PostToolUse", CLAUDE, same) == {"decision": "block", "reason": "why"}


# ---- laws ------------------------------------------------------------------------------------------------

PLACES = [(name, event) for name, profile in PROFILES.items() for event in profile.outputs]
REFUSABLE = [
    (name, event)
    for name, event in PLACES
    if PROFILES[name].outputs[event].prevents
    and (name, event) != ("bitfun", "PreCompact")  # its handlers cannot refuse that
]
texts = st.sampled_from(["", " ", "x", "y z"])
said = st.lists(st.builds(Said, st.just("h"), texts), max_size=2).map(tuple)


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    """Any decision."""
    return Decision(
        verdict=draw(st.sampled_from(VERDICTS)),
        reason=draw(st.none() | texts),
        by=draw(st.none() | st.just("h")),
        contexts=draw(said),
        updated_input=draw(st.none() | st.just({"command": "x"})),
        output=draw(st.sampled_from([NOTHING, "o", None])),
        stop=draw(st.booleans()),
        stop_reason=draw(st.none() | texts),
        system_messages=draw(said),
    )


@given(st.sampled_from(PLACES), decisions())
def test_the_agent_understands_whatever_is_written(place: tuple[str, str], decision: Decision) -> None:
    """It never calls an answer invalid or unsupported, so that nothing fails open by its form."""
    profile, event = PROFILES[place[0]], place[1]
    rendered = render(event, profile, decision)
    found = read_back(event, profile, rendered)
    rewrites_alone = profile is BITFUN and b"updatedInput" in rendered.stdout
    assert found.status != "failed" or rewrites_alone


@given(st.sampled_from(REFUSABLE), decisions())
def test_what_was_denied_is_denied(place: tuple[str, str], decision: Decision) -> None:
    """Before anything happens, a no stays a no, and so does a stop or a question that cannot be asked."""
    profile, event = PROFILES[place[0]], place[1]
    found = read_back(event, profile, render(event, profile, decision)).effects
    if decision.denied or decision.stop:
        assert found.verdict == "deny" or found.stop
    if decision.verdict == "ask" and event == "PreToolUse":
        assert found.verdict in ("ask", "deny") or found.stop
