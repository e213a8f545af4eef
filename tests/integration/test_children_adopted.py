"""A subscriber process that adopts orphans reaps them, and takes no exit status from anybody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG_S = 50.0

PROLOGUE = """
import itertools, os, subprocess, sys, time
sys.path.insert(0, os.environ["ROOT"])
from subscribers.hooks.invocation import Invocation
from subscribers.runtimes import reaper as reapers
from subscribers.runtimes.child import run
from subscribers.runtimes.orphans import become_subreaper
from subscribers.runtimes.process_table import children, read_table
from subscribers.runtimes.reaper import Reaper

numbers = itertools.count()

def shell(script):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "RUN": str(next(numbers))}
    return Invocation(("/bin/sh", "-c", script), env, os.getcwd(), None, 30.0, 0.2, marker="RUN")

def eventually(condition):
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline, [read_table().get(pid) for pid in children(os.getpid())]
        time.sleep(0.01)

assert become_subreaper()
"""


Runs = Callable[[str], None]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """A function that runs a script in a process of its own: adopting is a property of the whole process."""

    def run(script: str) -> None:
        argv = [sys.executable, "-P", "-c", PROLOGUE + script]
        environment = {**os.environ, "ROOT": str(ROOT)}
        subprocess.run(argv, cwd=tmp_path, env=environment, timeout=LONG_S, check=True)

    return run


def test_background_processes_are_adopted_and_reaped(runs: Runs) -> None:
    """What hooks leave running goes on after them, becomes ours, and leaves no zombie when it ends."""
    runs("""
with Reaper(adopts=True) as reaper:
    for _ in range(5):
        outcome = run(shell("(setsid sleep 1000 </dev/null >/dev/null 2>&1 &)"), reaper)
        assert outcome.status == "ok", outcome
    found = []

    def five():  # the list is not exact while a shell is ending
        table = read_table()
        found[:] = [pid for pid in children(os.getpid()) if pid in table and table[pid].alive]
        return len(found) == 5

    eventually(five)
    for pid in found:
        os.kill(pid, 9)
    eventually(lambda: children(os.getpid()) == [])
    eventually(lambda: reaper.stats.orphans == 5)
""")


def test_a_timed_out_daemon_is_ended_and_reaped_by_the_ending(runs: Runs) -> None:
    """A daemon of a run that is out of time becomes our child, is killed, and leaves no zombie."""
    runs("""
with Reaper(adopts=True) as reaper:
    daemon = "setsid sh -c 'trap : TERM; touch ready; while :; do sleep 1; done' </dev/null >/dev/null 2>&1"
    child = reaper.start(shell(f"({daemon} &); exec sleep 1000"))
    eventually(lambda: os.path.exists("ready"))
    reaper.end(child, [child.stdout, child.stderr], 0.2)
    eventually(lambda: reaper.stats.ended == 1)
    assert children(os.getpid()) == []
    assert reaper.stats.escaped >= 1
    assert reaper.stats.orphans == 0
""")


def test_other_peoples_children_keep_their_exit_status(runs: Runs) -> None:
    """Sweeping goes on beside a child in our own group and a declared one elsewhere, and steals neither."""
    runs("""
with Reaper(adopts=True) as reaper:
    plain = subprocess.Popen(["/bin/sh", "-c", "exit 7"])
    with reaper.starting():
        apart = subprocess.Popen(["/bin/sh", "-c", "exit 8"], process_group=0)
        reaper.own(apart.pid, apart)
    run(shell("(sleep 1000 </dev/null >/dev/null 2>&1 &)"), reaper)
    eventually(lambda: len(children(os.getpid())) == 3)
    orphan = next(pid for pid in children(os.getpid()) if pid not in (plain.pid, apart.pid))
    os.kill(orphan, 9)
    eventually(lambda: reaper.stats.orphans == 1)
    assert (plain.wait(), apart.wait()) == (7, 8)
    reaper.disown(apart.pid, apart)
""")


def test_a_leader_that_is_kept_for_its_groups_sake_is_not_taken(runs: Runs) -> None:
    """While others of its group have their grace, an ended leader stays unreaped: its pid stays its own."""
    runs("""
reapers.SWEEP_S = 0.0005
with Reaper(adopts=True) as reaper:
    script = "trap 'exit 3' TERM; (trap '' TERM; touch ready; while :; do sleep 0.01; done) & wait; wait"
    child = reaper.start(shell(script))
    eventually(lambda: os.path.exists("ready"))
    reaper.end(child, [child.stdout, child.stderr], 30.0)
    eventually(lambda: read_table()[child.process.pid].state == "Z")
    run(shell("(true </dev/null >/dev/null 2>&1 &)"), reaper)
    eventually(lambda: reaper.stats.orphans == 1)
    assert read_table()[child.process.pid].state == "Z"
    os.killpg(child.process.pid, 9)
    eventually(lambda: reaper.stats.ended == 1)
    assert child.process.returncode == 3
""")


def test_many_runs_and_orphans_at_once(runs: Runs) -> None:
    """Every run gets its own exit code, however fast the sweeps follow each other; every orphan is reaped."""
    runs("""
from concurrent.futures import ThreadPoolExecutor

reapers.SWEEP_S = 0.0005
with Reaper(adopts=True) as reaper:
    def once(number):
        orphan = "(sleep 0.3 </dev/null >/dev/null 2>&1 &);" if number % 4 == 0 else ""
        return run(shell(f"{orphan} exit {number % 200}"), reaper).exit_code == number % 200

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(once, range(400)))
    eventually(lambda: children(os.getpid()) == [])
    eventually(lambda: reaper.stats.orphans == 100)
""")


BOUND = """
import dataclasses

