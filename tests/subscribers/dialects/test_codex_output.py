"""Only a document that fits its event is an answer; all the rest is text, or broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.codex_output import Broken, Document, Plain, read, trimmed
from subscribers.dialects.codex_output_rules import CLAUDE_OUTPUTS, CODEX_OUTPUTS, PASSED_ON

PRE = CODEX_OUTPUTS["PreToolUse"]
ASK = CODEX_OUTPUTS["PermissionRequest"]


def specific(**values: object) -> str:
    """An answer to PreToolUse."""
    return json.dumps({"hookSpecificOutput": values})


@pytest.mark.parametrize("text", ["", "  \n", "\u2003\x85"])
def test_white_space_is_nothing(text: str) -> None:
    """Also what only Unicode calls so."""
    assert read(text, PRE) is None


@pytest.mark.parametrize("text", ["hello", "123", '"text"', "null", "banner\n{}", "\ufeff{}", "NaN"])
def test_other_text_is_text(text: str) -> None:
    """A banner before an answer too: nothing after it is read."""
    assert read(text, PRE) == Plain(trimmed(text))


@pytest.mark.parametrize(
    "text, why",
    [
        ("{", None),
        ("[1", None),
        ("[]", "an array is no object"),
        ("{}{}", None),
        ('{"continue": NaN}', None),
        ('{"x": 1}', "unknown key x"),
        ('{"continue": null}', "continue has the wrong type or value"),
        ('{"suppressOutput": null}', "suppressOutput has the wrong type or value"),
        ('{"continue": 1}', "continue has the wrong type or value"),
        ('{"systemMessage": 5}', "systemMessage has the wrong type or value"),
        ('{"decision": "deny"}', "decision has the wrong type or value"),
        ('{"hookSpecificOutput": 5}', "hookSpecificOutput is no object"),
        ('{"hookSpecificOutput": {}}', "hookSpecificOutput.hookEventName is not the name of an event"),
        (
            specific(hookEventName="SessionEnd"),
            "hookSpecificOutput.hookEventName is not the name of an event",
        ),
        (specific(hookEventName=["Stop"]), "hookSpecificOutput.hookEventName is not the name of an event"),
        (specific(hookEventName="Stop", x=1), "unknown key hookSpecificOutput.x"),
        (
            specific(hookEventName="Stop", permissionDecision="maybe"),
            "hookSpecificOutput.permissionDecision has the wrong type or value",
        ),
        ('{"systemMessage": "x", "a":' + "[" * 130 + "]" * 130 + "}", "nested more than 127 levels deep"),
    ],
)
def test_what_looks_like_a_document_and_is_none_is_broken(text: str, why: str | None) -> None:
    """With what is wrong."""
    found = read(text, PRE)
    assert isinstance(found, Broken)
    assert why is None or found.why == why


@pytest.mark.parametrize(
    "text, why",
    [
        (
            specific(hookEventName="Stop", decision=5),
            "hookSpecificOutput.decision has the wrong type or value",
        ),
        (specific(hookEventName="Stop", decision={}), "hookSpecificOutput.decision has no behavior"),
        (
            specific(hookEventName="Stop", decision={"behavior": "ask"}),
            "hookSpecificOutput.decision.behavior has the wrong type or value",
        ),
        (
            specific(hookEventName="Stop", decision={"behavior": "deny", "reason": "x"}),
            "unknown key hookSpecificOutput.decision.reason",
        ),
        ('{"decision": {"behavior": "deny"}}', "unknown key decision"),
    ],
)
def test_an_answer_to_a_request_has_its_own_shape(text: str, why: str) -> None:
    """A level deeper than others, and no decision at the top."""
    assert read(text, ASK) == Broken(why)


def test_null_is_as_good_as_nothing_but_for_flags() -> None:
    """Also for a word of a list, for another input, and for the whole of the specific part."""
    text = specific(hookEventName="Stop", permissionDecision=None, updatedInput=None, additionalContext=None)
    found = read(text, PRE)
    assert isinstance(found, Document)
    assert read('{"hookSpecificOutput": null, "decision": null, "reason": null}', PRE) == Document(
        {"hookSpecificOutput": None, "decision": None, "reason": None}, {}
    )


def test_the_last_of_two_equal_keys_holds() -> None:
    """As in the agent's own parser."""
    found = read('{"reason": "a", "reason": "b"}', PRE)
    assert isinstance(found, Document)
    assert found.text("reason") == "b"


def test_a_closed_shape_begins_and_ends_like_an_object() -> None:
    """Where that counts, half a document is text like any other."""
    claude = CLAUDE_OUTPUTS["UserPromptSubmit"]
    assert read("{ half", claude, "closed") == Plain("{ half")
    assert read("[]", claude, "closed") == Plain("[]")
    assert isinstance(read("{ half }", claude, "closed"), Broken)
    assert isinstance(read("{}", claude, "closed"), Document)


@given(
    st.sampled_from([*CODEX_OUTPUTS, *CLAUDE_OUTPUTS]),
    st.text(max_size=20) | st.text('{}[]":,tru ', max_size=9),
)
def test_any_text_is_something(event: str, text: str) -> None:
    """Nothing that a handler writes is too odd to be read."""
    rule = CODEX_OUTPUTS.get(event) or CLAUDE_OUTPUTS[event]
    found = read(text, rule)
    assert (found is None) == (trimmed(text) == "")


def test_every_key_that_a_codex_handler_may_write_has_a_place_in_a_decision() -> None:
    """Or is one that makes the run fail."""
    keys = {key for rule in CODEX_OUTPUTS.values() for part in rule[1:4] for key in part or {}}
    assert keys - PASSED_ON == {"updatedPermissions"}
