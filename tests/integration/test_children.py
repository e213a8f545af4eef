"""Real programs, the well-behaved and the others, run to an outcome on time and leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from subscribers.hooks.invocation import Invocation
from subscribers.hooks.outcome import NOTHING, Outcome
from subscribers.runtimes import reaper as reaper_module
from subscribers.runtimes import spawn as spawn_module
from subscribers.runtimes.child import run
from subscribers.runtimes.process_table import read_table
from subscribers.runtimes.reaper import TURNS, Reaper
from subscribers.runtimes.spawn import Child

LONG_S = 40.0
"""Seconds that nothing here takes unless it is broken."""

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@pytest.fixture
def reaper() -> Iterator[Reaper]:
    with Reaper() as reaper:
        yield reaper


def _invocation(*argv: str, **changes: Any) -> Invocation:
    fields = {"env": ENV, "cwd": "/", "stdin": None, "timeout_s": LONG_S, "grace_s": 0.0} | changes
    return Invocation(argv, **fields)


def _shell(script: str, **changes: Any) -> Invocation:
    return _invocation("/bin/sh", "-c", script, **changes)


def _python(script: str, **changes: Any) -> Invocation:
    return _invocation(sys.executable, "-I", "-S", "-c", script, **changes)


def _alive(pid: int) -> bool:
    row = read_table().get(pid)
    return row is not None and row.alive


def _eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"not in {LONG_S} s: {what}"
        pause.wait(0.005)


# ------------------------------------------------------------------------------------- what a program gets


def test_a_program_gets_exactly_what_the_invocation_says(reaper: Reaper, tmp_path: Path) -> None:
    """Arguments, environment, directory and input arrive unchanged, in UTF-8, and nothing else does."""
    script = (
        "import os, sys; print(ascii(sys.argv[1:])); print(sorted(os.environ.items()));"
        "print(os.getcwd()); print(os.read(0, 100)); print(sorted(os.listdir('/proc/self/fd'))[:-1])"
    )
    inheritable = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    try:
        env = {"Ä": "ö", "B": ""}
        arguments = ("-I", "-S", "-c", script, "é", "", "a b")
        invocation = _invocation(
            sys.executable, *arguments, cwd=str(tmp_path), env=env, stdin="{“x”}".encode()
        )
        outcome = run(invocation, reaper)
    finally:
        os.close(inheritable)
    assert outcome.stderr == NOTHING
    assert outcome.stdout.text().splitlines() == [
        r"['\xe9', '', 'a b']",
        str(sorted({"Ä": "ö", "B": "", "LC_CTYPE": "C.UTF-8"}.items())),  # the last is Python's own doing
        str(tmp_path),
        str("{“x”}".encode()),
        "['0', '1', '2']",
    ]


def test_a_program_leads_a_group_of_its_own_in_our_session(reaper: Reaper) -> None:
    """Signals to our group do not reach hooks, and a hook's group holds nothing but its own processes."""
    outcome = run(_python("import os; print(os.getpid(), os.getpgrp(), os.getsid(0))"), reaper)
    pid, group, session = map(int, outcome.stdout.text().split())
    assert pid == group
    assert session == os.getsid(0)


def test_signals_that_python_ignores_are_restored(reaper: Reaper) -> None:
    """A program that writes to a closed pipe ends by SIGPIPE as it would in a shell."""
    outcome = run(_shell("{ yes; echo $? >&2; } | head -n 1"), reaper)
    assert (outcome.status, outcome.stdout.head, outcome.stderr.head) == ("ok", b"y\n", b"141\n")


def test_without_input_there_is_dev_null(reaper: Reaper) -> None:
    """A program without standard input cannot take ours away from us."""
    assert run(_shell("readlink /proc/self/fd/0"), reaper).stdout.head == b"/dev/null\n"


def test_empty_input_is_an_empty_pipe(reaper: Reaper) -> None:
    """Zero bytes are delivered as an end of file, at once."""
    outcome = run(_shell("wc -c; test -p /dev/stdin", stdin=b""), reaper)
    assert (outcome.status, outcome.stdout.text().strip()) == ("ok", "0")


