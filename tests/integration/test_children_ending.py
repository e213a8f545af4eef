"""Programs whose time is over are reported at once, ended behind the outcome, and leave nothing behind."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from subscribers.hooks.invocation import Invocation
from subscribers.hooks.outcome import Outcome
from subscribers.runtimes.child import run
from subscribers.runtimes.process_table import read_table
from subscribers.runtimes.reaper import Reaper
from subscribers.runtimes.spawn import Child

LONG_S = 40.0
"""Seconds that nothing here takes unless it is broken."""

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}

READY = "echo $$ >pids; mv pids ready;"
"""What a script does when it is ready to be ended: it names the processes to watch."""

STUBBORN = f"trap '' TERM; {READY} while :; do sleep 0.01; done"


@pytest.fixture
def reaper() -> Iterator[Reaper]:
    with Reaper() as reaper:
        yield reaper


def _invocation(*argv: str, **changes: Any) -> Invocation:
    fields = {"env": ENV, "cwd": "/", "stdin": None, "timeout_s": LONG_S, "grace_s": 0.0} | changes
    return Invocation(argv, **fields)


def _shell(script: str, **changes: Any) -> Invocation:
    return _invocation("/bin/sh", "-c", script, **changes)


def _alive(pid: int) -> bool:
    row = read_table().get(pid)
    return row is not None and row.alive


def _eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"not in {LONG_S} s: {what}"
        pause.wait(0.005)


class Doomed:
    """A run in a thread of its own that is interrupted once the program has written its pids to a file."""

    def __init__(self, reaper: Reaper, directory: Path, *argv: str, **changes: Any) -> None:
        directory.mkdir(exist_ok=True)
        self.gone = threading.Event()
        self.pids: list[int] = []
        self._reaper = reaper
        self._ready = directory / "ready"
        env = {**ENV, "RUN": os.fsencode(directory).hex()}
        program = argv if len(argv) > 1 else ("/bin/sh", "-c", *argv)
        self._invocation = _invocation(*program, **({"cwd": str(directory), "env": env} | changes))

    @contextmanager
    def running(self) -> Iterator[Future[Outcome]]:
        """The program has said that it is ready; the future is its outcome."""
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(run, self._invocation, self._reaper, self.gone.set)
            _eventually(lambda: self._ready.exists() or future.done(), "the program is ready")
            assert self._ready.exists(), future.result()
            self.pids = [int(word) for word in self._ready.read_text().split()]
            assert self.pids
            assert all(map(_alive, self.pids))
            yield future

    def interrupted(self) -> Outcome:
        """Interrupt the run and return its outcome."""
        with self.running() as future:
            self._reaper.interrupt()
            return future.result(LONG_S)

    def ended(self) -> None:
        """Return when none of the processes is left and the reaper has said so."""
        assert self.gone.wait(LONG_S)
        assert not any(map(_alive, self.pids))
        _eventually(lambda: self._reaper.stats.ending == 0, "the reaper has counted it")


# ------------------------------------------------------------------------------------------- out of time


@pytest.mark.parametrize("stdin", [None, b"x" * 1_000_000])
def test_a_timeout_is_reported_on_time_with_what_was_said(reaper: Reaper, stdin: bytes | None) -> None:
    """At the deadline the outcome is there with the output so far, also when the input was never read."""
    outcome = run(_shell("echo out; exec sleep 1000", stdin=stdin, timeout_s=1.0, grace_s=LONG_S), reaper)
    assert (outcome.status, outcome.reason) == ("timeout", None)
    assert (outcome.exit_code, outcome.signal) == (None, None)
    assert 1.0 <= outcome.duration_s < LONG_S / 2
    assert outcome.stdout.head == b"out\n"
    _eventually(lambda: reaper.stats.ended == 1, "the program is gone")
    assert reaper.stats.killed == 0
    assert not reaper._owned  # a pid that stays in there would hide a later orphan


def test_a_flood_does_not_hide_the_deadline(reaper: Reaper) -> None:
    """A program that never stops writing is out of time like any other."""
    outcome = run(_invocation("/usr/bin/yes", timeout_s=0.5), reaper)
    assert outcome.status == "timeout"
    assert outcome.stdout.total > 65_536
    assert outcome.duration_s < LONG_S / 2


def test_the_outcome_does_not_wait_for_the_ending(reaper: Reaper, tmp_path: Path) -> None:
    """A program that ignores SIGTERM is reported at once, and ended by SIGKILL when its grace is over."""
    doomed = Doomed(reaper, tmp_path, STUBBORN, grace_s=0.3)
    outcome = doomed.interrupted()
    assert outcome.status == "timeout"
    doomed.ended()
    assert (reaper.stats.ended, reaper.stats.killed) == (1, 1)


def test_a_program_can_use_its_grace(reaper: Reaper, tmp_path: Path) -> None:
    """A trap runs to its end, may say something on the way, and SIGKILL never comes."""
    script = (
        "trap 'echo bye; sleep 0.2; echo bye; touch cleaned; exit 0' TERM;"
        f"{READY} while :; do sleep 0.01; done"
    )
    doomed = Doomed(reaper, tmp_path, script, grace_s=LONG_S)
    doomed.interrupted()
    doomed.ended()
    assert (tmp_path / "cleaned").exists()
    assert (reaper.stats.ended, reaper.stats.killed) == (1, 0)


def test_without_a_grace_no_trap_runs(reaper: Reaper, tmp_path: Path) -> None:
    """A grace of 0 is SIGKILL at once."""
    script = f"trap 'touch cleaned' TERM; {READY} while :; do sleep 0.01; done"
    doomed = Doomed(reaper, tmp_path, script, grace_s=0.0)
    doomed.interrupted()
    doomed.ended()
    assert not (tmp_path / "cleaned").exists()
    assert reaper.stats.killed == 1


def test_a_farewell_without_end_is_cut_off(reaper: Reaper, tmp_path: Path) -> None:
    """A program that floods its output while it is being ended loses its pipe, and ends by that."""
    script = f"trap 'yes' TERM; {READY} while :; do sleep 0.01; done"
    doomed = Doomed(reaper, tmp_path, script, grace_s=LONG_S)
    doomed.interrupted()
    _eventually(
        lambda: not any(row.ppid == doomed.pids[0] and row.alive for row in read_table().values()),
        "yes ended",
    )
    os.kill(doomed.pids[0], 9)
    doomed.ended()


@pytest.mark.parametrize("leader", ["exec sleep 1000", "trap '' TERM; while :; do sleep 0.01; done"])
def test_the_whole_group_is_ended(reaper: Reaper, tmp_path: Path, leader: str) -> None:
    """Children and orphaned grandchildren in the group end with the leader, also if they ignore SIGTERM."""
    child = 'trap "" TERM; echo $$ >a; while :; do sleep 0.01; done'
    script = (
        f"sh -c '{child}' & sh -c 'sh -c \"exec sleep 1000\" & echo $! >b' >/dev/null;"
        "while ! test -s a; do sleep 0.005; done;"
        f"echo $$ $(cat a b) >pids; mv pids ready; {leader}"
    )
    doomed = Doomed(reaper, tmp_path, script, grace_s=0.3)
    doomed.interrupted()
    assert len(doomed.pids) == 3
    doomed.ended()
    assert reaper.stats.killed == 1


def test_a_stopped_program_is_ended_too(reaper: Reaper, tmp_path: Path) -> None:
    """A program that was stopped is continued, so that it can notice SIGTERM."""
    script = f"(sleep 0.05; kill -STOP $$; {READY}) & exec sleep 1000"
    doomed = Doomed(reaper, tmp_path, script, grace_s=LONG_S)
    doomed.interrupted()
    doomed.ended()
    assert reaper.stats.killed == 0


def test_descendants_that_left_the_group_are_found(reaper: Reaper, tmp_path: Path) -> None:
    """A child in a session of its own is ended with its own children, with SIGTERM first."""
    script = (
        'setsid sh -c \'trap "touch cleaned; exit" TERM; sleep 1000 & echo $$ $! >more;'
        "while :; do sleep 0.01; done' & while ! test -s more; do sleep 0.005; done;"
        "echo $$ $(cat more) >pids; mv pids ready; exec sleep 1000"
    )
    doomed = Doomed(reaper, tmp_path, script, grace_s=0.5)
    doomed.interrupted()
    assert len(doomed.pids) == 3
    doomed.ended()
    assert (tmp_path / "cleaned").exists()
    assert reaper.stats.escaped >= 2


DAEMON = """import os
if not os.fork():
    os.setsid()
    if not os.fork():
        os.setsid()
        for end in range(3): os.close(end)
        with open("daemon", "w") as file: file.write(str(os.getpid()))
        os.rename("daemon", "daemon.pid")
        os.execve("/bin/sleep", ["sleep", "1000"], os.environ)
    os._exit(0)
