"""What is remembered of sessions, and how much."""

from __future__ import annotations

from broker.protocol.decisions import Answer
from subscribers.runner.codex_sessions import Sessions


def said(text: str) -> Answer:
    """What an asynchronous handler has said."""
    return Answer("h", contexts=(text,))


def test_results_wait_for_their_session_and_are_told_once() -> None:
    """They come in the order in which they were kept; no other session hears them."""
    sessions = Sessions()
    for text in ("a", "b"):
        sessions.keep("s1", said(text))
    sessions.keep("s2", said("c"))
    assert sessions.take("s1") == [said("a"), said("b")]
    assert sessions.take("s1") == sessions.take("unknown") == []
    assert sessions.take("s2") == [said("c")]


def test_a_session_that_has_ended_hears_nothing() -> None:
    """What was kept goes, what comes after is dropped, both are counted; one that resumes hears again."""
    sessions = Sessions()
    sessions.keep("s", said("a"))
    sessions.end("s")
    sessions.keep("s", said("b"))
    assert (sessions.take("s"), sessions.dropped) == ([], 2)
    sessions.began("s")
    sessions.keep("s", said("c"))
    assert sessions.take("s") == [said("c")]


def test_what_is_kept_is_bounded_and_losses_are_counted() -> None:
    """The oldest result of a session goes first, and the session that was used least recently."""
    sessions = Sessions(sessions=2, kept=2)
    for text in ("a", "b", "c"):
        sessions.keep("s1", said(text))
    sessions.keep("s2", said("x"))
    sessions.keep("s3", said("y"))
    assert (sessions.take("s1"), sessions.dropped) == ([], 3)
    for name in ("e1", "e2", "e3"):
        sessions.end(name)
    sessions.keep("e1", said("z"))
    assert sessions.take("e1") == [said("z")]


def test_refusals_in_a_row_are_counted_by_event() -> None:
    """A turn that may end begins the count anew; events and sessions have counts of their own."""
    sessions = Sessions()
    assert [sessions.continued("s", "Stop") for _ in range(3)] == [1, 2, 3]
    assert sessions.continued("s", "SubagentStop") == sessions.continued("t", "Stop") == 1
    sessions.let_end("s", "Stop")
    sessions.let_end("unknown", "Stop")
    assert sessions.continued("s", "Stop") == 1
