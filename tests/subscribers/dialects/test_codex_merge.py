"""All handlers of an event together, as upstream says it, and as the bus merges what they answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.decisions import NOTHING, VERDICTS, Answer, Decision, Heard, merge
from subscribers.dialects.codex_merge import Finished, Merged, answers, merge_judged, rewrite_fault
from subscribers.dialects.codex_profiles import CLAUDE, CODEX, PROFILES, Profile
from subscribers.dialects.codex_result_values import Context, Effects, Judged

ORIGINAL = {"command": "ls", "cwd": "/"}


def run(by: str, at: float = 0.0, **effects: Any) -> Finished:
    """A run with these effects."""
    return Finished(by, Judged("completed", (), Effects(**effects)), at)


def deny(by: str, reason: str) -> Finished:
    """A run that says no."""
    return run(by, verdict="deny", reason=reason)


def on_the_bus(event: str, profile: Profile, runs: list[Finished], tool_name: str | None = None) -> Decision:
    """The decision that the bus makes of the handlers' answers."""
    found = answers(event, profile, runs, tool_name=tool_name)
    return merge([Heard("codex", "open", None, 0.1, tuple(found))], ORIGINAL)


def test_nobody_says_anything() -> None:
    """Nothing is answered, not even an empty answer."""
    runs = [run("a"), run("b")]
    assert merge_judged("PreToolUse", CODEX, runs) == Merged()
    assert answers("PreToolUse", CODEX, runs) == []
    assert merge_judged("PreToolUse", CODEX, []) == Merged()


def test_the_first_denial_in_configured_order_has_the_reason() -> None:
    """Whoever ended first; and no rewrite survives it."""
    runs = [run("a", updated_input={"command": "x"}), deny("b", "one"), deny("c", "two")]
    found = merge_judged("PreToolUse", CODEX, runs)
    assert (found.verdict, found.reason, found.by, found.updated_input) == ("deny", "one", "b", NOTHING)
    decision = on_the_bus("PreToolUse", CODEX, runs)
    assert (decision.reason, decision.by, decision.updated_input) == ("one", "b", None)


@pytest.mark.parametrize("times, winner", [((1.0, 2.0), "b"), ((2.0, 1.0), "a"), ((1.0, 1.0), "b")])
def test_the_rewrite_of_who_ended_last_is_the_whole_input(times: tuple[float, float], winner: str) -> None:
    """Not a mixture by keys; of two at the same moment it is the later configured."""
    runs = [
        run("a", times[0], updated_input={"command": "a", "x": 1}),
        run("b", times[1], updated_input={"command": "b"}),
    ]
    decision = on_the_bus("PreToolUse", CODEX, runs, "Bash")
    assert decision.updated_input == {"a": {"command": "a", "x": 1}, "b": {"command": "b"}}[winner]
    assert decision.conflicts == ()


@pytest.mark.parametrize(
    "profile, tool, updated, fault",
    [
        (CODEX, "Bash", {"command": "x"}, None),
        (CODEX, "Bash", {"command": 5}, "hook returned updatedInput without string field `command`"),
        (CODEX, "apply_patch", {}, "hook returned updatedInput without string field `command`"),
        (CODEX, "Bash", "ls", "hook returned updatedInput without string field `command`"),
        (CODEX, "mcp__a__b", {}, None),
        (CODEX, "mcp__a__b", [], "hook returned updatedInput that is no object"),
        (CLAUDE, "Bash", {}, None),
        (CLAUDE, None, None, "hook returned updatedInput that is no object"),
    ],
)
def test_an_input_that_a_tool_cannot_take_refuses_the_call(
    profile: Profile, tool: str | None, updated: object, fault: str | None
) -> None:
    """The call ends with the text that the agent has for it, and does not run with something else."""
    assert rewrite_fault(profile, tool, updated) == fault
    decision = on_the_bus("PreToolUse", profile, [run("a", updated_input=updated)], tool)
    assert decision.reason == fault
    assert decision.denied == (fault is not None)


def test_feedback_is_joined_with_a_blank_line() -> None:
    """And stands where the result was, once."""
    runs = [
        run("a"),
        run("b", verdict="deny", reason="one", feedback="one", output="one"),
        run("c", verdict="deny", reason="two", feedback="two", output="two"),
    ]
    found = merge_judged("PostToolUse", CODEX, runs)
    assert (found.feedback, found.output) == ("one\n\ntwo", "one\n\ntwo")
    decision = on_the_bus("PostToolUse", CODEX, runs)
    assert (decision.reason, decision.output, decision.by) == ("one\n\ntwo", "one\n\ntwo", "b")


def test_an_output_that_is_no_feedback_stays_what_it_is() -> None:
    """Claude Code's own replacement, beside a block of somebody else."""
    runs = [
        run("a", output={"a": 1}),
        run("b", verdict="deny", reason="r", feedback="r"),
    ]
    decision = on_the_bus("PostToolUse", CLAUDE, runs)
    assert (decision.output, decision.reason) == ({"a": 1}, "r")


def test_a_stopped_result_has_its_feedback_and_no_denial() -> None:
    """The turn goes on with it."""
    runs = [run("a", stop=True, stop_reason="halt", feedback="f", output="f")]
    decision = on_the_bus("PostToolUse", CODEX, runs)
    assert (decision.stop_reason, decision.output, decision.verdict) == ("halt", "f", "none")