os.wait()
while not os.path.exists("daemon.pid"): os.sched_yield()
with open("pids", "w") as file: file.write(f"{os.getpid()} {open('daemon.pid').read()}")
os.rename("pids", "ready")
os.execv("/bin/sleep", ["sleep", "1000"])
"""


def test_a_daemon_is_found_by_its_marker(reaper: Reaper, tmp_path: Path) -> None:
    """A double-forked process without parents, group, session or pipes in common is ended all the same."""
    doomed = Doomed(reaper, tmp_path, sys.executable, "-I", "-S", "-c", DAEMON, grace_s=0.3, marker="RUN")
    doomed.interrupted()
    assert len(doomed.pids) == 2
    doomed.ended()
    assert reaper.stats.escaped == 1


def test_a_daemon_of_another_run_is_left_alone(reaper: Reaper, tmp_path: Path) -> None:
    """What an earlier run left running on purpose does not end with a later run of the same hook."""
    earlier = run(
        _shell("setsid sleep 1000 >/dev/null 2>&1 & echo $!", env={**ENV, "RUN": "1"}, marker="RUN"), reaper
    )
    pid = int(earlier.stdout.text())
    try:
        late = _shell("exec sleep 1000", env={**ENV, "RUN": "2"}, marker="RUN", timeout_s=0.2)
        assert run(late, reaper).status == "timeout"
        _eventually(lambda: reaper.stats.ended == 1, "the later run is ended")
        assert _alive(pid)
    finally:
        os.kill(pid, 9)


# ------------------------------------------------------------------------------------------------- the reaper


def _stubborn(reaper: Reaper, directory: Path) -> Child:
    """A running program that ignores SIGTERM already."""
    child = reaper.start(_shell(STUBBORN, cwd=str(directory)))
    _eventually((directory / "ready").exists, "the program is ready")
    (directory / "ready").unlink()
    return child


def test_graces_are_bounded(tmp_path: Path) -> None:
    """Beyond the bound an ending gets SIGKILL at once, while those before it keep their grace."""
    with Reaper(max_graces=1) as reaper:
        for child in (first := _stubborn(reaper, tmp_path), _stubborn(reaper, tmp_path)):
            reaper.end(child, [child.stdout, child.stderr], LONG_S)
        _eventually(lambda: reaper.stats.ended == 1, "the second had no grace")
        assert _alive(first.process.pid)
        assert (reaper.stats.graces_skipped, reaper.stats.killed, reaper.stats.ending) == (1, 1, 1)


def test_endings_are_bounded(tmp_path: Path) -> None:
    """Beyond the bound nothing is started, until one of the runs that are being ended is gone."""
    with Reaper(max_endings=1) as reaper:
        child = _stubborn(reaper, tmp_path)
        reaper.end(child, [child.stdout, child.stderr], LONG_S)
        refused = run(_invocation("/bin/true"), reaper)
        assert refused == Outcome.not_started("1 earlier runs are out of time and still being ended")
        os.kill(child.process.pid, 9)
        _eventually(lambda: reaper.stats.ending == 0, "the run is ended")
        assert run(_invocation("/bin/true"), reaper).status == "ok"


def test_interrupted_runs_end_and_no_others_begin(reaper: Reaper, tmp_path: Path) -> None:
    """After an interruption the runs under way are out of time, and what comes later is not started."""
    doomed = Doomed(
        reaper, tmp_path, "trap 'exit 0' TERM;" + READY + "while :; do sleep 0.01; done", grace_s=LONG_S
    )
    outcome = doomed.interrupted()
    assert (outcome.status, outcome.reason) == ("timeout", "ended early: its subscriber is shutting down")
    assert run(_invocation("/bin/true"), reaper) == Outcome.not_started("the subscriber is shutting down")
    doomed.ended()


def test_closing_ends_everything(tmp_path: Path) -> None:
    """Runs under way are interrupted, graces end at the deadline, and afterwards nothing can be started."""
    reaper = Reaper()
    doomed = Doomed(reaper, tmp_path, STUBBORN, grace_s=LONG_S)
    with doomed.running() as future:
        began = time.monotonic()
        assert reaper.close(began + 0.2) == 0
        assert time.monotonic() - began < LONG_S / 2
        assert future.result(LONG_S).status == "timeout"
    doomed.ended()
    assert run(_invocation("/bin/true"), reaper) == Outcome.not_started("the subscriber is shutting down")
    assert reaper.close(time.monotonic()) == 0


def test_closing_does_not_wait_longer_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that cannot be ended is counted, and ended by the reaper's thread when it can be."""
    monkeypatch.setattr("subscribers.runtimes.reaper.LAST_WORDS_S", 0.05)
    reaper = Reaper()
    child = reaper.start(_invocation("/bin/sleep", "1000"))  # as if the thread that runs it were stuck
    assert reaper.close(time.monotonic()) == 1
    reaper.end(child, [child.stdout, child.stderr], 0.0)
    _eventually(lambda: reaper.close(time.monotonic()) == 0, "the reaper finished in the background")


