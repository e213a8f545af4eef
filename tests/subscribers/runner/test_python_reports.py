"""What the bus is told of handlers' runs."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import orjson
import pytest

from broker.protocol.events import Event
from subscribers.handlers import Registration, on
from subscribers.handlers.registration import collected
from subscribers.runner import python_reports
from subscribers.runner.python_flights import Flight
from subscribers.runner.python_reports import OBSERVED, Reporter, Run
from subscribers.runtimes.python_caller import Outcome, Raised, Returned, TimedOut
from subscribers.runtimes.python_traceback import Fault

EVENT = Event.of("prx.lifecycle.x", 0, bytes(16), 1, 0, "s", "agent", None, b'{"n": 1}')
DEADLINE_S = 20.0


def registration() -> Registration:
    """That of a handler."""
    with collected() as found:
        on("x", timeout=3)(lambda event, ctx: None)
    return found[0]


def run(outcome: Outcome, flight: Flight | None = None, at: float = 0.0) -> Run:
    """A run that is over."""
    return Run(registration(), "f.py:h", EVENT, outcome, 0.002, flight, at)


def told(*runs: Run) -> list[tuple[str, dict[str, Any]]]:
    """Everything that is published of ``runs``."""
    said: list[tuple[str, dict[str, Any]]] = []
    reporter = Reporter(lambda topic, payload, event: said.append((topic, payload)))
    for each in runs:
        reporter.add(each)
    reporter.close()
    return said


def test_a_run_is_told_in_the_fields_of_every_hook() -> None:
    """Which handler ran for which event, how it ended and how long it took and waited."""
    ((topic, report),) = told(run(Returned(None, 0.5)))
    assert topic == "prx.hooks.run"
    assert (report["hook"], report["dialect"], report["path"]) == ("f.py:h", "python", __file__)
    assert (report["event"], report["event_id"], report["status"]) == ("x", EVENT.id, "ok")
    assert (report["duration_ms"], report["waited_ms"], report["reason"]) == (500.0, 2.0, None)


@pytest.mark.parametrize(
    "outcome,status,reason,stderr",
    [
        (TimedOut(3.0, 3.1), "timeout", "it did not end within 3 s", ""),
        (
            Raised(Fault("E: no", "/w/f.py", 7, "Traceback\n"), 0.1),
            "failed",
            "E: no (f.py:7)",
            "Traceback\n",
        ),
        (Raised(Fault("E: no", None, None, ""), 0.1), "failed", "E: no", ""),
    ],
)
def test_a_failure_has_a_dead_letter_too(outcome: Outcome, status: str, reason: str, stderr: str) -> None:
    """Both have the status, the reason with its place, and the traceback; the letter has the payload."""
    (first, report), (second, letter) = told(run(outcome))
    assert (first, second) == ("prx.hooks.run", "prx.hooks.dead_letter")
    for each in (report, letter):
        assert (each["status"], each["reason"], each["stderr"]) == (status, reason, stderr)
    assert letter["topic"] == EVENT.topic


def test_a_name_of_a_file_that_is_no_utf8_does_not_cost_the_report() -> None:
    """It stands escaped, wherever the name is told."""
    strange = replace(registration(), path="/w/\udcff.py")
    outcome = Raised(Fault("E: no", strange.path, 7, ""), 0.1)
    for _, payload in told(run(outcome)._replace(registration=strange, name="\udcff.py:h")):
        told_of = orjson.loads(orjson.dumps(payload))
        assert (told_of["path"], told_of["hook"]) == ("/w/\\udcff.py", "\\udcff.py:h")
        assert told_of["reason"] == "E: no (\\udcff.py:7)"


def test_a_guards_run_waits_for_its_ask() -> None:
    """Claimed, it is a run like any other; unclaimed at the end, it was observed."""
    claimed, observed = Flight(), Flight()
    claimed.claimed = True
    said = told(run(Returned(None, 0.1), claimed), run(Returned(None, 0.1), observed))
    assert [report["reason"] for _, report in said] == [None, OBSERVED]


def test_an_unclaimed_run_is_told_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at once, for the ask may be under way; without waiting for the end of the process."""
    monkeypatch.setattr(python_reports, "CLAIM_S", 0.2)
    seen = threading.Event()
    reporter = Reporter(lambda topic, payload, event: seen.set())
    reporter.add(run(Returned(None, 0.1), Flight(), at=time.monotonic()))
    assert seen.wait(DEADLINE_S)
    reporter.close()


def test_reports_are_bounded_and_one_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound they are counted; a publisher that raises is logged."""
    monkeypatch.setattr(python_reports, "WAITING", 3)
    monkeypatch.setattr(python_reports, "TURN_S", 1_000.0)
    calls: list[str] = []

    def publish(topic: str, payload: dict[str, Any], event: Event) -> None:
        calls.append(topic)
        raise RuntimeError("no")

    reporter = Reporter(publish)
    for _ in range(5):
        reporter.add(run(Returned(None, 0.1)))
    assert reporter.dropped == 2
    reporter.close()
    assert len(calls) == 3


def test_a_reporter_that_sleeps_wakes_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nothing to report its thread looks no more, until there is something."""
    monkeypatch.setattr(python_reports, "TURN_S", 0.001)
    monkeypatch.setattr(python_reports, "AWAKE_TURNS", 1)
    seen = threading.Event()
    reporter = Reporter(lambda topic, payload, event: seen.set())
    deadline, pause = time.monotonic() + DEADLINE_S, threading.Event()
    for _ in range(3):
        while not reporter._asleep:
            assert time.monotonic() < deadline
            pause.wait(0.001)
        reporter.add(run(Returned(None, 0.1)))
        assert seen.wait(DEADLINE_S)
        seen.clear()
    reporter.close()
