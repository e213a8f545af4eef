"""What the bus and the log are told of handlers' runs, after the reply and in a thread of its own.

Decides the words. The run of a guard that no ask has claimed after a second is reported as observed. At most
so many reports wait; further ones are counted. Refuses to know how runs come about.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from broker.logs import get_logger
from broker.protocol.errors import shown
from broker.protocol.events import Event
from broker.protocol.topics import LIFECYCLE

from ..handlers.registration import Registration
from ..hooks.outcome import NOTHING, Captured, Outcome
from ..hooks.spec import HookSpec
from ..runtimes import python_caller
from ..runtimes.python_traceback import sayable
from .python_flights import Flight
from .reports import reports

DIALECT: Final = "python"
OBSERVED: Final = "observed, decision ignored"
CLAIM_S: Final = 1.0
"""Seconds that the run of a guard waits for an ask to claim it before it is reported as observed."""

TURN_S: Final = 0.05
"""Seconds between two looks at what there is to report."""

AWAKE_TURNS: Final = 20
"""Looks at nothing before the thread goes to sleep."""

WAITING: Final = 20_000
"""Reports that may wait."""

log = get_logger("subscribers.python")

Publish = Callable[[str, dict[str, Any], Event], None]
"""Publishes a report: topic, payload and the event that it is about. Raises nothing."""


class Run(NamedTuple):
    """One run that is over. ``flight`` is that of a guard."""

    registration: Registration
    name: str
    event: Event
    outcome: python_caller.Outcome
    waited_s: float
    flight: Flight | None
    at: float


class Reporter:
    """Reports runs. Thread-safe."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._waiting: deque[Run] = deque()
        self._early: deque[Run] = deque()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._asleep = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name="reports", daemon=True)
        self._thread.start()

    def add(self, run: Run) -> None:
        """Report a run soon."""
        if len(self._waiting) + len(self._early) >= WAITING:
            self.dropped += 1
        else:
            self._waiting.append(run)
            if self._asleep:
                self._wake.set()

    def close(self) -> None:
        """Report what waits, and end."""
        self._stop.set()
        self._wake.set()
        self._thread.join()
        self._turn(float("inf"))

    def _work(self) -> None:
        idle = 0
        while not self._stop.wait(TURN_S):
            idle = 0 if self._waiting or self._early else idle + 1
            self._turn(time.monotonic())
            if idle > AWAKE_TURNS:
                idle = 0
                self._sleep()

    def _sleep(self) -> None:
        self._asleep = True  # before the last look: whoever adds something after it wakes us
        if not self._waiting and not self._stop.is_set():
            self._wake.wait()
        self._asleep = False
        self._wake.clear()

    def _turn(self, now: float) -> None:
        while self._early and (now - self._early[0].at >= CLAIM_S):
            self._tell(self._early.popleft())
        while self._waiting:
            run = self._waiting.popleft()
            if run.flight is None or run.flight.claimed or now - run.at >= CLAIM_S:
                self._tell(run)
            else:
                self._early.append(run)

    def _tell(self, run: Run) -> None:
        try:
            spec, outcome = spec_of(run.registration, run.name, run.event.topic), outcome_of(run)
            if outcome.status != "ok":
                _log_failure(run, outcome)
            for topic, payload in reports(spec, run.event, outcome, run.waited_s):
                self._publish(topic, payload, run.event)
        except Exception as error:  # the next reports are not to suffer for this one
            log.error("a run could not be reported", handler=run.name, error=shown(error, 300))


def spec_of(registration: Registration, name: str, topic: str) -> HookSpec:
    """A handler in the shape that reports have for every hook."""
    return HookSpec(
        id=sayable(name),
        dialect=DIALECT,
        path=sayable(registration.path),
        line=registration.line,
        event=topic.removeprefix(LIFECYCLE),
        command=sayable(registration.name),
        args=(),
        env={},
        cwd=None,
        timeout_s=registration.timeout_s,
        grace_s=0.0,
        stdin=False,
    )


def outcome_of(run: Run) -> Outcome:
    """What came of a call in the shape that reports have for every run."""
    outcome, reason = run.outcome, None
    if run.flight is not None and not run.flight.claimed:
        reason = OBSERVED
    if isinstance(outcome, python_caller.Returned):
        return Outcome("ok", None, None, outcome.seconds, NOTHING, NOTHING, reason)
    why = failure_of(outcome)
    reason = why if reason is None else f"{why} ({reason})"
    if isinstance(outcome, python_caller.TimedOut):
        return Outcome("timeout", None, None, outcome.seconds, NOTHING, NOTHING, reason)
    traceback = outcome.fault.traceback.encode("utf-8", "backslashreplace")
    return Outcome(
        "failed", None, None, outcome.seconds, NOTHING, Captured(traceback, b"", len(traceback)), reason
    )


def failure_of(outcome: python_caller.Raised | python_caller.TimedOut) -> str:
    """Why there is no answer, in one line."""
    if isinstance(outcome, python_caller.TimedOut):
        return f"it did not end within {outcome.timeout_s:g} s"
    fault = outcome.fault
    reason = fault.reason if fault.path is None else f"{fault.reason} ({_base(fault.path)}:{fault.line})"
    return sayable(reason)


def _base(path: str) -> str:
    return os.path.basename(path)


def _log_failure(run: Run, outcome: Outcome) -> None:
    facts = {
        "handler": sayable(run.name),
        "path": sayable(run.registration.path),
        "line": run.registration.line,
        "on": run.event.topic,
        "event_id": run.event.id,
        "status": outcome.status,
        "reason": outcome.reason,
    }
    if isinstance(run.outcome, python_caller.Raised):
        facts["traceback"] = run.outcome.fault.traceback
    log.warning("a handler failed", **facts)