def test_a_failing_callback_does_not_stop_the_reaper(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception from on_end is reported as a thread's, and later endings go on."""
    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: reported.append(arguments.exc_value))
    error = ValueError("of the callback")

    def fail() -> None:
        raise error

    with Reaper() as reaper:
        assert run(_invocation("/bin/sleep", "1000", timeout_s=0.05), reaper, fail).status == "timeout"
        assert run(_invocation("/bin/sleep", "1000", timeout_s=0.05), reaper).status == "timeout"
        _eventually(lambda: reaper.stats.ended == 2, "both are ended")
    assert reported == [error]


def test_without_a_process_table_the_group_is_still_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where /proc is missing nobody can be looked for; the leader and its group end all the same."""
    monkeypatch.setattr("subscribers.runtimes.ending_loop.read_table", dict)
    with Reaper() as reaper:
        script = (
            "(trap '' TERM; touch a; sleep 1000) & while ! test -e a; do sleep 0.005; done;"
            "echo $$ $! >pids; mv pids ready; exec sleep 1000"
        )
        doomed = Doomed(reaper, tmp_path, script, grace_s=LONG_S)
        doomed.interrupted()
        assert doomed.gone.wait(LONG_S)
        _eventually(lambda: not any(map(_alive, doomed.pids)), "the group is gone")
