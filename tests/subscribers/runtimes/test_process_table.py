"""Who belongs to a run is decided from one snapshot, without taking in a stranger."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subscribers.runtimes import process_table
from subscribers.runtimes.process_table import (
    Process,
    adopted,
    carries,
    children,
    family,
    is_same,
    leftovers,
    parse_stat,
    read_table,
)

US, LEADER = 10, 100
OURSELVES = Process(US, 1, US, 5, "S", 1_000)
FIRST = Process(LEADER, US, LEADER, 5, "S", 2_000)


def _row(pid: int, ppid: int, pgid: int, sid: int = 5, start: int = 2_001, state: str = "S") -> Process:
    return Process(pid, ppid, pgid, sid, state, start)


def _family(rows: Iterable[Process], marked: Iterable[int] = (), known: Iterable[Process] = ()) -> set[int]:
    table = {row.pid: row for row in (OURSELVES, FIRST, *rows)}
    earlier = {row.pid: row for row in known}
    return set(family(table, LEADER, known=earlier, own=US, marked=lambda row: row.pid in set(marked)))


def test_a_program_can_have_any_name() -> None:
    """Spaces, parentheses and digits in a program's name do not shift the fields."""
    text = b"42 (a) S 9 (x 1) R 7 41 40 0 -1 4194304 " + b"0 " * 12 + b"777 0 0 0\n"
    assert parse_stat(text) == Process(42, 7, 41, 40, "R", 777)


@pytest.mark.parametrize("state,alive", [("S", True), ("T", True), ("Z", False), ("X", False)])
def test_a_zombie_is_not_alive(state: str, alive: bool) -> None:
    """Stopped processes live; ended ones that wait to be reaped do not."""
    assert _row(1, 1, 1, state=state).alive is alive


def test_the_group_belongs_to_the_run() -> None:
    """A member of the leader's group belongs to it even when its parents are gone, a neighbour does not."""
    assert _family([_row(101, LEADER, LEADER), _row(102, 1, LEADER), _row(103, US, 103)]) == {100, 101, 102}


def test_descendants_that_left_the_group_are_followed_down() -> None:
    """A child in a group and session of its own, and its children, belong to the run."""
    rows = [_row(101, LEADER, 101, 101), _row(102, 101, 102, 101), _row(103, 102, 103, 103)]
    assert _family(rows) == {100, 101, 102, 103}


def test_a_session_begun_inside_the_run_belongs_to_it() -> None:
    """A process that lost its parents is found by the session that it shares with a member."""
    assert _family([_row(101, LEADER, 101, 101), _row(102, 1, 102, 101)]) == {100, 101, 102}


def test_our_own_session_does_not() -> None:
    """The session of the leader is ours as well: sharing it means nothing."""
    assert _family([_row(101, US, US), _row(102, US, 102)]) == {100}


def test_a_marked_process_belongs_to_the_run_with_its_descendants() -> None:
    """A double-forked daemon is recognised by the marker in its environment."""
    rows = [_row(200, US, 199, 199), _row(201, 200, 201, 201), _row(300, US, 300, 300)]
    assert _family(rows, marked=[200]) == {100, 200, 201}


def test_a_marker_counts_only_after_the_leader_began() -> None:
    """A process that is older than the leader is not asked for the marker."""
    assert _family([_row(200, US, 199, 199, start=1_999)], marked=[200]) == {100}


def test_a_member_is_remembered_until_its_pid_is_reused() -> None:
    """An earlier member stays one, a new process with its pid does not become one."""
    member = _row(200, US, 199, 199, state="Z")
    assert _family([member], known=[member]) == {100, 200}
    assert _family([member._replace(start=9_999)], known=[member]) == {100}


def test_we_never_belong_to_a_run() -> None:
    """Our own process is no member, whatever speaks for it, and neither are its other children."""
    table = {US: OURSELVES._replace(pgid=LEADER, start=5_000), LEADER: FIRST, 300: _row(300, US, 300, 300)}
    assert set(family(table, LEADER, known={US: OURSELVES}, own=US, marked=lambda row: row.pid == US)) == {
        100
    }


def test_without_a_leader_there_is_no_run() -> None:
    """A table that could not be read has no members."""
    assert family({}, LEADER, known={}, own=US, marked=lambda row: True) == {}


