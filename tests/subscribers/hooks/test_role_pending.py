"""Texts that wait for a system prompt: joined, bounded, delivered once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.role_pending import KEPT_S, SESSION_BYTES, SESSIONS, Pending, Waiting

texts = st.text(st.characters(codec="utf-8"), max_size=20)


def take(pending: Pending, session: str, now: float) -> str | None:
    """Have it delivered."""
    text = pending.look(session, now)
    if text is not None:
        pending.delivered(session, text)
    return text


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), texts), max_size=12))
def test_texts_of_a_session_are_joined_with_a_newline_and_delivered_once(
    given: list[tuple[str, str]],
) -> None:
    """All texts of a session in order, as one; nothing of another session; then nothing."""
    pending = Pending()
    for session, text in given:
        assert pending.add(session, text, 1.0)
    for session in ("a", "b"):
        expected = ""
        for each, text in given:
            if each == session:
                expected = f"{expected}\n{text}" if expected else text
        assert pending.look(session, 1.0) == (expected or None)
        assert take(pending, session, 1.0) == (expected or None)
        assert take(pending, session, 1.0) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "take", "late", "forget"]), texts)))
def test_what_is_stored_is_what_waits(deeds: list[tuple[str, str, str]]) -> None:
    """Whoever stores every change, and loads them after a crash, has lost nothing."""
    pending = Pending()
    stored: dict[str, Waiting] = {}
    for now, (session, deed, text) in enumerate(deeds, 1):
        if deed == "add":
            pending.add(session, text, now)
        elif deed == "take":
            take(pending, session, now)
        elif deed == "late":
            seen = pending.look(session, now)
            pending.add(session, text, now)
            pending.delivered(session, seen or "")
        else:
            pending.forget(session)
        if pending.has_changed:
            stored |= {waiting.session: waiting for waiting in pending.changes()}
        assert not pending.has_changed
        assert len(Pending(stored.values())) == len(pending)
    again = Pending(stored.values())
    for session in "abc":
        assert take(again, session, len(deeds)) == take(pending, session, len(deeds))


def test_a_text_that_does_not_fit_is_dropped_whole_and_counted() -> None:
    """What waits already is still there, and a smaller text still fits."""
    pending = Pending()
    assert pending.add("s", "é" * (SESSION_BYTES // 2 - 5), 1.0)
    assert not pending.add("s", "x" * 20, 1.0)
    assert pending.add("s", "x" * 5, 1.0)
    assert pending.dropped == 1
    assert take(pending, "s", 1.0) == "é" * (SESSION_BYTES // 2 - 5) + "\nxxxxx"


def test_what_comes_while_a_prompt_is_built_waits_for_the_next_one() -> None:
    """Only what was looked at is gone with its delivery."""
    pending = Pending()
    pending.add("s", "one", 1.0)
    seen = pending.look("s", 1.0)
    pending.add("s", "two", 2.0)
    assert seen == "one"
    pending.delivered("s", seen)
    assert take(pending, "s", 3.0) == "two"
    assert pending.look("s", 3.0) is None


def test_a_session_that_began_anew_keeps_its_new_texts() -> None:
    """What was delivered belongs to what it was before."""
    pending = Pending()
    pending.add("s", "old", 1.0)
    pending.forget("s")
    pending.add("s", "older than that", 2.0)
    pending.delivered("s", "old")
    pending.delivered("t", "old")
    assert take(pending, "s", 2.0) == "older than that"


def test_sessions_are_bounded_and_texts_do_not_wait_for_ever() -> None:
    """The oldest go first when there are too many, and all go after a week."""
    pending = Pending()
    for number in range(SESSIONS + 2):
        pending.add(f"s{number}", "x", float(number))
    assert len(pending) == SESSIONS
    assert pending.expired == 2
    assert Waiting("s0", None, 0.0) in pending.changes()
    assert pending.look("s0", 2.0) is None
    assert pending.look("s2", 2.0) == "x"
    pending.sweep(10 + KEPT_S)
    assert pending.look("s9", 10 + KEPT_S) is None
    assert pending.look("s10", 10 + KEPT_S) == "x"
