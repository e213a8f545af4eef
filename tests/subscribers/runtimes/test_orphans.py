"""Orphans are told from children that somebody waits for, and only orphans are reaped."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from subscribers.runtimes import orphans
from subscribers.runtimes.orphans import Orphans, become_subreaper

LONG_S = 40.0


def _child(group: int | None, program: str = "/bin/true") -> int:
    """A child that nobody waits for, in the group of this number (0: its own), or in ours."""
    argv = [program, "1000"]
    pid = (
        os.posix_spawn(program, argv, {})
        if group is None
        else os.posix_spawn(program, argv, {}, setpgroup=group)
    )
    if program == "/bin/true":
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


def _unreaped(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


@pytest.fixture
def living_child() -> Iterator[int]:
    """Some child of ours that goes on living, so that there is always one."""
    pid = _child(0, "/bin/sleep")
    yield pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_an_ended_child_of_another_group_that_nobody_owns_is_reaped(living_child: int) -> None:
    """An orphan is reaped by the first sweep after its end, once."""
    sweeper = Orphans(owned={}, starting=set())
    pid = _child(0)
    assert sweeper.sweep()
    assert not _unreaped(pid)
    assert sweeper.sweep()
    assert sweeper.reaped == 1


def test_children_that_somebody_waits_for_are_left_alone(living_child: int) -> None:
    """An owned child and one in our own process group keep their exit status, however often we sweep."""
    owned, ours = _child(0), _child(None)
    sweeper = Orphans(owned={owned: object()}, starting=set())
    for _ in range(3):
        assert sweeper.sweep()
    assert sweeper.reaped == 0
    assert os.waitpid(owned, 0) == (owned, 0)
    assert os.waitpid(ours, 0) == (ours, 0)


def test_a_child_that_is_being_started_is_not_taken(living_child: int) -> None:
    """While a start is under way its child may have ended already; it is its owner's."""
    owned: dict[int, object] = {}
    starting: set[object] = {"a start"}
    sweeper = Orphans(owned, starting)
    pid = _child(0)
    assert sweeper.sweep()
    owned[pid] = object()
    starting.clear()
    assert sweeper.sweep()
    assert sweeper.reaped == 0
    assert os.waitpid(pid, 0) == (pid, 0)


def test_starts_delay_an_orphan_only_until_they_are_done(living_child: int) -> None:
    """An orphan is reaped when no start is left that was under way when it was first seen."""
    starting: set[object] = {1, 2}
    sweeper = Orphans(owned={}, starting=starting)
    pid = _child(0)
    for under_way in ({1, 2}, {2, 3}):
        starting.clear()
        starting.update(under_way)
        assert sweeper.sweep()
        assert _unreaped(pid)
    starting.discard(2)
    assert sweeper.sweep()
    assert not _unreaped(pid)
    assert starting == {3}


def test_a_child_that_its_owner_reaps_between_two_sweeps_is_forgotten(living_child: int) -> None:
    """Being suspected by a sweep takes nothing away from an owner who comes late."""
    sweeper = Orphans(owned={}, starting={1})
    pid = _child(0)
    assert sweeper.sweep()
    assert os.waitpid(pid, 0) == (pid, 0)
    assert sweeper.sweep()
    assert sweeper.reaped == 0


def test_a_child_that_is_reaped_under_our_hands_is_no_error(
    living_child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's answer that there is no such child is taken as done."""
    sweeper = Orphans(owned={}, starting=set())
    pid = _child(0)
    waitpid = os.waitpid

    def stolen(which: int, options: int) -> tuple[int, int]:
        waitpid(which, options)
        return waitpid(which, options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "waitpid", stolen)
        assert sweeper.sweep()
    assert sweeper.reaped == 0
    assert not _unreaped(pid)


def test_pids_that_are_no_children_are_not_touched(
    living_child: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pid that was listed and is no child, or has not ended, is skipped."""
    pid = _child(0)
    monkeypatch.setattr(orphans, "children", lambda _: [os.getpid(), living_child, pid])
    sweeper = Orphans(owned={}, starting=set())
    assert sweeper.sweep()
    assert sweeper.reaped == 1


def test_without_children_another_sweep_is_idle() -> None:
    """A process without children says so."""
    deadline = time.monotonic() + LONG_S
    pause = threading.Event()
    sweeper = Orphans(owned={}, starting=set())
    while sweeper.sweep():  # what an earlier test of this process left behind is on its way out
        assert time.monotonic() < deadline
        pause.wait(0.01)


def test_a_system_without_the_call_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no prctl this process cannot adopt, and is told so."""

    def without(name: object, **options: object) -> object:
        return object()

    monkeypatch.setattr(ctypes, "CDLL", without)
    assert become_subreaper() is False
