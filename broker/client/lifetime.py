"""Clients that are open when the process ends are closed in order, so that nothing queued is lost.

Decides only that; how a client closes is its own affair.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Any, Protocol

from .sockets import end_context


class Closable(Protocol):
    """Something to close at exit."""

    def close(self) -> None:
        """End, in a forked child without touching what the parent owns."""

    def forked(self) -> None:
        """A child process got a copy of the client that is not its own."""


_open: weakref.WeakSet[Closable] = weakref.WeakSet()
_finalized: set[int] = set()  # processes in which multiprocessing closes our clients


def close_at_exit(client: Closable) -> None:
    """Close ``client`` when the process ends, unless it was closed or collected before."""
    _open.add(client)
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None and os.getpid() not in _finalized:
        # The processes of multiprocessing end by os._exit: they run their own finalizers and no atexit.
        _finalized.add(os.getpid())
        util.Finalize(None, _close_all, exitpriority=100)


def forget(client: Closable) -> None:
    """``client`` has been closed."""
    _open.discard(client)


def _after_fork() -> None:
    for client in list(_open):
        client.forked()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all() -> None:
    for client in list(_open):
        client.close()
    end_context()
