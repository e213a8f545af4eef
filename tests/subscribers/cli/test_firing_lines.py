"""A firing on a terminal: what matched, what came of it, the decision; it fits, and nothing acts on it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.terminal import width
from broker.protocol.decisions import NOTHING, Answer, Heard, merge
from subscribers.cli.explanation_lines import NARROWEST, ExplanationLines
from subscribers.cli.firing_lines import OUTPUT_LINES, FiringLines, ending, tail
from subscribers.hooks.explanation import Explained, ExplainedFile, Handler
from subscribers.hooks.firing import Fired, FiredFile, Firing, Published
from subscribers.hooks.outcome import Captured, Outcome

GOOD = Handler(
    "tool_call", 0, "tool_call#0", "shell", "ok", command="./audit.sh", executable="/srv/shop/audit.sh"
)
DEAD = replace(GOOD, name="tool_call#1", status="dead")
GUARD = Handler("tool_call", 0, "guards.py:guard", "python", "ok", command="@decide")
PAYLOAD = {"tool": "Bash"}


def captured(text: bytes) -> Captured:
    """A stream that was kept whole."""
    return Captured(text, b"", len(text))


def ran(
    status: Any = "ok", code: int | None = 0, out: bytes = b"", err: bytes = b"", why: str | None = None
) -> Outcome:
    """How a run ended."""
    return Outcome(status, code, None, 0.0042, captured(out), captured(err), why)


def report(
    *fired: Fired,
    is_dry: bool = False,
    printed: str = "",
    columns: int | None = None,
    colour: bool = False,
    decides: bool = True,
    dialect: str = "prx",
) -> str:
    """What a person gets to see."""
    explained = Explained(tuple(each.handler for each in fired), (), False)
    file = ExplainedFile(
        "/srv/shop/hooks.json", dialect, "its name is hooks.json", "/srv/shop", True, explained
    )
    answers = tuple(each.answer for each in fired if each.answer is not None)
    heard = [Heard("python:guards.py", "open", None, 0.0042, answers)] if answers and decides else []
    files = (FiredFile(file, fired, printed),)
    firing = Firing("prx.lifecycle.tool_call", "s1", PAYLOAD, False, is_dry, files, merge(heard, PAYLOAD))
    lines = ExplanationLines(columns, "/srv/shop", colour=colour)
    return "\n".join(FiringLines(lines).report(firing))


def test_a_firing_reads_from_the_event_to_the_sum() -> None:
    """Event, files, handlers with what came of them, and the sum stand in this form."""
    fired = (
        Fired(GOOD, True, None, ran("failed", 3, b"hello\n", b"oops\n")),
        Fired(DEAD, True, "dead: no such program", Outcome.not_started("dead: no such program")),
        Fired(replace(GOOD, name="error#0"), False, "it is for prx.lifecycle.error"),
    )
    assert report(*fired) == (
        "prx.lifecycle.tool_call, session s1\n"
        '  the payload: {"tool": "Bash"}\n'
        "\n"
        "hooks.json  (prx: its name is hooks.json)\n"
        "\n"
        "  failed   tool_call#0  ./audit.sh\n"
        "           failed, exit 3, 4.2 ms\n"
        "           out| hello\n"
        "           err| oops\n"
        "  dead     tool_call#1  ./audit.sh\n"
        "           dead: no such program\n"
        "  -        error#0  tool_call  ./audit.sh\n"
        "           it is for prx.lifecycle.error\n"
        "\n"
        "handlers: 2 matched of 3, 1 ran, 2 failed"
    )


def test_a_dry_run_says_what_would_run() -> None:
    """Programs are named, and what cannot run is counted as that."""
    told = report(Fired(GOOD, True, None), Fired(DEAD, True, "dead: no such program"), is_dry=True)
    assert "  would    tool_call#0  ./audit.sh\n           would run audit.sh\n" in told
    assert told.endswith("handlers: 2 matched of 2, a dry run: nothing was started, 1 cannot run")


def test_answers_and_their_decision_are_told() -> None:
    """Everything that an answer can bring stands below its handler, and the decision below the files."""
    answer = Answer(
        "guards.py:guard", "deny", "not here", ("be kind",), {"tool": "Read"}, output="short", stop=True,
        stop_reason="enough", system_message="refused",
    )  # fmt: skip
    told = report(Fired(GUARD, True, None, ran(), answer, (Published("a.b", {"x": 1}),)), printed="loading\n")
    for line in (
        "deny: not here",
        "context: be kind",
        'input becomes {"tool": "Read"}',
        'output becomes "short"',
        "stop: enough",
        "to the user: refused",
        'published a.b {"x": 1}',
    ):
        assert f"\n           {line}\n" in told
    assert "\n  log| loading\n" in told
    assert "\ndenied by guards.py:guard: not here\n" in told
    assert "none" not in report(Fired(GUARD, True, None, ran(), Answer("x", contexts=("a",))))


def test_what_matched_and_did_not_run_says_why() -> None:
    """A handler that was chosen already, and one that is turned off, are skipped."""
    assert "  skipped  tool_call#0" in report(Fired(GOOD, True, "it runs once"))
    assert report().count("no handlers") == 1


@pytest.mark.parametrize(
    "outcome,words",
    [
        (ran(), "ok, 4.2 ms"),
        (ran("failed", 7), "failed, exit 7, 4.2 ms"),
        (Outcome("signalled", None, 9, 0.0042, captured(b""), captured(b"")), "signalled, signal 9, 4.2 ms"),
        (ran("timeout", None), "timeout, 4.2 ms"),
        (Outcome.not_started("no room"), "not started"),
    ],
)
def test_an_ending_is_told_in_a_few_words(outcome: Outcome, words: str) -> None:
    """Each way that a run can end has its words."""
    assert ending(outcome) == words


def test_long_output_is_cut_at_its_beginning() -> None:
    """The last lines are shown, and that there are more."""
    assert tail("a\nb\n") == ["a", "b"]
    lines = tail("".join(f"{number}\n" for number in range(100)))
    assert (lines[0], lines[-1], len(lines)) == ("…", "99", OUTPUT_LINES + 1)
    assert tail("x" * 5_000)[0] == "…"


TEXT = st.text(max_size=60) | st.text("审计 a\x1b\n", max_size=90)


@given(TEXT, TEXT, TEXT, TEXT, st.integers(20, 120), st.booleans())
def test_every_line_fits_and_is_printable(
    reason: str, output: str, context: str, name: str, columns: int, is_dry: bool
) -> None:
    """Whatever handlers say, no line is wider than the terminal or moves a cursor."""
    answer = Answer(name or "x", "ask", reason, (context,), {name: reason}, output=output)
    outcome = ran("failed", 1, output.encode(), reason.encode(), reason)
    fired = (
        Fired(replace(GUARD, name=name), True, None, outcome, answer),
        Fired(replace(DEAD, name=name), True, reason),
    )
    for line in report(*fired, is_dry=is_dry, printed=output, columns=columns, decides=False).split("\n"):
        assert line.isprintable()
        assert width(line) <= max(columns, NARROWEST)


def test_colours_mark_and_change_nothing_else() -> None:
    """Without its control sequences the coloured report is the plain one."""
    fired = (
        Fired(GOOD, True, None, ran()),
        Fired(GUARD, True, None, ran("failed", 1), Answer("x", "deny", "no")),
    )
    coloured = report(*fired, columns=80, colour=True)
    assert "\x1b[32mok\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == report(*fired, columns=80)


def test_an_answer_without_an_output_says_none() -> None:
    """Nothing is told of an output that nobody replaced."""
    assert Answer("x").output is NOTHING
    assert "output becomes" not in report(Fired(GUARD, True, None, ran(), Answer("x")))


def test_what_a_hook_of_a_role_injects_is_called_so() -> None:
    """It is no output of a program: it stands in the session's next system prompt."""
    fired = Fired(replace(GOOD, event="tool.execute.after"), True, None, ran(out=b"left a mess\n"))
    assert "           injects| left a mess\n" in report(fired, dialect="rolebox")
    assert "           out| left a mess\n" in report(fired)
