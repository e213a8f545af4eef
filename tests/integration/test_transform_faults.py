"""Handlers that hang, crash and flood: each is ended and skipped, and nobody else notices."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.transform_scene import Scene, elapsed, is_gone, scene, transforms
from tests.integration.waiting import until

HEAD = "import os, re, signal, subprocess, time\nfrom subscribers.handlers import transform\n"
FALLBACK = "@transform\ndef fallback(event, ctx): return 'fallback'\n"


@pytest.fixture(name="stage")
def _stage() -> Iterator[Scene]:
    with scene() as found:
        yield found


def pids_in(path: Path) -> list[int]:
    """The pids that handlers have written."""
    return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.mark.parametrize(
    "body, status, reason",
    [
        ("while True: pass", "timeout", "no answer within "),
        ("time.sleep(1000)", "timeout", "no answer within "),
        ("re.fullmatch('(a|aa)+b', 'a' * 60)", "timeout", "no answer within "),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32)); time.sleep(1000)", "timeout", "no answer"),
        ("os._exit(3)", "failed", "its process ended"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "failed", "its process ended"),
        ("raise SystemExit(3)", "failed", "SystemExit at bad.py:7"),
        ("return '\\ud800'", "failed", "half a character"),
    ],
)
def test_a_bad_function_is_ended_and_the_next_one_answers(
    stage: Scene, body: str, status: str, reason: str
) -> None:
    """Also one that holds the interpreter's lock or breaks its process; its process is really gone."""
    pids = stage.workspace / "pids"
    stage.handlers(
        "bad.py",
        f"{HEAD}@transform(timeout=0.3)\ndef bad(event, ctx):\n"
        f"    with open({str(pids)!r}, 'a') as file: print(os.getpid(), file=file)\n"
        f"    subprocess.Popen(['sleep', '1000'], stdout=subprocess.DEVNULL)\n    {body}\n{FALLBACK}",
    )
    with transforms(stage):
        for _ in range(2):
            assert stage.ask("raw").output == "fallback"
        runs = stage.monitor.runs(2)
        until(lambda: len(pids_in(pids)) == 2, "both calls to be noted")
        if "return" not in body and "SystemExit" not in body:
            assert len(set(pids_in(pids))) == 2
            until(lambda: all(map(is_gone, pids_in(pids))), "the processes to end")
    assert [(run["hook"], run["status"]) for run in runs] == [("bad.py:bad", status)] * 2
    assert all(reason in run["reason"] for run in runs)
    until(lambda: all(map(is_gone, pids_in(pids))), "every worker to end with the service")


def test_a_stuck_function_leaves_time_for_those_behind_it(stage: Scene) -> None:
    """Even when its own limit is longer than the asker waits, the next handler is asked in time."""
    stage.handlers(
        "slow.py", f"{HEAD}@transform(timeout=60)\ndef slow(event, ctx): time.sleep(1000)\n{FALLBACK}"
    )
    with transforms(stage):
        assert stage.ask("raw", timeout=3.0).output == "fallback"


def test_an_async_function_is_cancelled_and_its_process_goes_on(stage: Scene) -> None:
    """One that waits for something is cancelled at its timeout; the same process takes the next call."""
    pids = stage.workspace / "pids"
    stage.handlers(
        "wait.py",
        f"{HEAD}import asyncio\n@transform(timeout=0.2)\nasync def wait(event, ctx):\n"
        f"    with open({str(pids)!r}, 'a') as file: print(os.getpid(), file=file)\n"
        f"    await asyncio.Event().wait()\n{FALLBACK}",
    )
    with transforms(stage):
        for _ in range(2):
            assert stage.ask("raw").output == "fallback"
        assert [run["status"] for run in stage.monitor.runs(2)] == ["timeout", "timeout"]
    assert len(set(pids_in(pids))) == 1


@pytest.mark.parametrize(
    "script, status, reason, code",
    [
        ("exit 3", "failed", "exit code 3", 3),
        ("kill -9 $$", "signalled", "ended by signal 9", None),
        ("echo garbage", "failed", "8 bytes on stdout are not JSON", 0),
        ("sleep 1000", "timeout", "no answer within ", None),
        ("trap '' TERM; sleep 1000 & wait; sleep 1000", "timeout", "no answer within ", None),
        ("head -c 20000000 /dev/zero", "failed", "20,000,000 bytes on stdout", 0),
    ],
)
def test_a_bad_command_is_ended_and_the_next_one_answers(
    stage: Scene, script: str, status: str, reason: str, code: int | None
) -> None:
    """Exit codes, signals, garbage, floods and hanging are faults; the group is killed with its children."""
    pids = stage.workspace / "pids"
    stage.tables(
        f"[[transform]]\nname = 'bad'\ntimeout = 0.3\n"
        f"command = ['/bin/sh', '-c', '''echo $$ >> {pids}; {script}''']\n"
        "[[transform]]\ncommand = ['/bin/sh', '-c', '''echo '{\"content\": \"fallback\"}' ''']\n"
    )
    with transforms(stage):
        assert stage.ask("raw").output == "fallback"
        (run,) = stage.monitor.runs(1)
        until(lambda: all(map(is_gone, pids_in(pids))), "the process to end")
    assert (run["hook"], run["status"], run["exit_code"]) == ("bad", status, code)
    assert reason in run["reason"]