@given(
    st.lists(
        st.builds(
            _row,
            pid=st.integers(101, 120),
            ppid=st.sampled_from([1, US, *range(100, 121)]),
            pgid=st.sampled_from([US, *range(100, 121)]),
            sid=st.sampled_from([5, *range(101, 121)]),
            start=st.integers(1_990, 2_010),
        ),
        max_size=15,
    )
)
def test_membership_is_closed(rows: list[Process]) -> None:
    """Law: the children of a member are members, and every member but the leader has a reason to be one."""
    table = {row.pid: row for row in (OURSELVES, FIRST, *rows)}
    members = family(table, LEADER, known={}, own=US, marked=lambda row: False)
    assert US not in members
    sessions = {row.sid for row in members.values()} - {5}
    for row in table.values():
        tied = row.ppid in members or row.pgid == LEADER or row.sid in sessions
        assert (row.pid in members) == (row.pid == LEADER or (tied and row.pid != US))


def test_the_kernels_table_can_be_read() -> None:
    """We find ourselves in it, and it is empty where there is no /proc."""
    own = read_table()[os.getpid()]
    assert (own.ppid, own.pgid, own.sid) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert is_same(own)
    assert not is_same(own._replace(start=own.start + 1))
    assert not is_same(own._replace(pid=2**22 + 1))
    assert read_table("/proc/no-such-place") == {}


def test_entries_that_vanish_or_make_no_sense_are_skipped(tmp_path: Path) -> None:
    """A process that ends while the table is read costs only its own row."""
    (tmp_path / "7").mkdir()
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_bytes(b"8 (half")
    (tmp_path / "9").mkdir()
    (tmp_path / "9" / "stat").write_bytes(b"9 (x) S 1 9 9 " + b"0 " * 15 + b"5 0\n")
    (tmp_path / "self").mkdir()
    assert read_table(str(tmp_path)) == {9: Process(9, 1, 9, 9, "S", 5)}
    assert not is_same(Process(8, 1, 8, 8, "S", 5), str(tmp_path))


def test_an_environment_entry_is_matched_whole(tmp_path: Path) -> None:
    """NAME=value is found in any place, not as part of another entry, and not where it is secret."""
    (tmp_path / "7").mkdir()
    environ = tmp_path / "7" / "environ"
    for text, found in [
        (b"RUN=1\0A=b\0", True),
        (b"A=b\0RUN=1\0", True),
        (b"A=b\0RUN=1", True),
        (b"A=RUN=1\0", False),
        (b"RUN=12\0", False),
        (b"", False),
    ]:
        environ.write_bytes(text)
        assert carries(7, b"RUN=1", str(tmp_path)) is found
    assert not carries(8, b"RUN=1", str(tmp_path))


def test_children_are_listed_by_the_kernel(tmp_path: Path) -> None:
    """A child is listed until it has been reaped; where nothing is listed there are none."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        assert process.pid in children(os.getpid())
    assert process.pid not in children(os.getpid())
    (tmp_path / "7" / "task" / "7").mkdir(parents=True)
    assert adopted(7, str(tmp_path)) == []
    (tmp_path / "7" / "task" / "7" / "children").write_text("12 13 ")
    assert adopted(7, str(tmp_path)) == [12, 13]
    (tmp_path / "7" / "task" / "7" / "children").unlink()
    assert children(7, str(tmp_path)) == []
    assert children(8, str(tmp_path)) == []


def test_what_a_run_left_is_known_by_group_or_marker(tmp_path: Path) -> None:
    """Living processes of its group or with its marker; a moment without an environment is waited out."""

    def process(pid: int, group: int, state: str, environ: bytes | None) -> None:
        (tmp_path / str(pid)).mkdir()
        line = b"%d (x) %b 1 %d 9 " % (pid, state.encode(), group) + b"0 " * 15 + b"5 0\n"
        (tmp_path / str(pid) / "stat").write_bytes(line)
        if environ is not None:
            (tmp_path / str(pid) / "environ").write_bytes(environ)

    process(1, 100, "S", None)
    process(2, 100, "Z", None)
    process(3, 3, "S", b"RUN=1\0")
    process(4, 4, "S", b"RUN=2\0")
    process(5, 5, "S", b"")
    process(6, 6, "S", None)
    found = leftovers([1, 2, 3, 4, 5, 6, 7], 100, b"RUN=1", str(tmp_path))
    assert [row.pid for row in found] == [1, 3]
    assert [row.pid for row in leftovers([1, 3], 100, None, str(tmp_path))] == [1]


def test_a_process_that_is_just_executed_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its environment is empty at first; what decides is the first look that finds one."""
    looks = iter([b"", b"", b"A=1\0RUN=1\0", b"other"])
    monkeypatch.setattr(process_table, "_read", lambda _path, _size: next(looks))
    monkeypatch.setattr(process_table, "read_row", lambda pid, _proc: Process(pid, 1, 9, 9, "S", 1))
    assert [row.pid for row in leftovers([5], 100, b"RUN=1", str(tmp_path))] == [5]
    assert next(looks) == b"other"
