"""Texts that wait for a system prompt: joined, bounded, delivered once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.role_pending import KEPT_S, SESSION_BYTES, SESSIONS, Pending, Waiting

texts = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), texts), max_size=12))
def test_texts_of_a_session_are_joined_with_a_newline_and_taken_once(given: list[tuple[str, str]]) -> None:
    """All texts of a session in order, as one; nothing of another session; then nothing."""
    pending = Pending()
    for session, text in given:
        assert pending.add(session, text, 1.0)
    for session in ("a", "b"):
        expected = ""
        for each, text in given:
            if each == session:
                expected = f"{expected}\n{text}" if expected else text
        assert pending.take(session, 1.0) == (expected or None)
        assert pending.take(session, 1.0) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "take", "back", "forget"]), texts)))
def test_what_is_stored_is_what_waits(deeds: list[tuple[str, str, str]]) -> None:
    """Whoever stores every change, and loads them after a crash, has lost nothing."""
    pending = Pending()
    stored: dict[str, Waiting] = {}
    for now, (session, deed, text) in enumerate(deeds, 1):
        if deed == "add":
            pending.add(session, text, now)
        elif deed == "take":
            pending.take(session, now)
        elif deed == "back":
            pending.put_back(session, text, now)
        else:
            pending.forget(session)
        if pending.has_changed:
            stored |= {waiting.session: waiting for waiting in pending.changes()}
        assert not pending.has_changed
        again = Pending(stored.values())
        assert len(again) == len(pending)
    again = Pending(stored.values())
    for session in "abc":
        assert again.take(session, len(deeds)) == pending.take(session, len(deeds))


def test_a_text_that_does_not_fit_is_dropped_whole_and_counted() -> None:
    """What waits already is still there, and a smaller text still fits."""
    pending = Pending()
    assert pending.add("s", "é" * (SESSION_BYTES // 2 - 5), 1.0)
    assert not pending.add("s", "x" * 20, 1.0)
    assert pending.add("s", "x" * 5, 1.0)
    assert not pending.put_back("s", "y" * 10, 1.0)
    assert pending.dropped == 2
    assert pending.take("s", 1.0) == "é" * (SESSION_BYTES // 2 - 5) + "\nxxxxx"


def test_a_text_that_did_not_arrive_waits_before_what_came_since() -> None:
    """The order of the texts is that in which they were given."""
    pending = Pending()
    pending.put_back("s", "one", 1.0)
    taken = pending.take("s", 1.0)
    assert taken == "one"
    pending.add("s", "two", 2.0)
    pending.put_back("s", taken, 3.0)
    assert pending.take("s", 3.0) == "one\ntwo"


def test_sessions_are_bounded_and_texts_do_not_wait_for_ever() -> None:
    """The oldest go first when there are too many, and all go after a week."""
    pending = Pending()
    for number in range(SESSIONS + 2):
        pending.add(f"s{number}", "x", float(number))
    assert len(pending) == SESSIONS
    assert pending.expired == 2
    assert Waiting("s0", None, 0.0) in pending.changes()
    assert pending.take("s0", 2.0) is None
    assert pending.take("s2", 2.0) == "x"
    pending.sweep(10 + KEPT_S)
    assert pending.take("s9", 10 + KEPT_S) is None
    assert pending.take("s10", 10 + KEPT_S) == "x"