def test_prompts_are_joined_and_kept_apart() -> None:
    """One prompt for the agent, and the fragments with who said them."""
    runs = [deny("a", "one"), run("b"), deny("c", "two")]
    found = merge_judged("Stop", CODEX, runs)
    assert found.fragments == (("a", "one"), ("c", "two"))
    assert found.continuation == on_the_bus("Stop", CODEX, runs).reason == "one\n\ntwo"


def test_the_end_of_a_turn_beats_its_going_on() -> None:
    """In whatever order they come."""
    runs = [deny("a", "go on"), run("b", stop=True, stop_reason="done")]
    found = merge_judged("Stop", CODEX, runs)
    assert (found.stop, found.fragments, found.verdict) == (True, (), "none")
    decision = on_the_bus("Stop", CODEX, runs)
    assert (decision.stop, decision.stop_reason, decision.verdict) == (True, "done", "none")


def test_the_first_reason_that_there_is_for_a_stop_counts() -> None:
    """Also where the first handler that stopped gave none."""
    runs = [run("a", stop=True), run("b", stop=True, stop_reason="why"), run("c", stop=True)]
    assert on_the_bus("SessionStart", CODEX, runs).stop_reason == "why"
    assert on_the_bus("SessionStart", CODEX, runs).verdict == "none"


def test_a_stop_that_prevents_is_a_denial_on_the_bus() -> None:
    """So that an agent that knows of no stops does not send the prompt."""
    runs = [run("a", stop=True, stop_reason="why")]
    assert merge_judged("UserPromptSubmit", CODEX, runs).verdict == "none"
    decision = on_the_bus("UserPromptSubmit", CODEX, runs)
    assert (decision.verdict, decision.reason) == ("deny", "why")


def test_contexts_and_messages_come_in_configured_order() -> None:
    """Each with who gave it; also of runs that ended in another order."""
    runs = [
        run("a", 2.0, contexts=(Context("1"), Context("2", 7)), warnings=("m", "n")),
        run("b", 1.0, contexts=(Context("3"),)),
    ]
    found = merge_judged("SessionStart", CODEX, runs)
    assert [(note.by, note.context.text) for note in found.contexts] == [("a", "1"), ("a", "2"), ("b", "3")]
    assert found.warnings == (("a", "m"), ("a", "n"))
    decision = on_the_bus("SessionStart", CODEX, runs)
    assert decision.contexts == (("a", "1"), ("a", "2"), ("b", "3"))
    assert decision.system_messages == (("a", "m\nn"),)


# ---- laws ------------------------------------------------------------------------------------------------

PLACES = [(name, event) for name, profile in PROFILES.items() for event in profile.outputs]
texts = st.sampled_from(["x", "y", "z"])


@st.composite
def effects(draw: st.DrawFn) -> Effects:
    """Whatever a run may ask for."""
    reason = draw(texts)
    verdict = draw(st.sampled_from(VERDICTS))
    stop = draw(st.booleans())
    return Effects(
        verdict=verdict,
        reason=reason if verdict != "none" else None,
        updated_input=draw(st.sampled_from([NOTHING, {"command": "a"}, {"command": "b", "x": 1}])),
        contexts=tuple(Context(text) for text in draw(st.lists(texts, max_size=2))),
        stop=stop,
        stop_reason=draw(st.none() | texts) if stop else None,
        warnings=tuple(draw(st.lists(texts, max_size=1))),
    )


@given(st.sampled_from(PLACES), st.lists(st.tuples(effects(), st.floats(0, 9)), max_size=4))
def test_the_bus_comes_to_what_upstream_would(
    place: tuple[str, str], found: list[tuple[Effects, float]]
) -> None:
    """Verdict, reason, rewrite, stop, contexts and messages are those of the merged runs."""
    profile, event = PROFILES[place[0]], place[1]
    runs = [Finished(f"h{i}", Judged("completed", (), each), at) for i, (each, at) in enumerate(found)]
    merged, decision = merge_judged(event, profile, runs), on_the_bus(event, profile, runs)
    prevented = merged.stop and profile.outputs[event].prevents
    if not prevented:
        assert (decision.verdict, decision.by) == (merged.verdict, merged.by)
        assert decision.reason == (merged.continuation or merged.reason)
        wanted = None if merged.updated_input is NOTHING else merged.updated_input
        assert decision.updated_input == wanted
    else:
        assert decision.denied
    assert (decision.stop, decision.stop_reason) == (merged.stop, merged.stop_reason)
    assert [said.text for said in decision.contexts] == [note.context.text for note in merged.contexts]
    assert [said.by for said in decision.system_messages] == [said.by for said in merged.warnings]


@given(st.lists(effects(), max_size=4))
def test_an_answer_names_its_handler_and_nobody_answers_twice(found: list[Effects]) -> None:
    """Provenance is each handler's own."""
    runs = [Finished(f"h{i}", Judged("completed", (), each)) for i, each in enumerate(found)]
    names = [answer.handler for answer in answers("PreToolUse", CLAUDE, runs)]
    assert names == sorted(set(names))
    assert all(answer != Answer(answer.handler) for answer in answers("PreToolUse", CLAUDE, runs))
