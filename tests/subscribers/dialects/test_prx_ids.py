"""Ids and times of hooks over hand edits and edits by programs."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.dialects.prx_edit import read_actions
from subscribers.dialects.prx_ids import Known, Ledger, digest, identify

EARLY, LATE = "2026-03-20T10:00:00Z", "2026-03-21T08:00:00Z"


def seen(ledger: Ledger, at: str = EARLY, **events: list[Any]) -> Ledger:
    """The ledger after a file with these events was seen; a bare string is an action with that command."""
    hooks = {
        event: [{"command": action} if isinstance(action, str) else action for action in actions]
        for event, actions in events.items()
    }
    return identify(read_actions(orjson.dumps({"hooks": hooks})), ledger, at)


def ids(ledger: Ledger) -> list[str]:
    """The numbers of the ids in file order."""
    return [known.id.removeprefix("hook_") for known in ledger.hooks]


def test_the_first_look_numbers_in_file_order() -> None:
    """Ids are hook_01, hook_02 ...; times are those of the look."""
    ledger = seen(Ledger(), error=["a", "b"], tool_call=["a"])
    assert [known.id for known in ledger.hooks] == ["hook_01", "hook_02", "hook_03"]
    assert {(known.created_at, known.updated_at) for known in ledger.hooks} == {(EARLY, EARLY)}
    assert ledger.next == 4
    assert seen(ledger, LATE, error=["a", "b"], tool_call=["a"]) == ledger


@pytest.mark.parametrize(
    "after,expected",
    [
        (["a", "b", "c"], ["01", "02", "03"]),
        (["b", "c"], ["02", "03"]),
        (["a", "c"], ["01", "03"]),
        (["n", "a", "b", "c"], ["04", "01", "02", "03"]),
        (["a", "n", "b", "m", "c"], ["01", "04", "02", "05", "03"]),
        (["a", {"command": "b", "args": ["x"]}, "c"], ["01", "02", "03"]),
        (["a", "n", "c"], ["01", "02", "03"]),
        (["a", "n", {"command": "b", "cwd": "."}, "c"], ["01", "04", "02", "03"]),
        (["c", "a", "b"], ["03", "01", "02"]),
        (["a", "a", "b", "c"], ["04", "01", "02", "03"]),
        (["a", "b", "c", {"command": 5}], ["01", "02", "03", "04"]),
        ([], []),
    ],
)
def test_an_id_stays_with_its_action(after: list[Any], expected: list[str]) -> None:
    """Others may be edited, added, moved and removed; an edited action is known by its place and command."""
    before = seen(Ledger(), error=["a", "b", "c"])
    found = ids(seen(before, LATE, error=after))
    if after == ["a", "a", "b", "c"]:  # two equal actions: either may be the new one
        assert sorted(found[:2]) == ["01", "04"]
        assert found[2:] == ["02", "03"]
    else:
        assert found == expected


def test_an_action_that_moves_to_another_event_keeps_its_id() -> None:
    """The same content elsewhere is the same hook, updated."""
    before = seen(Ledger(), error=["a", "b"])
    after = seen(before, LATE, error=["b"], tool_call=["a"])
    assert ids(after) == ["02", "01"]
    assert [known.updated_at for known in after.hooks] == [EARLY, LATE]


def test_a_move_is_preferred_to_an_edit() -> None:
    """Content that is found again elsewhere does not lose its id to what now stands in its place."""
    before = seen(Ledger(), error=["a"])
    after = seen(before, LATE, error=["n"], tool_call=["a"])
    assert ids(after) == ["02", "01"]


def test_ids_in_the_file_hold() -> None:
    """Any decent id counts, also a person's own; a copied or odd one is replaced by a new one."""
    actions = [
        {"command": "a", "id": "mine"},
        {"command": "b", "id": "mine"},
        {"command": "c", "id": "no spaces"},
        {"command": "d", "id": 7},
        {"command": "e", "id": "hook_07"},
    ]
    assert [known.id for known in seen(Ledger(), error=actions).hooks] == [
        "mine",
        "hook_08",
        "hook_09",
        "hook_10",
        "hook_07",
    ]


