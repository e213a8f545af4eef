"""Threads that signals never reach."""

from __future__ import annotations

import signal
import threading

from broker.server.threads import start_without_signals


def test_a_thread_starts_with_all_signals_blocked() -> None:
    """Every signal that can be blocked is blocked in the thread, and the starter's own mask stays."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    masks: list[set[int]] = []
    thread = threading.Thread(target=lambda: masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, []))))
    start_without_signals(thread)
    thread.join()
    assert masks[0] >= set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
