"""Processes that lost their parents inside a run and became our children: adopting and reaping them.

Decides which ended child of this process is nobody else's. Refuses to touch a child that a run or another
owner is going to wait for: taking an exit status from ``subprocess`` makes it report success.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Container, Set
from contextlib import suppress

from .process_table import children

_PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> bool:
    """Make orphaned descendants children of this process instead of init's. False where the kernel refuses.

    For the entry point of a subscriber process; the setting belongs to the process and is not inherited.
    """
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    return bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


class Orphans:
    """Reaps adopted children that have ended.

    ``owned``: the pids of children that somebody waits for. ``starting``: a token for each child that is
    being started now, whose pid is therefore not in ``owned`` yet.

    An ended child is taken for adopted if nobody owns it, if it cannot be one of those that were being
    started when it was first seen, and if it is in another process group than ours: whoever else starts
    children in this process (``subprocess.run``) does so in our group, and nothing that a run starts enters
    it by accident.
    """

    def __init__(self, owned: Container[int], starting: Set[object]) -> None:
        self._owned = owned
        self._starting = starting
        self._suspected: dict[int, frozenset[object]] = {}  # pid -> the starts that it may be the child of
        self.reaped = 0

    def sweep(self) -> bool:
        """Reap what can be reaped; False if this process has no child left, so that another sweep is idle."""
        try:
            first = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            first, remaining = None, False
        else:
            remaining = True
        ended = () if first is None else {first.si_pid, *children(os.getpid())}
        self._suspected = {pid: self._suspects(pid) for pid in ended if self._is_foreign(pid)}
        for pid, starts in self._suspected.items():
            if not starts and pid not in self._owned:
                with suppress(ChildProcessError):
                    self.reaped += os.waitpid(pid, os.WNOHANG)[0] == pid
        return remaining

    def _suspects(self, pid: int) -> frozenset[object]:
        """The starts that have been under way since the pid was first seen: it may belong to one of them."""
        under_way = frozenset(self._starting)
        return self._suspected.get(pid, under_way) & under_way

    def _is_foreign(self, pid: int) -> bool:
        """True for a child that has ended, in another process group than ours."""
        try:
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return ended is not None and os.getpgid(pid) != os.getpgrp()
        except (ChildProcessError, ProcessLookupError):  # reaped by its owner just now
            return False
