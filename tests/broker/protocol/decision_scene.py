"""Decisions of any kind, for tests of how they are told."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from broker.protocol.decisions import SILENCES, VERDICTS, Answer, Decision, Heard, merge
from broker.protocol.limits import PRIORITY

COMMAND = {"command": "rm -rf /"}


def decided(*heard: Heard, original: dict[str, Any] | None = None) -> Decision:
    """What ``heard`` comes to, about a command."""
    return merge(heard, COMMAND if original is None else original)


def heard(*answers: Answer, name: str = "guard", **fields: Any) -> Heard:
    """A decider that answered in 0.4 ms."""
    return Heard(name, fields.get("failure", "open"), fields.get("silence"), 0.0004, answers)


TEXT = st.text(max_size=12) | st.just("word " * 30) | st.just("x" * 150)
NUMBERS = st.integers(-(2**63), 2**64 - 1)
"""Those that can travel."""

ANSWERS = st.builds(
    Answer,
    handler=st.text(min_size=1, max_size=9) | st.just("name" * 15),
    verdict=st.sampled_from(VERDICTS),
    reason=st.none() | TEXT,
    contexts=st.lists(TEXT, max_size=2).map(tuple),
    updated_input=st.none() | st.dictionaries(TEXT, NUMBERS | TEXT | st.binary(max_size=9), max_size=2),
    output=TEXT | st.binary(max_size=9) | st.lists(NUMBERS, max_size=2),
    stop=st.booleans(),
    stop_reason=st.none() | TEXT,
    system_message=st.none() | TEXT,
    priority=st.integers(-PRIORITY, PRIORITY),
)
HEARD = st.lists(
    st.builds(
        Heard,
        decider=st.text(min_size=1, max_size=9) | st.just("name" * 15),
        failure=st.sampled_from(("open", "closed")),
        silence=st.none() | st.sampled_from(SILENCES),
        elapsed_s=st.floats(0, 100),
        answers=st.lists(ANSWERS, max_size=2).map(tuple),
    ),
    max_size=3,
)
