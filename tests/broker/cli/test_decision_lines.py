"""A decision for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cli.decision_lines import MISSING, decision_lines
from broker.cli.terminal import width
from broker.protocol.decisions import SILENCES, Answer, Decision, Heard, Refusal, merge
from tests.broker.protocol.decision_scene import COMMAND, HEARD, decided, heard


def text(decision: Decision, columns: int | None = None) -> str:
    """The decision for people."""
    return "\n".join(decision_lines(decision, columns))


def test_a_denial_is_told_with_its_reason_and_handler() -> None:
    """The first line is what most want to know; below stands who was asked, and how long it took."""
    assert decision_lines(decided(heard(Answer("guards.py:guard", "deny", "not here"))), None) == [
        "denied by guards.py:guard: not here",
        "",
        "ASKED  FAILS     TOOK  SAID",
        "guard  open   0.40 ms  deny (guards.py:guard)",
    ]


@pytest.mark.parametrize(
    "answer,line",
    [
        (Answer("g", "deny"), "denied by g"),
        (Answer("g", "allow", "fine"), "allowed by g: fine"),
        (Answer("g", "ask", "sure?"), "the user is to be asked, says g: sure?"),
        (Answer("g", "none", "unheard"), "no opinion"),
        (Answer("g", "deny", "one\ntwo"), "denied by g: one two"),
    ],
)
def test_each_verdict_has_its_words(answer: Answer, line: str) -> None:
    """A reason is there when somebody gave one, on one line."""
    assert decision_lines(decided(heard(answer)), None)[0] == line


def test_nobody_asked_is_said() -> None:
    """Without a decider there is one line and no table."""
    assert decision_lines(Decision(), None) == ["no opinion: nobody was asked"]


def test_what_handlers_add_is_told_with_who_added_it() -> None:
    """Contexts, messages, a stop, changed keys with conflicts, and a replaced output with its size."""
    first = Answer("a", contexts=("one\ntwo",), updated_input={"command": "ls", "n": 1}, stop=True)
    second = Answer("b", system_message="see", updated_input={}, output="x" * 2048, priority=1)
    shown = text(decided(heard(first, second)))
    assert shown.splitlines()[:9] == [
        "no opinion",
        "stop      a ends the turn",
        "message   b: see",
        "context   a: one",
        "          two",
        'input     command: "rm -rf /" → (missing), by b',
        "conflict  command was changed by a, b; the last one holds",
        "input     n: (missing) → 1, by a",
        f"output    replaced by b, 2.0 KiB: {'x' * 59}…",
    ]
    assert "context + new input + stop (a), new input + new output + message (b)" not in shown  # it is cut
    assert "guard  open   0.40 ms  context + new input + stop (a), new inp…" in shown


def test_a_stop_has_its_reason_and_a_refused_rewrite_too() -> None:
    """What the agent's own validator said of a rewrite is not lost."""
    decision = decided(heard(Answer("a", stop=True, stop_reason="enough")))
    assert "stop      a ends the turn: enough" in text(decision)
    assert "refused   the rewrite by b: no" in text(decision._replace(refused=(Refusal("b", "no"),)))


@pytest.mark.parametrize("silence", SILENCES)
def test_who_is_missing_is_told_and_why(silence: Any) -> None:
    """Every reason has words; of a decider that fails closed they say what its silence means."""
    open_ = decided(heard(silence=silence), heard(name="other"))
    assert decision_lines(open_, None)[0] == "no opinion (1 of 2 deciders without an answer)"
    assert f"guard  open   0.40 ms  {MISSING[silence]}\n" in text(open_)
    assert "\nother  open   0.40 ms  nothing" in text(open_)
    closed = decided(heard(silence=silence, failure="closed"))
    assert decision_lines(closed, None)[0].startswith("denied by guard: guard did not answer")
    assert f"{MISSING[silence]}, which is a d" in text(closed)


def test_colours_go_with_the_verdict() -> None:
    """Red for no, green for yes, yellow where somebody is missing, none without an opinion."""

    def first(decision: Decision) -> str:
        return decision_lines(decision, None, colour=True)[0]

    assert first(decided(heard(Answer("g", "deny")))) == "\x1b[1;31mdenied by g\x1b[0m"
    assert first(decided(heard(Answer("g", "allow")))).startswith("\x1b[1;32m")
    assert first(decided(heard(Answer("g", "allow")), heard(silence="died"))).startswith("\x1b[1;33m")
    assert first(decided(heard())) == "no opinion"


@given(HEARD, st.none() | st.integers(60, 120))
def test_nothing_foreign_reaches_the_terminal(said: Sequence[Heard], columns: int | None) -> None:
    """Whatever deciders say, lines are printable, and where the terminal's width is known ASCII fits it."""
    for block in decision_lines(merge(said, COMMAND), columns):
        for line in block.split("\n"):
            assert line.isprintable()
            if columns is not None and line.isascii():
                assert width(line) <= columns


def test_a_terminal_gets_the_beginning_of_a_long_text() -> None:
    """2,000 characters and how many more there are, of a reason as of a context; a file gets them all."""
    long = "x" * 1_002_000
    decision = decided(heard(Answer("g", "deny", long, contexts=(long,))))
    lines = decision_lines(decision, 80)
    assert sum(map(len, lines)) < 5_000
    assert "… (1,000,000 more characters)" in lines[0]
    assert "… (1,000,003 more characters)" in "".join(lines[1:])  # who said it stands before it
    assert text(decision).count(long) == 2
