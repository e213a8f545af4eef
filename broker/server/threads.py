"""Threads that signals never reach: they are for the main thread, which waits for them."""

from __future__ import annotations

import signal
import threading


def start_without_signals(thread: threading.Thread) -> None:
    """Start ``thread`` with every signal blocked, from its first instruction on.

    A system call in it is then never interrupted; the proxy would lose its counters by that.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