@pytest.mark.parametrize(
    "script,status,exit_code,signal",
    [
        ("true", "ok", 0, None),
        ("exit 2", "failed", 2, None),
        ("exit 255", "failed", 255, None),
        ("kill -9 $$", "signalled", None, 9),
        ("kill -15 $$", "signalled", None, 15),
    ],
)
def test_how_a_program_ends_is_its_outcome(
    reaper: Reaper, script: str, status: str, exit_code: int | None, signal: int | None
) -> None:
    """Exit codes and signals come out as they are, with what was said on both streams."""
    outcome = run(_shell(f"echo out; echo err >&2; {script}"), reaper)
    assert (outcome.status, outcome.exit_code, outcome.signal) == (status, exit_code, signal)
    assert (outcome.stdout.head, outcome.stderr.head, outcome.reason) == (b"out\n", b"err\n", None)
    assert 0 < outcome.duration_s < LONG_S


def test_what_cannot_be_started_is_a_status_of_its_own(reaper: Reaper) -> None:
    """A missing program is not a failed one, whatever a shell would make of it; its files are released."""
    released: list[bool] = []
    outcome = run(_invocation("/no/such/hook"), reaper, lambda: released.append(True))
    assert outcome == Outcome.not_started("/no/such/hook does not exist")
    assert run(_invocation("/no/such/hook"), reaper) == outcome
    assert released == [True]
    assert reaper.stats.running == 0


def test_a_program_that_cannot_be_watched_does_not_live(
    reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a descriptor for its end a program is ended at once and counts as not started."""

    def refuse(pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    outcome = run(_invocation("/bin/sleep", "1000"), reaper)
    assert outcome.status == "not_started"
    assert "too many open files" in (outcome.reason or "")


def test_bytes_that_are_no_text_stay_bytes(reaper: Reaper) -> None:
    """Output is kept as it came; reading it as text replaces what is not UTF-8."""
    outcome = run(_shell(r"printf '\377\000\303\244'"), reaper)
    assert outcome.stdout.head == b"\xff\x00\xc3\xa4"
    assert outcome.stdout.text() == "�\x00ä"


# ----------------------------------------------------------------------------------- input and output at once


def test_input_of_any_size_comes_back(reaper: Reaper) -> None:
    """Twenty megabytes through cat: feeding and draining go on at the same time."""
    data = os.urandom(1 << 20) * 20
    outcome = run(_invocation("/bin/cat", stdin=data, output_limit=len(data)), reaper)
    assert outcome.stdout.head == data


def test_a_program_may_write_much_before_it_reads(reaper: Reaper) -> None:
    """A program that fills its output before it looks at its input does not block."""
    outcome = run(_shell("head -c 1000000 /dev/zero; wc -c >&2", stdin=b"x" * 1_000_000), reaper)
    assert (outcome.stdout.total, outcome.stderr.text().strip()) == (1_000_000, "1000000")


@pytest.mark.parametrize("script", ["exec 0<&-; echo done", "echo done", "head -c 10 >/dev/null; echo done"])
def test_a_program_need_not_read_its_input(reaper: Reaper, script: str) -> None:
    """Closing standard input, ignoring it, or reading a part of it is no failure."""
    outcome = run(_shell(script, stdin=b"x" * 1_000_000), reaper)
    assert (outcome.status, outcome.stdout.head) == ("ok", b"done\n")


def test_closing_input_early_does_not_end_the_run(reaper: Reaper) -> None:
    """After its input is closed the program goes on, and its output is read to the end."""
    script = "exec 0<&-; i=0; while [ $i -lt 50 ]; do sleep 0.002; echo $i; i=$((i+1)); done"
    outcome = run(_shell(script, stdin=b"x" * 1_000_000), reaper)
    assert outcome.stdout.text().split() == [str(number) for number in range(50)]


def test_a_gigabyte_of_output_needs_no_memory(reaper: Reaper) -> None:
    """The first and the last 32 KiB of 1 GiB are kept, the rest is counted, and memory stays flat."""
    _reset_peak()
    before = _memory("VmRSS")
    outcome = run(_shell("echo first; head -c 1073741824 /dev/zero; echo last"), reaper)
    assert outcome.status == "ok"
    assert outcome.stdout.total == 1_073_741_824 + 11
    assert outcome.stdout.head.startswith(b"first\n\0")
    assert outcome.stdout.tail.endswith(b"\0last\n")
    assert len(outcome.stdout.head) + len(outcome.stdout.tail) == 65_536
    assert _memory("VmHWM") - before < 8 << 20


def _reset_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("this kernel does not let a process forget its peak of memory")


def _memory(name: str) -> int:
    """A figure of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith(name))


