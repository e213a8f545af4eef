"""Processes that are kept running: started in order, started again, stopped in reverse order."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from subscribers.runner.supervisor import Program, StartFailed, Supervisor
from tests.integration.waiting import until

WORKER = """
import json, os, pathlib, signal, sys, time
name, log = sys.argv[1], pathlib.Path(sys.argv[2])
def say(word):
    with log.open("a") as file:
        file.write(f"{name} {word} {os.getpid()}\\n")
def stop(*_):
    say("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGHUP, lambda *_: say("rescanned"))
say("started")
print(json.dumps({"ready": True, "pid": os.getpid(), "name": name}), flush=True)
while True:
    signal.pause()
"""


def worker(name: str, log: Path, rank: int, program: str = WORKER) -> Program:
    """A program that writes what happens to it into ``log``."""
    return Program(name, (sys.executable, "-c", program, name, str(log)), rank)


def words(log: Path) -> list[str]:
    """What happened, without process ids."""
    return [line.rsplit(" ", 1)[0] for line in log.read_text().splitlines()] if log.exists() else []


def supervise(programs: list[Program], then: Callable[[Supervisor, Mapping[str, Any]], None]) -> None:
    """Run ``programs``; when all are ready, call ``then`` in a thread and stop after it."""
    failures: list[BaseException] = []

    def act(said: Mapping[str, Mapping[str, Any]]) -> None:
        def body() -> None:
            try:
                then(supervisor, said)
            except BaseException as error:
                failures.append(error)
            finally:
                supervisor.stop()

        thread.append(threading.Thread(target=body))
        thread[0].start()

    thread: list[threading.Thread] = []
    supervisor = Supervisor(programs, act, os.environ)
    supervisor.run()
    thread[0].join()
    if failures:
        raise failures[0]


def test_ranks_start_in_order_and_stop_in_reverse(tmp_path: Path) -> None:
    """The broker is ready before its subscribers start, and ends after them."""
    log = tmp_path / "log"
    seen: list[Mapping[str, Any]] = []
    supervise([worker("subscriber", log, 1), worker("broker", log, 0)], lambda _, said: seen.append(said))
    assert words(log) == ["broker started", "subscriber started", "subscriber stopped", "broker stopped"]
    assert {name: line["name"] for name, line in seen[0].items()} == {
        "broker": "broker",
        "subscriber": "subscriber",
    }


def test_a_process_that_is_killed_is_started_again(tmp_path: Path) -> None:
    """A subscriber that dies comes back; the others are left alone."""
    log = tmp_path / "log"

    def kill(_: Supervisor, said: Mapping[str, Any]) -> None:
        os.kill(said["b"]["pid"], signal.SIGKILL)
        until(lambda: words(log).count("b started") == 2, "the second start")

    supervise([worker("a", log, 0), worker("b", log, 1)], kill)
    assert words(log).count("a started") == 1


def test_sighup_reaches_subscribers_only(tmp_path: Path) -> None:
    """SIGHUP means "look again" to the hooks; the broker has nothing to look at."""
    log = tmp_path / "log"

    def hang_up(_: Supervisor, __: Mapping[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        until(lambda: "b rescanned" in words(log), "the rescan")

    supervise([worker("a", log, 0), worker("b", log, 1)], hang_up)
    assert "a rescanned" not in words(log)


def test_a_process_that_cannot_start_stops_everything(tmp_path: Path) -> None:
    """Before all are ready, an exit is final: its code is told and what runs already is stopped."""
    log = tmp_path / "log"
    refusing = worker("b", log, 1, "import sys; sys.exit(4)")
    with pytest.raises(StartFailed, match="b ended with 4 before it was ready") as caught:
        Supervisor([worker("a", log, 0), refusing], lambda _: None, os.environ).run()
    assert (caught.value.name, caught.value.exit_code) == ("b", 4)
    assert words(log) == ["a started", "a stopped"]


def test_a_process_that_ignores_the_signal_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end in its time is killed, so that stopping ends."""
    monkeypatch.setattr("subscribers.runner.supervisor.STOP_SECONDS", 0.2)
    deaf = WORKER.replace(
        "signal.signal(signal.SIGTERM, stop)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    )
    log = tmp_path / "log"
    supervise([worker("a", log, 0, deaf)], lambda *_: None)
    assert words(log) == ["a started"]


def test_a_line_that_is_no_json_counts_as_ready(tmp_path: Path) -> None:
    """Whatever a program prints first means that it is ready."""
    program = "import signal; print('here I am', flush=True); signal.pause()"
    seen: list[Mapping[str, Any]] = []
    supervise([worker("a", tmp_path / "log", 0, program)], lambda _, said: seen.append(said))
    assert seen == [{"a": {"ready": True}}]


def test_other_programs_take_over_when_told(tmp_path: Path) -> None:
    """What is left out ends, what has other arguments is started with them; the rest, and rank 0, goes on."""
    log, other = tmp_path / "log", tmp_path / "other"
    names = ("gone", "changed", "kept")

    def exchange(supervisor: Supervisor, _: Mapping[str, Any]) -> None:
        supervisor.change([worker("changed", other, 1), worker("kept", log, 1)])
        until(lambda: "changed started" in words(other), "the new program to start")
        until(lambda: "gone stopped" in words(log), "the old program to end")

    supervise([worker("broker", log, 0), *(worker(name, log, 1) for name in names)], exchange)
    assert sorted(words(log)[-2:]) == ["broker stopped", "kept stopped"]
    assert words(log).count("changed stopped") == words(log).count("gone stopped") == 1
    assert words(other) == ["changed started", "changed stopped"]


def test_who_does_not_leave_in_time_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes over does not wait for ever; nor does it wait for a process that is down already."""
    monkeypatch.setattr("subscribers.runner.supervisor.STOP_SECONDS", 0.2)
    log, other = tmp_path / "log", tmp_path / "other"
    deaf = WORKER.replace(
        "signal.signal(signal.SIGTERM, stop)", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    )

    def exchange(supervisor: Supervisor, _: Mapping[str, Any]) -> None:
        supervisor.change([worker("deaf", other, 1)])
        until(lambda: "deaf started" in words(other), "the new program to start")
        supervisor.change([])
        until(lambda: "deaf stopped" in words(other), "the new program to end")

    supervise([worker("broker", log, 0), worker("deaf", log, 1, deaf)], exchange)
    assert words(other) == ["deaf started", "deaf stopped"]