def test_a_missing_command_is_said_and_skipped(stage: Scene) -> None:
    """A program that is not there is not_started, and a text without a newline reads as well."""
    stage.tables(
        "[[transform]]\nname = 'gone'\ncommand = './gone'\n"
        "[[transform]]\ncommand = ['printf', '{\"tool_output\": \"fallback\"}']\n"
    )
    with transforms(stage):
        assert stage.ask("raw").output == "fallback"
        (run,) = stage.monitor.runs(1)
    assert (run["hook"], run["status"]) == ("gone", "not_started")
    assert "cannot be found" in run["reason"]


def test_asks_do_not_wait_for_each_other(stage: Scene) -> None:
    """While several slow ones are under way, a quick one is answered; all get their own answer."""
    gate = stage.workspace / "gate"
    os.mkfifo(gate)
    stage.handlers(
        "mixed.py",
        f"{HEAD}@transform(tools=['Slow'], timeout=30)\ndef slow(event, ctx):\n"
        f"    open({str(gate)!r}).read()\n    return 'slow ' + event.payload['tool_output']\n"
        "@transform\ndef quick(event, ctx): return 'quick'\n",
    )
    with transforms(stage), ThreadPoolExecutor(4) as threads:
        slow = [threads.submit(stage.ask, str(n), 40.0, tool="Slow") for n in range(4)]
        assert stage.ask("raw").output == "quick"
        assert not any(each.done() for each in slow)
        opened = threading.Thread(target=lambda: gate.open("w").close())
        opened.start()

        def feed() -> bool:
            """Let in everybody who waits at the gate by now."""
            opened.join(0.1)
            if not opened.is_alive():
                descriptor = os.open(gate, os.O_RDWR | os.O_NONBLOCK)
                os.close(descriptor)
            return all(each.done() for each in slow)

        until(feed, "all slow ones")
        assert [each.result().output for each in slow] == [f"slow {n}" for n in range(4)]


def test_an_asker_that_goes_away_ends_nothing_else(stage: Scene) -> None:
    """An ask whose time is over is given up, and the next one is answered as ever."""
    stage.handlers(
        "late.py",
        f"{HEAD}@transform(tools=['Slow'], timeout=30)\ndef slow(event, ctx): time.sleep(1000)\n{FALLBACK}",
    )
    with transforms(stage):
        began = time.monotonic()
        stage.ask("raw", 0.3, tool="Slow")  # answered or not: that is a matter of luck on a busy machine
        assert elapsed(began) < 20
        assert stage.ask("raw").output == "fallback"


def test_a_killed_service_leaves_no_worker_behind(stage: Scene) -> None:
    """After kill -9 of the service its workers end too, also one that is stuck in a function."""
    pids = stage.workspace / "pids"
    stage.handlers(
        "stuck.py",
        f"{HEAD}@transform(timeout=60)\ndef stuck(event, ctx):\n"
        f"    with open({str(pids)!r}, 'a') as file: print(os.getpid(), os.getppid(), file=file)\n"
        "    while True: pass\n",
    )
    with transforms(stage) as service, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(stage.ask, "raw", 60.0)
        until(lambda: len(pids_in(pids)) == 2, "the function to be called")
        service.kill()
        decision = asked.result(30)
        assert [heard.silence for heard in decision.missing] == ["died"]
        until(lambda: all(map(is_gone, pids_in(pids))), "the worker and its stem to end")


def test_nothing_grows_with_bad_functions(stage: Scene) -> None:
    """After a hundred asks with crashes, timeouts and errors, all answered, there is as much as after ten."""
    stage.handlers(
        "odd.py",
        f"{HEAD}@transform(timeout=0.2)\ndef odd(event, ctx):\n"
        "    number = int(event.payload['tool_output'])\n"
        "    if number % 5 == 0: time.sleep(1000)\n"
        "    if number % 5 == 1: os._exit(1)\n"
        "    if number % 5 == 2: raise ValueError(number)\n"
        "    return None if number % 5 == 3 else 'odd'\n"
        f"{FALLBACK}",
    )

    def ask(number: int) -> bool:
        return bool(stage.ask(str(number), 40.0).output == ("odd" if number % 5 == 4 else "fallback"))

    with transforms(stage) as service, ThreadPoolExecutor(6) as threads:
        pid = service.process.pid

        def held() -> int:
            (stem,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            workers = Path(f"/proc/{stem}/task/{stem}/children").read_text().split()
            assert len(workers) <= 8
            return len(os.listdir(f"/proc/{pid}/fd")) + len(os.listdir(f"/proc/{stem}/fd"))

        assert all(threads.map(ask, range(30)))
        before = held()
        assert all(threads.map(ask, range(100)))
        until(lambda: held() <= before + 3, "as few descriptors as before, but for idle workers'")