def bound(script, timeout_s=1.0, grace_s=0.3):
    return dataclasses.replace(shell(script), timeout_s=timeout_s, grace_s=grace_s, bounds_leftovers=True)

def living():
    return [row.pid for row in read_table().values() if row.alive and row.ppid == os.getpid()]
"""


@pytest.mark.parametrize(
    "leaving",
    [
        "sleep 1000 &",  # it holds both outputs open
        "sleep 1000 </dev/null >/dev/null 2>&1 &",
        "setsid sleep 1000 >/dev/null 2>&1 &",
        "(setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 &) &",
        "trap '' TERM; sleep 1000 &",
    ],
)
def test_what_a_bounded_run_leaves_behind_ends_with_its_time(runs: Runs, leaving: str) -> None:
    """The run is over when its leader exits; the background goes on until the timeout, and no longer."""
    runs(f"""{BOUND}
with Reaper(adopts=True) as reaper:
    began = time.monotonic()
    outcome = run(bound({leaving!r} + " echo said; exit 3"), reaper)
    assert (outcome.status, outcome.exit_code, outcome.stdout.head) == ("failed", 3, b"said\\n"), outcome
    if time.monotonic() - began < 0.9:
        assert reaper.stats.leftovers == 1 and living()
    eventually(lambda: reaper.stats.leftovers == 0)
    assert time.monotonic() - began >= 1.0
    eventually(lambda: not living())
""")


def test_a_bounded_run_that_leaves_nothing_is_over_at_once(runs: Runs) -> None:
    """Without a background nobody is looked for, and another run's background is not mistaken for its own."""
    runs(f"""{BOUND}
with Reaper(adopts=True) as reaper:
    run(shell("sleep 1000 >/dev/null 2>&1 &"), reaper)
    assert run(bound("exit 0"), reaper).status == "ok"
    assert run(bound("kill -9 $$"), reaper).signal == 9
    assert reaper.stats.leftovers == 0
    (kept,) = living()
    os.kill(kept, 9)
    run(bound("(sleep 0.2; sleep 0.1) >/dev/null 2>&1 & kill -9 $$", timeout_s=30.0), reaper)
    eventually(lambda: reaper.stats.leftovers == 0)  # it ended by itself, long before its time
    assert reaper.stats.killed == 0
""")


def test_closing_does_not_wait_for_leftovers(runs: Runs) -> None:
    """A reaper that is closed ends what runs have left behind, with its grace until the deadline."""
    runs(f"""{BOUND}
reaper = Reaper(adopts=True)
wait = "while :; do sleep 0.01; done"
run(bound(f"(trap 'touch cleaned; exit' TERM; touch ready; {{wait}}) >/dev/null 2>&1 &", 60.0, 30.0), reaper)
run(bound(f"(trap '' TERM; {{wait}}) &", 60.0, 30.0), reaper)
eventually(lambda: os.path.exists("ready"))
assert reaper.close(time.monotonic() + 1.0) == 0
assert os.path.exists("cleaned")
eventually(lambda: not living())
""")


def test_leftovers_are_bounded(runs: Runs) -> None:
    """Beyond the bound what a run leaves behind is ended at once."""
    runs(f"""{BOUND}
reapers.MAX_LEFTOVERS = 1
with Reaper(adopts=True) as reaper:
    run(bound("sleep 1000 &", 60.0), reaper)
    run(bound("sleep 1000 &", 60.0), reaper)
    eventually(lambda: reaper.stats.leftovers == 1)
    assert reaper.stats.graces_skipped == 1
""")


def test_a_sealed_process_starts_programs_that_inherit_nothing(runs: Runs) -> None:
    """After seal() a program has its three streams, its group and its directory, however it was started."""
    runs("""
from subscribers.runtimes.spawn import Process, seal
inheritable = os.open("/dev/null", os.O_RDONLY)
os.set_inheritable(inheritable, True)
os.close(0)
seal()
script = (
    "readlink /proc/$$/fd/0 | cut -d: -f1; ls /proc/self/fd | wc -l; pwd;"
    "test $(ps -o pgid= $$) = $$ && echo leads;"
    "{ yes; echo $? >&2; } | head -n 1; cksum"
)
import dataclasses, tempfile
with Reaper(sealed=True) as reaper:
    there = tempfile.mkdtemp(dir=os.getcwd())
    said = {}
    for directory in (os.getcwd(), there):
        for stdin in (None, b"in", b"x" * 100_000):
            fields = {"cwd": directory, "stdin": stdin}
            child = reaper.start(dataclasses.replace(shell(script), **fields))
            assert isinstance(child.process, Process) == (directory == os.getcwd())
            reaper.end(child, [child.stdout, child.stderr], 0.0)
            said[directory, stdin] = run(dataclasses.replace(shell(script), **fields), reaper)
            assert said[directory, stdin].status == "ok"
    for stdin in (None, b"in", b"x" * 100_000):
        here, elsewhere = said[os.getcwd(), stdin], said[there, stdin]
        assert here.stdout.text() == elsewhere.stdout.text().replace(there, os.getcwd()), (here, elsewhere)
        words = here.stdout.text().split()
        assert words[1] == "4" and words[3] == "leads", words  # the fourth is the listing's own
        assert (words[0] == "/dev/null") == (stdin is None)
    elsewhere = dataclasses.replace(shell("true"), cwd="/")
    os.chdir(there)
    os.rmdir(there)
    assert run(elsewhere, reaper).status == "ok"
    missing = Invocation(("/no/such/hook",), {}, "/", None, 1.0, 0.0)
    os.chdir("/")
    assert run(missing, reaper).reason == "/no/such/hook does not exist"
""")
