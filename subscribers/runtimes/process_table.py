"""Which processes belong to a run: its group, its descendants, and those that only its marker still names.

Decides membership from one snapshot of the kernel's process table. Refuses to send signals and to wait.

A descendant can leave the process group (``setsid``) and lose its parents (a double fork). Three things tie
it to its run all the same: the chain of parents, the session that a member began, and the run's marker in the
environment that it was executed with. What scrubs its environment after a double fork is not found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

PROC = "/proc"
ENVIRONMENT_BYTES = 8 << 20
"""Of an environment, what is read."""

_TRIES = 20
_PAUSE_S = 0.001


class Process(NamedTuple):
    """One row of the process table. ``start``: clock ticks since boot; with the pid it never repeats."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    state: str
    start: int

    @property
    def alive(self) -> bool:
        """False for a process that has ended and waits to be reaped."""
        return self.state not in ("Z", "X")


Table = Mapping[int, Process]
"""A snapshot of the process table, by pid."""


def parse_stat(text: bytes) -> Process:
    """Read one ``/proc/PID/stat`` line. The program's name may hold spaces and parentheses; the rest not."""
    before, _, after = text.rpartition(b")")
    fields = after.split()
    ppid, pgid, sid = map(int, fields[1:4])
    return Process(int(before.split(b" ", 1)[0]), ppid, pgid, sid, fields[0].decode("ascii"), int(fields[19]))


def family(
    table: Table,
    leader: int,
    *,
    known: Table,
    own: int,
    marked: Callable[[Process], bool],
) -> dict[int, Process]:
    """The processes of a run, zombies included, its leader first.

    ``leader``: the leader's pid, which nobody has reaped yet. ``known``: rows that were members in an
    earlier snapshot. ``own``: our own pid, never a member. ``marked`` says whether a process carries the
    run's marker; it is asked only about processes that began after the leader.
    """
    if leader not in table:
        return {}
    first = table[leader]
    members = {leader: first}
    for row in table.values():
        if row.pid in (leader, own):
            continue
        earlier = known.get(row.pid)
        if (
            row.pgid == leader
            or (earlier is not None and earlier.start == row.start)
            or (row.start >= first.start and marked(row))
        ):
            members[row.pid] = row
    strangers = [row for row in table.values() if row.pid not in members and row.pid != own]
    while True:
        # The leader's session is ours; any other session of a member was begun inside the run.
        sessions = {row.sid for row in members.values()} - {first.sid}
        joined = [row for row in strangers if row.ppid in members or row.sid in sessions]
        if not joined:
            return members
        members.update((row.pid, row) for row in joined)
        strangers = [row for row in strangers if row.pid not in members]


def read_table(proc: str = PROC) -> dict[int, Process]:
    """A snapshot of the process table; empty where there is no ``/proc``."""
    table = {}
    try:
        names = os.listdir(proc)
    except OSError:
        return {}
    for name in names:
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):  # it ended while we were reading
                row = parse_stat(_read(f"{proc}/{name}/stat", 4_096))
                table[row.pid] = row
    return table


def read_row(pid: int, proc: str = PROC) -> Process | None:
    """One row; None for a process that is gone."""
    try:
        return parse_stat(_read(f"{proc}/{pid}/stat", 4_096))
    except (OSError, ValueError, IndexError):
        return None


def is_same(row: Process, proc: str = PROC) -> bool:
    """True if the pid still belongs to the process of this row."""
    now = read_row(row.pid, proc)
    return now is not None and now.start == row.start


def carries(pid: int, entry: bytes, proc: str = PROC) -> bool:
    """True if the process was executed with ``entry`` (``NAME=value``) in its environment, if we may know."""
    try:
        environment = _read(f"{proc}/{pid}/environ", ENVIRONMENT_BYTES)
    except OSError:
        return False
    return _holds(environment, entry)


def leftovers(pids: Iterable[int], leader: int, marker: bytes | None, proc: str = PROC) -> list[Process]:
    """The rows of those that live and belong to the leader's run: by its group, or by its marker.

    A process has no environment for a moment while it executes a program; it is asked again a little later.
    """
    found = []
    for pid in pids:
        row = read_row(pid, proc)
        if row is None or not row.alive:
            continue
        if row.pgid == leader or (marker is not None and _carries_soon(pid, marker, proc)):
            found.append(row)
    return found


def _carries_soon(pid: int, entry: bytes, proc: str) -> bool:
    for _ in range(_TRIES):
        try:
            environment = _read(f"{proc}/{pid}/environ", ENVIRONMENT_BYTES)
        except OSError:
            return False
        if environment:  # read once: a second look may find what the first one did not
            return _holds(environment, entry)
        time.sleep(_PAUSE_S)
    return False


def _holds(environment: bytes, entry: bytes) -> bool:
    return b"\0" + entry + b"\0" in b"\0" + environment + b"\0"


def children(pid: int, proc: str = PROC) -> list[int]:
    """The direct children of a process, zombies included; empty where the kernel does not list them."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"{proc}/{pid}/task"):
            with suppress(OSError):  # the thread has just ended
                found += map(int, _read(f"{proc}/{pid}/task/{thread}/children", 8 << 20).split())
    return found


def adopted(pid: int, proc: str = PROC) -> list[int]:
    """The children of a process's first thread: to it the kernel gives orphans, if it adopts them.

    The kernel's list may leave one out when another one ends meanwhile; so it is read twice if it has any.
    """
    found: set[int] = set()
    for _ in range(2):
        try:
            found.update(map(int, _read(f"{proc}/{pid}/task/{pid}/children", 8 << 20).split()))
        except OSError:
            break
        if not found:
            break
    return sorted(found)


def _read(path: str, limit: int) -> bytes:
    """Up to ``limit`` bytes of a file of the kernel's, which says no size."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while limit > 0 and (part := os.read(descriptor, min(limit, 65_536))):
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)