def test_a_copy_takes_no_id_away() -> None:
    """Pasted above what it was copied from and edited, or into another event, it is the new one."""
    hook = {"command": "a", "id": "hook_01"}
    before = seen(Ledger(), error=[hook])
    edited = {**hook, "command": "b"}
    assert ids(seen(before, LATE, error=[edited, hook])) == ["02", "01"]
    assert ids(seen(before, LATE, agent_end=[hook], error=[hook])) == ["02", "01"]
    assert ids(seen(before, LATE, agent_end=[hook], error=[edited])) == ["01", "02"]
    assert ids(seen(before, LATE, error=[edited, {**hook, "command": "c"}])) == ["01", "02"]
    assert ids(seen(before, LATE, error=[hook, hook, edited])) == ["01", "02", "03"]


def test_a_ledger_keeps_little_of_a_long_text() -> None:
    """What is long is known again all the same, and two of them are told apart."""
    long, other = "x" * 100_000, "x" * 100_001
    elsewhere: dict[str, Any] = {long: ["a"]}
    first = seen(Ledger(), error=[long, other], **elsewhere)
    assert max(len(text) for known in first.hooks for text in known) == 64
    after = seen(first, LATE, error=[{"command": other, "cwd": "."}, {"command": long, "cwd": "."}])
    assert ids(after) == ["02", "01"]
    elsewhere = {long: ["b"]}
    assert ids(seen(first, LATE, **elsewhere)) == ["03"]


def test_an_id_is_never_given_twice() -> None:
    """Neither a deleted hook's nor one that stands in a file whose ledger was lost."""
    gone = seen(seen(Ledger(), error=["a", "b"]), LATE, error=["a"])
    assert ids(seen(gone, LATE, error=["a", "n"])) == ["01", "03"]
    assert ids(seen(Ledger(), error=["n", {"command": "a", "id": "hook_41"}])) == ["42", "41"]


def test_times_in_the_file_hold_until_a_hand_changes_the_action() -> None:
    """An edit by hand counts as an update at the time it was seen; odd times are passed over."""
    kept = {"id": "x", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00.5Z"}
    first = seen(Ledger(), error=[{"command": "a", **kept}])
    assert first.hooks[0][-2:] == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00.5Z")
    edited = seen(first, LATE, error=[{"command": "a", "args": ["n"], **kept}])
    assert edited.hooks[0][-2:] == ("2026-01-01T00:00:00Z", LATE)
    again = seen(edited, "2027-01-01T00:00:00Z", error=[{"command": "a", "args": ["n"], **kept}])
    assert again == edited
    program = {**kept, "updated_at": "2026-12-01T00:00:00Z"}
    written = seen(first, LATE, error=[{"command": "b", **program}])
    assert written.hooks[0].updated_at == "2026-12-01T00:00:00Z"
    odd = {"created_at": "yesterday", "updated_at": 5}
    assert seen(Ledger(), error=[{"command": "a", **odd}]).hooks[0][-2:] == (EARLY, EARLY)


def test_a_digest_is_of_what_an_action_says() -> None:
    """Order of keys, id and times do not count; everything else does."""
    base = digest({"command": "a", "args": []})
    assert digest({"args": [], "command": "a", "id": "x", "created_at": EARLY}) == base
    assert digest({"command": "a", "args": [], "enabled": False}) != base


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=6))
def test_ids_are_unique_and_never_come_back(versions: list[list[str]]) -> None:
    """Over any history each hook has one id, and an id that was gone belongs to nobody later."""
    ledger, gone = Ledger(), set[str]()
    for version in versions:
        before = {known.id for known in ledger.hooks}
        ledger = seen(ledger, error=version)
        now = [known.id for known in ledger.hooks]
        assert len(set(now)) == len(now) == len(version)
        assert not gone & set(now)
        gone |= before - set(now)
        assert [known.command for known in ledger.hooks] == version


def test_a_ledger_is_plain_data() -> None:
    """What is kept of a hook is five strings and its command."""
    (known,) = seen(Ledger(), error=["a"]).hooks
    assert known == Known("hook_01", "error", "a", digest({"command": "a"}), EARLY, EARLY)
