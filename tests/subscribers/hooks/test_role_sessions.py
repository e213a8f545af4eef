"""Whose session it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.hooks.role_functions import FunctionState
from subscribers.hooks.role_sessions import (
    NEW,
    SESSIONS,
    Kept,
    Named,
    Scope,
    SessionRecord,
    Sessions,
    Whose,
    whose,
)

CODER, REVIEWER = Named("coder", "Quality-Conscious Coder"), Named("reviewer", None)


@pytest.mark.parametrize(
    "role, loaded, scope, places, is_said",
    [
        (None, [], "session", (), False),
        (None, [CODER], "session", (0,), False),
        (None, [CODER, REVIEWER], "session", (), True),
        (None, [CODER, REVIEWER], "all", (0, 1), False),
        ("reviewer", [CODER, REVIEWER], "session", (1,), False),
        ("Quality-Conscious Coder", [CODER, REVIEWER], "session", (0,), False),
        ("other", [CODER], "session", (), True),
        ("other", [CODER], "all", (0,), False),
        ("coder", [Named("x", "coder"), CODER], "session", (1,), False),
    ],
)
def test_hooks_of_a_role_fire_for_its_sessions(
    role: str | None, loaded: list[Named], scope: Scope, places: tuple[int, ...], is_said: bool
) -> None:
    """By the folder's name or the file's; without one for the only role; and nothing for one not loaded."""
    found = whose(role, loaded, scope)
    assert found.roles == places
    assert (found.why is not None) is is_said
    assert whose(role, loaded, "all") == Whose(tuple(range(len(loaded))))


def test_whoever_names_a_role_that_is_not_there_is_told_which_are() -> None:
    """As many as fit into a line."""
    why = whose("cook", [Named("coder", "Coder"), Named("x", None)], "session").why
    assert why is not None
    assert why.endswith("it fires nothing; loaded: coder, x")
    why = whose("cook", [Named(f"r{number}", None) for number in range(9)], "session").why
    assert why is not None
    assert why.endswith("r6, r7, ...")
    why = whose("cook", [], "session").why
    assert why is not None
    assert why.endswith("loaded: none")


records = st.builds(
    SessionRecord,
    st.sampled_from([None, "coder"]),
    st.sampled_from([None, "a1"]),
    st.builds(FunctionState, st.sampled_from([(), ("review",)])),
)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), records))))
def test_what_is_stored_of_sessions_is_what_is_known(deeds: list[tuple[str, SessionRecord | None]]) -> None:
    """Whoever stores every change, and loads them after a crash, knows the same."""
    sessions = Sessions()
    stored: dict[str, Kept] = {}
    for session, record in deeds:
        if record is None:
            sessions.forget(session)
        else:
            sessions.put(session, record)
        if sessions.has_changed:
            stored |= {kept.session: kept for kept in sessions.changes()}
        assert not sessions.has_changed
        assert sessions.get(session) == (record or NEW)
    again = Sessions(stored.values())
    assert len(again) == len(sessions)
    assert [again.get(session) for session in "abc"] == [sessions.get(session) for session in "abc"]


def test_sessions_are_bounded_and_the_used_ones_stay() -> None:
    """Those of which nothing was heard for the longest time are forgotten, and that is told."""
    sessions, role = Sessions(), SessionRecord("coder")
    for number in range(SESSIONS):
        sessions.put(f"s{number}", role)
    assert sessions.get("s0") is role
    sessions.changes()
    sessions.put("new", role)
    assert sorted(sessions.changes()) == [Kept("new", role), Kept("s1", None)]
    assert sessions.get("s0") is role
    assert sessions.get("s1") is NEW
    assert sessions.get(None) is NEW


def test_a_session_of_which_nothing_is_known_is_not_stored() -> None:
    """Most sessions name nothing."""
    sessions = Sessions()
    sessions.put("s", NEW)
    assert not sessions.has_changed
    assert len(sessions) == 0