def test_concurrent_runs_do_not_mix(reaper: Reaper) -> None:
    """Eight threads with twenty runs each: every run gets its own input back and nothing else."""

    def once(number: int) -> bool:
        outcome = run(_shell("cat; echo $0 >&2", stdin=b"%d" % number), reaper)
        return outcome.status == "ok" and outcome.stdout.head == b"%d" % number

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(once, range(160)))
    assert reaper.stats.running == 0


def test_a_process_without_standard_streams_can_run_programs() -> None:
    """A daemon that has closed its descriptors 0 to 2 gets the same outcome."""
    script = """
import os, sys
sys.path.insert(0, os.getcwd())
from subscribers.hooks.invocation import Invocation
from subscribers.runtimes.child import run
from subscribers.runtimes.reaper import Reaper
os.closerange(0, 3)
with Reaper() as reaper:
    invocation = Invocation(("/bin/sh", "-c", "cat; echo err >&2"), {}, "/", b"in", 30.0, 0.0)
    outcome = run(invocation, reaper)
assert (outcome.stdout.head, outcome.stderr.head) == (b"in", b"err\\n"), outcome
"""
    root = Path(__file__).parents[2]
    assert (
        subprocess.run([sys.executable, "-P", "-c", script], cwd=root, timeout=LONG_S, check=False).returncode
        == 0
    )


# --------------------------------------------------------------------------------------- background processes


def test_the_leaders_exit_ends_the_run_although_others_hold_its_pipes(reaper: Reaper) -> None:
    """A background process that keeps both outputs open is neither waited for nor ended."""
    began = time.monotonic()
    outcome = run(_shell("sleep 1000 & echo $!"), reaper)
    took = time.monotonic() - began
    pid = int(outcome.stdout.text())
    try:
        assert outcome.status == "ok"
        assert took < 20
        assert _alive(pid)
    finally:
        os.kill(pid, 9)


def test_output_that_never_ends_does_not_keep_a_run(reaper: Reaper) -> None:
    """A background process that floods its output after the leader's exit is cut off, and ends by that."""
    outcome = run(_shell("yes & echo $! >&2"), reaper)
    pid = int(outcome.stderr.text())
    assert outcome.status == "ok"
    _eventually(lambda: not _alive(pid), "the flood ends when nobody reads it")


def test_what_the_leader_wrote_last_is_never_lost(reaper: Reaper) -> None:
    """A megabyte in an enlarged pipe when the leader exits is read to the end, whoever else holds it."""
    script = (
        "import os, fcntl; fcntl.fcntl(1, 1031, 1 << 20);"  # F_SETPIPE_SZ
        "pid = os.fork() or os.execl('/bin/sleep', 'sleep', '1000');"
        "os.write(2, b'%d' % pid); os.write(1, bytes(1 << 20)); os._exit(0)"
    )
    outcome = run(_python(script), reaper)
    os.kill(int(outcome.stderr.text()), 9)
    assert (outcome.status, outcome.stdout.total) == ("ok", 1 << 20)


def test_a_start_that_hangs_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who start take turns, but nobody waits for one longer than a moment."""
    begun, go_on = threading.Semaphore(0), threading.Event()
    real = spawn_module.spawn

    def spawn(invocation: Invocation, *, sealed: bool = False) -> Child:
        if invocation.argv == ("/bin/true", "hangs"):
            begun.release()
            assert go_on.wait(LONG_S)
        return real(invocation, sealed=sealed)

    monkeypatch.setattr(reaper_module, "spawn", spawn)
    with Reaper() as reaper, ThreadPoolExecutor(TURNS + 1) as threads:
        hanging = [threads.submit(run, _invocation("/bin/true", "hangs"), reaper) for _ in range(TURNS + 1)]
        for _ in range(TURNS):
            assert begun.acquire(timeout=LONG_S)
        assert run(_invocation("/bin/true"), reaper).status == "ok"
        assert not any(each.done() for each in hanging)
        go_on.set()
        assert [each.result(LONG_S).status for each in hanging] == ["ok"] * len(hanging)
