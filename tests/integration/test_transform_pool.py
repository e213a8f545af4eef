"""Functions in processes that can be ended: a real stem, real workers, calls from many threads."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from subscribers.hooks.transform_chain import Fault, Passed, Value
from subscribers.runtimes import transform_pool
from subscribers.runtimes.reaper import Reaper
from subscribers.runtimes.transform_pool import FunctionPool, LoadFailed
from tests.integration.transform_scene import is_gone
from tests.integration.waiting import until

SOURCE = """
import os, time
from subscribers.handlers import transform

@transform
def upper(event, ctx): return event.payload["tool_output"].upper()

@transform
def pid(event, ctx): return str(os.getpid())

@transform
def none(event, ctx): return None

@transform
def sleeps(event, ctx): time.sleep(1000)

@transform
def dies(event, ctx): os._exit(1)
"""
NAMES = ("upper", "pid", "none", "sleeps", "dies")
FIELDS = ["prx.lifecycle.tool_result", 0, bytes(16), 1, 0, None, "", None]
Open = Callable[..., FunctionPool]
Said = list[dict[str, Any]]


@pytest.fixture
def said() -> Said:
    """What stems have told when they had loaded."""
    return []


@pytest.fixture
def opened(tmp_path: Path, said: Said) -> Iterator[Open]:
    """A function that opens the pool of a file with a source; closed afterwards."""
    reaper, pools = Reaper(), []

    def open_pool(source: str = SOURCE, load_s: float = 20.0, **options: Any) -> FunctionPool:
        path = tmp_path / "functions.py"
        path.write_text(source)
        module = "subscribers.runner.transform_worker"
        argv = [sys.executable, "-P", "-m", module, "--file", str(path), "--runtime-dir", "/nowhere"]
        pools.append(FunctionPool(argv, os.environ, str(tmp_path), reaper, **options))
        said.append(pools[-1].loaded(time.monotonic() + load_s))
        return pools[-1]

    yield open_pool
    for pool in pools:
        pool.close()
    reaper.close(time.monotonic())


def call(pool: FunctionPool, name: str, text: str = "raw", timeout_s: float = 20.0) -> Any:
    """Call a function of the source."""
    return pool.call([NAMES.index(name), name, timeout_s, FIELDS, {"tool_output": text}], timeout_s)


def test_calls_return_what_functions_return(opened: Open, said: Said, tmp_path: Path) -> None:
    """The stem tells of its functions; a call gives a text, nothing, or a fault."""
    pool = opened()
    assert [handler[0] for handler in said[0]["handlers"]] == list(NAMES)
    assert (said[0]["error"], said[0]["files"]) == (None, [str(tmp_path / "functions.py")])
    assert call(pool, "upper", "ä" * 1_000_000) == Value("Ä" * 1_000_000)
    assert call(pool, "none") == Passed()
    assert call(pool, "dies") == Fault("failed", "its process ended in the middle of the call")
    assert pool.alive


def test_a_worker_is_used_again_and_one_that_ended_is_not(opened: Open) -> None:
    """One call after another goes to the same process; after a timeout or a crash there is another."""
    pool = opened()
    first = call(pool, "pid")
    assert call(pool, "pid") == first
    late = call(pool, "sleeps", timeout_s=0.2)
    assert late == Fault("timeout", "no answer within 0.2 s; its process was ended")
    second = call(pool, "pid")
    assert second != first
    os.kill(int(second.text), 9)
    until(lambda: is_gone(int(second.text)), "the worker to end")
    until(lambda: isinstance(call(pool, "pid"), Value), "its last thread to end, and another worker")
    assert call(pool, "pid") not in (first, second)
    assert pool.condemned >= 1


def test_calls_at_once_are_bounded_and_wait_in_their_own_time(opened: Open) -> None:
    """With one worker the second call waits for it, and its time runs meanwhile."""
    pool = opened(workers=1)
    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(call, pool, "sleeps", "raw", 2.0)
        until(lambda: not pool._slots._value, "the only worker to be taken")
        assert call(pool, "pid", timeout_s=0.1) == Fault("timeout", "all its processes were busy for 0.1 s")
        assert isinstance(call(pool, "pid"), Value)
        assert holding.result().kind == "timeout"


def test_many_threads_call_at_once(opened: Open) -> None:
    """Each gets its own answer, in no more processes than there may be."""
    pool = opened(workers=3)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: call(pool, "upper", f"text {n}"), range(60)))
        pids = {answer.text for answer in threads.map(lambda _: call(pool, "pid"), range(30))}
    assert answers == [Value(f"TEXT {n}") for n in range(60)]
    assert len(pids) <= 30


def test_a_file_that_cannot_be_loaded_says_why(opened: Open, said: Said, tmp_path: Path) -> None:
    """An error of the file is told with its line, one that ends the process as such."""
    opened("x = 1\nraise ValueError('no')\n")
    code, path, line, message, _ = said[0]["error"]
    assert (code, path, line) == ("cannot_load", str(tmp_path / "functions.py"), 2)
    assert "no" in message
    with pytest.raises(LoadFailed, match="ended while loading it, with 7"):
        opened("import os\nos._exit(7)\n")


def test_a_file_that_does_not_come_to_an_end_is_given_up(opened: Open) -> None:
    """Loading has a deadline, after which its process is killed."""
    with pytest.raises(LoadFailed, match="takes longer than"):
        opened("import time\ntime.sleep(1000)\n", load_s=1.5)


def test_a_program_that_is_not_there_cannot_be_loaded(tmp_path: Path) -> None:
    """What was to be released is released."""
    reaper, released = Reaper(), []
    with pytest.raises(LoadFailed, match="cannot be started"):
        FunctionPool(["/no/such"], {}, str(tmp_path), reaper, release=lambda: released.append(1))
    assert released == [1]
    reaper.close(time.monotonic())


def test_a_pool_whose_stem_has_died_says_so(opened: Open) -> None:
    """Calls fail at once; nothing waits for a fork that cannot come."""
    pool = opened()
    pool._kill_stem()
    pool._stem.wait()
    assert not pool.alive
    assert call(pool, "pid") == Fault("not_started", "its process is gone; it is loaded again soon")


def test_an_input_that_cannot_be_handed_over_is_a_fault(opened: Open) -> None:
    """It is told by its type, and the worker is none the worse."""
    pool = opened()
    said = pool.call([0, "upper", 1.0, FIELDS, {"tool_output": "x", "deep": object()}], 1.0)
    assert said == Fault("not_started", "its input cannot be handed over: TypeError")


def test_closing_ends_calls_under_way(opened: Open) -> None:
    """Who waits for an answer hears that there will be none."""
    pool = opened()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(call, pool, "sleeps")
        until(lambda: pool._slots._value < transform_pool.WORKERS, "the call to begin")
        pool.close()
        assert isinstance(waiting.result(20.0), Fault)
    pool.close()
