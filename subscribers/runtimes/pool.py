"""Threads that run what a budget lets start.

Decides that a job gets a thread and that its failure costs nobody else anything. Refuses to decide which
job may start (the budget) and to know what a job does.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

from .budget import PER_HOOK, QUEUE, QUEUE_BYTES, TOTAL, Budget, Verdict

Job = Callable[[], None]


@dataclass(frozen=True, slots=True)
class PoolStats:
    """Counters since the start; ``running`` and ``waiting`` are of now.

    ``dropped`` jobs were refused for lack of room or given up by ``drain``; ``failed`` raised an exception.
    """

    running: int
    waiting: int
    finished: int
    dropped: int
    failed: int


class RunPool:
    """Runs jobs on at most ``total`` threads, ``per_hook`` at once for one hook; ``queue`` more may wait.

    ``queue_bytes`` bounds the data that waits with them; see :class:`.budget.Budget`.

    Thread-safe. Threads are made when they are needed and stay until :meth:`drain`. They are daemons: a
    process that forgets to drain ends without its hooks' outcomes, but it ends.
    """

    def __init__(
        self,
        *,
        total: int = TOTAL,
        per_hook: int = PER_HOOK,
        queue: int = QUEUE,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._budget: Budget[Job] = Budget(
            total=total, per_hook=per_hook, queue=queue, queue_bytes=queue_bytes
        )
        self._lock = threading.Lock()
        self._emptied = threading.Condition(self._lock)
        self._handoff: SimpleQueue[tuple[str, Job] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0  # threads that wait at the handoff and are not spoken for
        self._draining = False
        self._finished = self._dropped = self._failed = 0

    @property
    def stats(self) -> PoolStats:
        """The counters of now."""
        with self._lock:
            budget = self._budget
            return PoolStats(budget.running, budget.waiting, self._finished, self._dropped, self._failed)

    def submit(self, hook_id: str, job: Job, data: bytes = b"") -> bool:
        """Run the job soon; False, and counted as a drop, if there is no room or the pool is draining.

        ``data`` is what the job holds in memory, to be counted while it waits.
        """
        with self._lock:
            verdict = Verdict.DROP if self._draining else self._budget.offer(hook_id, job, data)
            if verdict is Verdict.START and not self._start(hook_id, job):
                self._budget.finish(hook_id)  # hands out nothing: whoever waits, waits for another slot
                verdict = Verdict.DROP
            self._dropped += verdict is Verdict.DROP
            return verdict is not Verdict.DROP

    def drain(self, timeout: float) -> int:
        """Accept nothing more and let what was accepted finish for ``timeout`` seconds.

        Returns the number of jobs still running then; what was waiting is dropped. May be called again.
        """
        with self._lock:
            self._draining = True
            self._emptied.wait_for(lambda: not self._budget.running, timeout)
            self._dropped += self._budget.forget_waiting()
            if self._budget.running:
                return self._budget.running
            threads, self._threads = self._threads, []
        for _ in threads:
            self._handoff.put(None)
        for thread in threads:
            thread.join()
        return 0

    def _start(self, hook_id: str, job: Job) -> bool:
        """Give the job to a thread that has nothing to do, or to a new one. The lock is held."""
        if self._idle:
            self._idle -= 1
            self._handoff.put((hook_id, job))
            return True
        name = f"run-{len(self._threads) + 1}"
        thread = threading.Thread(target=self._work, args=(hook_id, job), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread for us
            return False
        self._threads.append(thread)
        return True

    def _work(self, hook_id: str, job: Job) -> None:
        while True:
            failed = not _completes(job)
            with self._lock:
                self._finished += 1
                self._failed += failed
                following = self._budget.finish(hook_id)
                if following is None:
                    self._idle += 1
                    if not self._budget.running:
                        self._emptied.notify_all()
            if following is None:
                following = self._handoff.get()
                if following is None:
                    return
            hook_id, job = following


def _completes(job: Job) -> bool:
    """Run the job. An exception is reported as if the job had had a thread to itself."""
    try:
        job()
    except Exception:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
        return False
    return True
