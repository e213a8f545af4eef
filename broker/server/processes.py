"""Noticing at once that a process ended, by pidfd, however many peers live in it.

Where the kernel refuses a pidfd the peer's silence must tell; nothing here is needed for safety.
"""

from __future__ import annotations

import os
import select
from typing import Self

from .descriptors import OWN_DESCRIPTORS


class ProcessWatch:
    """Peers by the process they live in. ``descriptor`` is readable when one has ended.

    At most ``limit`` processes are watched, so that connections keep their descriptors.
    """

    def __init__(self, limit: int) -> None:
        self._epoll = select.epoll()
        self._limit = max(0, limit - OWN_DESCRIPTORS)
        self._processes: dict[int, tuple[int, set[bytes]]] = {}  # pid -> pidfd, peers
        self._pids: dict[int, int] = {}  # pidfd -> pid
        self._peers: dict[bytes, int] = {}  # peer -> pid

    @property
    def descriptor(self) -> int:
        """For a poller."""
        return self._epoll.fileno()

    def watch(self, peer: bytes, pid: int) -> bool:
        """Watch ``pid`` for ``peer``, in place of what was watched; false when it has ended already."""
        self.forget(peer)
        if pid not in self._processes:
            if len(self._processes) >= self._limit:
                return True
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                return False
            except OSError:  # no such system call, not ours to watch, or no descriptor left
                return True
            self._epoll.register(descriptor, select.EPOLLIN)
            self._processes[pid] = descriptor, set()
            self._pids[descriptor] = pid
        self._processes[pid][1].add(peer)
        self._peers[peer] = pid
        return True

    def forget(self, peer: bytes) -> None:
        """Watch for ``peer`` no longer; one that is not watched is no error."""
        pid = self._peers.pop(peer, None)
        if pid is None:
            return
        descriptor, peers = self._processes[pid]
        peers.discard(peer)
        if not peers:
            self._epoll.unregister(descriptor)
            os.close(descriptor)
            del self._processes[pid], self._pids[descriptor]

    def ended(self) -> list[bytes]:
        """The peers whose processes have ended since the last call; they are forgotten."""
        peers = [
            peer
            for descriptor, _ in self._epoll.poll(0)
            for peer in self._processes[self._pids[descriptor]][1]
        ]
        for peer in peers:
            self.forget(peer)
        return peers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Watch nothing any more."""
        for peer in list(self._peers):
            self.forget(peer)
        self._epoll.close()
